"""A baseline accepts what is known and nothing else, and its file stays a person's own."""

import tomllib
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from reports import report_of
from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark_conformance.baseline import (
    UNTESTABLE,
    Baseline,
    BaselineError,
    KnownFailure,
    parse_baseline,
    read_text,
)
from tailmark_conformance.baseline_writing import DAYS, updated, write_baseline
from tailmark_conformance.checking import Profile, prepare
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.gate import failing_keys, gated
from tailmark_conformance.gating import Gate
from tailmark_conformance.subjects.targets import default_store_dir
from tailmark_conformance.verdicts import Verdict

TODAY: Final = date(2030, 1, 1)
FILE: Final = Path("known.toml")


def _report(subject: str = "counts_twice") -> CheckReport:
    return report_of(subject)


def _entries(report: CheckReport, expires: date = TODAY) -> tuple[KnownFailure, ...]:
    return tuple(
        KnownFailure(clause=clause, fingerprint=print_, reason="why", link="where", expires=expires)
        for clause, print_ in sorted(failing_keys(report.clauses))
    )


def _baseline(entries: Sequence[KnownFailure]) -> Baseline:
    return Baseline(profile="smoke", seed=0, known=tuple(entries))


def _text(entries: Sequence[KnownFailure], *, comment: str = "") -> str:
    tables = "".join(
        f'\n[[known]]{comment}\nclause = "{one.clause}"\nfingerprint = "{one.fingerprint}"\nreason = "{one.reason}"\n'
        f'link = "{one.link}"\nexpires = {one.expires}\n'
        for one in entries
    )
    return f'profile = "smoke"\nseed = 0\n{tables}'


class TestGate:
    """What a report says by a baseline."""

    def test_what_is_known_is_accepted_until_its_day(self) -> None:
        """On the day itself it still is."""
        report = _report()
        assert not report.conforms
        seen = gated(report, _baseline(_entries(report)), TODAY)
        assert seen.conforms
        assert {one.verdict for one in seen.clauses} == {Verdict.PASS, Verdict.KNOWN_FAILURE}
        assert all(one.found is not None for one in seen.clauses if one.known is not None)

    def test_what_expired_fails_again(self) -> None:
        """With the verdict that it has without a baseline; it is not stale."""
        report = _report()
        seen = gated(report, _baseline(_entries(report)), TODAY + timedelta(days=1))
        assert not seen.conforms
        assert seen.stale == ()
        assert [one.verdict for one in seen.clauses] == [one.verdict for one in report.clauses]
        assert any(one.known is not None for one in seen.clauses)

    def test_what_fails_no_more_is_stale(self) -> None:
        """An entry for something mended fails, so that it is taken out."""
        report = _report("right")
        entries = _entries(_report())
        assert report.conforms
        seen = gated(report, _baseline(entries), TODAY)
        assert seen.stale == entries
        assert not seen.conforms

    def test_a_part_of_a_profile_makes_nothing_stale(self) -> None:
        """It does not show what is fixed."""
        report = evolve(_report("right"), complete=False)
        assert gated(report, _baseline(_entries(_report())), TODAY).conforms

    def test_another_fault_of_the_same_clause_is_new(self) -> None:
        """A fingerprint is of one way to break a clause."""
        report = _report()
        entries = [evolve(one, fingerprint="0" * 16) for one in _entries(report)]
        seen = gated(report, _baseline(entries), TODAY)
        assert {one.verdict for one in seen.clauses} == {Verdict.PASS, Verdict.FAIL}
        assert seen.stale == tuple(entries)

    @pytest.mark.parametrize("verdict", [Verdict.FLAKY, Verdict.SUITE_ERROR])
    def test_some_verdicts_are_never_accepted(self, verdict: Verdict) -> None:
        """What comes and goes, and what is the suite's own fault."""
        report = _report()
        entries = _entries(report)
        changed = evolve(
            report,
            clauses=tuple(
                evolve(one, verdict=verdict) if one.verdict is Verdict.FAIL else one for one in report.clauses
            ),
        )
        seen = gated(changed, _baseline(entries), TODAY)
        assert not seen.conforms
        assert Verdict.KNOWN_FAILURE not in {one.verdict for one in seen.clauses}

    def test_what_was_never_exercised_can_be_known(self) -> None:
        """It has no fingerprint but a word."""
        report = _report("right")
        untested = evolve(report.clauses[0], verdict=Verdict.UNTESTABLE, exercised=0)
        changed = evolve(report, clauses=(untested, *report.clauses[1:]))
        (entry,) = _entries(changed)
        assert entry.key == (untested.id, UNTESTABLE)
        assert gated(changed, _baseline([entry]), TODAY).conforms


