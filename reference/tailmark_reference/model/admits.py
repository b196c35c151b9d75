"""Follows another implementation's trace through the model, and says whether each step is one that the rules admit.

The model is nondeterministic where a rule leaves a choice: the costs, the ids of checkpoints, the place
among those allowed, how an abandoned call's result is stored, what a refresh does. `Follower` takes the
observed choice, asks whether it is one of those allowed, makes the model's own step with it, and compares
outcome and views. It knows no predicate: the two oracles share the vocabulary and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from attrs import evolve, frozen

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.declarations import Capability, Declaration, Field
from tailmark.identifiers import NodeId, PlanId, SessionId, Tokens
from tailmark.messages import Message
from tailmark.operations import (
    Abandon,
    CommitCompaction,
    Edit,
    EndAnswer,
    Send,
    SetSettings,
)
from tailmark.outcomes import (
    Committed,
    Done,
    Failed,
    FailureReason,
    Outcome,
    Planned,
    Previewed,
    RefusalCode,
    Refused,
    Sent,
    begun_plan,
)
from tailmark.plans import Checkpoint, Plan
from tailmark.traces import Step
from tailmark.views import Change, SessionView, StoredNode
from tailmark_reference.model.admissible import (
    budgets_fault,
    estimate_fault,
    least_cost,
    monotone_fault,
    names_a_wish,
    summary_fault,
)
from tailmark_reference.model.choices import (
    abandoned_in_tool_messages,
    cost_of,
    differs,
    draft_costs,
    locked_out,
    named,
    never_late,
    summary_costs,
    with_plan,
)
from tailmark_reference.model.observe import Observer
from tailmark_reference.model.occupancy import IsLate, PartCost, added_to
from tailmark_reference.model.persistent_map import PersistentMap
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.step import Next, step
from tailmark_reference.model.subject import CAPABILITIES
from tailmark_reference.model.tree import TreeNode, walk
from tailmark_reference.model.world import KnownPlan, Session, World, Written, empty_world
from tailmark_reference.model.writing import make_node


@frozen(kw_only=True)
class Admission:
    """Whether a step is admitted; if not, ``text`` says what the model expected and what was seen."""

    admitted: bool
    text: str = ""


_ADMITTED = Admission(admitted=True)

_SESSION_FIELDS: Mapping[str, Field] = {
    "revision": Field.REVISION,
    "branch": Field.BRANCH,
    "open_calls": Field.OPEN_CALLS,
    "running": Field.RUNNING,
    "checkpoint": Field.CHECKPOINT,
    "projection": Field.PROJECTION,
    "model": Field.MODEL,
    "settings": Field.SETTINGS,
    "budgets": Field.BUDGETS,
    "occupancy": Field.OCCUPANCY,
    "read_only": Field.DAMAGE,
    "damage": Field.DAMAGE,
    "findings": Field.DAMAGE,
    "metadata": Field.METADATA,
}


def can_follow(declaration: Declaration) -> bool:
    """Whether the model can follow such an implementation: it does all of it or nothing, and compares plans and checkpoints whole."""
    whole = Field.SIZES not in declaration.hidden and Field.RECORD not in declaration.hidden
    return whole and set(CAPABILITIES) <= set(declaration.capabilities)


class Follower:
    """Follows one trace from its start.

    After a rejected step the observed state is taken over and the next step is judged from there. ``lost``
    says that the observed state is no tree any more; from then on nothing is judged.
    """

    def __init__(
        self,
        declaration: Declaration,
        sessions: tuple[SessionId, ...],
        model: Model,
        settings: Settings,
        rules: Rules | None = None,
    ) -> None:
        self._declaration = declaration
        self._hidden = frozenset(declaration.hidden)
        chosen = rules or Rules()
        self._own = chosen
        self._rules = evolve(
            chosen,
            readings=declaration.readings,
            worth_divisor=declaration.parameters.worth_divisor,
            budgets=self._budgets_of,
            occupancy=evolve(chosen.occupancy, added_to=self._added_to),
        )
        self._budgets: dict[tuple[Model, Settings], Budgets] = {}
        # Where an occupancy was shown, by the node that its branch ends in.
        self._shown: dict[NodeId, Occupancy] = {}
        self._world = empty_world(sessions, model, settings)
        self._observer = Observer(self._rules)
        self._nodes: dict[NodeId, StoredNode] = {}
        self._sessions: dict[SessionId, SessionView] = {}
        self._plans: dict[tuple[SessionId, PlanId], Plan] = {}
        self.lost = False

    def start(self, change: Change) -> Admission:
        """Take over the first observation."""
        self._take(change)
        return self._compare(self._world, change, None, None) or _ADMITTED

    def feed(self, observed: Step) -> Admission:
        """Judge one step."""
        if self.lost:
            return _ADMITTED
        before = self._world
        self._take(observed.change)
        self._take_plans(observed)
        rejections = []
        for candidate in self._candidates(before, observed):
            if isinstance(candidate, str):
                rejections.append(candidate)
                continue
            world, outcome = candidate
            rejection = self._compare(world, observed.change, outcome, observed)
            if rejection is None:
                self._world = world
                self._remember_plan(observed)
                return _ADMITTED
            rejections.append(rejection.text)
        self._remember_plan(observed)
        self._take_over(before, observed)
        return Admission(admitted=False, text=rejections[0])

    # Choices ----------------------------------------------------------------------------------------

    def _candidates(self, before: World, observed: Step) -> Iterator[Next | str]:
        """What the model may do here, given the observed choices; a text where a choice is not allowed."""
        operation = observed.operation
        rules = evolve(
            self._rules, estimate=self._estimate, estimate_summary=self._estimate_summary(observed)
        )
        plan = observed.outcome.plan if isinstance(observed.outcome, Previewed) else None
        plan = plan or begun_plan(observed.outcome)
        if plan is not None:
            rules = with_plan(rules, before, operation, plan)
        match operation, observed.outcome:
            case _, Failed(reason=FailureReason.LOCKED) as locked:
                yield locked_out(before, operation), locked
            case CommitCompaction(plan=brought), outcome:
                yield from self._commits(before, operation, brought, outcome, rules)
            case Abandon() | EndAnswer(), Done(written=written) if written:
                yield abandoned_in_tool_messages(rules, before, observed)
            case SetSettings(settings=settings), Refused(code=RefusalCode.SETTINGS, wrong=wrong):
                # What contradicts what depends on the implementation's own budgets.
                if wrong is None or not names_a_wish(settings, wrong):
                    yield f"expected one of the figures that were set to be named as wrong, saw {wrong}"
                else:
                    yield step(
                        before, operation, evolve(rules, settings_fault=lambda _model, _settings: wrong)
                    )
            case SetSettings(session=session, settings=settings), Done() if session in self._sessions:
                scaled = self._budgets_of(self._sessions[session].model, settings).scaled
                if scaled:
                    yield f"expected settings that do not fit to be refused, saw {', '.join(scaled)} scaled"
                else:
                    yield step(
                        before, operation, evolve(rules, settings_fault=lambda _model, _settings: None)
                    )
            case Send(message=message) | Edit(message=message), outcome:
                for draft in draft_costs(
                    self._estimate(message), outcome, self._occupancies(before, operation)
                ):
                    yield step(before, operation, evolve(rules, estimate=self._estimate_of(message, draft)))
            case _:
                yield step(before, operation, rules)

    def _commits(
        self, before: World, operation: CommitCompaction, brought: Plan, outcome: Outcome, rules: Rules
    ) -> Iterator[Next | str]:
        rules = with_plan(rules, before, operation, brought)
        match outcome:
            case Committed(checkpoint=checkpoint) | Sent(attempt=Committed(checkpoint=checkpoint)):
                if checkpoint in before.nodes:
                    yield f"the checkpoint's id {checkpoint} is taken"
                else:
                    yield step(before, operation, evolve(rules, checkpoint_id=named(checkpoint)))
            case _:
                # An implementation that remembers what it planned may refuse a plan that another choice
                # would allow; one that does not may take it.
                begun = self._plans.get((brought.session, brought.id))
                if begun is not None and begun != brought:
                    yield step(before, operation, evolve(rules, same_plan=differs))
                yield step(before, operation, rules)
                # No checkpoint shows what its summary would have cost.
                for size in summary_costs(operation, outcome, self._declaration.parameters):
                    yield step(before, operation, evolve(rules, estimate_summary=partial(cost_of, size)))

    def _estimate(self, message: Message) -> Tokens:
        stored = self._nodes.get(message.id)
        return stored.estimate if stored is not None else self._own.estimate(message)

    def _estimate_of(self, draft: Message, cost: Tokens) -> Callable[[Message], Tokens]:
        return lambda message: cost if message is draft else self._estimate(message)

    def _estimate_summary(self, observed: Step) -> Callable[[str], Tokens]:
        new = [node.estimate for node in observed.change.nodes if isinstance(node.content, Checkpoint)]
        return (lambda _: new[0]) if new else self._own.estimate_summary

    def _budgets_of(self, model: Model, settings: Settings) -> Budgets:
        """The implementation's own budgets, as it showed them. It may show none."""
        if Field.BUDGETS in self._hidden:
            return Budgets()
        return self._budgets.get((model, settings)) or self._own.budgets(model, settings)

    def _added_to(
        self, leaf: TreeNode | None, base: TreeNode, start: TreeNode, late: IsLate, cost: PartCost
    ) -> Tokens:
        """How much of the base message its figure does not cover is the implementation's to say, within that message (OCC-2)."""
        own = added_to(leaf, base, start, late, cost)
        others = added_to(leaf, base, start, never_late, cost)
        fewest = others
        if not self._declaration.parameters.tokenizer:
            fewest = added_to(leaf, base, start, late, least_cost)
        shown = self._shown.get(leaf.id) if leaf is not None else None
        if shown is None or shown.base != base.id or not fewest <= shown.added <= others + base.estimate:
            return own
        # Nothing of the base is late, or something is: that is no choice.
        return shown.added if (own > others) == (shown.added > others) else own

    def _occupancies(self, before: World, operation: Send | Edit) -> tuple[Occupancy, ...]:
        session = before.sessions.get(operation.session)
        if session is None:
            return ()
        shown = [one for node in walk(session.leaf) if (one := self._shown.get(node.id)) is not None][:2]
        edited = before.nodes.get(operation.target) if isinstance(operation, Edit) else None
        base = edited.parent if edited is not None else None
        at_base = self._shown.get(base.id) if base is not None else None
        return (*shown, at_base) if at_base is not None else tuple(shown)

    # Comparing --------------------------------------------------------------------------------------

    def _compare(
        self, world: World, change: Change, outcome: Outcome | None, observed: Step | None
    ) -> Admission | None:
        text = None
        if observed is not None and outcome is not None:
            text = self._outcome_difference(outcome, observed.outcome)
        text = text or self._session_difference(world) or self._node_difference(world, change)
        text = text or self._figure_fault(change)
        if text is None and observed is not None and Field.FRESH not in self._hidden:
            text = _fresh_difference(observed.fresh)
        return Admission(admitted=False, text=text) if text is not None else None

    def _outcome_difference(self, expected: Outcome, seen: Outcome) -> str | None:
        if Field.OUTCOME in self._hidden or expected == seen:
            return None
        if (
            Field.PLAN in self._hidden
            and type(expected) is type(seen)
            and isinstance(seen, Planned | Previewed)
        ):
            return None
        return f"outcome: expected {expected}, saw {seen}"

    def _session_difference(self, world: World) -> str | None:
        if set(world.sessions) != set(self._sessions):
            return f"sessions: expected {sorted(world.sessions)}, saw {sorted(self._sessions)}"
        for session in world.sessions.values():
            expected = self._observer.view(world, session)
            seen = self._sessions[session.id]
            if expected is seen or expected == seen:
                # Next time the identity test answers.
                self._observer.agree(session, seen)
                continue
            for name, hidden in (("leaf", None), *_SESSION_FIELDS.items()):
                if hidden in self._hidden or getattr(expected, name) == getattr(seen, name):
                    continue
                return f"session {session.id}, {name}: expected {getattr(expected, name)}, saw {getattr(seen, name)}"
        return None

    def _node_difference(self, world: World, change: Change) -> str | None:
        if self._world_is_damaged(world):
            # What an unreadable node held cannot be seen, so the nodes are taken as they are shown.
            return None
        if change.nodes_gone:
            return f"nodes: {', '.join(change.nodes_gone)} are gone"
        changed = {node.content.id for node in change.nodes}
        missing = [node for node in world.touched if node not in changed]
        if missing:
            return f"nodes: expected {', '.join(missing)} to be written or changed, saw nothing of it"
        for seen in change.nodes:
            node = world.nodes.get(seen.content.id)
            if node is None:
                return f"nodes: {seen.content.id} was not expected"
            expected = node.stored
            if expected.parent != seen.parent:
                return f"node {node.id}: expected the parent {expected.parent}, saw {seen.parent}"
            if expected.content != seen.content:
                return f"node {node.id}: expected {expected.content}, saw {seen.content}"
            if expected.estimate != seen.estimate:
                return f"node {node.id}: its estimate was {expected.estimate} and is {seen.estimate} now"
        return None

    def _figure_fault(self, change: Change) -> str | None:
        """What is wrong with figures that are the implementation's own."""
        if Capability.CAPACITY not in self._declaration.capabilities:
            return None
        if Field.BUDGETS not in self._hidden:
            for view in change.sessions:
                fault = budgets_fault(view.model, view.settings, view.budgets)
                fault = fault or monotone_fault(view.model, view.settings, view.budgets, self._budgets)
                if fault is not None:
                    return f"session {view.session}: {fault}"
        if Field.ESTIMATE not in self._hidden:
            for node in change.nodes:
                parameters = self._declaration.parameters
                if isinstance(node.content, Message):
                    fault = estimate_fault(node.content, node.estimate, parameters)
                else:
                    fault = summary_fault(node.content, node.estimate, parameters)
                if fault is not None:
                    return fault
        return None

    @staticmethod
    def _world_is_damaged(world: World) -> bool:
        return bool(world.damage)

    # Going on ---------------------------------------------------------------------------------------

    def _take(self, change: Change) -> None:
        for gone in change.nodes_gone:
            self._nodes.pop(gone, None)
        for gone_session in change.sessions_gone:
            self._sessions.pop(gone_session, None)
        self._nodes.update((node.content.id, node) for node in change.nodes)
        self._sessions.update((view.session, view) for view in change.sessions)
        for view in change.sessions:
            self._budgets[view.model, view.settings] = view.budgets
            if view.leaf is not None:
                self._shown[view.leaf] = view.occupancy

    def _take_plans(self, observed: Step) -> None:
        """A plan shows the occupancy of the branch up to its base."""
        plan = begun_plan(observed.outcome)
        if plan is not None:
            self._shown[plan.base] = plan.occupancy

    def _remember_plan(self, observed: Step) -> None:
        plan = begun_plan(observed.outcome)
        if plan is not None:
            self._plans[plan.session, plan.id] = plan

    def _take_over(self, before: World, observed: Step) -> None:
        """Build the world anew from what was observed; what only the process knows follows the model."""
        after, _ = step(before, observed.operation, self._rules)
        plans = dict(after.process.plans)
        plan = begun_plan(observed.outcome)
        if plan is not None:
            plans.setdefault((plan.session, plan.id), KnownPlan(plan=plan))
        nodes = self._rebuilt()
        if nodes is None or any(
            view.leaf is not None and view.leaf not in nodes for view in self._sessions.values()
        ):
            self.lost = True
            return
        table: PersistentMap[NodeId, TreeNode] = PersistentMap()
        written: Written | None = None
        for node_id, node in nodes.items():
            table = table.set(node_id, node)
            written = Written(node_id, written)
        self._world = World(
            nodes=table,
            written=written,
            sessions={
                view.session: Session(
                    id=view.session,
                    leaf=nodes[view.leaf] if view.leaf is not None else None,
                    revision=view.revision,
                    model=view.model,
                    settings=view.settings,
                    metadata=view.metadata,
                )
                for view in self._sessions.values()
            },
            damage=after.damage,
            lost_leaves=after.lost_leaves,
            process=evolve(
                after.process,
                running={
                    view.session: view.running.follows
                    for view in self._sessions.values()
                    if view.running is not None
                },
                plans=plans,
            ),
        )

    def _rebuilt(self) -> dict[NodeId, TreeNode] | None:
        """All observed nodes as a tree; ``None`` if they are none."""
        rules = evolve(self._rules, estimate=self._estimate)
        nodes: dict[NodeId, TreeNode] = {}
        waiting = list(self._nodes.values())
        while waiting:
            later = []
            for stored in waiting:
                if stored.parent is None or stored.parent in nodes:
                    parent = nodes[stored.parent] if stored.parent is not None else None
                    node = make_node(rules, stored.content, parent)
                    nodes[node.id] = evolve(node, estimate=stored.estimate)
                else:
                    later.append(stored)
            if len(later) == len(waiting):
                return None
            waiting = later
        return nodes


def _fresh_difference(fresh: Change | None) -> str | None:
    if fresh is None or fresh == Change():
        return None
    names = [
        *(view.session for view in fresh.sessions),
        *(node.content.id for node in fresh.nodes),
        *fresh.sessions_gone,
        *fresh.nodes_gone,
    ]
    return f"a fresh process sees {', '.join(names)} differently"
