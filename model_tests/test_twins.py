"""The model admits every other implementation that the rules allow, and the predicates find nothing in it."""

from random import Random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tailmark.declarations import AdvanceReading, Readings, RefreshReading
from tailmark.identifiers import NodeId, PartId, SessionId, Tokens
from tailmark.judge import PREDICATES
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, ToolResult
from tailmark.operations import Abandon, EndAnswer, Operation
from tailmark.outcomes import Done, Outcome
from tailmark.plans import Plan
from tailmark_conformance.explorers.runs import SHOULDS, Selection, walk
from tailmark_reference.model import step as transitions
from tailmark_reference.model import writing
from tailmark_reference.model.rules import RULES, Rules, allowed_places
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.model.tree import TreeNode

EVERYTHING = Selection(clauses=tuple(PREDICATES))


def _youngest_place(
    tail: tuple[TreeNode, ...], *, first: bool, budget: Tokens | None, reading: AdvanceReading
) -> TreeNode:
    return allowed_places(tail, first=first, budget=budget, reading=reading)[-1]


def _middle_place(
    tail: tuple[TreeNode, ...], *, first: bool, budget: Tokens | None, reading: AdvanceReading
) -> TreeNode:
    places = allowed_places(tail, first=first, budget=budget, reading=reading)
    return places[len(places) // 2]


def _bytes(message: Message) -> Tokens:
    return Tokens(sum(len(getattr(part, "text", "").encode()) for part in message.parts) + 1)


def _length(text: str) -> Tokens:
    return Tokens(len(text))


def _own_id(plan: Plan, taken: object) -> NodeId:  # noqa: ARG001  # the type of the rule
    return NodeId(f"{plan.session}/{plan.revision}/{plan.id}")


class _AbandonsInToolMessages(ModelSubject):
    """Writes abandoned results into a `tool` message of its own."""

    @override
    def perform(self, operation: Operation) -> Outcome:
        """As the model, but for the form of abandoned results."""
        before = self.world
        outcome = super().perform(operation)
        if (
            not isinstance(operation, Abandon | EndAnswer)
            or not isinstance(outcome, Done)
            or not outcome.abandoned
        ):
            return outcome
        session = before.sessions[operation.session]
        world = before.untouched()
        if isinstance(operation, EndAnswer):
            assert operation.end is not AnswerEnd.FINAL
            world = transitions.without_answer(world, session)
        message = Message(
            id=NodeId(f"abandoned/{session.id}/{session.revision}"),
            role=Role.TOOL,
            parts=tuple(
                ToolResult(
                    id=PartId(f"{index}"), call=known.call, status=ResultStatus.ABANDONED, text="nobody"
                )
                for index, known in enumerate(writing.open_calls_of(session))
            ),
        )
        world, session = writing.write(RULES, world, session, message)
        self._world = world.with_session(writing.bumped(RULES, session, 1))
        return evolve(outcome, written=(message.id,))


TWINS: dict[str, Rules] = {
    "the reference": RULES,
    "the youngest allowed place": evolve(RULES, choose_place=_youngest_place),
    "some allowed place": evolve(RULES, choose_place=_middle_place),
    "another estimator": evolve(RULES, estimate=_bytes, estimate_summary=_length),
    "other ids": evolve(RULES, checkpoint_id=_own_id),
    "a verbatim refresh": evolve(RULES, readings=Readings(refresh=RefreshReading.VERBATIM)),
    "advances to the last turn": evolve(RULES, readings=Readings(advance=AdvanceReading.TO_LAST_TURN)),
}


def _faults(subject: ModelSubject, random: Random) -> list[str]:
    run = walk(subject, random, 60, EVERYTHING)
    return [
        f"{fault.clause} at {fault.step}: {fault.text}"
        for fault in run.faults.values()
        if fault.clause not in SHOULDS
    ]


@pytest.mark.parametrize("name", TWINS)
@given(random=st.randoms(use_true_random=False))
def test_a_twin_is_admitted(name: str, random: Random) -> None:
    """Another allowed place, another estimator, other ids, another reading: both oracles find no fault."""
    assert _faults(ModelSubject(TWINS[name]), random) == []


@given(random=st.randoms(use_true_random=False))
def test_abandoned_results_may_stand_in_tool_messages(random: Random) -> None:
    """DEF-ABANDON leaves the form of the result to the implementation."""
    assert _faults(_AbandonsInToolMessages(), random) == []


def test_an_empty_store_is_admitted() -> None:
    """A run without any operation has no fault."""
    run = walk(ModelSubject(), Random(0), 0, EVERYTHING)
    assert run.faults == {}
    assert run.script.sessions[0] == SessionId("S1")
