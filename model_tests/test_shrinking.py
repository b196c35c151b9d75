"""Shrinking keeps the fault, comes to an end, and leaves nothing that could go."""

from random import Random

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tailmark.budgets import Model
from tailmark.identifiers import CallId, ClauseId, ModelName, NodeId, PartId, PlanId, SessionId
from tailmark.judge import PREDICATES
from tailmark.messages import Message, Role, Text, ToolCall
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Operation
from tailmark.outcomes import Planned
from tailmark_conformance.explorers.renaming import renamed
from tailmark_conformance.explorers.runs import FaultKey, Run, Selection, cut, replay, walk
from tailmark_conformance.explorers.scripts import BoundCommit, Script, entries_of
from tailmark_conformance.explorers.shrinking import Shrinker
from tailmark_conformance.explorers.simplifying import simplifications
from tailmark_conformance.recording import Recorder
from tailmark_conformance.scenarios.words import summary, user
from tailmark_reference.model.subject import ModelSubject
from wrong_subjects import counts_twice_and_forgets

CLAUSES = Selection(clauses=(ClauseId("CMT-6"), ClauseId("CMT-2")), model=False)
EVERYTHING = Selection(clauses=tuple(PREDICATES))


def _shrunk(run: Run, key: FaultKey, subject: ModelSubject) -> Run:
    smallest = Shrinker(key, lambda script: replay(subject, script, CLAUSES)).shrink(
        cut(run, run.faults[key]).script
    )
    assert smallest is not None
    return smallest


@settings(max_examples=15)
@given(random=st.randoms(use_true_random=False))
def test_the_smallest_run_has_the_fault_and_nothing_to_spare(random: Random) -> None:
    """No single operation can be left out any more."""
    subject = counts_twice_and_forgets()
    run = walk(subject, random, 30, CLAUSES)
    for key in run.faults:
        smallest = _shrunk(run, key, subject)
        entries = smallest.script.entries
        assert smallest.faults[key].step == len(entries) - 1
        for index in range(len(entries)):
            fewer = evolve(smallest.script, entries=entries[:index] + entries[index + 1 :])
            assert key not in replay(subject, fewer, CLAUSES).faults


@settings(max_examples=15)
@given(random=st.randoms(use_true_random=False))
def test_a_script_repeats_its_run(random: Random) -> None:
    """The same operations, with commits bound to their begins, show the same."""
    subject = ModelSubject()
    run = walk(subject, random, 40, EVERYTHING)
    again = replay(subject, run.script, EVERYTHING)
    assert (again.steps, again.faults) == (run.steps, run.faults)
    # Not every walk looks at a fresh process; a replay does.
    assert again.holds >= run.holds
    assert again.script == run.script


@settings(max_examples=10)
@given(random=st.randoms(use_true_random=False))
def test_no_simplification_is_the_script_itself(random: Random) -> None:
    """Each candidate has one thing less in it."""
    script = walk(ModelSubject(), random, 15, CLAUSES).script
    assert script not in list(simplifications(script))


def test_contents_become_plain() -> None:
    """Long texts, spare parts, budgets and second sessions go."""
    message = evolve(
        user("U7", "a long text " * 50),
        parts=(Text(id=PartId("text"), text="long " * 50), Text(id=PartId("more"), text="more")),
    )
    script = Script(
        sessions=(SessionId("S1"), SessionId("S2")),
        model=Model(name=ModelName("m")),
        entries=(Append(session=SessionId("S1"), message=message, follows=None),),
    )
    subject = counts_twice_and_forgets()
    smallest = Shrinker(
        (ClauseId("CMT-6"), ""), lambda candidate: replay(subject, candidate, CLAUSES)
    ).shrink(script)
    assert smallest is not None
    assert smallest.script.sessions == (SessionId("S1"),)
    (entry,) = smallest.script.entries
    assert isinstance(entry, Append)
    assert entry.message.id == "U1"
    assert [part.text for part in entry.message.parts if isinstance(part, Text)] == ["hi"]


def test_a_fault_that_does_not_repeat_is_none() -> None:
    """The caller says flaky then."""
    script = Script(sessions=(SessionId("S1"),), model=Model(name=ModelName("m")), entries=())
    shrinker = Shrinker((ClauseId("CMT-6"), ""), lambda candidate: replay(ModelSubject(), candidate, CLAUSES))
    assert shrinker.shrink(script) is None


class TestBinding:
    """Commits take the plan that their begin answers."""

    def _recorded(self, *extra: Operation, forged: bool) -> tuple[Recorder, Script]:
        recorder = Recorder(ModelSubject(), sessions=(SessionId("S"),), model=Model(name=ModelName("m")))
        for operation in (
            *extra,
            Append(session=SessionId("S"), message=user("U1")),
            Append(session=SessionId("S"), message=user("U2")),
            BeginCompaction(session=SessionId("S"), plan=PlanId("P1")),
        ):
            recorder.perform(operation)
        outcome = recorder.steps[-1].outcome
        assert isinstance(outcome, Planned)
        plan = evolve(outcome.plan, first_kept=NodeId("U1")) if forged else outcome.plan
        recorder.perform(CommitCompaction(plan=plan, reply=summary("s")))
        script = Script(
            sessions=(SessionId("S"),),
            model=Model(name=ModelName("m")),
            entries=entries_of(recorder.steps),
        )
        return recorder, script

    def test_a_shorter_run_has_another_plan(self) -> None:
        """One message less, another revision in the plan, and the commit still fits."""
        _, script = self._recorded(Append(session=SessionId("S"), message=user("U0")), forged=False)
        shorter = evolve(script, entries=script.entries[1:])
        again = replay(ModelSubject(), shorter, EVERYTHING)
        assert again.faults == {}
        commit = again.script.entries[-1]
        assert isinstance(commit, BoundCommit)
        assert commit.answered.revision == 2
        assert again.holds[ClauseId("CMT-13")] == 1

    def test_the_forged_field_stays_forged(self) -> None:
        """The same value goes into the plan of the other run."""
        recorder, script = self._recorded(forged=True)
        commit = script.entries[-1]
        assert isinstance(commit, BoundCommit)
        assert commit.forged == {"first_kept": "U1"}
        again = replay(ModelSubject(), script, EVERYTHING)
        assert again.script == script
        assert again.steps == len(recorder.steps)

    def test_without_its_begin_a_commit_is_passed_over(self) -> None:
        """A script that lost the begin lost the commit too."""
        _, script = self._recorded(forged=False)
        without = evolve(script, entries=(*script.entries[:2], script.entries[3]))
        assert replay(ModelSubject(), without, EVERYTHING).steps == 2


def test_names_in_all_places_are_counted_anew() -> None:
    """Ids of messages and calls, alone and as part of other ids; enums and words stay."""
    message = Message(
        id=NodeId("A12"),
        role=Role.ASSISTANT,
        parts=(
            Text(id=PartId("text"), text="see A12"),
            ToolCall(id=PartId("call-c9"), call=CallId("c9"), name="look", input="{}"),
        ),
    )
    script = Script(
        sessions=(SessionId("S1"),),
        model=Model(name=ModelName("m")),
        entries=(Append(session=SessionId("S1"), message=message, follows=NodeId("U30")),),
    )
    entry = renamed(script).entries[0]
    assert isinstance(entry, Append)
    assert entry.message.id == "A1"
    assert entry.follows == "U1"
    assert entry.message.role is Role.ASSISTANT
    assert [part.id for part in entry.message.parts] == ["text", "call-c1"]
    assert renamed(renamed(script)) == renamed(script)
