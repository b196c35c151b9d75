"""The commit of a compaction: the order in which its conditions are asked, and what it writes (CMT)."""

from tailmark.identifiers import NodeId, Tokens
from tailmark.outcomes import (
    Committed,
    Failed,
    FailureReason,
    LargePart,
    Outcome,
    RefusalCode,
    Refused,
    Skipped,
    Stale,
)
from tailmark.plans import Checkpoint, SummaryAnswer
from tailmark_reference.store.compaction import Base
from tailmark_reference.store.conditions import CommitConditions, CommitFacts, summary_of
from tailmark_reference.store.queries import node_by_id
from tailmark_reference.store.requests import Work, too_large, write_request
from tailmark_reference.store.writing import insert_checkpoint, move_leaf


def _is_stale(conditions: CommitConditions, facts: CommitFacts) -> bool:
    return not (conditions.same_leaf(facts) and conditions.same_revision(facts))


def _is_unstable(conditions: CommitConditions, facts: CommitFacts) -> bool:
    return not (conditions.no_open_call(facts) and conditions.no_running_answer(facts))


def _is_forged(conditions: CommitConditions, facts: CommitFacts) -> bool:
    required = (
        conditions.begun_here,
        conditions.same_state,
        conditions.same_trigger,
        conditions.same_terms,
        conditions.same_purpose,
        conditions.same_occupancy,
        conditions.same_base,
        conditions.same_place,
        conditions.same_present_place,
        conditions.same_excluded,
        conditions.same_previous_checkpoint,
        conditions.same_previous_summary,
        conditions.same_refresh,
        conditions.same_request,
        conditions.same_size_before,
        conditions.same_size_after,
        conditions.reply_as_requested,
    )
    return not all(condition(facts) for condition in required)


def _failure(conditions: CommitConditions, facts: CommitFacts) -> FailureReason | None:
    if not conditions.summariser_answered(facts):
        return FailureReason.SUMMARISER
    if not conditions.not_truncated(facts):
        return FailureReason.TRUNCATED
    if not conditions.is_text(facts):
        return FailureReason.NOT_TEXT
    if not conditions.not_blank(facts):
        return FailureReason.BLANK
    if not conditions.within_summary_budget(facts):
        return FailureReason.ABOVE_BUDGET
    if not conditions.makes_smaller(facts):
        return FailureReason.NOT_SMALLER
    if not conditions.fits_in_the_end(facts):
        return FailureReason.STILL_TOO_LARGE
    return None


def commit(conditions: CommitConditions, work: Work, facts: CommitFacts) -> Outcome:
    """Write the checkpoint of a plan that was not cancelled, with the request that it is for, or say why not.

    Used inside a writing transaction only.
    """
    if facts.known_session is None:
        return Refused(code=RefusalCode.UNKNOWN_SESSION)
    if _is_stale(conditions, facts):
        return Stale(leaf=facts.session.leaf_id, revision=facts.session.revision)
    if _is_unstable(conditions, facts):
        return Skipped(
            open_calls=tuple(call.call for call in facts.open_calls), answer_running=facts.is_running
        )
    if not conditions.not_spent(facts):
        return Refused(code=RefusalCode.SPENT)
    if _is_forged(conditions, facts):
        return Refused(code=RefusalCode.PLAN)
    if not conditions.draft_is_new(facts):
        return Refused(code=RefusalCode.KNOWN_ID)
    failure = _failure(conditions, facts)
    if failure is not None:
        return _without_checkpoint(work, facts, Failed(reason=failure))
    return _with_checkpoint(work, facts)


def _base(facts: CommitFacts) -> Base:
    if facts.plan.base == facts.session.leaf_id:
        return Base(facts.session.leaf, facts.session.leaf_id, facts.session.checkpoint)
    base = node_by_id(facts.connection, facts.plan.base)
    assert base is not None  # the plan is as the state determines it
    return Base(base.seq, base.id, base.checkpoint)


def _without_checkpoint(work: Work, facts: CommitFacts, failed: Failed) -> Outcome:
    """A request goes out without its compaction, if it fits (TRG-8)."""
    plan = facts.plan
    if plan.purpose is None:
        return failed
    if facts.fitted:
        return write_request(work, facts.session, plan.purpose, _base(facts), attempt=failed)
    return too_large(work, LargePart.REQUEST, plan.occupancy, plan.budgets, plan.draft, failed)


def _with_checkpoint(work: Work, facts: CommitFacts) -> Outcome:
    plan, estimate = facts.plan, facts.summary_size
    checkpoint = _checkpoint(facts, estimate)
    committed = Committed(checkpoint=checkpoint.id)
    if plan.purpose is not None:
        return write_request(
            work,
            facts.session,
            plan.purpose,
            _base(facts),
            checkpoint=(checkpoint, estimate),
            attempt=committed,
        )
    open_since = min((call.node for call in facts.open_calls), default=None)
    base = _base(facts).seq
    assert base is not None
    leaf = insert_checkpoint(facts.connection, facts.session, base, checkpoint, estimate, open_since)
    move_leaf(facts.connection, facts.session, leaf)
    return committed


def _checkpoint(facts: CommitFacts, estimate: Tokens) -> Checkpoint:
    plan, reply = facts.plan, facts.reply
    return Checkpoint(
        id=_free_id(facts),
        summary=summary_of(facts),
        first_kept=plan.first_kept,
        old_first_kept=plan.old_first_kept,
        previous=plan.previous_checkpoint,
        first_excluded=plan.excluded[0] if plan.excluded else None,
        last_excluded=plan.excluded[-1] if plan.excluded else None,
        trigger=plan.trigger,
        model=plan.model.name,
        refresh=plan.refresh,
        instructions=plan.instructions,
        finish=reply.finish if isinstance(reply, SummaryAnswer) else None,
        figure=plan.occupancy.figure,
        covered=plan.occupancy.covered,
        tokens_before=plan.tokens_before,
        tokens_after=Tokens(plan.tokens_after + estimate),
    )


def _free_id(facts: CommitFacts) -> NodeId:
    if not facts.is_first_id_taken:
        return facts.first_id
    taken = 2
    while node_by_id(facts.connection, node := NodeId(f"{facts.first_id}:{taken}")) is not None:
        taken += 1
    return node
