"""Compactions that an operation sets off by itself: behind an answer, another model, other settings (TRG-5, TRG-6)."""

from tailmark.identifiers import SessionId
from tailmark.outcomes import NoopReason
from tailmark.plans import Plan, Trigger
from tailmark_reference.store.compaction import WORTH_DIVISOR, Wish, determine_plan, what_is_open
from tailmark_reference.store.queries import SessionRow, session_row
from tailmark_reference.store.requests import Work


def automatic_plan(work: Work, session_id: SessionId, *, without_answer: bool = False) -> Plan | None:
    """The automatic compaction that is due on a session now; ``None`` if none is.

    ``without_answer``: the answer that still runs counts as over. Reads only.
    """
    session = session_row(work.connection, session_id)
    if session is None or session.leaf is None:
        return None
    if _is_unstable(work, session, without_answer=without_answer):
        return None
    known = work.sizes(session)
    budgets = known.budgets
    if not known.settings.automatic or budgets.margin == 0:
        return None
    tokens = work.occupancy(session.leaf, session.checkpoint, known).tokens
    undone = session.id in work.process.undone
    if tokens <= budgets.safe if undone else tokens < budgets.threshold:
        return None
    state = work.state(session)
    if work.process.attempts.get(session.id) == state:
        return None
    wish = Wish(
        plan=work.process.free_plan_id(Trigger.AUTOMATIC, session.id, session.revision),
        trigger=Trigger.AUTOMATIC,
        model=known.model,
        budgets=budgets,
    )
    drawn = determine_plan(work.connection, work.estimator, session, wish, work.readings)
    if isinstance(drawn, NoopReason) or not drawn.choice.is_worth_it(drawn.place, WORTH_DIVISOR):
        return None
    work.notes.attempt = (session.id, state)
    return drawn.plan


def _is_unstable(work: Work, session: SessionRow, *, without_answer: bool) -> bool:
    skipped = what_is_open(work.connection, work.process, session)
    return skipped is not None and (bool(skipped.open_calls) or not without_answer)
