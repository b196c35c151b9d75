"""Situations of requests, sizes, automatic compactions and damage."""

from collections.abc import Mapping

from tailmark.damage import DamageKind
from tailmark.messages import AnswerEnd
from tailmark.operations import (
    CommitCompaction,
    Edit,
    EndAnswer,
    InflictDamage,
    NextRequest,
    Retry,
    Send,
    SetModel,
    SetSettings,
    StartAnswer,
)
from tailmark.outcomes import (
    Committed,
    Done,
    Failed,
    FailureReason,
    LargePart,
    Noop,
    Planned,
    ReadOnly,
    Sent,
    Skipped,
    TooLarge,
)
from tailmark.plans import EditFor, Plan, RetryFor, SendFor, Trigger
from tailmark_conformance.explorers.witnesses.moments import Kinds, Moment, Witness, session_of

_REQUESTS: Kinds = (Send, Retry, Edit)


def _too_large(part: LargePart) -> Witness:
    return lambda moment: isinstance(moment.outcome, TooLarge) and moment.outcome.part is part


def _planned(moment: Moment) -> Plan | None:
    return moment.outcome.plan if isinstance(moment.outcome, Planned) else None


def _opens(moment: Moment) -> bool:
    plan = _planned(moment)
    return plan is not None and plan.first_kept is None


def _refreshes(moment: Moment) -> bool:
    plan = _planned(moment)
    return plan is not None and plan.refresh


def _below_the_limit(moment: Moment) -> bool:
    plan = _planned(moment)
    return plan is not None and plan.occupancy.tokens + plan.draft <= plan.budgets.safe


def _calibrated(moment: Moment) -> bool:
    plan = _planned(moment)
    return plan is not None and plan.occupancy.figure > plan.occupancy.covered > 0


def _sent_between(moment: Moment) -> bool:
    """Sent at or above the threshold, without a compaction."""
    session = session_of(moment.operation)
    if session is None or not isinstance(moment.outcome, Sent) or moment.outcome.attempt is not None:
        return False
    return moment.after.occupancy(session).tokens >= moment.after.budgets(session).threshold


def _automatic(moment: Moment) -> bool:
    return isinstance(moment.outcome, Done) and moment.outcome.plan is not None


def _not_again(moment: Moment) -> bool:
    """An answer ends at or above the threshold, and its state had its attempt."""
    operation = moment.operation
    if not isinstance(operation, EndAnswer) or operation.end is not AnswerEnd.FINAL:
        return False
    if not isinstance(moment.outcome, Done) or moment.outcome.plan is not None:
        return False
    session = operation.session
    leaf, revision = moment.before.leaf(session), moment.before.revision(session)
    tried = any(
        plan.trigger is not Trigger.MANUAL
        and (plan.session, plan.leaf, plan.revision) == (session, leaf, revision)
        for plan in moment.plans
    )
    return tried and moment.before.occupancy(session).tokens >= moment.before.budgets(session).threshold


def _attempt(kind: type[Committed] | type[Failed] | type[Noop]) -> Witness:
    return lambda moment: (
        isinstance(moment.outcome, Sent | TooLarge) and isinstance(moment.outcome.attempt, kind)
    )


def _for(purpose: type[SendFor] | type[RetryFor] | type[EditFor]) -> Witness:
    def commits(moment: Moment) -> bool:
        operation = moment.operation
        return (
            isinstance(operation, CommitCompaction)
            and isinstance(operation.plan.purpose, purpose)
            and isinstance(moment.outcome, Sent)
            and isinstance(moment.outcome.attempt, Committed)
        )

    return commits


def _failed_by(reason: FailureReason) -> Witness:
    def failed(moment: Moment) -> bool:
        outcome = moment.outcome
        attempt = outcome.attempt if isinstance(outcome, Sent | TooLarge) else outcome
        return isinstance(attempt, Failed) and attempt.reason is reason

    return failed


def _automatic_committed(moment: Moment) -> bool:
    operation = moment.operation
    automatic = isinstance(operation, CommitCompaction) and operation.plan.trigger is Trigger.AUTOMATIC
    return automatic and isinstance(moment.outcome, Committed)


