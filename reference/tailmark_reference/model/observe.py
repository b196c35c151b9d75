"""What can be observed of a world."""

from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Role
from tailmark.projections import Marking, ProjectionItem
from tailmark.views import Observation, RunningAnswer, SessionView
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.tree import TreeNode, branch_ids
from tailmark_reference.model.world import Session, World


def project(rules: Rules, leaf: TreeNode | None) -> tuple[ProjectionItem, ...]:
    """What the next request would carry (PROJ-1, PROJ-2). Costs the tail, not the history."""
    latest = rules.latest_checkpoint(leaf)
    summary = (
        ()
        if latest is None
        else (ProjectionItem(node=latest.id, role=Role.USER, marking=rules.marking(), digest=latest.digest),)
    )
    kept = (
        ProjectionItem(node=node.id, role=node.message.role, marking=Marking.VERBATIM, digest=node.digest)
        for node in rules.tail_nodes(leaf, latest)
        if node.message is not None
    )
    return (*summary, *kept)


def view_session(rules: Rules, session: Session, follows: NodeId | None) -> SessionView:
    """What a session shows. ``follows`` is the node that its running answer follows."""
    leaf = session.leaf
    latest = rules.latest_checkpoint(leaf)
    return SessionView(
        session=session.id,
        leaf=leaf.id if leaf is not None else None,
        revision=session.revision,
        branch=branch_ids(leaf),
        open_calls=leaf.open_calls if leaf is not None else (),
        running=RunningAnswer(follows=follows) if follows is not None else None,
        checkpoint=latest.id if latest is not None else None,
        projection=project(rules, leaf),
        model=session.model,
        metadata=session.metadata,
    )


class Observer:
    """Observes worlds one after another; a session that has not changed since is not worked out again."""

    def __init__(self, rules: Rules = RULES) -> None:
        self._rules = rules
        self._seen: dict[SessionId, tuple[Session, NodeId | None, SessionView]] = {}

    def view(self, world: World, session: Session) -> SessionView:
        """What one session shows."""
        follows = world.process.running.get(session.id)
        seen = self._seen.get(session.id)
        if seen is not None and seen[0] is session and seen[1] == follows:
            return seen[2]
        view = view_session(self._rules, session, follows)
        self._seen[session.id] = (session, follows, view)
        return view

    def agree(self, session: Session, view: SessionView) -> None:
        """Take an equal view for the session's own, so that the next comparison is one of identity."""
        seen = self._seen.get(session.id)
        if seen is not None and seen[0] is session:
            self._seen[session.id] = (session, seen[1], view)

    def observe(self, world: World) -> Observation:
        """All sessions, and all nodes in the order of their writing."""
        return Observation(
            sessions=tuple(self.view(world, session) for session in world.sessions.values()),
            nodes=tuple(node.stored for node in world.in_order()),
        )
