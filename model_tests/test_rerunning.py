"""What another subject fails with is run again: on itself, and on the reference in its place."""

from itertools import count
from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from tailmark.budgets import Model, Settings
from tailmark.declarations import (
    AdvanceReading,
    Capability,
    Declaration,
    Field,
    Lack,
    MeasureReading,
    OversizedReading,
    Readings,
    RefreshReading,
)
from tailmark.identifiers import ClauseId, Revision, SessionId
from tailmark.judge import PREDICATES
from tailmark.operations import CommitCompaction, Operation
from tailmark.outcomes import Outcome
from tailmark.rules.verdicts import Violated
from tailmark.subjects import Subject
from tailmark.views import Observation
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.examination import examine, selection_of
from tailmark_conformance.explorers import runs
from tailmark_conformance.explorers.generated import Effort, Exploration, explore
from tailmark_conformance.explorers.renaming import with_texts
from tailmark_conformance.explorers.rerunning import replay_elsewhere, rerun_on
from tailmark_conformance.explorers.runs import walk
from tailmark_conformance.subjects.reference import InPlaceOf, has_readings
from tailmark_conformance.subjects.targets import Target
from tailmark_conformance.verdicts import Verdict
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.subject import ModelSubject
from wrong_subjects import counts_twice, right

EVERYTHING = selection_of()
EFFORT = Effort(seed=0, examples=12, steps=30, workers=1)


class OwnIds:
    """A model, but that the ids of its checkpoints are others in each run: a store that numbers its rows."""

    def __init__(self, numbers: "count[int]", model: ModelSubject) -> None:
        self._model = model
        self._numbers = numbers
        self._there: dict[str, str] = {}
        self._here: dict[str, str] = {}

    @property
    def declaration(self) -> Declaration:
        """The model's."""
        return self._model.declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """As the model."""
        self._model.reset(sessions, model, settings)
        self._there.clear()
        self._here.clear()

    def perform(self, operation: Operation) -> Outcome:
        """As the model, with ids changed both ways."""
        asked = with_texts(operation, lambda text: self._here.get(text, text))
        return with_texts(self._model.perform(asked), self._shown)

    def observe(self) -> Observation:
        """As the model."""
        return with_texts(self._model.observe(), self._shown)

    def observe_fresh(self) -> Observation:
        """As the model."""
        return with_texts(self._model.observe_fresh(), self._shown)

    def close(self) -> None:
        """Nothing is held."""

    def _shown(self, text: str) -> str:
        if text.startswith("checkpoint:") and text not in self._there:
            name = f"row-{next(self._numbers)}"
            self._there[text] = name
            self._here[name] = text
        return self._there.get(text, text)


@settings(max_examples=10)
@given(random=st.randoms(use_true_random=False))
def test_a_run_is_the_same_elsewhere(random: Random) -> None:
    """Whatever ids the other subject gives: every operation reaches the same, and the same clauses are exercised as often."""
    # It counts twice, and so the run keeps its trace.
    seen = walk(OwnIds(count(1), counts_twice()), random, 40, EVERYTHING)
    assert seen.trace is not None
    for other in (OwnIds(count(1_000), counts_twice()), counts_twice()):
        there = replay_elsewhere(seen.script, seen.trace.steps, other, EVERYTHING)
        assert there.steps == seen.steps
        assert set(there.faults) >= set(seen.faults)
        # Not every walk looks at a fresh process; a replay does.
        assert there.holds >= seen.holds


def _target(name: str, folder: Path) -> Target:
    return Target(words=(f"wrong_subjects:{name}",), store_dir=folder)


def _rerun(exploration: Exploration, folder: Path, *, over_wire: bool = False) -> Exploration:
    place = InPlaceOf(told=exploration.declaration, store_dir=folder, over_wire=over_wire)
    return rerun_on(place, exploration, EVERYTHING)


def _verdicts(exploration: Exploration) -> dict[ClauseId, Verdict]:
    report = examine(exploration, EVERYTHING, subject="", profile="", seconds=0.0, store_dir=None)
    # So few runs do not reach everything.
    return {one.id: one.verdict for one in report.wrong if one.verdict is not Verdict.UNTESTABLE}


@pytest.mark.parametrize("over_wire", [True, False])
@pytest.mark.parametrize("name", ["counts_twice_and_forgets", "crashes", "shows_no_projection"])
def test_a_fault_of_the_subject_is_its_own(name: str, tmp_path: Path, *, over_wire: bool) -> None:
    """The reference does not show it, and the verdicts stay."""
    seen = explore(_target(name, tmp_path), EVERYTHING, EFFORT)
    assert _verdicts(seen)
    assert _verdicts(_rerun(seen, tmp_path, over_wire=over_wire)) == _verdicts(seen)
    assert [*tmp_path.iterdir()] == []


