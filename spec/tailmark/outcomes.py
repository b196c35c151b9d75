"""Outcomes: everything that an operation can answer. A closed union, as are its codes and reasons.

Only `Done` and `Committed` may change durable state or a projection (OUT-1). When several apply, the
order is: at a commit `ReadOnly`, `Cancelled`, `Stale`, `Skipped`, `Refused`, `Failed`; at a begin
`ReadOnly`, `Refused`, `Skipped`, `Noop`; elsewhere `ReadOnly`, `Refused`, `Stale` (OUT-2).
"""

from enum import StrEnum
from typing import ClassVar, TypeAlias

from attrs import frozen

from tailmark.identifiers import CallId, NodeId, Revision
from tailmark.plans import Plan, SummaryRequest


class RefusalCode(StrEnum):
    """Why an operation was refused."""

    UNKNOWN_SESSION = "unknown-session"
    UNKNOWN_NODE = "unknown-node"
    KNOWN_ID = "known-id"
    """The id is taken by something else (TREE-10)."""
    INVALID_MESSAGE = "invalid-message"
    """A part that its role may not carry, a part id twice, a preliminary result outside the assistant message."""
    NOT_OPEN = "not-open"
    """A result for a call that is not open on this branch (TREE-11)."""
    CALL_ID = "call-id"
    """A call whose id is open already, or stands twice in its message (TREE-11)."""
    UNSTABLE = "unstable"
    """A call is open or an answer is running."""
    NO_ANSWER = "no-answer"
    """No answer is running."""
    NO_QUESTION = "no-question"
    """The branch has no turn that could be answered."""
    NOT_A_USER_MESSAGE = "not-a-user-message"
    NOT_LAST_TURN = "not-last-turn"
    """Only the message that opened the last turn can be edited (EDIT-1)."""
    NOT_ASSISTANT = "not-assistant"
    """Only an assistant message can be forked (FORK-1)."""
    NOT_A_CHECKPOINT = "not-a-checkpoint"
    """The leaf is no checkpoint (UNDO-2)."""
    TRIGGER = "trigger"
    """A caller may ask for manual compactions only."""
    PLAN = "plan"
    """The plan differs from what the state determines, or nobody here began it (CMT-4)."""
    SPENT = "spent"
    """The plan had its answer already (OUT-3)."""


class NoopReason(StrEnum):
    """Why there was nothing to do."""

    TOO_FEW_TURNS = "too-few-turns"
    CHECKPOINT_IS_LEAF = "checkpoint-is-leaf"
    NO_SUCH_PLAN = "no-such-plan"
    """A cancel that names a finished plan or none (CMT-8)."""


class FailureReason(StrEnum):
    """Why something that was allowed did not come about."""

    LOCKED = "locked"
    """Another process held the store for longer than the declared wait."""
    SUMMARISER = "summariser"
    BLANK = "blank"
    TRUNCATED = "truncated"
    NOT_TEXT = "not-text"
    """Reasoning or a tool call instead of text (CMT-15)."""


@frozen(kw_only=True)
class Done:
    """It happened, or nothing was left to do. ``written``: ids of new nodes, in order. ``left``: steering
    messages that left the branch with their turn (RETRY-1). ``abandoned``: calls that got an `abandoned` result."""

    kind: ClassVar[str] = "done"
    written: tuple[NodeId, ...] = ()
    left: tuple[NodeId, ...] = ()
    abandoned: tuple[CallId, ...] = ()


@frozen(kw_only=True)
class Planned:
    """A compaction has begun; the plan waits for its summary."""

    kind: ClassVar[str] = "planned"
    plan: Plan


@frozen(kw_only=True)
class Previewed:
    """What a compaction would do (TRG-18)."""

    kind: ClassVar[str] = "previewed"
    plan: Plan


@frozen(kw_only=True)
class More:
    """A further pass is needed; the plan stays unspent."""

    kind: ClassVar[str] = "more"
    request: SummaryRequest


@frozen(kw_only=True)
class Committed:
    """The checkpoint is durable and is the leaf."""

    kind: ClassVar[str] = "committed"
    checkpoint: NodeId


@frozen(kw_only=True)
class Noop:
    """A success without anything to do (TRG-13)."""

    kind: ClassVar[str] = "noop"
    reason: NoopReason


@frozen(kw_only=True)
class Skipped:
    """The branch is unstable, and this is what is open (TRG-14)."""

    kind: ClassVar[str] = "skipped"
    open_calls: tuple[CallId, ...]
    answer_running: bool


@frozen(kw_only=True)
class Stale:
    """The branch is not what the caller thought; this is what it is now (CMT-1, TREE-12)."""

    kind: ClassVar[str] = "stale"
    leaf: NodeId | None
    revision: Revision


@frozen(kw_only=True)
class Failed:
    """It was allowed and did not come about. Nothing changed."""

    kind: ClassVar[str] = "failed"
    reason: FailureReason


@frozen(kw_only=True)
class Cancelled:
    """The plan is dropped (CMT-8)."""

    kind: ClassVar[str] = "cancelled"


@frozen(kw_only=True)
class ReadOnly:
    """The session's history is damaged or its store cannot be written."""

    kind: ClassVar[str] = "read-only"


@frozen(kw_only=True)
class Refused:
    """It is not allowed. ``way``: a node from which the caller gets what was wanted by `Fork` (UNDO-2)."""

    kind: ClassVar[str] = "refused"
    code: RefusalCode
    way: NodeId | None = None


Outcome: TypeAlias = (
    Done
    | Planned
    | Previewed
    | More
    | Committed
    | Noop
    | Skipped
    | Stale
    | Failed
    | Cancelled
    | ReadOnly
    | Refused
)
