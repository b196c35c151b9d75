"""The choices that an implementation has, as rules and steps of the model: `tailmark_reference.model.admits` tries them."""

from collections.abc import Callable

from attrs import evolve

from tailmark.budgets import Occupancy
from tailmark.declarations import Parameters
from tailmark.identifiers import NodeId, PartId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, Text, ToolResult
from tailmark.operations import Abandon, CommitCompaction, EndAnswer, Operation, Preview
from tailmark.outcomes import Done, Failed, FailureReason, Outcome, Planned, Sent, Skipped, TooLarge
from tailmark.plans import Plan, SummaryAnswer, Trigger
from tailmark.traces import Step
from tailmark_reference.model.admissible import least_cost
from tailmark_reference.model.places import Choice, manual_places, pressed_places
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.step import Next, without_answer
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import PlanState, World
from tailmark_reference.model.writing import bumped, open_calls_of, write


def named(checkpoint: NodeId) -> Callable[[Plan, Callable[[NodeId], bool]], NodeId]:
    """The rule that gives every checkpoint this id."""

    def checkpoint_id(plan: Plan, taken: Callable[[NodeId], bool]) -> NodeId:  # noqa: ARG001  # the type of the rule
        return checkpoint

    return checkpoint_id


def never_late(node: TreeNode, position: int) -> bool:  # noqa: ARG001  # the type of the rule
    """The rule by which a base covers all of its own results."""
    return False


def with_plan(rules: Rules, before: World, operation: Operation, plan: Plan) -> Rules:
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


def draft_costs(own: Tokens, outcome: Outcome, shown: tuple[Occupancy, ...]) -> tuple[Tokens, ...]:
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


def summary_costs(
    operation: CommitCompaction, outcome: Outcome, parameters: Parameters
) -> tuple[Tokens, ...]:
    """What a summary that was said to be too long may cost in the implementation's own estimate (OCC-9).

    One size for each side of what is asked: the most that it can cost, and what is just smaller or just not.
    """
    attempt = outcome.attempt if isinstance(outcome, Sent | TooLarge) else outcome
    reply = operation.reply
    if (
        not isinstance(attempt, Failed)
        or attempt.reason not in _SIZES
        or not isinstance(reply, SummaryAnswer)
    ):
        return ()
    text = "\n\n".join(part.text for part in reply.parts if isinstance(part, Text))
    least = 0 if parameters.tokenizer else least_cost(Text(id=PartId("text"), text=text))
    most = parameters.per_message + parameters.per_part + len(text.encode("utf-8", "surrogatepass"))
    freed = operation.plan.tokens_before - operation.plan.tokens_after
    return tuple(Tokens(size) for size in (most, freed, freed - 1) if least <= size <= most)


_SIZES = (FailureReason.ABOVE_BUDGET, FailureReason.NOT_SMALLER, FailureReason.STILL_TOO_LARGE)


def cost_of(size: Tokens, summary: str) -> Tokens:  # noqa: ARG001  # the type of the rule
    """The rule by which a summary costs ``size``."""
    return size


_MORE_THAN_FITS = Tokens(1_000_000_000)


def differs(brought: Plan, determined: Plan) -> bool:  # noqa: ARG001  # the type of the rule
    """The rule by which no plan is right."""
    return False


def locked_out(before: World, operation: Operation) -> World:
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


def abandoned_in_tool_messages(rules: Rules, before: World, observed: Step) -> Next | str:
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
