"""Follows another implementation's trace through the model, and says whether each step is one that the rules admit.

The model is nondeterministic where a rule leaves a choice: the costs, the ids of checkpoints, the place
among those allowed, how an abandoned call's result is stored, what a refresh does. `Follower` takes the
observed choice, asks whether it is one of those allowed, makes the model's own step with it, and compares
outcome and views. It knows no predicate: the two oracles share the vocabulary and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve, frozen

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.declarations import Declaration, Field
from tailmark.identifiers import NodeId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, ToolResult
from tailmark.operations import (
    Abandon,
    CommitCompaction,
    Edit,
    EndAnswer,
    Operation,
    Preview,
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
    Skipped,
    TooLarge,
    begun_plan,
)
from tailmark.plans import Checkpoint, Plan, Trigger
from tailmark.traces import Step
from tailmark.views import Change, SessionView, StoredNode
from tailmark_reference.model.observe import Observer
from tailmark_reference.model.occupancy import IsLate, PartCost, added_to
from tailmark_reference.model.persistent_map import PersistentMap
from tailmark_reference.model.places import Choice, manual_places, pressed_places
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.step import Next, step, without_answer
from tailmark_reference.model.tree import TreeNode, walk
from tailmark_reference.model.world import KnownPlan, PlanState, Session, World, Written, empty_world
from tailmark_reference.model.writing import bumped, make_node, open_calls_of, write


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
            rules = _with_plan(rules, before, operation, plan)
        match operation, observed.outcome:
            case _, Failed(reason=FailureReason.LOCKED) as locked:
                yield _locked(before, operation), locked
            case CommitCompaction(plan=brought), outcome:
                yield from self._commits(before, operation, brought, outcome, rules)
            case Abandon() | EndAnswer(), Done(written=written) if written:
                yield _abandoned_in_tool_messages(rules, before, observed)
            case SetSettings(), Refused(code=RefusalCode.SETTINGS, wrong=wrong):
                # What contradicts what depends on the implementation's own budgets; the clauses on capacity judge it.
                yield step(before, operation, evolve(rules, settings_fault=lambda _model, _settings: wrong))
            case SetSettings(), Done():
                yield step(before, operation, evolve(rules, settings_fault=lambda _model, _settings: None))
            case Send(message=message) | Edit(message=message), outcome:
                for draft in _draft_costs(
                    self._estimate(message), outcome, self._occupancies(before, operation)
                ):
                    yield step(before, operation, evolve(rules, estimate=self._estimate_of(message, draft)))
            case _:
                yield step(before, operation, rules)

    def _commits(
        self, before: World, operation: CommitCompaction, brought: Plan, outcome: Outcome, rules: Rules
    ) -> Iterator[Next | str]:
        rules = _with_plan(rules, before, operation, brought)
        match outcome:
            case Committed(checkpoint=checkpoint) | Sent(attempt=Committed(checkpoint=checkpoint)):
                if checkpoint in before.nodes:
                    yield f"the checkpoint's id {checkpoint} is taken"
                else:
                    yield step(before, operation, evolve(rules, checkpoint_id=_chosen(checkpoint)))
            case _:
                # An implementation that remembers what it planned may refuse a plan that another choice
                # would allow; one that does not may take it.
                begun = self._plans.get((brought.session, brought.id))
                if begun is not None and begun != brought:
                    yield step(before, operation, evolve(rules, same_plan=_differs))
                yield step(before, operation, rules)

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
        others = added_to(leaf, base, start, _never_late, cost)
        shown = self._shown.get(leaf.id) if leaf is not None else None
        if shown is None or shown.base != base.id or not others <= shown.added <= others + base.estimate:
            return own
        # Nothing of the base is late, or something is: that is no choice.
        return shown.added if (own > others) == (shown.added > others) else own

    def _occupancies(self, before: World, operation: Send | Edit) -> tuple[Occupancy, ...]:
        session = before.sessions.get(operation.session)
        if session is None:
            return ()
        return tuple(shown for node in walk(session.leaf) if (shown := self._shown.get(node.id)) is not None)[
            :2
        ]

    # Comparing --------------------------------------------------------------------------------------

    def _compare(
        self, world: World, change: Change, outcome: Outcome | None, observed: Step | None
    ) -> Admission | None:
        text = None
        if observed is not None and outcome is not None:
            text = self._outcome_difference(outcome, observed.outcome)
        text = text or self._session_difference(world) or self._node_difference(world, change)
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


def _chosen(checkpoint: NodeId) -> Callable[[Plan, Callable[[NodeId], bool]], NodeId]:
    def checkpoint_id(plan: Plan, taken: Callable[[NodeId], bool]) -> NodeId:  # noqa: ARG001  # the type of the rule
        return checkpoint

    return checkpoint_id


def _never_late(node: TreeNode, position: int) -> bool:  # noqa: ARG001  # the type of the rule
    return False


def _with_plan(rules: Rules, before: World, operation: Operation, plan: Plan) -> Rules:
    """The rules with a plan's own choices: its place, if it is one of those allowed, and its name, if that is free."""

    def position(choice: Choice) -> int | None:
        manual = choice.trigger is Trigger.MANUAL
        own = rules.manual_position if manual else rules.pressed_position
        allowed = manual_places(choice) if manual else pressed_places(choice)
        if plan.first_kept is None:
            wanted = len(choice.tail)
        else:
            ids = [node.id for node in choice.tail]
            wanted = ids.index(plan.first_kept) if plan.first_kept in ids else -1
        return wanted if wanted in allowed else own(choice)

    def plan_id(
        trigger: Trigger, session: SessionId, revision: Revision, taken: Callable[[PlanId], bool]
    ) -> PlanId:
        return rules.plan_id(trigger, session, revision, taken) if taken(plan.id) else plan.id

    chosen = evolve(rules, manual_position=position, pressed_position=position)
    names_itself = not isinstance(operation, CommitCompaction | Preview)
    return evolve(chosen, plan_id=plan_id) if names_itself and before.sessions else chosen


