"""What a compaction of a branch would be: the plan that the state determines."""

from tailmark.budgets import Model
from tailmark.declarations import RefreshReading
from tailmark.identifiers import NodeId, PlanId, Tokens
from tailmark.plans import Plan, SummaryRequest, Trigger
from tailmark_reference.model.rules import Rules, cost, tail_from
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import Session


def determine_plan(
    rules: Rules,
    session: Session,
    plan_id: PlanId,
    *,
    trigger: Trigger,
    model: Model,
    instructions: str | None,
) -> Plan | None:
    """The plan for a session's branch; ``None`` where there is nothing to do.

    It is used at the begin, and again at the commit to see whether the plan that is brought is right (CMT-4).
    Trigger, model and instructions are the plan's own; all else follows from the branch.
    """
    leaf = session.leaf
    latest = rules.latest_checkpoint(leaf)
    if leaf is None or rules.nothing_to_do(leaf, latest) is not None:
        return None
    tail = rules.tail_nodes(leaf, latest)
    place = rules.choose_place(
        tail, first=latest is None, budget=model.tail_budget, reading=rules.readings.advance
    )
    kept = tail_from(tail, place)
    excluded = rules.excluded(tail, place)
    previous = latest.checkpoint if latest is not None else None
    refresh = previous is not None and place is tail[0]
    summary_size = latest.estimate if latest is not None else Tokens(0)
    return Plan(
        id=plan_id,
        session=session.id,
        leaf=leaf.id,
        revision=session.revision,
        base=leaf.id,
        trigger=trigger,
        first_kept=place.id,
        old_first_kept=_present_place(latest, tail),
        previous_checkpoint=previous.id if previous is not None else None,
        previous_summary=previous.summary if previous is not None else None,
        excluded=excluded,
        refresh=refresh,
        model=model,
        instructions=instructions,
        request=_request(
            rules, previous.summary if previous else None, excluded, instructions, refresh=refresh
        ),
        tokens_before=Tokens(summary_size + cost(tail)),
        tokens_after=cost(kept),
    )


def _present_place(latest: TreeNode | None, tail: tuple[TreeNode, ...]) -> NodeId | None:
    """The first message behind the present place; ``None`` for the root."""
    return tail[0].id if latest is not None and tail else None


def _request(
    rules: Rules,
    previous_summary: str | None,
    excluded: tuple[NodeId, ...],
    instructions: str | None,
    *,
    refresh: bool,
) -> SummaryRequest | None:
    if refresh and rules.readings.refresh is RefreshReading.VERBATIM:
        return None
    return SummaryRequest(previous_summary=previous_summary, messages=excluded, instructions=instructions)
