"""What can be observed of an implementation after every step."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import CallId, NodeId, Revision, SessionId, Tokens
from tailmark.messages import Role
from tailmark.plans import Model, Node


class Marking(StrEnum):
    """How an item of a projection is presented to the model."""

    VERBATIM = "verbatim"
    CONTEXT = "context"
    """Marked as second-hand context, not as anybody's instruction (PROJ-9)."""
    UNMARKED = "unmarked"
    """A summary that looks like an ordinary message."""


@frozen(kw_only=True)
class ProjectionItem:
    """One item of the next request.

    ``node`` is the message, or the checkpoint whose summary this is, or ``None`` for something that is
    not stored. ``digest`` is `tailmark.json_form.digest` of what is sent: of the message without its
    preliminary results, or of the summary's text.
    """

    node: NodeId | None
    role: Role
    marking: Marking
    digest: str


@frozen(kw_only=True)
class OpenCall:
    """A call without a final result, and the message that made it. ``approval_pending`` if it waits for the user."""

    call: CallId
    message: NodeId
    approval_pending: bool = False


@frozen(kw_only=True)
class RunningAnswer:
    """An answer being generated in this process, and the leaf that it follows."""

    follows: NodeId


@frozen(kw_only=True)
class SessionView:
    """What a session shows. ``branch`` runs from the root to the leaf, checkpoints included; ``checkpoint`` is the latest one on it."""

    session: SessionId
    leaf: NodeId | None
    revision: Revision
    branch: tuple[NodeId, ...]
    open_calls: tuple[OpenCall, ...]
    running: RunningAnswer | None
    checkpoint: NodeId | None
    projection: tuple[ProjectionItem, ...]
    model: Model
    metadata: Mapping[str, str]


@frozen(kw_only=True)
class StoredNode:
    """A node as it is stored. ``estimate``: what the message, or the checkpoint's summary, costs in a request, in tokens of the implementation's own."""

    parent: NodeId | None
    content: Node
    estimate: Tokens


@frozen(kw_only=True)
class Observation:
    """Everything that is observable at one moment: all sessions, and all stored nodes on and off their branches."""

    sessions: tuple[SessionView, ...]
    nodes: tuple[StoredNode, ...]


@frozen(kw_only=True)
class Change:
    """What differs from the observation before: new or changed sessions and nodes, and those that are gone."""

    sessions: tuple[SessionView, ...] = ()
    nodes: tuple[StoredNode, ...] = ()
    sessions_gone: tuple[SessionId, ...] = ()
    nodes_gone: tuple[NodeId, ...] = ()


def difference(before: Observation, after: Observation) -> Change:
    """The change that leads from one observation to the other. Unchanged values cost an identity test."""
    old_sessions = {view.session: view for view in before.sessions}
    old_nodes = {node.content.id: node for node in before.nodes}
    sessions = tuple(
        view
        for view in after.sessions
        if (old := old_sessions.pop(view.session, None)) is not view and old != view
    )
    nodes = tuple(
        node
        for node in after.nodes
        if (was := old_nodes.pop(node.content.id, None)) is not node and was != node
    )
    return Change(
        sessions=sessions,
        nodes=nodes,
        sessions_gone=tuple(old_sessions),
        nodes_gone=tuple(old_nodes),
    )
