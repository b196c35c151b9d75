"""Witnesses for every answer that the page of operations lists."""

from collections.abc import Mapping

from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    NextRequest,
    Operation,
    Preview,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Failed,
    FailureReason,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    Previewed,
    RefusalCode,
    Refused,
    Skipped,
    Stale,
)
from tailmark_conformance.explorers.witnesses.moments import Kinds, Witness

_REFUSALS: Mapping[type[Operation], tuple[RefusalCode, ...]] = {
    Append: (
        RefusalCode.KNOWN_ID,
        RefusalCode.INVALID_MESSAGE,
        RefusalCode.CALL_ID,
        RefusalCode.NOT_OPEN,
    ),
    Save: (
        RefusalCode.INVALID_MESSAGE,
        RefusalCode.KNOWN_ID,
        RefusalCode.CALL_ID,
        RefusalCode.NOT_OPEN,
    ),
    Settle: (RefusalCode.UNKNOWN_NODE, RefusalCode.NOT_OPEN, RefusalCode.INVALID_MESSAGE),
    StartAnswer: (RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION),
    NextRequest: (RefusalCode.NO_ANSWER, RefusalCode.UNSTABLE),
    EndAnswer: (RefusalCode.NO_ANSWER,),
    BeginCompaction: (RefusalCode.TRIGGER, RefusalCode.KNOWN_ID),
    Preview: (RefusalCode.TRIGGER, RefusalCode.KNOWN_ID),
    CommitCompaction: (RefusalCode.SPENT, RefusalCode.PLAN),
    Retry: (RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION),
    Edit: (
        RefusalCode.UNSTABLE,
        RefusalCode.UNKNOWN_NODE,
        RefusalCode.NOT_LAST_TURN,
        RefusalCode.NOT_A_USER_MESSAGE,
        RefusalCode.KNOWN_ID,
        RefusalCode.INVALID_MESSAGE,
    ),
    Fork: (
        RefusalCode.KNOWN_ID,
        RefusalCode.UNKNOWN_NODE,
        RefusalCode.NOT_ASSISTANT,
        RefusalCode.UNSTABLE,
    ),
    Undo: (RefusalCode.UNSTABLE, RefusalCode.NOT_A_CHECKPOINT),
    Send: (RefusalCode.KNOWN_ID, RefusalCode.NOT_A_USER_MESSAGE, RefusalCode.INVALID_MESSAGE),
    SetModel: (RefusalCode.SETTINGS,),
    SetSettings: (RefusalCode.SETTINGS,),
}
OF_SESSIONS: tuple[type[Operation], ...] = (
    Append,
    Save,
    Settle,
    Abandon,
    StartAnswer,
    NextRequest,
    EndAnswer,
    BeginCompaction,
    Preview,
    CommitCompaction,
    CancelCompaction,
    Send,
    Retry,
    Edit,
    Fork,
    Undo,
    SetModel,
    SetSettings,
    SetMetadata,
    Load,
)
_STALE: tuple[type[Operation], ...] = (
    Append,
    Save,
    Abandon,
    StartAnswer,
    CommitCompaction,
    Send,
    Retry,
    Edit,
    Undo,
)


def _refused(code: RefusalCode) -> Witness:
    return lambda moment: isinstance(moment.outcome, Refused) and moment.outcome.code is code


def _answered(outcome: type[Outcome]) -> Witness:
    return lambda moment: isinstance(moment.outcome, outcome)


def _noop(reason: NoopReason) -> Witness:
    return lambda moment: isinstance(moment.outcome, Noop) and moment.outcome.reason is reason


def _failed(reason: FailureReason) -> Witness:
    return lambda moment: isinstance(moment.outcome, Failed) and moment.outcome.reason is reason


def outcomes() -> dict[str, tuple[Kinds, Witness]]:
    table: dict[str, tuple[Kinds, Witness]] = {}
    for kind in OF_SESSIONS:
        table[f"{kind.kind}: refused(unknown-session)"] = (kind, _refused(RefusalCode.UNKNOWN_SESSION))
    for kind, codes in _REFUSALS.items():
        for code in codes:
            table[f"{kind.kind}: refused({code})"] = (kind, _refused(code))
    for kind in _STALE:
        table[f"{kind.kind}: stale"] = (kind, _answered(Stale))
    for kind in (BeginCompaction, Preview):
        for reason in (NoopReason.CHECKPOINT_IS_LEAF, NoopReason.TOO_FEW_TURNS):
            table[f"{kind.kind}: noop({reason})"] = (kind, _noop(reason))
        table[f"{kind.kind}: skipped"] = (kind, _answered(Skipped))
    table["begin-compaction: planned"] = (BeginCompaction, _answered(Planned))
    table["preview: previewed"] = (Preview, _answered(Previewed))
    table["cancel-compaction: cancelled"] = (CancelCompaction, _answered(Cancelled))
    table["cancel-compaction: noop"] = (CancelCompaction, _noop(NoopReason.NO_SUCH_PLAN))
    table["commit-compaction: cancelled"] = (CommitCompaction, _answered(Cancelled))
    table["commit-compaction: skipped"] = (CommitCompaction, _answered(Skipped))
    table["commit-compaction: committed"] = (CommitCompaction, _answered(Committed))
    for failure in (
        FailureReason.SUMMARISER,
        FailureReason.TRUNCATED,
        FailureReason.NOT_TEXT,
        FailureReason.BLANK,
    ):
        table[f"commit-compaction: failed({failure})"] = (CommitCompaction, _failed(failure))
    return table
