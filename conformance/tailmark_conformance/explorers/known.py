"""What a run has shown so far, and fresh names: all that the next operation may be drawn from."""

from enum import StrEnum
from random import Random
from typing import TypeVar

from attrs import define

from tailmark.identifiers import CallId, NodeId, PlanId, SessionId
from tailmark.messages import Message, ToolCall
from tailmark.operations import CancelCompaction, CommitCompaction, InflictDamage, Restart
from tailmark.outcomes import Cancelled, Done, More, Outcome, begun_plan
from tailmark.plans import Checkpoint, Node, Plan
from tailmark.rules.scene import Scene, empty_scene
from tailmark.traces import Step
from tailmark.views import Change

T = TypeVar("T")


class PlanState(StrEnum):
    """How far a plan has come."""

    OPEN = "open"
    SPENT = "spent"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The process that began it is gone."""


@define(kw_only=True)
class Begun:
    """A plan that was answered, and how far it has come."""

    plan: Plan
    state: PlanState = PlanState.OPEN


class Known:
    """The state observed last, every plan that was answered, and what names are taken.

    Feed it every step. Nothing of it is hidden: a field that an implementation cannot show only makes the
    operations that are drawn less to the point.
    """

    def __init__(self, start: Change) -> None:
        self.scene: Scene = empty_scene()
        self.nodes: list[NodeId] = []
        self.calls: list[CallId] = []
        self.plans: list[Begun] = []
        self.outcome: Outcome | None = None
        self._names = 0
        self._take(start)

    def feed(self, step: Step) -> None:
        """Take over what a step showed."""
        self.outcome = step.outcome
        self._take(step.change)
        match step.operation, step.outcome:
            case Restart(), _:
                self._lose_plans()
            case InflictDamage(), Done():
                self._lose_plans()
            case CancelCompaction(session=session, plan=plan_id), Cancelled():
                self._end(session, plan_id, PlanState.CANCELLED)
            case CommitCompaction(plan=plan), outcome if not isinstance(outcome, More):
                self._end(plan.session, plan.id, PlanState.SPENT)
            case _:
                pass
        begun = begun_plan(step.outcome)
        if begun is not None:
            self.plans.append(Begun(plan=begun))

    def _lose_plans(self) -> None:
        for begun in self.plans:
            begun.state = PlanState.LOST

    def _take(self, change: Change) -> None:
        gone = frozenset(change.nodes_gone)
        if gone:
            self.nodes = [node for node in self.nodes if node not in gone]
        for node in change.nodes:
            if self.scene.node(node.content.id) is None:
                self.nodes.append(node.content.id)
            if isinstance(node.content, Message):
                self.calls.extend(
                    part.call
                    for part in node.content.parts
                    if isinstance(part, ToolCall) and part.call not in self.calls
                )
        self.scene = self.scene.after(change)

    def _end(self, session: SessionId, plan: PlanId, state: PlanState) -> None:
        for begun in self.plans:
            if begun.plan.session == session and begun.plan.id == plan and begun.state is PlanState.OPEN:
                begun.state = state

    # Names and choices ------------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        """A name that was never used in this run."""
        self._names += 1
        return f"{prefix}{self._names}"

    def session(self, random: Random) -> SessionId:
        """A session, most often the first one."""
        sessions = self.scene.sessions()
        return sessions[0] if random.random() < 0.6 else random.choice(sessions)

    def content(self, node: NodeId) -> Node:
        """What a stored node holds."""
        stored = self.scene.node(node)
        assert stored is not None, f"{node} is not stored"
        return stored.content

    def branch(self, session: SessionId) -> tuple[Node, ...]:
        """What stands on the session's branch, root first, checkpoints included."""
        return tuple(mark.stored.content for mark in self.scene.path(self.scene.leaf(session)))

    def messages(self, session: SessionId) -> tuple[Message, ...]:
        """The messages of the session's branch, root first."""
        return tuple(node for node in self.branch(session) if isinstance(node, Message))

    def off_branch(self, session: SessionId) -> tuple[NodeId, ...]:
        """Stored nodes that are not on the session's branch."""
        branch = {node.id for node in self.branch(session)}
        return tuple(node for node in self.nodes if node not in branch)

    def last_message(self, session: SessionId) -> NodeId | None:
        """The last message of the branch."""
        mark = self.scene.last_message(session)
        return mark.id if mark is not None else None

    def leaf_is_checkpoint(self, session: SessionId) -> bool:
        """Whether the session's leaf is a checkpoint."""
        end = self.scene.end(session)
        return end is not None and isinstance(end.stored.content, Checkpoint)

    def checkpoints(self, session: SessionId) -> tuple[Checkpoint, ...]:
        """The checkpoints of the session's branch, root first."""
        return tuple(node for node in self.branch(session) if isinstance(node, Checkpoint))

    def plans_of(self, session: SessionId, state: PlanState = PlanState.OPEN) -> tuple[Plan, ...]:
        """The session's plans in a state, oldest first."""
        return tuple(
            begun.plan for begun in self.plans if begun.plan.session == session and begun.state is state
        )


def chance(random: Random, probability: float) -> bool:
    """Whether something of this probability happens."""
    return random.random() < probability


def pick(random: Random, weighted: dict[T, int]) -> T:
    """One key, as often as its weight says."""
    left = random.randrange(sum(weighted.values()))
    for one, weight in weighted.items():
        left -= weight
        if left < 0:
            return one
    raise AssertionError("the weights add up")
