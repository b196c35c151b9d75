"""What a compaction of a branch would be: the plan that the state determines."""

from functools import partial

from attrs import frozen

from tailmark.budgets import Budgets, Model, Occupancy
from tailmark.declarations import RefreshReading
from tailmark.identifiers import NodeId, PlanId, Tokens
from tailmark.plans import EditFor, Plan, Purpose, RetryFor, SendFor, SummaryRequest, Trigger
from tailmark_reference.model.occupancy import measured
from tailmark_reference.model.places import Choice, cost
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import Session, World


@frozen(kw_only=True)
class Terms:
    """What a plan is made on beside the branch: it stays the plan's own until the commit (CMT-13).

    ``draft`` is the estimate of the purpose's message, in tokens.
    """

    trigger: Trigger
    model: Model
    budgets: Budgets
    purpose: Purpose | None = None
    draft: Tokens = Tokens(0)
    instructions: str | None = None


def terms_of(plan: Plan) -> Terms:
    """The terms that a plan was made on."""
    return Terms(
        trigger=plan.trigger,
        model=plan.model,
        budgets=plan.budgets,
        purpose=plan.purpose,
        draft=plan.draft,
        instructions=plan.instructions,
    )


def occupancy_of(rules: Rules, leaf: TreeNode | None, model: Model, budgets: Budgets) -> Occupancy:
    """The occupancy of the branch that ends in a leaf. Costs the tail, not the history."""
    latest = rules.latest_checkpoint(leaf)
    whole = budgets.overhead + (latest.estimate if latest is not None else 0)
    whole += cost(rules.tail_nodes(leaf, latest))
    return measured(rules.occupancy, leaf, latest, whole=whole, model=model, reading=rules.readings.measure)


def base_for(rules: Rules, world: World, session: Session, purpose: Purpose | None) -> TreeNode | None:
    """The node that a plan's checkpoint follows: the leaf, but in retry and edit (CHK-1)."""
    match purpose:
        case None | SendFor():
            return session.leaf
        case RetryFor():
            opener = rules.last_opener(session.leaf)
            if session.leaf is None or opener is None:
                return None
            answer = rules.answer_of(session.leaf, opener)
            return rules.retry_leaf(answer) if answer else session.leaf
        case EditFor():
            target = world.nodes.get(purpose.target)
            return rules.edit_parent(target) if target is not None else None


def choice_of(rules: Rules, base: TreeNode, terms: Terms, occupancy: Occupancy) -> Choice:
    """What the place of a compaction behind ``base`` is chosen from."""
    latest = rules.latest_checkpoint(base)
    return Choice(
        tail=rules.tail_nodes(base, latest),
        first=latest is None,
        summary=latest.estimate if latest is not None else Tokens(0),
        draft=terms.draft,
        may_open=rules.may_open(terms.purpose),
        at_checkpoint=base is latest,
        trigger=terms.trigger,
        budgets=terms.budgets,
        scaled=partial(rules.occupancy.scaled, occupancy=occupancy, reading=rules.readings.measure),
        readings=rules.readings,
    )


def determine_plan(
    rules: Rules, world: World, session: Session, plan_id: PlanId, terms: Terms
) -> tuple[Plan, Choice, int] | None:
    """The plan for a session's branch, what its place was chosen from, and the place; ``None`` where there is none.

    It is used at the begin, and again at the commit to see whether the plan that is brought is right (CMT-4).
    The terms are the plan's own; all else follows from the branch.
    """
    base = base_for(rules, world, session, terms.purpose)
    leaf = session.leaf
    if base is None or leaf is None:
        return None
    occupancy = occupancy_of(rules, base, terms.model, terms.budgets)
    choice = choice_of(rules, base, terms, occupancy)
    place = rules.manual_position if terms.trigger is Trigger.MANUAL else rules.pressed_position
    position = place(choice)
    if position is None:
        return None
    return _plan(rules, session, plan_id, terms, base, occupancy, choice, position), choice, position


def _plan(
    rules: Rules,
    session: Session,
    plan_id: PlanId,
    terms: Terms,
    base: TreeNode,
    occupancy: Occupancy,
    choice: Choice,
    position: int,
) -> Plan:
    latest = rules.latest_checkpoint(base)
    previous = latest.checkpoint if latest is not None else None
    summary = previous.summary if previous is not None else None
    refresh = previous is not None and position == 0
    excluded = rules.excluded(choice.tail, position)
    kept = choice.tail[position:]
    asks = not refresh or choice.summary_too_long or rules.readings.refresh is RefreshReading.REWRITTEN
    request = SummaryRequest(previous_summary=summary, messages=excluded, instructions=terms.instructions)
    assert session.leaf is not None
    return Plan(
        id=plan_id,
        session=session.id,
        leaf=session.leaf.id,
        revision=session.revision,
        base=base.id,
        trigger=terms.trigger,
        first_kept=kept[0].id if kept else None,
        old_first_kept=_present_place(latest, choice.tail),
        previous_checkpoint=previous.id if previous is not None else None,
        previous_summary=summary,
        excluded=excluded,
        refresh=refresh,
        model=terms.model,
        budgets=terms.budgets,
        occupancy=occupancy,
        purpose=terms.purpose,
        draft=terms.draft,
        instructions=terms.instructions,
        request=request if asks else None,
        tokens_before=Tokens(choice.summary + cost(choice.tail)),
        tokens_after=cost(kept),
    )


def _present_place(latest: TreeNode | None, tail: tuple[TreeNode, ...]) -> NodeId | None:
    """The first message behind the present place; ``None`` for the root, and for an open place."""
    return tail[0].id if latest is not None and tail else None
