"""The explorer finds what is wrong, each clause with a small run of its own, and says the same every time."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from attrs import evolve, frozen

from tailmark.catalogue import Level
from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES
from tailmark.operations import Undo
from tailmark.subjects import Subject
from tailmark.traces import Step
from tailmark_conformance.examination import CheckReport, examine, selection_of
from tailmark_conformance.explorers import runs
from tailmark_conformance.explorers.fragments import FRAGMENTS
from tailmark_conformance.explorers.generated import Effort, Exploration, Found, explore
from tailmark_conformance.explorers.runs import CRASH, MODEL, ORACLES, Selection
from tailmark_conformance.subjects.targets import REFERENCE, REFERENCE_MODEL, Target, TargetError
from tailmark_conformance.verdicts import Verdict
from tailmark_reference.model.admits import Admission, Follower

EVERYTHING = Selection(clauses=tuple(PREDICATES))
EFFORT = Effort(seed=0, examples=40, steps=40, workers=1)


def _target(name: str, folder: Path) -> Target:
    return Target(
        words=(name if ":" in name or name == REFERENCE else f"wrong_subjects:{name}",), store_dir=folder
    )


def _explored(name: str, folder: Path, effort: Effort = EFFORT) -> Exploration:
    return explore(_target(name, folder), EVERYTHING, effort)


def _report(name: str, folder: Path, clauses: tuple[ClauseId, ...] = ()) -> CheckReport:
    selection = selection_of(clauses)
    exploration = explore(_target(name, folder), selection, EFFORT)
    return examine(exploration, selection, subject=name, profile="test", seconds=0.0, store_dir=None)


def _verdict(report: CheckReport, clause: str) -> Verdict:
    return next(one.verdict for one in report.clauses if one.id == clause)


class TestFaults:
    """A wrong subject is found out."""

    def test_a_simple_fault_has_a_small_run(self, tmp_path: Path) -> None:
        """One append shows that the revision grows by two."""
        exploration = _explored("counts_twice", tmp_path)
        found = next(one for one in exploration.found if one.fault.clause == "CMT-6")
        assert len(found.run.script.entries) == 1
        assert found.repeats

    def test_a_fault_that_needs_a_story_has_a_short_one(self, tmp_path: Path) -> None:
        """Two turns, two plans, a commit, an undo, and the commit that should be stale."""
        exploration = _explored("forgets_revision", tmp_path)
        found = next(one for one in exploration.found if one.fault.clause == "CMT-2")
        assert len(found.run.script.entries) <= 8
        assert found.run.trace is not None
        assert len(found.run.trace.steps) == len(found.run.script.entries) == found.fault.step + 1

    def test_several_clauses_in_one_run(self, tmp_path: Path) -> None:
        """An early fault does not hide a later one."""
        clauses = {one.fault.clause for one in _explored("counts_twice_and_forgets", tmp_path).found}
        assert {"CMT-6", "CMT-2", MODEL} <= clauses

    def test_names_are_counted_anew(self, tmp_path: Path) -> None:
        """A small run speaks of U1 and not of U37."""
        exploration = _explored("forgets_revision", tmp_path)
        found = next(one for one in exploration.found if one.fault.clause == "CMT-2")
        assert found.run.trace is not None
        names = {node.content.id for step in found.run.trace.steps for node in step.change.nodes}
        assert {"U1", "U2"} <= names

    def test_an_exception_is_a_crash(self, tmp_path: Path) -> None:
        """The subject's exception is its own fault, with the operation that raised as the last one."""
        exploration = _explored("crashes", tmp_path)
        found = next(one for one in exploration.found if one.fault.clause == CRASH)
        assert "LookupError: not today" in found.fault.text
        assert len(found.run.script.entries) == 1
        report = examine(
            exploration, EVERYTHING, subject="crashes", profile="test", seconds=0.0, store_dir=None
        )
        assert _verdict(report, CRASH) is Verdict.CRASH
        assert not report.conforms

    def test_what_does_not_repeat_is_flaky(self, tmp_path: Path) -> None:
        """A fault that the same operations do not show again is a failure all the same."""
        report = _report("flaky", tmp_path)
        assert _verdict(report, CRASH) is Verdict.FLAKY
        assert not report.conforms

    def test_of_another_implementation_the_oracles_are_not_compared(self, tmp_path: Path) -> None:
        """Only about the reference must they agree."""
        exploration = _explored("counts_twice", tmp_path)
        assert all(one.fault.clause != ORACLES for one in exploration.found)


