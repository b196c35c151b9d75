"""Predicates on compactions where a wrong implementation could slip through: logs, readings, forged plans."""

import pytest
from attrs import evolve

from tailmark.budgets import Model
from tailmark.declarations import Declaration, Field, Readings, TailReading
from tailmark.examples import Becomes, changed
from tailmark.identifiers import ClauseId, ModelName, NodeId, SessionId, Tokens
from tailmark.json_form import structure, unstructure
from tailmark.judge import StepVerdict, judge_trace
from tailmark.messages import Message
from tailmark.operations import CommitCompaction
from tailmark.outcomes import Committed
from tailmark.plans import Checkpoint, Trigger
from tailmark.traces import Step, Trace
from tailmark.views import Change, StoredNode
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, tool, user
from tailmark_reference.model.subject import ModelSubject

LOG = tuple(one for one in Field if one not in (Field.OUTCOME, Field.RECORD))
"""What a recorded session cannot show."""


def _verdicts(trace: Trace, clause: str, step: int) -> list[StepVerdict]:
    return [
        judgement.verdict
        for judgement in judge_trace(trace)
        if judgement.clause == ClauseId(clause) and judgement.step == step
    ]


def _with(trace: Trace, path: str, value: object) -> Trace:
    return structure(changed(unstructure(trace), Becomes(path=path, value=value)), Trace)


def _two_compactions() -> Trace:
    """Three turns in two compactions: the checkpoints are written in the steps 2 and 6."""
    play = Play(ModelSubject())
    play.start(tail_budget=20)
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    play.commit(play.begin("P1"), summary("the first turn"))
    play.append(user("U3"))
    play.append(assistant("A3"))
    play.commit(play.begin("P2"), summary("two turns"))
    return play.trace


@pytest.mark.parametrize(
    ("clause", "field", "value"),
    [
        ("BND-1", "first_kept", "A3"),
        ("BND-1", "first_kept", None),
        ("BND-1", "first_kept", "nowhere"),
        ("BND-7", "first_kept", "U1"),
        ("CHK-3", "first_excluded", "A2"),
        ("CHK-3", "last_excluded", "U2"),
        ("CHK-3", "first_excluded", None),
        ("CHK-3", "previous", None),
        ("CHK-3", "old_first_kept", None),
        ("CHK-3", "old_first_kept", "U1"),
        ("CHK-4", "first_kept", "checkpoint:P1"),
        ("CHK-4", "last_excluded", "checkpoint:P1"),
    ],
)
def test_a_log_shows_what_a_checkpoint_breaks(clause: str, field: str, value: object) -> None:
    """Where plans, projections, costs and revisions are hidden, the nodes alone decide."""
    trace = _two_compactions()
    log = evolve(trace, declaration=evolve(trace.declaration, hidden=LOG))
    assert _verdicts(log, clause, 6) == [StepVerdict.HOLDS]
    broken = _with(log, f"$.steps[6].change.nodes[0].content.{field}", value)
    assert _verdicts(broken, clause, 6) == [StepVerdict.VIOLATED]


def test_a_log_shows_a_wrong_parent() -> None:
    """CHK-1 needs the node and the leaf alone."""
    trace = _two_compactions()
    log = evolve(trace, declaration=evolve(trace.declaration, hidden=LOG))
    assert _verdicts(log, "CHK-1", 6) == [StepVerdict.HOLDS]
    assert _verdicts(_with(log, "$.steps[6].change.nodes[0].parent", "U3"), "CHK-1", 6) == [
        StepVerdict.VIOLATED
    ]


def _checkpoint(name: str, first_kept: str | None, previous: str | None = None) -> Checkpoint:
    return Checkpoint(
        id=NodeId(name),
        summary="so far",
        first_kept=NodeId(first_kept) if first_kept is not None else None,
        old_first_kept=None,
        previous=NodeId(previous) if previous is not None else None,
        first_excluded=NodeId("U1"),
        last_excluded=NodeId("U1"),
        trigger=Trigger.MANUAL,
        model=ModelName("model"),
        refresh=False,
        instructions=None,
        finish=None,
        tokens_before=Tokens(0),
        tokens_after=Tokens(0),
    )


def _log_of(*nodes: Message | Checkpoint) -> Trace:
    """A log in which each node follows the one before. Checkpoints are commits, whatever their place."""
    play = Play(ModelSubject())
    play.save(user("U0"), assistant("A0"), user("U00"), assistant("A00"))
    plan = play.begin()
    empty = play.recorder.start
    (view,) = empty.sessions
    steps = []
    parent: NodeId | None = None
    for node in nodes:
        change = Change(
            sessions=(evolve(view, leaf=node.id),),
            nodes=(StoredNode(parent=parent, content=node, estimate=Tokens(0)),),
        )
        steps.append(
            Step(
                operation=CommitCompaction(plan=plan, reply=None),
                outcome=Committed(checkpoint=node.id),
                change=change,
            )
        )
        parent = node.id
    return Trace(
        declaration=Declaration(implementation="a log", capabilities=(), hidden=LOG),
        sessions=(SessionId("S"),),
        model=Model(name=ModelName("model")),
        start=empty,
        steps=tuple(steps),
    )


def test_a_call_and_its_result_on_two_sides_of_a_checkpoint() -> None:
    """A place between a call and its result is found although an older checkpoint stands between the two."""
    log = _log_of(
        user("U1"),
        assistant("A1", calls=("c1",)),
        _checkpoint("C1", "U1"),
        tool("T1", "c1"),
        assistant("A2"),
        user("U2"),
        _checkpoint("C2", "T1", "C1"),
    )
    assert _verdicts(log, "BND-2", 6) == [StepVerdict.VIOLATED]
    assert _verdicts(log, "TRG-14", 2) == [StepVerdict.VIOLATED]
    assert _verdicts(log, "CMT-3", 2) == [StepVerdict.VIOLATED]
    assert _verdicts(log, "TRG-14", 6) == []


def test_keeping_nothing_is_a_reading() -> None:
    """Who declares `keeps-nothing` takes the end of the branch, and is held to it."""
    play = Play(ModelSubject())
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    play.begin()
    nothing = Readings(tail=TailReading.KEEPS_NOTHING)
    trace = evolve(play.trace, declaration=evolve(play.trace.declaration, readings=nothing))
    assert _verdicts(trace, "BND-1", 1) == [StepVerdict.VIOLATED]
    at_end = _with(trace, "$.steps[1].outcome.plan.first_kept", None)
    assert _verdicts(at_end, "BND-1", 1) == [StepVerdict.HOLDS]
    assert _verdicts(at_end, "BND-9", 1) == []


def test_what_is_a_plans_own_may_differ() -> None:
    """Other instructions are no forgery where the request carries them."""
    play = Play(ModelSubject())
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    plan = play.begin()
    assert plan.request is not None
    own = evolve(plan, instructions="short", request=evolve(plan.request, instructions="short"))
    play.commit(own, summary("the first turn"))
    assert _verdicts(play.trace, "CMT-4", 2) == []
