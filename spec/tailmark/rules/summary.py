"""Predicates of the chapter on the summary: how much of it is allowed."""

from tailmark.declarations import Field
from tailmark.outcomes import Failed, FailureReason
from tailmark.plans import Plan, Trigger
from tailmark.rules.changes import shown_outcome
from tailmark.rules.committing import (
    attempt_of,
    commits,
    fewest_of_summary,
    is_as_begun,
    left_nothing,
    longest_summary,
)
from tailmark.rules.compactions import new_checkpoints, ratio_of, scaled
from tailmark.rules.verdicts import Result, Seen, Violated, holds_if

_ASKED_LATER = (Failed(reason=FailureReason.NOT_SMALLER), Failed(reason=FailureReason.STILL_TOO_LARGE))


def sum_6(seen: Seen) -> Result:
    """A summary above its budget fails, but for a manual compaction behind which the next request fits."""
    operation = commits(seen)
    if operation is None or not is_as_begun(seen, operation):
        return None
    plan = seen.plan(operation.plan)
    if plan.budgets.window == 0:
        return None
    if attempt_of(shown_outcome(seen)) == Failed(reason=FailureReason.ABOVE_BUDGET):
        most = longest_summary(seen)
        if most is not None and _is_allowed(seen, plan, most):
            return Violated(
                f"expected the compaction to commit, because its summary costs at most {most}; saw it called above {plan.budgets.summary}"
            )
        return left_nothing(seen)
    written = new_checkpoints(seen)
    if not written:
        fewest = fewest_of_summary(seen)
        if fewest is None or attempt_of(shown_outcome(seen)) not in _ASKED_LATER:
            return None
        return holds_if(
            _is_allowed(seen, plan, fewest),
            f"expected failed(above-budget), which is asked first, because the summary costs {fewest} or more",
        )
    size = seen.after.estimate(written[0].id)
    return holds_if(
        _is_allowed(seen, plan, size),
        f"expected a summary of at most {plan.budgets.summary}, saw one of {_scaled(seen, plan, size)}",
        written[0].id,
    )


def _is_allowed(seen: Seen, plan: Plan, size: int) -> bool:
    if _scaled(seen, plan, size) <= plan.budgets.summary:
        return True
    seen.wants(Field.SIZES)
    lands = _scaled(seen, plan, plan.budgets.overhead + size + plan.tokens_after)
    return plan.trigger is Trigger.MANUAL and lands <= plan.budgets.safe


def _scaled(seen: Seen, plan: Plan, tokens: int) -> int:
    return scaled(tokens, *ratio_of(seen, plan.occupancy.figure, plan.occupancy.covered))
