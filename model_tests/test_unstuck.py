"""From every state that the model can reach, a one-token draft is sent, or the outcome says with a closed reason why none can be."""

from random import Random

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tailmark.identifiers import ModelName, NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Role, Text, Usage
from tailmark.operations import (
    Append,
    BeginCompaction,
    CommitCompaction,
    EndAnswer,
    Operation,
    Retry,
    Send,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import LargePart, Sent, TooLarge
from tailmark.plans import SummaryAnswer, SummaryFailure
from tailmark_conformance.explorers.unstuck import rescue, small_world, stuck
from tailmark_reference.model.step import step
from tailmark_reference.model.world import PlanState, World

S1 = SessionId("S1")


@given(random=st.randoms(use_true_random=False))
def test_walks_never_end_in_a_stuck_state(random: Random) -> None:
    """A weighted walk; `conformance/benchmarks/unstuck.py` walks a million steps."""
    assert list(stuck(random, 50, 5)) == []


def _message(name: str, role: Role, tokens: int) -> Message:
    return Message(id=NodeId(name), role=role, parts=(Text(id=PartId("text"), text="x" * (4 * tokens)),))


def _asked(world: World, depth: int) -> list[Operation]:
    """A small alphabet: drafts and answers, small and large, with a usage and without; compactions, good and failed; retry and undo."""
    usage = Usage(input=Tokens(60), output=Tokens(5), model=ModelName("model"))
    leaf = world.sessions[S1].leaf
    answer = _message(f"A{depth}", Role.ASSISTANT, 4)
    told = evolve(answer, usage=usage, built_on=leaf.id) if leaf is not None else answer
    operations: list[Operation] = [
        Send(session=S1, message=_message(f"U{depth}", Role.USER, 2)),
        Send(session=S1, message=_message(f"V{depth}", Role.USER, 40)),
        Append(session=S1, message=told),
        BeginCompaction(session=S1, plan=PlanId(f"P{depth}")),
        Retry(session=S1),
        Undo(session=S1),
    ]
    if S1 in world.process.running:
        operations.append(EndAnswer(session=S1, end=AnswerEnd.FINAL))
    else:
        operations.append(StartAnswer(session=S1))
    for known in world.process.plans.values():
        if known.state is PlanState.OPEN:
            text = Text(id=PartId("text"), text="short")
            operations.append(CommitCompaction(plan=known.plan, reply=SummaryAnswer(parts=(text,))))
            operations.append(CommitCompaction(plan=known.plan, reply=SummaryFailure(text="no")))
    return operations


def _explore(world: World, depth: int, deepest: int) -> int:
    assert rescue(world, S1).is_through
    if depth == deepest:
        return 1
    count = 1
    for operation in _asked(world, depth):
        after, outcome = step(world, operation)
        if after is not world or isinstance(outcome, Sent):
            count += _explore(after, depth + 1, deepest)
    return count


def test_every_sequence_of_a_small_alphabet_can_go_on() -> None:
    """Enumerated to depth 5 in a window of 120 tokens, to depth 7 by the deep profile."""
    deepest = 7 if settings.default is settings.get_profile("deep") else 5
    assert _explore(small_world(120, 0), 0, deepest) > 1000


def test_an_overhead_that_leaves_nothing_is_a_closed_reason() -> None:
    """Instructions and tools fill the window: the outcome says so."""
    fared = rescue(small_world(100, 75), S1)
    assert isinstance(fared.outcome, TooLarge)
    assert fared.outcome.part is LargePart.OVERHEAD
    assert fared.is_through
