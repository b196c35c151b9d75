"""What can be observed of an implementation after every step."""

from collections.abc import Mapping

from attrs import frozen

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.damage import Damage, Finding
from tailmark.identifiers import CallId, NodeId, Revision, SessionId, Tokens
from tailmark.plans import Node
from tailmark.projections import ProjectionItem


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
    """What a session shows. ``branch`` runs from the root to the leaf, checkpoints included; ``checkpoint`` is the latest one on it.

    A ``read_only`` session has ``damage`` on its branch, or a store that cannot be written. Where there is damage, ``branch``,
    ``checkpoint``, ``projection`` and ``occupancy`` are those of the readable part (DMG-2). ``findings`` are no damage.
    """

    session: SessionId
    leaf: NodeId | None
    revision: Revision
    branch: tuple[NodeId, ...]
    open_calls: tuple[OpenCall, ...]
    running: RunningAnswer | None
    checkpoint: NodeId | None
    projection: tuple[ProjectionItem, ...]
    model: Model
    settings: Settings
    budgets: Budgets
    occupancy: Occupancy
    metadata: Mapping[str, str]
    read_only: bool = False
    damage: tuple[Damage, ...] = ()
    findings: tuple[Finding, ...] = ()


@frozen(kw_only=True)
class StoredNode:
    """A node as it is stored. ``estimate``: what the message, or the checkpoint's summary, costs in a request, in tokens of the implementation's own."""

    parent: NodeId | None
    content: Node
    estimate: Tokens


@frozen(kw_only=True)
class Observation:
    """Everything that is observable at one moment: all sessions, and all stored nodes on and off their branches.

    ``store`` is a digest of the durable bytes, wanted while a session is read-only (DMG-4); ``None`` where nobody looked.
    Nodes that cannot be read are left out.
    """

    sessions: tuple[SessionView, ...]
    nodes: tuple[StoredNode, ...]
    store: str | None = None


@frozen(kw_only=True)
class Change:
    """What differs from the observation before: new or changed sessions and nodes, and those that are gone. ``store`` is the new digest, ``None`` if
    it is the same."""

    sessions: tuple[SessionView, ...] = ()
    nodes: tuple[StoredNode, ...] = ()
    sessions_gone: tuple[SessionId, ...] = ()
    nodes_gone: tuple[NodeId, ...] = ()
    store: str | None = None


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
        store=after.store if after.store != before.store else None,
    )