class TestUpdate:
    """`--update-baseline`."""

    def test_a_new_file_has_an_entry_for_each_failure(self) -> None:
        """Its reasons are for a person to give, and without them it is refused."""
        report = _report()
        update = updated("", report, TODAY)
        assert (update.added, update.removed) == (len(report.wrong), 0)
        with pytest.raises(BaselineError, match="reason is empty: say why it is accepted"):
            parse_baseline(update.text, FILE)
        baseline = parse_baseline(update.text, FILE, drafts=True)
        assert {one.key for one in baseline.known} == failing_keys(report.clauses)
        assert {one.expires for one in baseline.known} == {TODAY + timedelta(days=DAYS)}
        assert gated(report, baseline, TODAY).conforms

    @given(kept=st.sets(st.integers(min_value=0, max_value=2)), other=st.booleans())
    def test_what_stays_is_not_touched(self, kept: set[int], *, other: bool) -> None:
        """Comments, reasons and days of entries that still fail stay to the byte; the others go; a second update changes nothing."""
        report = _report()
        entries = [one for index, one in enumerate(_entries(report)) if index in kept]
        stale = KnownFailure(
            clause=ClauseId("TREE-1"), fingerprint="0" * 16, reason="old", link="x", expires=TODAY
        )
        text = _text(entries, comment="  # ours") + (_text([stale])[len(_text([])) :] if other else "")
        update = updated(text, report, TODAY)
        assert update.removed == int(other)
        assert update.added == len(_entries(report)) - len(entries)
        assert update.text.startswith(_text(entries, comment="  # ours").rstrip())
        known = parse_baseline(update.text, FILE, drafts=True).known
        assert {one.key for one in known} == failing_keys(report.clauses)
        again = updated(update.text, report, TODAY + timedelta(days=9))
        assert (again.text, again.added, again.removed) == (update.text, 0, 0)

    def test_expired_entries_stay_as_they_are(self) -> None:
        """A person decides about those."""
        report = _report()
        text = _text(_entries(report, expires=TODAY - timedelta(days=1)))
        assert updated(text, report, TODAY).text == text

    def test_the_list_may_be_written_in_one_line(self) -> None:
        """Then it becomes a list of tables."""
        (first, *others) = _entries(_report())
        line = (
            f'known = [{{clause = "{first.clause}", fingerprint = "{first.fingerprint}", reason = "why",'
            f' link = "where", expires = {first.expires}}}]'
        )
        update = updated(f'profile = "smoke"\nseed = 0\n{line}\n', _report(), TODAY)
        known = parse_baseline(update.text, FILE, drafts=True).known
        assert first in known
        assert len(known) == 1 + len(others) == 1 + update.added

    def test_nothing_is_left_where_nothing_fails(self) -> None:
        """The head stays."""
        update = updated(_text(_entries(_report())), _report("right"), TODAY)
        assert tomllib.loads(update.text) == {"profile": "smoke", "seed": 0}