def _steered(moment: Moment) -> bool:
    return isinstance(moment.outcome, Done)


def _skipped(moment: Moment) -> bool:
    return isinstance(moment.outcome, Skipped)


def _abandoned(moment: Moment) -> bool:
    return isinstance(moment.outcome, Sent) and bool(moment.outcome.abandoned)


def _scaled(moment: Moment) -> bool:
    session = session_of(moment.operation)
    return (
        session is not None
        and isinstance(moment.outcome, Done)
        and bool(moment.after.budgets(session).scaled)
    )


def _late(moment: Moment) -> bool:
    """A base to which something was added behind it."""
    session = session_of(moment.operation)
    if session is None or not moment.after.knows_session(session):
        return False
    occupancy = moment.after.occupancy(session)
    return occupancy.base is not None and occupancy.added > 0


def _damaged(kind: DamageKind) -> Witness:
    def inflicted(moment: Moment) -> bool:
        operation = moment.operation
        if not isinstance(operation, InflictDamage) or not isinstance(moment.outcome, Done):
            return False
        return operation.damage is kind and moment.after.read_only(operation.session)

    return inflicted


def _read_only(moment: Moment) -> bool:
    return isinstance(moment.outcome, ReadOnly)


REQUESTS: Mapping[str, tuple[Kinds, Witness]] = {
    "a request too large by its overhead": (_REQUESTS, _too_large(LargePart.OVERHEAD)),
    "a request too large by its draft": (_REQUESTS, _too_large(LargePart.DRAFT)),
    "a retry too large by its question": (Retry, _too_large(LargePart.QUESTION)),
    "a request too large in all": (_REQUESTS, _too_large(LargePart.REQUEST)),
    "a request that nothing can make room for": (_REQUESTS, _attempt(Noop)),
    "a preflight that keeps nothing": (_REQUESTS, _opens),
    "a preflight that refreshes": (_REQUESTS, _refreshes),
    "a preflight below the safe limit": (_REQUESTS, _below_the_limit),
    "a preflight measured by usage": (_REQUESTS, _calibrated),
    "a request sent above the threshold": (_REQUESTS, _sent_between),
    "a send with its compaction": (CommitCompaction, _for(SendFor)),
    "a retry with its compaction": (CommitCompaction, _for(RetryFor)),
    "an edit with its compaction": (CommitCompaction, _for(EditFor)),
    "a request without the compaction that failed": (CommitCompaction, _attempt(Failed)),
    "a summary above its budget": (CommitCompaction, _failed_by(FailureReason.ABOVE_BUDGET)),
    "a summary that makes nothing smaller": (CommitCompaction, _failed_by(FailureReason.NOT_SMALLER)),
    "a request too large behind its compaction": (
        CommitCompaction,
        _failed_by(FailureReason.STILL_TOO_LARGE),
    ),
    "an automatic compaction behind an answer": (EndAnswer, _automatic),
    "an automatic compaction behind a model": (SetModel, _automatic),
    "an automatic compaction behind settings": (SetSettings, _automatic),
    "an automatic compaction commits": (CommitCompaction, _automatic_committed),
    "no second attempt on one state": (EndAnswer, _not_again),
    "a send that steers": (Send, _steered),
    "a send that waits for what is open": (Send, _skipped),
    "a send behind the calls of a dead process": (Send, _abandoned),
    "a further request above the safe limit": (NextRequest, _too_large(LargePart.REQUEST)),
    "a first request above the safe limit": (StartAnswer, _too_large(LargePart.REQUEST)),
    "settings scaled to another model": (SetModel, _scaled),
    "something added to a base": ((Send, EndAnswer, SetModel), _late),
    **{f"damage: {kind}": (InflictDamage, _damaged(kind)) for kind in DamageKind},
    "a read-only session is written to": ((Send, SetModel, SetSettings, Retry, Edit), _read_only),
}
"""Every witness of this module by its name, and the kinds of operations at which it looks."""