def _draft_costs(own: Tokens, outcome: Outcome, shown: tuple[Occupancy, ...]) -> tuple[Tokens, ...]:
    """What a draft may cost in the implementation's own estimate, as far as its answer tells."""
    match outcome:
        case Planned(plan=plan):
            return (plan.draft,)
        case TooLarge(draft=draft):
            # The figure is scaled, so several estimates may have led to it.
            scaled_down = [
                Tokens(draft * one.covered // one.figure) for one in shown if 0 < one.covered < one.figure
            ]
            return (own, draft, *scaled_down, *(Tokens(one + 1) for one in scaled_down))
        case Skipped():
            # Steering that does not fit; its cost is not shown.
            return (own, _MORE_THAN_FITS)
        case _:
            return (own,)


_MORE_THAN_FITS = Tokens(1_000_000_000)


def _differs(brought: Plan, determined: Plan) -> bool:  # noqa: ARG001  # the type of the rule
    return False


def _locked(before: World, operation: Operation) -> World:
    """The world behind an operation that did not get the store: a commit's plan is spent, all else stays."""
    world = before.untouched()
    if not isinstance(operation, CommitCompaction):
        return world
    key = (operation.plan.session, operation.plan.id)
    known = world.process.plans.get(key)
    if known is None or known.state is not PlanState.OPEN:
        return world
    plans = {**world.process.plans, key: evolve(known, state=PlanState.SPENT)}
    return world.with_process(evolve(world.process, plans=plans))


def _abandoned_in_tool_messages(rules: Rules, before: World, observed: Step) -> Next | str:
    """The world of an implementation that writes abandoned results into `tool` messages of its own."""
    operation = observed.operation
    if not isinstance(operation, Abandon | EndAnswer):
        raise TypeError(f"{operation.kind} abandons nothing")
    session = before.sessions.get(operation.session)
    if session is None:
        return f"the session {operation.session} is unknown"
    world = before.untouched()
    if isinstance(operation, EndAnswer):
        if session.id not in world.process.running or operation.end is AnswerEnd.FINAL:
            return "an answer that ends so writes nothing"
        world = without_answer(world, session)
    elif operation.follows is not None and not rules.ends_in(session.leaf, operation.follows):
        return f"the branch does not end in {operation.follows}"
    waiting = tuple(known.call for known in open_calls_of(session))
    new = {node.parent: node.content for node in observed.change.nodes}
    written = []
    for _ in observed.change.nodes:
        content = new.get(session.leaf.id if session.leaf is not None else None)
        if not isinstance(content, Message) or not _only_abandons(content):
            return f"expected the open calls {', '.join(waiting)} to be abandoned, and nothing else"
        fault = rules.message_fault(content, open_calls_of(session))
        if fault is not None:
            return f"{content.id} may not be stored: {fault}"
        world, session = write(rules, world, session, content)
        written.append(content.id)
    if open_calls_of(session):
        return f"expected all of {', '.join(waiting)} to be abandoned"
    world = world.with_session(bumped(rules, session, len(written)))
    return world, Done(written=tuple(written), abandoned=waiting)


def _only_abandons(message: Message) -> bool:
    return message.role is Role.TOOL and all(
        isinstance(part, ToolResult) and part.status is ResultStatus.ABANDONED for part in message.parts
    )


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
