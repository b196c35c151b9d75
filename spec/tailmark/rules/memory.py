"""What the steps before a step showed, as far as a clause may depend on it.

What belongs to the process (plans, attempts, undos, requests, the calls that it stored) is forgotten with a
restart. The rest stays for the whole trace.
"""

from collections.abc import Mapping

from attrs import evolve, field, frozen

from tailmark.budgets import Budgets, Model, Settings
from tailmark.declarations import Field
from tailmark.identifiers import NodeId, PartId, PlanId, Revision, SessionId
from tailmark.messages import Message, ToolCall, ToolResult
from tailmark.operations import (
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    InflictDamage,
    Operation,
    Restart,
    Undo,
)
from tailmark.outcomes import Cancelled, Committed, Done, More, Outcome, Planned, Sent, begun_plan
from tailmark.plans import Plan, Trigger
from tailmark.projections import ProjectionItem
from tailmark.rules.scene import Scene
from tailmark.traces import Step
from tailmark.views import Change


@frozen(kw_only=True)
class KnownPlan:
    """A plan that was answered, as far as the steps so far tell.

    ``ended`` says that it had its answer (any answer to its commit but `More`) or was cancelled.
    """

    plan: Plan
    cancelled: bool = False
    ended: bool = False


@frozen(kw_only=True)
class StateKey:
    """A state of a session, as far as sizes and compactions depend on it (TRG-6)."""

    leaf: NodeId | None
    revision: Revision
    model: Model
    settings: Settings


@frozen(kw_only=True)
class LastRequest:
    """The last request of a session, and what stood before its items (CACHE-1)."""

    head: str
    model: Model
    items: tuple[ProjectionItem, ...]
    broken: bool = False
    """Whether something came since that may change the prefix."""


@frozen(kw_only=True)
class Memory:
    """See the module. ``owned``: the messages with calls that this process stored. ``attempts``: the state on which the last automatic or
    preflight plan of a session was made. ``undone``: sessions with an undo since the last compaction or manual begin. ``sent``: the state behind
    a session's last `Sent`. ``late``: results that were put into a message after it was first stored. ``budgets``: those seen so far."""

    plans: Mapping[tuple[SessionId, PlanId], KnownPlan] = field(factory=dict)
    owned: frozenset[NodeId] = frozenset()
    attempts: Mapping[SessionId, StateKey] = field(factory=dict)
    undone: frozenset[SessionId] = frozenset()
    sent: Mapping[SessionId, StateKey] = field(factory=dict)
    requests: Mapping[SessionId, LastRequest] = field(factory=dict)
    late: Mapping[NodeId, frozenset[PartId]] = field(factory=dict)
    budgets: Mapping[tuple[Model, Settings], Budgets] = field(factory=dict)

    def after(self, step: Step, before: Scene, now: Scene) -> "Memory":
        """What is remembered behind a step."""
        memory = self
        if isinstance(step.operation, Restart) or (
            isinstance(step.operation, InflictDamage) and isinstance(step.outcome, Done)
        ):
            memory = Memory(requests=self.requests, late=self.late, budgets=self.budgets)
        if step.change.nodes:
            memory = memory._with_nodes(step, before)
        if step.change.sessions:
            memory = memory._with_views(step)
        memory = memory._with_plan(step, now)
        memory = memory._with_undo(step)
        if isinstance(step.outcome, Sent):
            session = _session_of(step.operation)
            if session is not None and now.knows_session(session):
                memory = evolve(memory, sent={**memory.sent, session: state_key(now, session)})
        return memory._with_request(step, before, now)

    def _with_nodes(self, step: Step, before: Scene) -> "Memory":
        owned = self.owned
        for node in step.change.nodes:
            content = node.content
            if not isinstance(content, Message) or before.node(content.id) is not None:
                continue
            if any(isinstance(part, ToolCall) for part in content.parts):
                owned |= {content.id}
        late = self.late_after(step.change, before)
        return evolve(self, owned=owned, late=late) if (owned, late) != (self.owned, self.late) else self

    def late_after(self, change: Change, before: Scene) -> Mapping[NodeId, frozenset[PartId]]:
        """`late`, behind a change of the state ``before``."""
        late = self.late
        for node in change.nodes:
            content, old = node.content, before.node(node.content.id)
            if old is None or not isinstance(content, Message) or not isinstance(old.content, Message):
                continue
            put = {
                part.id
                for part in content.parts
                if isinstance(part, ToolResult) and part not in old.content.parts
            }
            if put:
                late = {**late, content.id: late.get(content.id, frozenset()) | put}
        return late

    def _with_views(self, step: Step) -> "Memory":
        new = {
            (view.model, view.settings): view.budgets
            for view in step.change.sessions
            if (view.model, view.settings) not in self.budgets
        }
        return evolve(self, budgets={**self.budgets, **new}) if new else self

    def _with_plan(self, step: Step, now: Scene) -> "Memory":
        plan = begun_plan(step.outcome)
        if plan is not None:
            key = (plan.session, plan.id)
            memory = evolve(self, plans={**self.plans, key: KnownPlan(plan=plan)})
            if plan.trigger is Trigger.MANUAL or not now.knows_session(plan.session):
                return memory
            return evolve(memory, attempts={**self.attempts, plan.session: state_key(now, plan.session)})
        match step.operation, step.outcome:
            case CancelCompaction(session=session, plan=plan_id), Cancelled():
                return self._with_end((session, plan_id), cancelled=True)
            case CommitCompaction(plan=brought), outcome if not isinstance(outcome, More):
                return self._with_end((brought.session, brought.id), cancelled=False)
            case _:
                return self

    def _with_end(self, key: tuple[SessionId, PlanId], *, cancelled: bool) -> "Memory":
        known = self.plans.get(key)
        if known is None:
            return self
        ended = evolve(known, cancelled=known.cancelled or cancelled, ended=True)
        return evolve(self, plans={**self.plans, key: ended})

    def _with_undo(self, step: Step) -> "Memory":
        match step.operation, step.outcome:
            case Undo(session=session), Done():
                return evolve(self, undone=self.undone | {session})
            case BeginCompaction(session=session), Planned():
                return evolve(self, undone=self.undone - {session})
            case CommitCompaction(plan=plan), outcome if _wrote_checkpoint(outcome):
                return evolve(self, undone=self.undone - {plan.session})
            case _:
                return self

    def _with_request(self, step: Step, before: Scene, now: Scene) -> "Memory":
        requests = dict(self.requests)
        for view in step.change.sessions:
            known = requests.get(view.session)
            if known is not None and not known.broken and _breaks_prefix(step, before, view.session, now):
                requests[view.session] = evolve(known, broken=True)
        asked = request_made(step.operation, step.outcome, now)
        if asked is not None:
            session, request = asked
            requests[session] = request
        return evolve(self, requests=requests) if requests != self.requests else self