class TestFile:
    """What a gate refuses before anything is run: one line, and nothing is written."""

    def _gate(
        self,
        path: Path,
        *,
        updates: bool,
        seed: int = 0,
        clause: str | None = None,
        examples: int | None = None,
    ) -> Gate:
        check = prepare(
            ("wrong_subjects:counts_twice",),
            seed=seed,
            examples=examples,
            clauses=[clause] if clause is not None else [],
            profile=Profile.SMOKE,
            store_dir=default_store_dir(),
        )
        return Gate.of(check, path, updates=updates)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """An update makes it, nothing else does."""
        path = tmp_path / "known.toml"
        with pytest.raises(BaselineError, match="--update-baseline makes a new one"):
            self._gate(path, updates=False)
        seen, line = self._gate(path, updates=True).judged(_report(), TODAY)
        assert seen.conforms
        assert line is not None
        assert "3 added, 0 removed" in line
        assert len(parse_baseline(read_text(path), path, drafts=True).known) == 3
        assert [*tmp_path.iterdir()] == [path]

    @pytest.mark.parametrize("options", [{"clause": "CMT-6"}, {"examples": 3}])
    def test_no_update_of_a_part(self, options: dict[str, str | int], tmp_path: Path) -> None:
        """Neither of some clauses nor of some runs."""
        path = tmp_path / "known.toml"
        with pytest.raises(BaselineError, match="leave out --clause and --examples"):
            self._gate(path, updates=True, **options)  # type: ignore[arg-type]  # either option
        assert not path.exists()

    def test_no_update_of_a_check_that_stopped_early(self, tmp_path: Path) -> None:
        """What was there stays."""
        path = tmp_path / "known.toml"
        path.write_text(_text([]))
        gate = self._gate(path, updates=True)
        with pytest.raises(BaselineError, match="nothing was written"):
            gate.judged(evolve(_report(), complete=False), TODAY)
        assert path.read_text() == _text([])

    @pytest.mark.parametrize("updates", [True, False])
    def test_another_seed_has_another_baseline(self, tmp_path: Path, *, updates: bool) -> None:
        """Other faults come up first."""
        path = tmp_path / "known.toml"
        path.write_text(_text([]))
        with pytest.raises(BaselineError, match="--seed 0, and this check of --profile smoke --seed 5"):
            self._gate(path, updates=updates, seed=5)
        assert path.read_text() == _text([])

    def test_a_folder_that_cannot_be_written(self) -> None:
        """One line."""
        with pytest.raises(BaselineError, match="it cannot be written"):
            write_baseline(Path("/proc/known.toml"), "x")


GOOD: Final = {
    "clause": '"CMT-6"',
    "fingerprint": '"0123456789abcdef"',
    "reason": '"why"',
    "link": '"where"',
    "expires": "2030-01-01",
}


def _item(**changes: str | None) -> str:
    fields = {**GOOD, **changes}
    lines = "".join(f"{name} = {value}\n" for name, value in fields.items() if value is not None)
    return f'profile = "smoke"\nseed = 0\n[[known]]\n{lines}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_item(clause='"CMT-99"'), "unknown clause 'CMT-99'"),
        (_item(fingerprint='"abc"'), "expected sixteen hexadecimal digits or 'untestable', found 'abc'"),
        (_item(reason='" "'), "reason is empty: say why it is accepted @ $.known[0]"),
        (_item(link='""'), "link is empty: say where it is tracked @ $.known[0]"),
        (_item(link=None), "'link' is missing @ $.known[0].link"),
        (_item(expires='"2030-01-01"'), "expected a date such as 2030-12-31, without quotes"),
        (_item(expires="2030-01-01T00:00:00Z"), "expected a date such as 2030-12-31, without quotes"),
        (_item(expires="20"), "expected a date such as 2030-12-31, without quotes, found 20"),
        (_item(clause="7"), "expected a text, found 7 @ $.known[0].clause"),
        (_item(owner='"me"'), "unknown key 'owner' @ $.known[0]"),
        (_item() + _item().partition("\n[")[2].join(["[", ""]), "stands there twice: leave one"),
        ("profile = 1\nseed = 0", "expected a text, found 1 @ $.profile"),
        ('profile = "smoke"\nseed = true', "expected a whole number, found True @ $.seed"),
        ('profile = "smoke"', "'seed' is missing"),
        ('profile = "smoke"\nseed = 0\nknown = 3', "expected a list of tables"),
        ('profile = "smoke"\nseed = 0\nknown = ["x"]', "expected a table @ $.known[0]"),
        ("profile", "this is no TOML"),
        ("known = " + "[" * 5_000, "baseline known.toml"),
    ],
)
def test_a_file_that_is_wrong_gets_one_line(text: str, said: str) -> None:
    """What, where, what to do."""
    with pytest.raises(BaselineError) as raised:
        parse_baseline(text, FILE)
    line = str(raised.value)
    assert line.startswith("--baseline known.toml: ")
    assert said in line
    assert "\n" not in line


@given(text=st.text(alphabet='abkprofile="smoke"\n[]{}=0 #.\\', max_size=60))
def test_no_text_is_anything_but_a_baseline_or_an_error(text: str) -> None:
    """Whatever stands there."""
    said = ""
    try:
        parse_baseline(text, FILE)
    except BaselineError as error:
        said = str(error)
    assert "\n" not in said


def test_every_clause_can_be_known() -> None:
    """An entry may name each."""
    for clause in clauses():
        KnownFailure(clause=clause, fingerprint=UNTESTABLE, reason="why", link="where", expires=TODAY)