def _wrong_predicate(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**PREDICATES, ClauseId("TREE-1"): lambda scene: Violated(text="expected nothing, saw something")}  # noqa: ARG005  # the type of a predicate
    monkeypatch.setattr(runs, "PREDICATES", wrong)


@pytest.mark.parametrize("over_wire", [True, False])
def test_a_fault_of_a_predicate_is_the_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, over_wire: bool
) -> None:
    """Here the predicate of TREE-1 is wrong: what it says of the subject it says of the reference too."""
    _wrong_predicate(monkeypatch)
    seen = explore(_target("right", tmp_path), EVERYTHING, EFFORT)
    assert _verdicts(seen) == {ClauseId("TREE-1"): Verdict.FAIL}
    assert _verdicts(_rerun(seen, tmp_path, over_wire=over_wire)) == {ClauseId("TREE-1"): Verdict.SUITE_ERROR}


def test_a_check_that_is_wrong_by_the_suite_alone_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4. With a fault of the subject beside it, exit 1."""
    _wrong_predicate(monkeypatch)
    options = ["--clause", "TREE-1", "--clause", "CMT-6", "--examples", "6", "--workers", "1"]
    assert main(["check", "wrong_subjects:right", *options]) == Exit.SUITE_ERROR
    out = capsys.readouterr().out
    assert "TREE-1: the reference in the subject's place fails in the same way" in out
    assert "cannot be judged: the suite itself is wrong" in out.splitlines()[-1]
    assert main(["check", "wrong_subjects:counts_twice", *options]) == Exit.DOES_NOT
    capsys.readouterr()


READINGS = [
    Readings(),
    Readings(refresh=RefreshReading.VERBATIM),
    Readings(advance=AdvanceReading.TO_LAST_TURN),
    Readings(oversized=OversizedReading.OPEN),
    Readings(measure=MeasureReading.PLAIN),
]


@pytest.mark.parametrize("over_wire", [True, False])
@pytest.mark.parametrize("readings", READINGS)
def test_the_reference_has_the_readings_that_it_says(
    readings: Readings, tmp_path: Path, *, over_wire: bool
) -> None:
    """In the place of one with these readings it conforms, whatever that one hides, lacks and counts."""
    assert has_readings(readings)
    told = evolve(
        right().declaration,
        readings=readings,
        hidden=(Field.SIZES, Field.REVISION),
        lacks=(Lack.SAVE,),
        capabilities=(*right().declaration.capabilities, Capability.BATCH),
    )
    place = InPlaceOf(told=told, store_dir=tmp_path, over_wire=over_wire)
    seen = explore(place, EVERYTHING, EFFORT)
    assert seen.found == ()
    assert seen.steps > 100


class _SometimesCountsTwice(ModelSubject):
    """Wrong in three runs of four."""

    runs = count()

    @override
    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        super().reset(sessions, model, settings)
        self._rules = evolve(RULES, revision_after=_two_more) if next(self.runs) % 4 < 3 else RULES


def _two_more(revision: Revision, writes: int) -> Revision:
    return Revision(revision + 2 * min(writes, 1))


def sometimes() -> Subject:
    """By a name that a target can have."""
    return _SometimesCountsTwice()


def test_what_comes_by_chance_is_flaky(tmp_path: Path) -> None:
    """The smallest run is tried once more."""
    target = Target(words=("test_rerunning:sometimes",), store_dir=tmp_path)
    verdicts: set[Verdict] = set()
    for _ in range(4):
        _SometimesCountsTwice.runs = count(len(verdicts))
        verdicts.update(_verdicts(explore(target, EVERYTHING, EFFORT)).values())
    assert Verdict.FLAKY in verdicts


def test_an_id_of_the_first_is_never_asked_of_the_second() -> None:
    """Nodes pair by the step that wrote them."""
    seen = walk(OwnIds(count(1), counts_twice()), Random(3), 80, EVERYTHING)
    assert seen.trace is not None
    met: list[str] = []

    class _Listening(OwnIds):
        @override
        def perform(self, operation: Operation) -> Outcome:
            if not isinstance(operation, CommitCompaction):
                with_texts(operation, self._meet)
            return super().perform(operation)

        def _meet(self, text: str) -> str:
            met.append(text)
            return text

    replay_elsewhere(seen.script, seen.trace.steps, _Listening(count(500), counts_twice()), EVERYTHING)
    rows = {int(text.removeprefix("row-")) for text in met if text.startswith("row-")}
    assert rows
    assert all(row >= 500 for row in rows)
