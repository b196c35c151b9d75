"""The model admits every other implementation that the rules allow, and the predicates find nothing in it."""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tailmark.budgets import Budgets, Model, Settings
from tailmark.declarations import (
    AdvanceReading,
    MeasureReading,
    OversizedReading,
    Readings,
    RefreshReading,
)
from tailmark.identifiers import NodeId, PartId, PlanId, Revision, SessionId, Tokens
from tailmark.judge import PREDICATES
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, Text, ToolResult
from tailmark.operations import Abandon, EndAnswer, Operation
from tailmark.outcomes import Done, Outcome
from tailmark.plans import Plan, Trigger
from tailmark_conformance.explorers.runs import SHOULDS, Selection, walk
from tailmark_reference.model import step as transitions
from tailmark_reference.model import writing
from tailmark_reference.model.capacity import budgets
from tailmark_reference.model.places import Choice, manual_places, pressed_places
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.subject import ModelSubject

EVERYTHING = Selection(clauses=tuple(PREDICATES))


def _allowed(choice: Choice) -> tuple[int, ...]:
    return manual_places(choice) if choice.trigger is Trigger.MANUAL else pressed_places(choice)


def _youngest_place(choice: Choice) -> int | None:
    places = _allowed(choice)
    return places[-1] if places else None


def _middle_place(choice: Choice) -> int | None:
    places = _allowed(choice)
    return places[len(places) // 2] if places else None


def _dearer(message: Message) -> Tokens:
    """Nearly twice as much for texts, and less for the message around them."""
    texts = sum(len(part.text) // 4 for part in message.parts if isinstance(part, Text))
    return Tokens(RULES.estimate(message) - 3 + texts)


def _length(text: str) -> Tokens:
    return Tokens(len(text))


def _own_id(plan: Plan, taken: object) -> NodeId:  # noqa: ARG001  # the type of the rule
    return NodeId(f"{plan.session}/{plan.revision}/{plan.id}")


def _own_plan_id(
    trigger: Trigger, session: SessionId, revision: Revision, taken: Callable[[PlanId], bool]
) -> PlanId:
    names = (PlanId(f"{session}/{trigger}/{revision}/{number}") for number in count())
    return next(name for name in names if not taken(name))


def _narrow(model: Model, settings: Settings) -> Budgets:
    """Half of the reference's tail and summary, and another margin, where there is room for one."""
    own = budgets(model, settings)
    if own.margin == 0:
        return own
    tail = own.tail if settings.tail is not None or own.tail is None else Tokens(max(1, own.tail // 2))
    return evolve(
        own,
        tail=tail,
        summary=Tokens(max(1, own.summary // 2)),
        margin=Tokens(own.margin - (own.margin > 1)),
    )


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
    "the youngest allowed place": evolve(
        RULES, manual_position=_youngest_place, pressed_position=_youngest_place
    ),
    "some allowed place": evolve(RULES, manual_position=_middle_place, pressed_position=_middle_place),
    "another estimator": evolve(RULES, estimate=_dearer, estimate_summary=_length),
    "other names of plans": evolve(RULES, plan_id=_own_plan_id),
    "other budgets": evolve(RULES, budgets=_narrow),
    "keeps no oversized turn": evolve(RULES, readings=Readings(oversized=OversizedReading.OPEN)),
    "measures plainly": evolve(RULES, readings=Readings(measure=MeasureReading.PLAIN)),
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
