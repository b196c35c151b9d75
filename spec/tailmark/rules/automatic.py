"""Predicates of the chapter on automatic compactions: when one begins by itself, and by which sizes."""

from tailmark.declarations import Field
from tailmark.messages import AnswerEnd
from tailmark.operations import EndAnswer, NextRequest, StartAnswer
from tailmark.outcomes import Done, Planned, Previewed, TooLarge, begun_plan
from tailmark.plans import Plan, Trigger
from tailmark.rules.answers import TOO_LARGE, decided, has_long_summary, name_of
from tailmark.rules.changes import any_change, session_of, shown_outcome
from tailmark.rules.compactions import Chosen, asked_plan, chosen_places, summary_too_long
from tailmark.rules.pressure import (
    automatic_pressure,
    is_automatic_moment,
    is_due,
    may_not_begin,
    request_pressure,
)
from tailmark.rules.triggers import manual_on_stable_branch
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def _automatic_plan(seen: Seen) -> Plan | None:
    """The plan that began behind an operation that asked for none."""
    if not isinstance(seen.outcome, Done) or seen.outcome.plan is None:
        return None
    return seen.plan(seen.outcome.plan)


def _chosen(seen: Seen) -> Chosen | None:
    places = chosen_places(seen)
    return places[0] if places else None


def trg_5(seen: Seen) -> Result:
    """An automatic compaction begins only where one is judged, on a stable branch, at or above the threshold, and where the place advances."""
    plan = _automatic_plan(seen)
    if plan is None:
        return None
    if plan.trigger is not Trigger.AUTOMATIC:
        return Violated(f"expected an automatic compaction behind {seen.operation.kind}, saw {plan.trigger}")
    if not is_automatic_moment(seen):
        return Violated(f"expected no compaction to begin behind this {seen.operation.kind}, saw one")
    if not seen.after.knows_session(plan.session):
        return None
    if not seen.after.is_stable(plan.session):
        return Violated("expected no automatic compaction on an unstable branch, saw one", plan.leaf)
    pressure, chosen = automatic_pressure(seen), _chosen(seen)
    if pressure is None:
        return None
    if pressure.session != plan.session:
        return Violated(f"expected a compaction of {pressure.session}, saw one of {plan.session}")
    if not pressure.presses:
        return Violated(
            f"expected no automatic compaction below the threshold {pressure.budgets.threshold}, saw one at {pressure.tokens}",
            plan.leaf,
        )
    if chosen is None or chosen.place is None or chosen.present is None:
        return None
    return holds_if(
        chosen.place > chosen.present, "expected the place to advance, saw it where it was", chosen.node
    )


def trg_5a(seen: Seen) -> Result:
    """Where everything speaks for an automatic compaction, it begins with the operation's own answer."""
    pressure = automatic_pressure(seen)
    if pressure is None or not is_due(pressure):
        return None
    return holds_if(
        begun_plan(shown_outcome(seen)) is not None,
        f"expected an automatic compaction at {pressure.tokens}, from the threshold {pressure.budgets.threshold} on; saw none",
        seen.after.leaf(pressure.session),
    )


def trg_5b(seen: Seen) -> Result:
    """An automatic compaction is worth it: it frees the declared share of the safe limit even if the summary takes its whole budget."""
    plan = _automatic_plan(seen)
    pressure = automatic_pressure(seen) if plan is not None else None
    if plan is None or pressure is None:
        return None
    chosen = _chosen(seen)
    if chosen is None or chosen.place is None or chosen.present is None:
        return None
    return holds_if(
        pressure.is_worth_it(chosen.place),
        f"expected no compaction that frees less than the declared share of {pressure.budgets.safe}, saw one",
        chosen.node,
    )


def trg_6(seen: Seen) -> Result:
    """One attempt for each durable state: behind it nothing begins until branch, model or settings change."""
    return may_not_begin(
        seen, lambda pressure: pressure.attempted, "this state had its attempt", above_limit=True
    )


