"""What one process owns beside the durable state: running answers, and plans and what became of them."""

from collections.abc import Iterable
from enum import Enum, auto

from attrs import Factory, define, frozen

from tailmark.identifiers import NodeId, PlanId, Revision, SessionId
from tailmark.messages import Message, ToolCall
from tailmark.plans import Plan, Trigger
from tailmark_reference.store.queries import SessionRow


class PlanStatus(Enum):
    """What became of a plan that this process began."""

    OPEN = auto()
    SPENT = auto()
    CANCELLED = auto()


@frozen
class Running:
    """An answer that runs, and the leaf that it follows."""

    session: SessionId
    follows: int
    follows_id: NodeId


@frozen
class State:
    """A state of a session, as far as sizes and compactions depend on it: model and settings are bodies (TRG-6)."""

    leaf: NodeId | None
    revision: Revision
    model: str
    settings: str


@define
class Process:
    """The memory of one process. It ends with it; nothing in it is durable.

    ``owned`` are the messages with calls that it stored. ``attempts`` and ``sent`` are the states on which each
    session's last automatic or preflight compaction was planned, and that its last request left. ``undone`` are
    sessions whose last checkpoint was taken back.
    """

    _running: dict[SessionId, Running] = Factory(dict)
    _plans: dict[tuple[SessionId, PlanId], PlanStatus] = Factory(dict)
    _begun: dict[tuple[SessionId, PlanId], Plan] = Factory(dict)
    owned: set[NodeId] = Factory(set)
    attempts: dict[SessionId, State] = Factory(dict)
    sent: dict[SessionId, State] = Factory(dict)
    undone: set[SessionId] = Factory(set)

    def running(self, session: SessionId) -> Running | None:
        """The answer that runs on a session."""
        return self._running.get(session)

    def all_running(self) -> tuple[Running, ...]:
        """All answers that run."""
        return tuple(self._running.values())

    def start(self, session: SessionRow) -> None:
        """Let an answer run behind the session's leaf, which must exist."""
        assert session.leaf is not None
        assert session.leaf_id is not None
        self._running[session.id] = Running(session.id, session.leaf, session.leaf_id)

    def end(self, session: SessionId) -> None:
        """The session's answer is over."""
        del self._running[session]

    def plan_status(self, session: SessionId, plan: PlanId) -> PlanStatus | None:
        """What became of a plan; ``None`` if this process never began it on this session."""
        return self._plans.get((session, plan))

    def begun(self, session: SessionId, plan: PlanId) -> Plan | None:
        """A plan as it was answered to the caller."""
        return self._begun.get((session, plan))

    def free_plan_id(self, trigger: Trigger, session: SessionId, revision: Revision) -> PlanId:
        """A name for a plan that nobody named, which this process does not know yet."""
        name = PlanId(f"{trigger}:{session}:{revision}")
        free, number = name, 1
        while (session, free) in self._plans:
            number += 1
            free = PlanId(f"{name}:{number}")
        return free

    def own(self, messages: Iterable[Message]) -> None:
        """Messages were stored by this process; those with calls are its own."""
        for message in messages:
            if any(isinstance(part, ToolCall) for part in message.parts):
                self.owned.add(message.id)

    def begin_plan(self, plan: Plan) -> None:
        """Remember a plan that was answered to the caller."""
        self._plans[plan.session, plan.id] = PlanStatus.OPEN
        self._begun[plan.session, plan.id] = plan

    def spend_plan(self, session: SessionId, plan: PlanId) -> None:
        """The plan had its answer. A plan that is not open stays what it is."""
        if self.plan_status(session, plan) is PlanStatus.OPEN:
            self._plans[session, plan] = PlanStatus.SPENT

    def cancel_plan(self, session: SessionId, plan: PlanId) -> bool:
        """Drop an open plan. False if there is none of this name."""
        if self.plan_status(session, plan) is not PlanStatus.OPEN:
            return False
        self._plans[session, plan] = PlanStatus.CANCELLED
        return True