def _wrote_checkpoint(outcome: Outcome) -> bool:
    return isinstance(outcome, Committed) or (
        isinstance(outcome, Sent) and isinstance(outcome.attempt, Committed)
    )


def _session_of(operation: Operation) -> SessionId | None:
    if isinstance(operation, CommitCompaction):
        return operation.plan.session
    return None if isinstance(operation, Restart) else operation.session


def state_key(scene: Scene, session: SessionId) -> StateKey:
    """The present state of a session. What is hidden counts as unchanged."""
    view = scene.view(session)
    return StateKey(leaf=view.leaf, revision=view.revision, model=view.model, settings=view.settings)


def request_made(operation: Operation, outcome: Outcome, now: Scene) -> tuple[SessionId, LastRequest] | None:
    """The request that goes to the model with a step, as it can be seen: in the answer, or as the projection it is made from."""
    session = _session_of(operation)
    if session is None or not now.knows_session(session) or not now.shows(Field.PROJECTION):
        return None
    view = now.view(session)
    match operation, outcome:
        case _, Sent(request=request):
            return session, LastRequest(head=request.head, model=view.model, items=request.items)
        case operation, Done() if operation.kind in ("start-answer", "next-request"):
            return session, LastRequest(head=view.settings.head, model=view.model, items=view.projection)
        case _:
            return None


def _breaks_prefix(step: Step, before: Scene, session: SessionId, now: Scene) -> bool:
    """Whether something happened behind which a request need not extend the one before it (CACHE-1)."""
    if not before.knows_session(session) or not now.knows_session(session):
        return True
    old, new = before.view(session), now.view(session)
    if old.model != new.model or old.settings.head != new.settings.head or new.read_only:
        return True
    if step.operation.kind in ("retry", "edit", "undo"):
        return old.leaf != new.leaf
    end, was = now.checkpoint(session), before.checkpoint(session)
    return (end.id if end is not None else None) != (was.id if was is not None else None)