class TestOracles:
    """The two oracles must agree about the reference."""

    def test_a_disagreement_is_a_failure_with_a_small_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Here the model is made to reject every undo."""
        monkeypatch.setattr(runs, "Follower", _Narrow)
        exploration = _explored(REFERENCE_MODEL, tmp_path)
        report = examine(
            exploration, EVERYTHING, subject="model", profile="test", seconds=0.0, store_dir=None
        )
        (disagreement,) = report.disagreements
        assert "no predicate is violated, the model does not admit" in disagreement.fault.text
        assert len(disagreement.run.script.entries) == 1
        assert not report.conforms

    def test_the_other_way_round(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Here the model admits everything."""
        monkeypatch.setattr(runs, "Follower", _Wide)
        exploration = explore(_Reference(tmp_path), EVERYTHING, EFFORT)
        texts = [one.fault.text for one in exploration.found if one.fault.clause == ORACLES]
        assert any("CMT-6" in text and "the model admits the step" in text for text in texts)


class _Narrow(Follower):
    def feed(self, observed: Step) -> Admission:  # type: ignore[explicit-override]  # Python 3.11 has no override
        """No undo is right."""
        admission = super().feed(observed)
        return Admission(admitted=False, text="no") if isinstance(observed.operation, Undo) else admission


class _Wide(Follower):
    def feed(self, observed: Step) -> Admission:  # type: ignore[explicit-override]  # as above
        """Everything is right."""
        super().feed(observed)
        return Admission(admitted=True)


@frozen
class _Reference:
    """A wrong subject in the place of the reference."""

    folder: Path

    @property
    def is_reference(self) -> bool:
        """It says so."""
        return True

    @property
    def shrinking_runs(self) -> int:
        """As many as any object's."""
        return _target("counts_twice", self.folder).shrinking_runs

    def opened(self) -> AbstractContextManager[Subject]:
        """One that counts twice."""
        return _target("counts_twice", self.folder).opened()


class TestRepetition:
    """The same check of the same code says the same."""

    def test_same_seed_same_result(self, tmp_path: Path) -> None:
        """Everything that was seen, and every small run."""
        first, second = (_explored("counts_twice_and_forgets", tmp_path) for _ in range(2))
        assert _plain(first) == _plain(second)

    def test_another_seed_is_another_check(self, tmp_path: Path) -> None:
        """The counts differ."""
        other = _explored("right", tmp_path, evolve(EFFORT, seed=1))
        assert other.holds != _explored("right", tmp_path).holds

    def test_the_number_of_processes_does_not_matter(self, tmp_path: Path) -> None:
        """Results are put together by the runs' numbers."""
        alone = _explored("counts_twice_and_forgets", tmp_path)
        both = _explored("counts_twice_and_forgets", tmp_path, evolve(EFFORT, workers=2))
        assert _plain(alone) == _plain(both)


class TestRounds:
    """Where the runs asked for leave a clause unreached, further rounds follow."""

    @pytest.mark.parametrize("seed", range(6))
    def test_a_few_runs_reach_every_clause_with_any_seed(self, tmp_path: Path, seed: int) -> None:
        """What begins with one run goes on until each clause was exercised, and shows what that many runs show."""
        few = evolve(EFFORT, seed=seed, examples=1, steps=45, workers=2)
        explored = _explored("right", tmp_path, evolve(few, rounds=20))
        assert set(explored.holds) >= set(PREDICATES)
        assert explored.effort == evolve(few, examples=explored.effort.examples)
        assert explored.effort.examples % len(FRAGMENTS) == 1
        assert _plain(explored) == _plain(_explored("right", tmp_path, explored.effort))

    def test_no_more_rounds_than_allowed(self, tmp_path: Path) -> None:
        """A subject that refuses everything leaves most clauses unreached, whatever is tried."""
        explored = _explored("answers_nothing", tmp_path, evolve(EFFORT, examples=1, steps=2, rounds=2))
        assert explored.effort.examples == 1 + 2 * len(FRAGMENTS)

    def test_what_was_reached_needs_no_round(self, tmp_path: Path) -> None:
        """Only the clauses that are judged count, and a broken one was reached."""
        selection = Selection(clauses=(ClauseId("CMT-6"),), model=False)
        for name in ("right", "counts_twice"):
            explored = explore(_target(name, tmp_path), selection, evolve(EFFORT, examples=5, rounds=2))
            assert explored.effort.examples == 5


