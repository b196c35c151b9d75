"""What one process owns beside the durable state: running answers, and plans and what became of them."""

from enum import Enum, auto

from attrs import Factory, define, frozen

from tailmark.identifiers import NodeId, PlanId, SessionId
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


@define
class Process:
    """The memory of one process. It ends with it; nothing in it is durable."""

    _running: dict[SessionId, Running] = Factory(dict)
    _plans: dict[tuple[SessionId, PlanId], PlanStatus] = Factory(dict)

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

    def begin_plan(self, session: SessionId, plan: PlanId) -> None:
        """Remember a plan that was answered to the caller."""
        self._plans[session, plan] = PlanStatus.OPEN

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
