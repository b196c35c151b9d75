"""The state of the model: what is durable, and what one process owns."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import evolve, field, frozen

from tailmark.budgets import Model
from tailmark.identifiers import NodeId, PlanId, Revision, SessionId
from tailmark_reference.model.persistent_map import PersistentMap
from tailmark_reference.model.tree import TreeNode


@frozen(kw_only=True, eq=False)
class Session:
    """A leaf and a revision over the shared tree, with settings of its own."""

    id: SessionId
    leaf: TreeNode | None
    revision: Revision
    model: Model
    metadata: Mapping[str, str]

    def at(self, leaf: TreeNode | None, revision: Revision) -> "Session":
        """This session with another leaf and revision."""
        return Session(id=self.id, leaf=leaf, revision=revision, model=self.model, metadata=self.metadata)


class PlanState(StrEnum):
    """What became of a plan that this process answered."""

    OPEN = "open"
    CANCELLED = "cancelled"
    SPENT = "spent"


@frozen(kw_only=True)
class Process:
    """What ends with the process: running answers (the node that each follows) and plans."""

    running: Mapping[SessionId, NodeId] = field(factory=dict)
    plans: Mapping[tuple[SessionId, PlanId], PlanState] = field(factory=dict)


@frozen(eq=False, repr=False)
class Written:
    """The ids of all stored nodes, newest first, as a linked list."""

    node: NodeId
    earlier: "Written | None"


@frozen(kw_only=True, eq=False, repr=False)
class World:
    """Everything. ``touched`` are the nodes that the last step wrote or changed."""

    nodes: PersistentMap[NodeId, TreeNode]
    written: Written | None
    sessions: Mapping[SessionId, Session]
    process: Process
    touched: tuple[NodeId, ...] = ()

    def in_order(self) -> Iterator[TreeNode]:
        """All stored nodes in the order of their writing. This walks the whole history."""
        ids = []
        written = self.written
        while written is not None:
            ids.append(written.node)
            written = written.earlier
        for node_id in reversed(ids):
            node = self.nodes.get(node_id)
            if node is not None:
                yield node

    # These run with every step, so they call the class and not `attrs.evolve`, which is slower.

    def untouched(self) -> "World":
        """This world before a step: nothing is written yet."""
        if not self.touched:
            return self
        return World(nodes=self.nodes, written=self.written, sessions=self.sessions, process=self.process)

    def with_session(self, session: Session) -> "World":
        """This world with a session added or replaced."""
        return World(
            nodes=self.nodes,
            written=self.written,
            sessions={**self.sessions, session.id: session},
            process=self.process,
            touched=self.touched,
        )

    def with_node(self, node: TreeNode) -> "World":
        """This world with a new node stored."""
        return World(
            nodes=self.nodes.set(node.id, node),
            written=Written(node.id, self.written),
            sessions=self.sessions,
            process=self.process,
            touched=(*self.touched, node.id),
        )

    def with_process(self, process: Process) -> "World":
        """This world with other things owned by the process."""
        return evolve(self, process=process)


def empty_world(sessions: tuple[SessionId, ...], model: Model) -> World:
    """An empty store with empty sessions on one model."""
    return World(
        nodes=PersistentMap(),
        written=None,
        sessions={
            session: Session(id=session, leaf=None, revision=Revision(0), model=model, metadata={})
            for session in sessions
        },
        process=Process(),
    )
