"""Compactions that an operation sets off by itself: behind an answer, another model, other settings (TRG-5, TRG-6)."""

from tailmark.identifiers import SessionId
from tailmark.operations import SetModel, SetSettings
from tailmark.outcomes import Done, NoopReason, Outcome, RefusalCode, Refused
from tailmark.plans import Plan, Trigger
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.compaction import WORTH_DIVISOR, Wish, determine_plan, what_is_open
from tailmark_reference.store.history import UNKNOWN_SESSION
from tailmark_reference.store.queries import SessionRow, session_row, session_sizes
from tailmark_reference.store.requests import Work
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.sizes import sizes, wrong_model, wrong_settings
from tailmark_reference.store.writing import set_model, set_settings


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


def set_sizes(work: Work, operation: SetModel | SetSettings) -> tuple[Outcome, Plan | None]:
    """Set model or settings, and the automatic compaction that is due on them (TRG-5, CAP-7)."""
    session = session_row(work.connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION, None
    before = session_sizes(work.connection, session)
    if isinstance(operation, SetModel):
        wrong = wrong_model(operation.model)
    else:
        wrong = wrong_settings(sizes(*before).model, operation.settings)
    if wrong is not None:
        return Refused(code=RefusalCode.SETTINGS, wrong=wrong), None
    if isinstance(operation, SetModel):
        set_model(work.connection, session, to_body(operation.model))
    else:
        set_settings(work.connection, session, to_body(operation.settings))
    is_other = session_sizes(work.connection, session) != before
    if not is_other or session.leaf_kind != NodeKind.ASSISTANT:
        return Done(), None
    return Done(), automatic_plan(work, session.id)