def trg_10(seen: Seen) -> Result:
    """The first request of an answer is judged by the capacity of the model that is active then."""
    operation = seen.operation
    if not isinstance(operation, StartAnswer) or not seen.before.knows_session(operation.session):
        return None
    result = decided(seen, TOO_LARGE)
    if not isinstance(shown_outcome(seen), TooLarge) or isinstance(result, Violated):
        return result
    change = any_change(seen)
    return holds_if(change is None, f"expected nothing to change, saw that {change}")


def trg_10a(seen: Seen) -> Result:
    """A summary above its budget can be refreshed by hand, also right behind its checkpoint."""
    asks = manual_on_stable_branch(seen)
    branch = seen.before.end(asks.session) if asks is not None else None
    if asks is None or branch is None or branch.message is not None:
        return None
    if not has_long_summary(seen, asks.session):
        return None
    outcome = shown_outcome(seen)
    if not isinstance(outcome, Planned | Previewed):
        return Violated(f"expected a refresh of the long summary, saw {name_of(outcome)}", branch.id)
    plan = seen.plan(outcome.plan)
    return holds_if(
        plan.refresh and plan.request is not None,
        "expected a refresh that rewrites the summary, saw another plan",
        branch.id,
    )


def trg_10b(seen: Seen) -> Result:
    """A request that only a shorter summary could make fit is planned: preflight refreshes a summary above its budget."""
    request = request_pressure(seen)
    chosen = request.chosen if request is not None else None
    if request is None or chosen is None or not request.above_limit or not summary_too_long(chosen):
        return None
    if not isinstance(seen.outcome, TooLarge):
        return HOLDS if isinstance(seen.outcome, Planned) else None
    alone = request.scaled(request.budgets.overhead + request.draft) > request.budgets.safe
    if alone or request.scaled(request.budgets.overhead) >= request.budgets.safe:
        return None  # TRG-8A
    if request.chosen is not None and not request.chosen.has_draft:
        return None  # of a retry the question alone may be too large
    return Violated("expected the long summary to be refreshed, saw the request refused", chosen.node)


def trg_11(seen: Seen) -> Result:
    """One measure for all: a plan's model, budgets and occupancy are those that the session shows."""
    plan = asked_plan(seen)
    if plan is None:
        return None
    scene = seen.after if plan.trigger is Trigger.AUTOMATIC else seen.before
    if not scene.knows_session(plan.session):
        return None
    budgets = scene.budgets(plan.session)
    if budgets.window == 0:
        return None
    if plan.budgets != budgets:
        return Violated("expected the budgets that the session shows in the plan, saw others", plan.base)
    if scene.shows(Field.MODEL) and plan.model != scene.model(plan.session):
        return Violated(
            f"expected the model {scene.model(plan.session).name} in the plan, saw {plan.model.name}",
            plan.base,
        )
    if plan.base == scene.leaf(plan.session) and plan.occupancy != scene.occupancy(plan.session):
        return Violated("expected the occupancy that the session shows in the plan, saw another", plan.base)
    return HOLDS


def trg_12(seen: Seen) -> Result:
    """A provider's overflow is reported: nothing is compacted and sent again by itself."""
    operation = seen.operation
    if not isinstance(operation, EndAnswer) or operation.end is AnswerEnd.FINAL:
        return None
    outcome = shown_outcome(seen)
    if not isinstance(outcome, Done):
        return None
    return holds_if(
        outcome.plan is None, f"expected no compaction behind an answer that {operation.end}, saw one"
    )


def trg_15a(seen: Seen) -> Result:
    """Nothing is compacted inside a running answer."""
    plan = begun_plan(seen.outcome)
    session = plan.session if plan is not None else session_of(seen.operation)
    if session is None or not seen.after.knows_session(session) or seen.after.running(session) is None:
        return None
    if plan is not None:
        return Violated(
            "expected no compaction to begin while an answer runs, saw one", seen.after.leaf(session)
        )
    if not isinstance(seen.operation, NextRequest):
        return None
    budgets = seen.after.budgets(session)
    return HOLDS if budgets.window > 0 and seen.after.occupancy(session).tokens >= budgets.threshold else None


def trg_16(seen: Seen) -> Result:
    """Switched off, or without room, nothing is compacted below the safe limit unless the user asks."""
    return may_not_begin(
        seen, lambda pressure: not pressure.switched_on, "automatic compactions are off", above_limit=True
    )
