"""What can be observed of a world."""

from collections.abc import Mapping

from attrs import evolve, frozen

from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, SessionId
from tailmark.json_form import digest_bytes
from tailmark.messages import Role
from tailmark.projections import Marking, ProjectionItem
from tailmark.views import Observation, RunningAnswer, SessionView, StoredNode
from tailmark_reference.model.damage import damage_of, findings_of, readable_leaf
from tailmark_reference.model.planning import occupancy_of
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.tree import TreeNode, branch_ids
from tailmark_reference.model.world import Session, World


def project(rules: Rules, leaf: TreeNode | None) -> tuple[ProjectionItem, ...]:
    """What the next request would carry (PROJ-1, PROJ-2). Costs the tail, not the history."""
    latest = rules.latest_checkpoint(leaf)
    summary = (
        ()
        if latest is None
        else (
            ProjectionItem(
                node=latest.id,
                role=Role.USER,
                marking=rules.marking(),
                digest=latest.digest,
                estimate=latest.estimate,
            ),
        )
    )
    kept = (
        ProjectionItem(
            node=node.id,
            role=node.message.role,
            marking=Marking.VERBATIM,
            digest=node.digest,
            estimate=node.estimate,
        )
        for node in rules.tail_nodes(leaf, latest)
        if node.message is not None
    )
    return (*summary, *kept)


def view_session(rules: Rules, world: World, session: Session, follows: NodeId | None) -> SessionView:
    """What a session shows. ``follows`` is the node that its running answer follows."""
    damage = damage_of(world, session)
    # Of a damaged branch the readable part is shown, as if that were all.
    leaf = readable_leaf(rules, world, session) if damage else session.leaf
    latest = rules.latest_checkpoint(leaf)
    budgets = rules.budgets(session.model, session.settings)
    return SessionView(
        session=session.id,
        leaf=session.leaf.id if session.leaf is not None and session.id not in world.lost_leaves else None,
        revision=session.revision,
        branch=branch_ids(leaf),
        open_calls=leaf.open_calls if leaf is not None else (),
        running=RunningAnswer(follows=follows) if follows is not None else None,
        checkpoint=latest.id if latest is not None else None,
        projection=project(rules, leaf),
        model=session.model,
        settings=session.settings,
        budgets=budgets,
        occupancy=occupancy_of(rules, leaf, session.model, budgets),
        metadata=session.metadata,
        read_only=bool(damage),
        damage=damage,
        findings=findings_of(leaf),
    )


@frozen(eq=False)
class _Seen:
    """What a view was made from, and the view."""

    session: Session
    follows: NodeId | None
    damage: Mapping[NodeId, DamageKind]
    lost_leaves: frozenset[SessionId]
    view: SessionView

    def is_of(self, world: World, session: Session, follows: NodeId | None) -> bool:
        return (
            self.session is session
            and self.follows == follows
            and self.damage is world.damage
            and self.lost_leaves is world.lost_leaves
        )


class Observer:
    """Observes worlds one after another; a session that has not changed since is not worked out again."""

    def __init__(self, rules: Rules = RULES) -> None:
        self._rules = rules
        self._seen: dict[SessionId, _Seen] = {}

    def view(self, world: World, session: Session) -> SessionView:
        """What one session shows."""
        follows = world.process.running.get(session.id)
        seen = self._seen.get(session.id)
        if seen is not None and seen.is_of(world, session, follows):
            return seen.view
        view = view_session(self._rules, world, session, follows)
        self._seen[session.id] = _Seen(session, follows, world.damage, world.lost_leaves, view)
        return view

    def agree(self, session: Session, view: SessionView) -> None:
        """Take an equal view for the session's own, so that the next comparison is one of identity."""
        seen = self._seen.get(session.id)
        if seen is not None and seen.session is session:
            self._seen[session.id] = evolve(seen, view=view)

    def observe(self, world: World) -> Observation:
        """All sessions, and all nodes in the order of their writing."""
        views = tuple(self.view(world, session) for session in world.sessions.values())
        nodes = tuple(shown for node in world.in_order() if (shown := _shown(world, node)) is not None)
        if not any(view.read_only for view in views):
            return Observation(sessions=views, nodes=nodes)
        return Observation(sessions=views, nodes=nodes, store=_durable_digest(world))


def _shown(world: World, node: TreeNode) -> StoredNode | None:
    """A node as it is observed: not at all if it cannot be read, and without a parent that is not there."""
    match world.damage.get(node.id):
        case None:
            return node.stored
        case DamageKind.MISSING_PARENT:
            return evolve(node.stored, parent=None)
        case DamageKind.CYCLE:
            return evolve(node.stored, parent=node.id)
        case _:
            return None


def _durable_digest(world: World) -> str:
    """Stands for all that is durable: it differs whenever something was written."""
    written = [
        (session.id, session.leaf.id if session.leaf is not None else "", session.revision, session.key)
        for session in world.sessions.values()
    ]
    metadata = [sorted(session.metadata.items()) for session in world.sessions.values()]
    nodes = [node.digest for node in world.in_order()]
    return digest_bytes(repr((written, metadata, nodes)).encode())