def _plain(exploration: Exploration) -> object:
    def plain(found: Found) -> object:
        return found.fault, found.example, found.run.script.entries, found.repeats

    return (
        exploration.steps,
        exploration.holds,
        exploration.witnesses,
        exploration.hidden,
        [plain(one) for one in exploration.found],
    )


class TestVerdicts:
    """What the report says of a clause."""

    def test_the_model_conforms(self, tmp_path: Path) -> None:
        """No fault, no disagreement, every clause exercised."""
        selection = selection_of()
        exploration = explore(
            _target(REFERENCE_MODEL, tmp_path), selection, evolve(EFFORT, examples=120, steps=60)
        )
        report = examine(exploration, selection, subject="model", profile="test", seconds=0.0, store_dir=None)
        assert [one.id for one in report.clauses if one.verdict is not Verdict.PASS] == []
        assert report.disagreements == ()
        assert report.conforms

    def test_the_store_conforms(self, tmp_path: Path) -> None:
        """Nothing but what a short exploration did not reach."""
        report = _report(REFERENCE, tmp_path)
        assert {one.verdict for one in report.clauses} <= {Verdict.PASS, Verdict.UNTESTABLE}
        assert report.disagreements == ()

    def test_never_exercised_is_a_failure(self, tmp_path: Path) -> None:
        """A clause that no run could break is not passed."""
        selection = selection_of()
        exploration = explore(_target("right", tmp_path), selection, evolve(EFFORT, examples=1, steps=1))
        report = examine(exploration, selection, subject="x", profile="test", seconds=0.0, store_dir=None)
        assert _verdict(report, "CMT-2") is Verdict.UNTESTABLE
        assert not report.conforms

    def test_a_should_is_no_failure(self, tmp_path: Path) -> None:
        """It departs, and conforms; the report has the run all the same."""
        report = _report("departs", tmp_path)
        (departing,) = [one for one in report.clauses if one.verdict is Verdict.DEPARTS]
        assert departing.level is Level.SHOULD
        assert departing.found is not None
        assert {one.verdict for one in report.clauses} <= {
            Verdict.PASS,
            Verdict.DEPARTS,
            Verdict.UNTESTABLE,
        }

    def test_a_declared_deviation_is_no_failure(self, tmp_path: Path) -> None:
        """It is printed with its reason and link."""
        report = _report("deviates", tmp_path, (ClauseId("CMT-6"), ClauseId("TREE-1")))
        assert _verdict(report, "CMT-6") is Verdict.DEVIATES
        assert report.clauses[-1].deviation is not None
        assert report.conforms

    def test_what_is_not_offered_is_not_judged(self, tmp_path: Path) -> None:
        """By capability, and by what cannot be shown."""
        report = _report(
            "offers_a_view", tmp_path, (ClauseId("CMT-6"), ClauseId("PROJ-1"), ClauseId("BND-1"))
        )
        assert _verdict(report, "CMT-6") is Verdict.NOT_DECLARED
        assert _verdict(report, "PROJ-1") is Verdict.NOT_DECLARED
        assert _verdict(report, "BND-1") is Verdict.PASS
        assert report.conforms

    def test_chosen_clauses_alone(self, tmp_path: Path) -> None:
        """Other faults are not looked for."""
        report = _report("counts_twice", tmp_path, (ClauseId("TREE-1"),))
        assert [one.id for one in report.clauses] == ["TREE-1"]
        assert report.conforms


class TestTargets:
    """Targets that cannot be had."""

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("wrong_subjects:nothing", "has no nothing"),
            ("wrong_subjects:NO_CALLABLE", "is no callable"),
            ("wrong_subjects:cannot_be_made", "RuntimeError: no subject"),
            ("wrong_subjects:no_subject", "returned no subject"),
            ("no_such_module:made", "cannot be imported"),
        ],
    )
    def test_says_what_is_wrong(self, name: str, text: str, tmp_path: Path) -> None:
        """One line that names it."""
        with (
            pytest.raises(TargetError, match=text) as caught,
            Target(words=(name,), store_dir=tmp_path).opened(),
        ):
            pass
        assert "\n" not in str(caught.value)

    def test_stores_are_gone_afterwards(self, tmp_path: Path) -> None:
        """A check leaves its folder as it was."""
        _explored(REFERENCE, tmp_path, evolve(EFFORT, examples=2))
        assert list(tmp_path.iterdir()) == []
