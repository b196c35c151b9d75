"""Operations: everything that can be asked of an implementation. A closed union.

Where an operation has ``follows``, the caller may name the message that the branch ends in (checkpoints
aside); if it ends in another, the answer is `Stale` (TREE-12). ``None`` says nothing.
"""

from typing import ClassVar, TypeAlias

from attrs import frozen

from tailmark.budgets import Model, Settings
from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, PlanId, SessionId
from tailmark.messages import AnswerEnd, Message, ToolResult
from tailmark.plans import Node, Plan, SummariserReply, Trigger


@frozen(kw_only=True)
class Append:
    """Add one message behind the session's leaf (TREE-1)."""

    kind: ClassVar[str] = "append"
    session: SessionId
    message: Message
    follows: NodeId | None = None


@frozen(kw_only=True)
class Save:
    """Make a whole path durable, root first. Checkpoints in it are passed over (TREE-6, TREE-7, TREE-12)."""

    kind: ClassVar[str] = "save"
    session: SessionId
    path: tuple[Node, ...]


@frozen(kw_only=True)
class Settle:
    """Put a result into the assistant message that made the call (TREE-5)."""

    kind: ClassVar[str] = "settle"
    session: SessionId
    message: NodeId
    result: ToolResult


@frozen(kw_only=True)
class Abandon:
    """Give every open call of the branch an `abandoned` result: the process that owned them died."""

    kind: ClassVar[str] = "abandon"
    session: SessionId
    follows: NodeId | None = None


@frozen(kw_only=True)
class StartAnswer:
    """The first request of an answer goes out. Owned by the process, not durable."""

    kind: ClassVar[str] = "start-answer"
    session: SessionId
    follows: NodeId | None = None


@frozen(kw_only=True)
class NextRequest:
    """A further request of the running answer's tool loop."""

    kind: ClassVar[str] = "next-request"
    session: SessionId


@frozen(kw_only=True)
class EndAnswer:
    """The running answer is over. ``reason`` is for people, such as ``overflow``."""

    kind: ClassVar[str] = "end-answer"
    session: SessionId
    end: AnswerEnd
    reason: str | None = None


@frozen(kw_only=True)
class BeginCompaction:
    """Read the branch and answer a plan, or say why there is none."""

    kind: ClassVar[str] = "begin-compaction"
    session: SessionId
    plan: PlanId
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None


@frozen(kw_only=True)
class Preview:
    """As `BeginCompaction`, but nothing comes of it (TRG-18)."""

    kind: ClassVar[str] = "preview"
    session: SessionId
    plan: PlanId
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None


@frozen(kw_only=True)
class CommitCompaction:
    """Bring the summariser's reply to a plan. ``reply`` is ``None`` where the plan asked for none."""

    kind: ClassVar[str] = "commit-compaction"
    plan: Plan
    reply: SummariserReply | None


@frozen(kw_only=True)
class CancelCompaction:
    """Drop a plan (CMT-8)."""

    kind: ClassVar[str] = "cancel-compaction"
    session: SessionId
    plan: PlanId


@frozen(kw_only=True)
class Send:
    """Ask with a draft: it becomes durable if its request fits, with the compaction that it needs or not at all (TRG-8, TRG-9)."""

    kind: ClassVar[str] = "send"
    session: SessionId
    message: Message
    follows: NodeId | None = None


@frozen(kw_only=True)
class Retry:
    """Leave the last turn's answer and ask its question anew, if that request fits (RETRY-1)."""

    kind: ClassVar[str] = "retry"
    session: SessionId
    follows: NodeId | None = None


@frozen(kw_only=True)
class Edit:
    """Replace the message that opened the last turn and ask anew, if that request fits (EDIT-1)."""

    kind: ClassVar[str] = "edit"
    session: SessionId
    target: NodeId
    message: Message
    follows: NodeId | None = None


@frozen(kw_only=True)
class Fork:
    """Open a new session at a stored assistant message (FORK-1). ``session`` is where the fork was asked for."""

    kind: ClassVar[str] = "fork"
    session: SessionId
    target: NodeId
    new_session: SessionId


@frozen(kw_only=True)
class Undo:
    """Take back the checkpoint that is the leaf (UNDO-1)."""

    kind: ClassVar[str] = "undo"
    session: SessionId
    follows: NodeId | None = None


@frozen(kw_only=True)
class SetModel:
    """Choose another model for the session."""

    kind: ClassVar[str] = "set-model"
    session: SessionId
    model: Model


@frozen(kw_only=True)
class SetSettings:
    """Set what sizes a session's requests and compactions (CAP-7)."""

    kind: ClassVar[str] = "set-settings"
    session: SessionId
    settings: Settings


@frozen(kw_only=True)
class SetMetadata:
    """Set one entry of the session's metadata, such as its title (TREE-9)."""

    kind: ClassVar[str] = "set-metadata"
    session: SessionId
    key: str
    value: str


@frozen(kw_only=True)
class Load:
    """Read a session from its durable form again. It writes nothing."""

    kind: ClassVar[str] = "load"
    session: SessionId


@frozen(kw_only=True)
class Restart:
    """End the process and start another on the same durable state. ``killed``: it is not asked to end first."""

    kind: ClassVar[str] = "restart"
    killed: bool = False


@frozen(kw_only=True)
class InflictDamage:
    """The tester's own: end the process, damage the durable state, and start another process on it.

    What each kind does to ``node`` is said at `DamageKind`.
    """

    kind: ClassVar[str] = "inflict-damage"
    session: SessionId
    damage: DamageKind
    node: NodeId


Operation: TypeAlias = (
    Append
    | Save
    | Settle
    | Abandon
    | StartAnswer
    | NextRequest
    | EndAnswer
    | BeginCompaction
    | Preview
    | CommitCompaction
    | CancelCompaction
    | Send
    | Retry
    | Edit
    | Fork
    | Undo
    | SetModel
    | SetSettings
    | SetMetadata
    | Load
    | Restart
    | InflictDamage
)
