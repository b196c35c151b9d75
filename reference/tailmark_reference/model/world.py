"""The state of the model: what is durable, and what one process owns."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import evolve, field, frozen

from tailmark.budgets import Model, Settings
from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, PlanId, Revision, SessionId
from tailmark.plans import Plan
from tailmark_reference.model.persistent_map import PersistentMap
from tailmark_reference.model.tree import TreeNode


@frozen(kw_only=True, eq=False)
class Session:
    """A leaf and a revision over the shared tree, with settings of its own."""

    id: SessionId
    leaf: TreeNode | None
    revision: Revision
    model: Model
    settings: Settings
    metadata: Mapping[str, str]

    @property
    def key(self) -> "StateKey":
        """What attempts and requests remember this state by."""
        leaf = self.leaf.id if self.leaf is not None else None
        return StateKey(leaf=leaf, revision=self.revision, model=self.model, settings=self.settings)

    def at(self, leaf: TreeNode | None, revision: Revision) -> "Session":
        """This session with another leaf and revision."""
        return Session(
            id=self.id,
            leaf=leaf,
            revision=revision,
            model=self.model,
            settings=self.settings,
            metadata=self.metadata,
        )


@frozen(kw_only=True)
class StateKey:
    """A state of a session, as far as sizes and compactions depend on it (TRG-6)."""

    leaf: NodeId | None
    revision: Revision
    model: Model
    settings: Settings


class PlanState(StrEnum):
    """What became of a plan that this process answered."""

    OPEN = "open"
    CANCELLED = "cancelled"
    SPENT = "spent"


@frozen(kw_only=True)
class KnownPlan:
    """A plan as this process answered it, and what became of it."""

    plan: Plan
    state: PlanState = PlanState.OPEN


@frozen(kw_only=True)
class Process:
    """What ends with the process.

    ``running``: answers, and the node that each follows. ``owned``: the messages with calls that this process stored. ``attempts``: the state on
    which each session's last automatic or preflight compaction was planned. ``undone``: sessions whose last checkpoint was taken back.
    ``sent``: the state behind each session's last request that was found to fit.
    """

    running: Mapping[SessionId, NodeId] = field(factory=dict)
    plans: Mapping[tuple[SessionId, PlanId], KnownPlan] = field(factory=dict)
    owned: PersistentMap[NodeId, bool] = field(factory=PersistentMap)
    attempts: Mapping[SessionId, StateKey] = field(factory=dict)
    undone: frozenset[SessionId] = frozenset()
    sent: Mapping[SessionId, StateKey] = field(factory=dict)


@frozen(eq=False, repr=False)
class Written:
    """The ids of all stored nodes, newest first, as a linked list."""

    node: NodeId
    earlier: "Written | None"


@frozen(kw_only=True, eq=False, repr=False)
class World:
    """Everything. ``touched`` are the nodes that the last step wrote or changed.

    ``damage`` and ``lost_leaves`` are what was inflicted from outside. The tree stays as it was before: what can
    still be read of it is worked out in `tailmark_reference.model.damage`.
    """

    nodes: PersistentMap[NodeId, TreeNode]
    written: Written | None
    sessions: Mapping[SessionId, Session]
    process: Process
    touched: tuple[NodeId, ...] = ()
    damage: Mapping[NodeId, DamageKind] = field(factory=dict)
    lost_leaves: frozenset[SessionId] = frozenset()

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
        return self._with(self.nodes, self.written, self.sessions, ())

    def with_session(self, session: Session) -> "World":
        """This world with a session added or replaced."""
        return self._with(self.nodes, self.written, {**self.sessions, session.id: session}, self.touched)

    def with_node(self, node: TreeNode) -> "World":
        """This world with a new node stored."""
        return self._with(
            self.nodes.set(node.id, node),
            Written(node.id, self.written),
            self.sessions,
            (*self.touched, node.id),
        )

    def _with(
        self,
        nodes: PersistentMap[NodeId, TreeNode],
        written: Written | None,
        sessions: Mapping[SessionId, Session],
        touched: tuple[NodeId, ...],
    ) -> "World":
        return World(
            nodes=nodes,
            written=written,
            sessions=sessions,
            process=self.process,
            touched=touched,
            damage=self.damage,
            lost_leaves=self.lost_leaves,
        )

    def with_process(self, process: Process) -> "World":
        """This world with other things owned by the process."""
        return evolve(self, process=process)


def empty_world(sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> World:
    """An empty store with empty sessions on one model under one set of settings."""
    return World(
        nodes=PersistentMap(),
        written=None,
        sessions={
            session: Session(
                id=session, leaf=None, revision=Revision(0), model=model, settings=settings, metadata={}
            )
            for session in sessions
        },
        process=Process(),
    )
