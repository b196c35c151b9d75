"""Requests: send, retry, edit, their preflight, and how they become durable as a whole (TRG-7 to TRG-10, TRG-14)."""

import sqlite3

from attrs import define, frozen

from tailmark.budgets import Budgets, Occupancy
from tailmark.declarations import Readings
from tailmark.identifiers import NodeId, SessionId, Tokens
from tailmark.messages import Message, Role
from tailmark.operations import Edit, Retry, Send
from tailmark.outcomes import (
    Attempt,
    Done,
    LargePart,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    RefusalCode,
    Refused,
    Request,
    Sent,
    TooLarge,
)
from tailmark.plans import Checkpoint, EditFor, Plan, Purpose, RetryFor, SendFor, Trigger
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.compaction import (
    WORTH_DIVISOR,
    Base,
    Wish,
    base_for,
    determine_plan,
    what_is_open,
)
from tailmark_reference.store.history import (
    UNKNOWN_SESSION,
    calls_at_end,
    follows_otherwise,
    refusal_of_message,
    stale,
)
from tailmark_reference.store.observation import projection
from tailmark_reference.store.occupancy import occupancy_of, tail_of
from tailmark_reference.store.process import Process, State
from tailmark_reference.store.queries import (
    SessionRow,
    Turn,
    last_turn,
    node_by_id,
    session_row,
    session_sizes,
)
from tailmark_reference.store.sizes import Sizes, scaled, sizes
from tailmark_reference.store.tree import is_stable
from tailmark_reference.store.writing import (
    End,
    abandon_calls,
    insert_checkpoint,
    insert_message,
    move_leaf,
)

_UNSTABLE = Refused(code=RefusalCode.UNSTABLE)


@define
class Notes:
    """What the process remembers of an operation once it is durable, or once its plan is answered."""

    attempt: tuple[SessionId, State] | None = None
    sent: tuple[SessionId, State] | None = None


@frozen
class Work:
    """What every request works with."""

    connection: sqlite3.Connection
    process: Process
    estimator: Estimator
    readings: Readings
    notes: Notes

    def sizes(self, session: SessionRow) -> Sizes:
        """The session's model, settings and budgets."""
        return sizes(*session_sizes(self.connection, session))

    def state(self, session: SessionRow) -> State:
        """The session's state as attempts and requests remember it."""
        return State(session.leaf_id, session.revision, *session_sizes(self.connection, session))

    def occupancy(self, end: int | None, checkpoint: int | None, known: Sizes) -> Occupancy:
        """How full the window is with the branch that ends in a node."""
        tail = tail_of(self.connection, end, checkpoint)
        return occupancy_of(
            self.connection, self.estimator, tail, known.model, known.budgets, self.readings.measure
        )

    def scaled(self, tokens: int, occupancy: Occupancy) -> Tokens:
        """An estimate in the measure of the budgets."""
        return scaled(tokens, occupancy, self.readings.measure)


# Send, retry, edit ---------------------------------------------------------------------------------------


def send(work: Work, operation: Send) -> Outcome:
    """Ask with a draft, or add it to what runs."""
    connection, message = work.connection, operation.message
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if node_by_id(connection, message.id) is not None:
        return Refused(code=RefusalCode.KNOWN_ID)
    if message.role is not Role.USER:
        return Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    refusal = refusal_of_message(message, ())
    if refusal is not None:
        return refusal
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    skipped = what_is_open(connection, work.process, session)
    if skipped is None:
        return _preflight(work, session, SendFor(message=message), None)
    calls = calls_at_end(connection, session)
    steers = skipped.answer_running or any(call.message in work.process.owned for call in calls)
    if not steers:
        # Their process is gone. If the draft does not fit, the transaction is rolled back.
        abandon_calls(connection, work.estimator, calls)
    draft = work.estimator.message(message)
    known = work.sizes(session)
    occupancy = work.occupancy(session.leaf, session.checkpoint, known)
    if occupancy.tokens + work.scaled(draft, occupancy) > known.budgets.safe:
        return skipped
    end = End(session.leaf, session.checkpoint, calls if steers else ())
    leaf = insert_message(connection, end, message, to_body(message), draft)
    move_leaf(connection, session, leaf)
    if steers:
        return Done(written=(message.id,))
    return _sent(
        work,
        session.id,
        Sent(request=_request(work, session.id), written=(message.id,), abandoned=skipped.open_calls),
    )


