"""Whether a conversation can always go on: from any state of the model to a one-token draft that is sent.

The way out is made of what a user interface offers: end the answer, abandon what nobody answers, compact, send. Where
even that does not help, the outcome has to say why with one of the closed reasons.
"""

from collections.abc import Callable, Iterator
from random import Random

from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability
from tailmark.identifiers import ModelName, NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Role, Text
from tailmark.operations import (
    Abandon,
    BeginCompaction,
    CommitCompaction,
    EndAnswer,
    InflictDamage,
    Operation,
    Send,
)
from tailmark.outcomes import Failed, FailureReason, LargePart, Outcome, Sent, TooLarge, begun_plan
from tailmark.plans import SummaryAnswer
from tailmark.traces import Step
from tailmark.views import Observation, difference
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.walks import Walk
from tailmark_reference.model.observe import Observer
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.step import step
from tailmark_reference.model.world import World, empty_world

CLOSED = (LargePart.OVERHEAD, LargePart.DRAFT)
"""The reasons why nothing can be sent at all: the overhead leaves no room, not even for a draft of one token."""

NO_SUMMARY = (FailureReason.ABOVE_BUDGET, FailureReason.STILL_TOO_LARGE)
"""The reasons why nothing can be sent behind what is there: not even a summary of one character has room."""

_SUMMARY = SummaryAnswer(parts=(Text(id=PartId("text"), text="."),))


@frozen(kw_only=True)
class Rescue:
    """How a one-token draft fared. ``tried`` are the operations, in order; ``outcome`` answers the last request.

    ``summary`` is the summary budget of the session, in tokens.
    """

    tried: tuple[Operation, ...]
    outcome: Outcome
    summary: Tokens

    @property
    def is_through(self) -> bool:
        """Whether the draft was sent, or the outcome says with a closed reason why nothing can be."""
        outcome = self.outcome
        if isinstance(outcome, Sent):
            return True
        if not isinstance(outcome, TooLarge):
            return False
        return outcome.part in CLOSED or self._has_no_room_for_a_summary(outcome)

    def _has_no_room_for_a_summary(self, outcome: TooLarge) -> bool:
        # The shortest summary costs what the draft costs.
        if not isinstance(outcome.attempt, Failed) or outcome.attempt.reason not in NO_SUMMARY:
            return False
        return outcome.draft > self.summary or outcome.overhead + 2 * outcome.draft > outcome.limit


def _draft(number: int) -> Message:
    return Message(
        id=NodeId(f"one-token-{number}"),
        role=Role.USER,
        parts=(Text(id=PartId("text"), text="ok"),),
    )


def rescue(world: World, session: SessionId) -> Rescue:
    """Try to send a one-token draft from a state, with every means that a user has."""
    tried: list[Operation] = []
    known = world.sessions[session]
    summary = RULES.budgets(known.model, known.settings).summary

    def do(operation: Operation) -> Outcome:
        nonlocal world
        tried.append(operation)
        world, answered = step(world, operation)
        return answered

    if session in world.process.running:
        do(EndAnswer(session=session, end=AnswerEnd.ABORTED))
    do(Abandon(session=session))
    fared = _send(do, 0, summary, session)
    if fared.is_through:
        return evolve(fared, tried=tuple(tried))
    # By hand, whatever was tried before.
    begun = do(BeginCompaction(session=session, plan=PlanId("by-hand")))
    plan = begun_plan(begun)
    if plan is not None:
        do(CommitCompaction(plan=plan, reply=_SUMMARY if plan.request is not None else None))
    return evolve(_send(do, 1, summary, session), tried=tuple(tried))


def _send(do: Callable[[Operation], Outcome], number: int, summary: Tokens, session: SessionId) -> Rescue:
    outcome = do(Send(session=session, message=_draft(number)))
    plan = begun_plan(outcome)
    if plan is not None:
        outcome = do(CommitCompaction(plan=plan, reply=_SUMMARY if plan.request is not None else None))
    return Rescue(tried=(), outcome=outcome, summary=summary)


def stuck(random: Random, steps: int, every: int) -> Iterator[tuple[tuple[Operation, ...], Rescue]]:
    """A weighted walk on the bare model; every so many steps each session is to be rescued. Yields those that cannot be."""
    session = SessionId("S1")
    model, settings = contents.sizes(random, frozenset(Capability))
    world = empty_world((session,), model, settings)
    observer = Observer()
    seen = Observation(sessions=(), nodes=())
    now = observer.observe(world)
    known = Known(difference(seen, now))
    path = Walk(known, random)
    walked: list[Operation] = []
    for number in range(1, steps + 1):
        operation = path.next()
        if isinstance(operation, InflictDamage):
            continue
        walked.append(operation)
        world, outcome = step(world, operation)
        seen, now = now, observer.observe(world)
        known.feed(Step(operation=operation, outcome=outcome, change=difference(seen, now)))
        if number % every == 0:
            for name in world.sessions:
                result = rescue(world, name)
                if not result.is_through:
                    yield tuple(walked), result


def small_world(window: int, overhead: int) -> World:
    """An empty session ``S1`` on a small model, for enumerations."""
    model = Model(name=ModelName("model"), window=Tokens(window))
    return empty_world((SessionId("S1"),), model, Settings(overhead=Tokens(overhead)))
