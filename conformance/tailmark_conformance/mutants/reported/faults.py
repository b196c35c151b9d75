"""Small faults that several reported mutants are made of."""

from collections.abc import Callable

from attrs import evolve

from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message
from tailmark.operations import Append, Operation
from tailmark.outcomes import Committed, Outcome, Planned
from tailmark.plans import Plan, SummaryRequest
from tailmark.views import Observation, SessionView, StoredNode
from tailmark_conformance.mutants.reported.faulty import Moment
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.step import step
from tailmark_reference.model.world import World


def committed(moment: Moment) -> bool:
    """Whether a checkpoint was committed just now."""
    return isinstance(moment.outcome, Committed)


def meddled(moment: Moment, *operations: Operation) -> World:
    """The state behind further operations that nobody asked for."""
    world = moment.after
    for operation in operations:
        world, _ = step(world, operation, RULES)
    return evolve(world, touched=tuple(node.id for node in world.in_order()))


def copied(moment: Moment, session: SessionId) -> World:
    """The state behind a copy of every message that the checkpoint at that session's leaf keeps, appended behind it."""
    leaf = moment.after.sessions[session].leaf
    first_kept = leaf.checkpoint.first_kept if leaf is not None and leaf.checkpoint is not None else None
    messages: list[Message] = []
    node = leaf if first_kept is not None else None
    while node is not None:
        if node.message is not None:
            messages.append(node.message)
        node = node.parent if node.id != first_kept else None
    return meddled(
        moment,
        *(
            Append(session=session, message=evolve(message, id=NodeId(f"{message.id}-copy")))
            for message in reversed(messages)
        ),
    )


def plan_with(change: Callable[[Plan], Plan]) -> Callable[[Moment], Outcome | None]:
    """Says another plan than the one that the state determines."""

    def says(moment: Moment) -> Outcome | None:
        if isinstance(moment.outcome, Planned):
            return Planned(plan=change(moment.outcome.plan))
        return None

    return says


def request_with(change: Callable[[SummaryRequest], SummaryRequest]) -> Callable[[Moment], Outcome | None]:
    """Asks the summariser something else."""

    def changed(plan: Plan) -> Plan:
        return evolve(plan, request=change(plan.request)) if plan.request is not None else plan

    return plan_with(changed)


def without_nodes(seen: Observation, gone: frozenset[NodeId]) -> Observation:
    """An observation in which these nodes are not stored any more."""
    return evolve(seen, nodes=tuple(node for node in seen.nodes if node.content.id not in gone))


def with_nodes(seen: Observation, change: Callable[[StoredNode], StoredNode]) -> Observation:
    """An observation in which stored nodes are others."""
    return evolve(seen, nodes=tuple(change(node) for node in seen.nodes))


def tail_lost(view: SessionView) -> SessionView:
    """The projection without what stood before the checkpoint."""
    checkpoint = view.branch.index(view.checkpoint) if view.checkpoint in view.branch else -1
    behind = view.branch[checkpoint:] if checkpoint >= 0 else view.branch
    return evolve(view, projection=tuple(item for item in view.projection if item.node in behind))