def retry(work: Work, operation: Retry) -> Outcome:
    """Leave the last turn's answer and ask its question anew (RETRY)."""
    session = session_row(work.connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if not is_stable(work.connection, work.process, session):
        return _UNSTABLE
    turn = last_turn(work.connection, session.leaf)
    if turn is None:
        return Refused(code=RefusalCode.NO_QUESTION)
    if follows_otherwise(work.connection, session, operation.follows):
        return stale(session)
    return _preflight(work, session, RetryFor(), turn)


def edit(work: Work, operation: Edit) -> Outcome:
    """Replace the message that opened the last turn, and ask anew (EDIT)."""
    connection = work.connection
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if not is_stable(connection, work.process, session):
        return _UNSTABLE
    target = node_by_id(connection, operation.target)
    if target is None:
        return Refused(code=RefusalCode.UNKNOWN_NODE)
    turn = last_turn(connection, session.leaf)
    if turn is None or turn.opener != target.seq:
        return Refused(code=RefusalCode.NOT_LAST_TURN)
    message = operation.message
    if message.role is not Role.USER:
        return Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    if node_by_id(connection, message.id) is not None:
        return Refused(code=RefusalCode.KNOWN_ID)
    refusal = refusal_of_message(message, ())
    if refusal is not None:
        return refusal
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    return _preflight(work, session, EditFor(target=operation.target, message=message), turn)


# Preflight -----------------------------------------------------------------------------------------------


def too_large(
    work: Work,
    part: LargePart,
    occupancy: Occupancy,
    budgets: Budgets,
    draft: Tokens,
    attempt: Attempt | None = None,
) -> TooLarge:
    """The answer to a request above the safe limit, with its sizes."""
    return TooLarge(
        part=part,
        projection=occupancy.tokens,
        draft=work.scaled(draft, occupancy),
        overhead=work.scaled(budgets.overhead, occupancy),
        limit=budgets.safe,
        attempt=attempt,
    )


def _hopeless(
    work: Work, occupancy: Occupancy, budgets: Budgets, draft: Tokens, question: Tokens
) -> LargePart | None:
    """Which part alone exceeds the safe limit, so that nothing can help."""
    if work.scaled(budgets.overhead, occupancy) >= budgets.safe:
        return LargePart.OVERHEAD
    if work.scaled(budgets.overhead + draft, occupancy) > budgets.safe:
        return LargePart.DRAFT
    if work.scaled(budgets.overhead + question, occupancy) > budgets.safe:
        return LargePart.QUESTION
    return None


def _preflight(work: Work, session: SessionRow, purpose: Purpose, turn: Turn | None) -> Outcome:
    base = base_for(work.connection, session, purpose)
    known = work.sizes(session)
    budgets = known.budgets
    draft = Tokens(0) if isinstance(purpose, RetryFor) else work.estimator.message(purpose.message)
    occupancy = work.occupancy(base.seq, base.checkpoint, known)
    used = occupancy.tokens + work.scaled(draft, occupancy)
    if used > budgets.safe:
        question = turn.estimate if turn is not None and isinstance(purpose, RetryFor) else Tokens(0)
        part = _hopeless(work, occupancy, budgets, draft, question)
        if part is not None:
            return too_large(work, part, occupancy, budgets, draft)
    plan = _wanted_plan(work, session, known, purpose, draft, used)
    if plan is not None:
        work.notes.attempt = (session.id, work.state(session))
        return Planned(plan=plan)
    if used > budgets.safe:
        noop = Noop(reason=NoopReason.NO_ADVANCE)
        return too_large(work, LargePart.REQUEST, occupancy, budgets, draft, noop)
    return write_request(work, session, purpose, base)


def _wanted_plan(
    work: Work, session: SessionRow, known: Sizes, purpose: Purpose, draft: Tokens, used: int
) -> Plan | None:
    """The compaction that a request needs; below the safe limit only one that would be made anyway (TRG-8)."""
    budgets = known.budgets
    if used < budgets.threshold:
        return None
    fits = used <= budgets.safe
    if fits and not may_compact_unasked(work, session, known):
        return None
    wish = Wish(
        plan=work.process.free_plan_id(Trigger.PREFLIGHT, session.id, session.revision),
        trigger=Trigger.PREFLIGHT,
        model=known.model,
        budgets=budgets,
        purpose=purpose,
        draft=draft,
    )
    drawn = determine_plan(work.connection, work.estimator, session, wish, work.readings)
    if isinstance(drawn, NoopReason):
        return None
    if not fits:
        return drawn.plan
    advances = not drawn.plan.refresh and drawn.plan.first_kept is not None
    return drawn.plan if advances and drawn.choice.is_worth_it(drawn.place, WORTH_DIVISOR) else None


def may_compact_unasked(work: Work, session: SessionRow, known: Sizes) -> bool:
    """Whether a compaction below the safe limit is wanted: it is on, has room, was not undone, and not tried on this state."""
    return (
        known.settings.automatic
        and known.budgets.margin > 0
        and session.id not in work.process.undone
        and work.process.attempts.get(session.id) != work.state(session)
    )


# What becomes durable ------------------------------------------------------------------------------------


def write_request(
    work: Work,
    session: SessionRow,
    purpose: Purpose,
    base: Base,
    checkpoint: tuple[Checkpoint, Tokens] | None = None,
    attempt: Attempt | None = None,
) -> Sent:
    """Write what a request needs in one change: the checkpoint made for it, its message, the leaf (TRG-9)."""
    connection = work.connection
    turn = None if isinstance(purpose, SendFor) else last_turn(connection, session.leaf)
    leaf, latest = base.seq, base.checkpoint
    written: list[NodeId] = []
    if checkpoint is not None and leaf is not None:
        content, estimate = checkpoint
        leaf = latest = insert_checkpoint(connection, session, leaf, content, estimate, None)
        written.append(content.id)
    if not isinstance(purpose, RetryFor):
        message: Message = purpose.message
        cost = work.estimator.message(message)
        leaf = insert_message(connection, End(leaf, latest, ()), message, to_body(message), cost)
        written.append(message.id)
    if leaf != session.leaf:
        move_leaf(connection, session, leaf)
    return _sent(
        work,
        session.id,
        Sent(
            request=_request(work, session.id),
            written=tuple(written),
            left=() if turn is None else turn.steering,
            attempt=attempt,
        ),
    )


def _now(work: Work, session: SessionId) -> SessionRow:
    row = session_row(work.connection, session)
    assert row is not None  # sessions are never deleted
    return row


def _request(work: Work, session: SessionId) -> Request:
    row = _now(work, session)
    assert row.leaf_id is not None  # a request ends with the message that it is about
    return Request(
        head=work.sizes(row).settings.head,
        items=projection(work.connection, row),
        built_on=row.leaf_id,
    )


def _sent(work: Work, session: SessionId, outcome: Sent) -> Sent:
    work.notes.sent = (session, work.state(_now(work, session)))
    return outcome


def above_the_limit(work: Work, session: SessionRow) -> TooLarge | None:
    """`TooLarge` if the session's next request exceeds the safe limit (TRG-10, TRG-15)."""
    known = work.sizes(session)
    occupancy = work.occupancy(session.leaf, session.checkpoint, known)
    if occupancy.tokens <= known.budgets.safe:
        return None
    is_overhead = work.scaled(known.budgets.overhead, occupancy) >= known.budgets.safe
    part = LargePart.OVERHEAD if is_overhead else LargePart.REQUEST
    return too_large(work, part, occupancy, known.budgets, Tokens(0))
