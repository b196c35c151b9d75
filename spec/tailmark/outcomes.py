"""Outcomes: everything that an operation can answer. A closed union, as are its codes and reasons.

Only `Done`, `Sent` and `Committed` may change durable state or a projection (OUT-1). When several apply, the
order is: at a commit `ReadOnly`, `Cancelled`, `Stale`, `Skipped`, `Refused`, `Failed`, `TooLarge`; at a begin
`ReadOnly`, `Refused`, `Skipped`, `Noop`; at a send, retry or edit `ReadOnly`, `Refused`, `Stale`, `Skipped`, `TooLarge`;
elsewhere `ReadOnly`, `Refused`, `Stale`, `TooLarge` (OUT-2).
"""

from enum import StrEnum
from typing import ClassVar, TypeAlias

from attrs import frozen

from tailmark.budgets import WrongSetting
from tailmark.identifiers import CallId, NodeId, Revision, Tokens
from tailmark.plans import Plan, SummaryRequest
from tailmark.projections import ProjectionItem


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
    SETTINGS = "settings"
    """A model or settings that cannot be, or contradict each other (CAP-2, CAP-7)."""
    SPENT = "spent"
    """The plan had its answer already (OUT-3)."""


class NoopReason(StrEnum):
    """Why there was nothing to do."""

    TOO_FEW_TURNS = "too-few-turns"
    CHECKPOINT_IS_LEAF = "checkpoint-is-leaf"
    NO_ADVANCE = "no-advance"
    """No allowed place advances the boundary, and the summary is not too long (TRG-5, TRG-8)."""
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
    ABOVE_BUDGET = "above-budget"
    """The summary is longer than the summary budget (SUM-6)."""
    NOT_SMALLER = "not-smaller"
    """The summary would not make the next request smaller (CMT-16)."""
    STILL_TOO_LARGE = "still-too-large"
    """The request would be above the safe limit even behind the new checkpoint (TRG-9)."""


@frozen(kw_only=True)
class Done:
    """It happened, or nothing was left to do. ``written``: ids of new nodes, in order. ``left``: steering
    messages that left the branch with their turn (RETRY-1). ``abandoned``: calls that got an `abandoned` result.
    ``plan``: an automatic compaction that began with it (TRG-5)."""

    kind: ClassVar[str] = "done"
    written: tuple[NodeId, ...] = ()
    left: tuple[NodeId, ...] = ()
    abandoned: tuple[CallId, ...] = ()
    plan: Plan | None = None


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


Attempt: TypeAlias = Committed | Noop | Failed
"""What became of the compaction that a request tried for itself."""


@frozen(kw_only=True)
class Request:
    """What goes to the model. ``head`` names the instructions and tool schemas that stand before ``items`` (see `Settings`);
    ``built_on`` is the node that the request ends with."""

    head: str
    items: tuple[ProjectionItem, ...]
    built_on: NodeId


@frozen(kw_only=True)
class Sent:
    """The request may go out, and all that it needs is durable (TRG-9).

    ``written``: ids of new nodes, in order. ``left``: steering messages that left the branch (RETRY-1). ``abandoned``:
    calls that nobody owned any more (TRG-14). ``attempt``: the compaction tried for it, ``None`` if none was.
    """

    kind: ClassVar[str] = "sent"
    request: Request
    written: tuple[NodeId, ...] = ()
    left: tuple[NodeId, ...] = ()
    abandoned: tuple[CallId, ...] = ()
    attempt: Attempt | None = None


class LargePart(StrEnum):
    """Which part of a request is too large."""

    OVERHEAD = "overhead"
    """Instructions and tool schemas alone reach the safe limit."""
    DRAFT = "draft"
    """Overhead and draft alone exceed the safe limit."""
    QUESTION = "question"
    """Overhead and the question of a retry alone exceed the safe limit."""
    REQUEST = "request"
    """All together."""


@frozen(kw_only=True)
class TooLarge:
    """The request would exceed the safe limit; it is not sent, and the draft stays the caller's (TRG-8).

    All in tokens, measured with the branch's ratio: ``projection`` is the occupancy without the draft, ``draft``, ``overhead`` and the safe
    ``limit``. ``attempt``: the compaction tried for it, ``None`` if none was.
    """

    kind: ClassVar[str] = "too-large"
    part: LargePart
    projection: Tokens
    draft: Tokens
    overhead: Tokens
    limit: Tokens
    attempt: Attempt | None = None


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
    """It is not allowed. ``way``: a node from which the caller gets what was wanted by `Fork` (UNDO-2). ``wrong``: the
    figure that a model or settings have wrong (CAP-7)."""

    kind: ClassVar[str] = "refused"
    code: RefusalCode
    way: NodeId | None = None
    wrong: WrongSetting | None = None


Outcome: TypeAlias = (
    Done
    | Planned
    | Previewed
    | More
    | Sent
    | TooLarge
    | Committed
    | Noop
    | Skipped
    | Stale
    | Failed
    | Cancelled
    | ReadOnly
    | Refused
)


def begun_plan(outcome: Outcome) -> Plan | None:
    """The plan that began with an answer: one that was asked for, that a request needs, or that an operation set off (TRG-5, TRG-8)."""
    match outcome:
        case Planned(plan=plan) | Done(plan=plan):
            return plan
        case _:
            return None
