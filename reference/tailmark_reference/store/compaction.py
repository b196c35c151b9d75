"""What a state determines of a compaction: its plan, or the reason why there is none (BND, CHK, TRG).

Begin answers it, and the commit recomputes it from the same columns.
"""

import sqlite3

from attrs import frozen

from tailmark.budgets import Model
from tailmark.declarations import AdvanceReading, Readings, RefreshReading
from tailmark.identifiers import PlanId, Tokens
from tailmark.operations import BeginCompaction, Preview
from tailmark.outcomes import Noop, NoopReason, RefusalCode, Refused, Skipped
from tailmark.plans import Plan, SummaryRequest, Trigger
from tailmark_reference.store.bodies import to_model, to_summary
from tailmark_reference.store.history import UNKNOWN_SESSION, calls_at_end
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import (
    CheckpointRow,
    Messages,
    SessionRow,
    checkpoint_row,
    messages_from,
    session_model,
    session_row,
)
from tailmark_reference.store.schema import NodeKind


@frozen(kw_only=True)
class Wish:
    """What the caller of a compaction chooses. All else is determined by the state."""

    plan: PlanId
    trigger: Trigger
    model: Model
    instructions: str | None


def _present(connection: sqlite3.Connection, session: SessionRow) -> CheckpointRow | None:
    return None if session.checkpoint is None else checkpoint_row(connection, session.checkpoint)


def _fits(cost: Tokens, budget: Tokens | None) -> bool:
    return budget is None or cost <= budget


def _manual_place(
    messages: Messages, place: int | None, budget: Tokens | None, readings: Readings
) -> int | None:
    """The position of the message that becomes the first one kept; ``None`` if too few turns were opened.

    ``messages`` run from the present place, or from the root, to the end.
    """
    openers, costs = messages.openers, messages.tail_costs
    if place is None:
        if len(openers) < 2:
            return None
        if _fits(costs[0], budget):
            return openers[-1]
        candidates = openers[1:]
    else:
        # The present place is one even where a loaded store keeps something that opens no turn.
        candidates = openers if openers[:1] == [0] else [0, *openers]
    fitting = (position for position in candidates if _fits(costs[position], budget))
    chosen = next(fitting, candidates[-1])
    if place is not None and chosen == 0 and readings.advance is AdvanceReading.TO_LAST_TURN:
        return candidates[-1]
    return chosen


def determine_plan(
    connection: sqlite3.Connection, session: SessionRow, wish: Wish, readings: Readings
) -> Plan | NoopReason:
    """The plan of a manual compaction of a stable branch."""
    if session.leaf_kind == NodeKind.CHECKPOINT:
        return NoopReason.CHECKPOINT_IS_LEAF
    present = _present(connection, session)
    place = None if present is None else present.place
    messages = messages_from(connection, session.leaf, place)
    position = _manual_place(messages, place, wish.model.tail_budget, readings)
    if position is None or session.leaf_id is None:
        return NoopReason.TOO_FEW_TURNS
    refresh = position == 0
    excluded = messages.ids[:position]
    summary = None if present is None else to_summary(present.body)
    request = SummaryRequest(previous_summary=summary, messages=excluded, instructions=wish.instructions)
    return Plan(
        id=wish.plan,
        session=session.id,
        leaf=session.leaf_id,
        revision=session.revision,
        base=session.leaf_id,
        trigger=wish.trigger,
        first_kept=messages.ids[position],
        # Without a checkpoint the present place is the root, which no message names.
        old_first_kept=None if present is None else messages.ids[0],
        previous_checkpoint=None if present is None else present.id,
        previous_summary=summary,
        excluded=excluded,
        refresh=refresh,
        model=wish.model,
        instructions=wish.instructions,
        request=None if refresh and readings.refresh is RefreshReading.VERBATIM else request,
        tokens_before=Tokens(messages.tail_costs[0] + (0 if present is None else present.estimate)),
        tokens_after=messages.tail_costs[position],
    )


def begin(
    connection: sqlite3.Connection,
    process: Process,
    readings: Readings,
    operation: BeginCompaction | Preview,
) -> Plan | Refused | Skipped | Noop:
    """The plan of a compaction that is asked for now, or why there is none. Reads only."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if operation.trigger is not Trigger.MANUAL:
        return Refused(code=RefusalCode.TRIGGER)
    if process.plan_status(session.id, operation.plan) is not None:
        return Refused(code=RefusalCode.KNOWN_ID)
    calls = calls_at_end(connection, session)
    is_running = process.running(session.id) is not None
    if calls or is_running:
        return Skipped(open_calls=tuple(call.call for call in calls), answer_running=is_running)
    wish = Wish(
        plan=operation.plan,
        trigger=operation.trigger,
        model=to_model(session_model(connection, session)),
        instructions=operation.instructions,
    )
    plan = determine_plan(connection, session, wish, readings)
    return plan if isinstance(plan, Plan) else Noop(reason=plan)
