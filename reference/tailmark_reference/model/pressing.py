"""The rules of requests and of compactions that nobody asked for: when a size presses, and what helps (TRG, CMT-16, SUM-6)."""

from collections.abc import Callable
from typing import Protocol

from tailmark.budgets import Budgets, Settings
from tailmark.identifiers import PlanId, Revision, SessionId, Tokens
from tailmark.outcomes import FailureReason, LargePart
from tailmark.plans import Plan, Trigger
from tailmark_reference.model.world import Process, StateKey


def too_large(
    budgets: Budgets, scaled: Callable[[int], Tokens], *, draft: Tokens, question: Tokens
) -> LargePart | None:
    """What alone exceeds the safe limit, so that no compaction can help (TRG-8, RETRY-6)."""
    if budgets.window > 0 and scaled(budgets.overhead) >= budgets.safe:
        return LargePart.OVERHEAD
    if scaled(budgets.overhead + draft) > budgets.safe:
        return LargePart.DRAFT
    return LargePart.QUESTION if scaled(budgets.overhead + question) > budgets.safe else None


def presses(budgets: Budgets, tokens: int) -> bool:
    """Whether a request reaches the threshold (TRG-5, TRG-8)."""
    return budgets.window > 0 and tokens >= budgets.threshold


def goes_out(budgets: Budgets, tokens: int) -> bool:
    """Whether a request fits the safe limit (TRG-8, TRG-15). An implementation without a capacity has none."""
    return budgets.window == 0 or tokens <= budgets.safe


def automatic_is_on(settings: Settings, budgets: Budgets) -> bool:
    """Whether compactions below the safe limit are wanted and have room (TRG-16, CAP-5)."""
    return settings.automatic and budgets.margin > 0


def is_hopeless_attempt(attempted: StateKey | None, now: StateKey) -> bool:
    """Whether this state had its attempt (TRG-6)."""
    return attempted == now


def automatic_limit(budgets: Budgets, tokens: int, *, undone: bool) -> bool:
    """Whether an automatic compaction is due: from the threshold on, after an undo above the safe limit only (TRG-5, UNDO-3)."""
    return tokens > budgets.safe if undone else tokens >= budgets.threshold


def summary_fault(
    plan: Plan, size: Tokens, scaled: Callable[[int], Tokens], *, fitted: bool
) -> FailureReason | None:
    """Why a summary of this size does not serve its plan (CMT-16, SUM-6, TRG-9). ``fitted``: the request fitted without a compaction."""
    budgets = plan.budgets
    if budgets.window == 0:
        return None
    too_long = scaled(size) > budgets.summary
    landed = scaled(budgets.overhead + size + plan.tokens_after + plan.draft) <= budgets.safe
    if plan.trigger is Trigger.MANUAL:
        return FailureReason.ABOVE_BUDGET if too_long and not landed else None
    if too_long:
        return FailureReason.ABOVE_BUDGET
    if size + plan.tokens_after >= plan.tokens_before:
        return FailureReason.NOT_SMALLER
    needs = plan.trigger is Trigger.PREFLIGHT and not fitted
    return FailureReason.STILL_TOO_LARGE if needs and not landed else None


def plan_id(
    trigger: Trigger, session: SessionId, revision: Revision, taken: Callable[[PlanId], bool]
) -> PlanId:
    """The name of a plan that nobody named: one that this process does not know."""
    name = PlanId(f"{trigger}:{session}:{revision}")
    free, count = name, 1
    while taken(free):
        count += 1
        free = PlanId(f"{name}:{count}")
    return free


def respects_undo(process: Process, session: SessionId) -> bool:
    """Whether the session's last checkpoint was taken back, and nothing was asked for since (UNDO-3)."""
    return session in process.undone


def same_terms(brought: Plan, begun: Plan) -> bool:
    """Whether a plan comes back on the state and the terms that it was begun on (CMT-4, CMT-10, CMT-13)."""
    return (
        brought.leaf == begun.leaf
        and brought.revision == begun.revision
        and brought.trigger is begun.trigger
        and brought.model == begun.model
        and brought.budgets == begun.budgets
        and brought.purpose == begun.purpose
        and brought.draft == begun.draft
        and brought.instructions == begun.instructions
    )


class TooLargePart(Protocol):
    """The type of `too_large`."""

    def __call__(
        self, budgets: Budgets, scaled: Callable[[int], Tokens], *, draft: Tokens, question: Tokens
    ) -> LargePart | None:
        """See `too_large`."""
        ...


class AutomaticLimit(Protocol):
    """The type of `automatic_limit`."""

    def __call__(self, budgets: Budgets, tokens: int, *, undone: bool) -> bool:
        """See `automatic_limit`."""
        ...


class SummaryFault(Protocol):
    """The type of `summary_fault`."""

    def __call__(
        self, plan: Plan, size: Tokens, scaled: Callable[[int], Tokens], *, fitted: bool
    ) -> FailureReason | None:
        """See `summary_fault`."""
        ...
