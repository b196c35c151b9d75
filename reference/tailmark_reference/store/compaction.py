"""What a state determines of a compaction: its plan, or the reason why there is none (BND, CHK, TRG).

Begin answers it, and the commit recomputes it from the same columns.
"""

import sqlite3

from attrs import frozen

from tailmark.budgets import Budgets, Model
from tailmark.declarations import Readings, RefreshReading
from tailmark.identifiers import NodeId, PlanId, Tokens
from tailmark.operations import BeginCompaction, Preview
from tailmark.outcomes import Noop, NoopReason, RefusalCode, Refused, Skipped
from tailmark.plans import EditFor, Plan, Purpose, RetryFor, SendFor, SummaryRequest, Trigger
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import to_summary
from tailmark_reference.store.history import UNKNOWN_SESSION, calls_at_end
from tailmark_reference.store.occupancy import Tail, occupancy_of, tail_of
from tailmark_reference.store.places import Choice
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import (
    SessionRow,
    last_turn,
    node_by_id,
    node_by_seq,
    session_row,
    session_sizes,
)
from tailmark_reference.store.sizes import sizes

WORTH_DIVISOR = 8
"""An automatic compaction is worth it from this part of the safe limit on (TRG-5)."""


@frozen(kw_only=True)
class Wish:
    """What a plan is made on beside the branch. All else is determined by the state."""

    plan: PlanId
    trigger: Trigger
    model: Model
    budgets: Budgets
    purpose: Purpose | None = None
    draft: Tokens = Tokens(0)
    instructions: str | None = None


@frozen
class Base:
    """The node that a checkpoint follows, and its columns; all ``None`` for the beginning of a tree."""

    seq: int | None
    id: NodeId | None
    checkpoint: int | None


def _node(connection: sqlite3.Connection, seq: int | None) -> Base:
    if seq is None:
        return Base(None, None, None)
    row = node_by_seq(connection, seq)
    return Base(row.seq, row.id, row.checkpoint)


def base_for(connection: sqlite3.Connection, session: SessionRow, purpose: Purpose | None) -> Base:
    """The node behind which a compaction for this purpose writes: the leaf, but in retry and edit (CHK-1)."""
    end = Base(session.leaf, session.leaf_id, session.checkpoint)
    match purpose:
        case None | SendFor():
            return end
        case RetryFor():
            turn = last_turn(connection, session.leaf)
            if turn is None or turn.answer is None:
                return end
            return _node(connection, node_by_seq(connection, turn.answer).parent)
        case EditFor(target=target):
            row = node_by_id(connection, target)
            return _node(connection, None if row is None else row.parent)


@frozen
class Drawn:
    """A plan, what its place was chosen from, and that place."""

    plan: Plan
    choice: Choice
    place: int


def determine_plan(
    connection: sqlite3.Connection,
    estimator: Estimator,
    session: SessionRow,
    wish: Wish,
    readings: Readings,
) -> Drawn | NoopReason:
    """The plan that a stable branch determines for a wish."""
    base = base_for(connection, session, wish.purpose)
    if base.seq is None or session.leaf_id is None:
        return NoopReason.TOO_FEW_TURNS
    tail = tail_of(connection, base.seq, base.checkpoint)
    occupancy = occupancy_of(connection, estimator, tail, wish.model, wish.budgets, readings.measure)
    choice = Choice(
        tail=tail,
        trigger=wish.trigger,
        purpose=wish.purpose,
        draft=wish.draft,
        budgets=wish.budgets,
        occupancy=occupancy,
        readings=readings,
    )
    if wish.trigger is Trigger.MANUAL and choice.is_at_checkpoint and not choice.is_summary_too_long:
        return NoopReason.CHECKPOINT_IS_LEAF
    place = choice.place()
    if place is None:
        return NoopReason.TOO_FEW_TURNS if wish.trigger is Trigger.MANUAL else NoopReason.NO_ADVANCE
    return Drawn(_plan(session, session.leaf_id, base, wish, choice, place), choice, place)


def _plan(session: SessionRow, leaf: NodeId, base: Base, wish: Wish, choice: Choice, place: int) -> Plan:
    tail: Tail = choice.tail
    present, ids = tail.present, tail.messages.ids
    refresh = present is not None and place == 0
    summary = None if present is None else to_summary(present.body)
    request = SummaryRequest(previous_summary=summary, messages=ids[:place], instructions=wish.instructions)
    taken_over = (
        refresh and choice.readings.refresh is RefreshReading.VERBATIM and not choice.is_summary_too_long
    )
    assert base.id is not None
    return Plan(
        id=wish.plan,
        session=session.id,
        leaf=leaf,
        revision=session.revision,
        base=base.id,
        trigger=wish.trigger,
        first_kept=ids[place] if place < len(ids) else None,
        # Without a checkpoint the present place is the root, which no message names.
        old_first_kept=None if present is None or not ids else ids[0],
        previous_checkpoint=None if present is None else present.id,
        previous_summary=summary,
        excluded=ids[:place],
        refresh=refresh,
        model=wish.model,
        budgets=wish.budgets,
        occupancy=choice.occupancy,
        purpose=wish.purpose,
        draft=wish.draft,
        instructions=wish.instructions,
        request=None if taken_over else request,
        tokens_before=Tokens(tail.cost + tail.summary),
        tokens_after=tail.cost_from(place),
    )


def begin(
    connection: sqlite3.Connection,
    process: Process,
    estimator: Estimator,
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
    skipped = what_is_open(connection, process, session)
    if skipped is not None:
        return skipped
    known = sizes(*session_sizes(connection, session))
    wish = Wish(
        plan=operation.plan,
        trigger=operation.trigger,
        model=known.model,
        budgets=known.budgets,
        instructions=operation.instructions,
    )
    drawn = determine_plan(connection, estimator, session, wish, readings)
    return Noop(reason=drawn) if isinstance(drawn, NoopReason) else drawn.plan


def what_is_open(connection: sqlite3.Connection, process: Process, session: SessionRow) -> Skipped | None:
    """What makes a branch unstable; ``None`` if nothing does."""
    calls = calls_at_end(connection, session)
    is_running = process.running(session.id) is not None
    if not calls and not is_running:
        return None
    return Skipped(open_calls=tuple(call.call for call in calls), answer_running=is_running)
