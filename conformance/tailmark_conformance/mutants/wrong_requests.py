"""Wrong rules of requests, of compactions that nobody asked for, and of what they may leave."""

from collections.abc import Callable

from attrs import evolve

from tailmark.budgets import Budgets, Settings
from tailmark.declarations import OversizedReading, Readings
from tailmark.identifiers import PlanId, Revision, SessionId, Tokens
from tailmark.messages import Message
from tailmark.outcomes import FailureReason, LargePart
from tailmark.plans import Plan, Purpose, Trigger
from tailmark.views import OpenCall
from tailmark_conformance.mutants.wrong_rule import WrongRule, wrong
from tailmark_reference.model import places, pressing
from tailmark_reference.model.places import Choice
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import Process, StateKey

# Every function below has the type of the rule that it replaces; arguments that it does not look at belong
# to that type.
# ruff: noqa: ARG001


# Places --------------------------------------------------------------------------------------------------


def _tail_does_not_give_way(choice: Choice) -> int | None:
    """The place of a send is chosen as if no draft waited."""
    generous = evolve(choice.budgets, safe=Tokens(choice.budgets.safe * 100))
    return places.pressed_position(evolve(choice, draft=Tokens(0), budgets=generous))


def _ratio_ignored_in_the_tail(choice: Choice) -> int | None:
    return places.pressed_position(evolve(choice, scaled=Tokens))


def _ratio_ignored_by_hand(choice: Choice) -> int | None:
    return places.manual_position(evolve(choice, scaled=Tokens))


def _stays_where_it_is(choice: Choice) -> int | None:
    found = places.pressed_position(choice)
    return 0 if found is not None and not choice.first else found


def _long_summary_stays(choice: Choice) -> int | None:
    found = places.pressed_position(choice)
    return None if found == 0 else found


def _keeps_the_oversized_turn(choice: Choice) -> int | None:
    advancing = places.advancing(choice)
    found = places.pressed_position(choice)
    return advancing[-1] if found == len(choice.tail) and advancing else found


def _drops_the_oversized_turn(choice: Choice) -> int | None:
    found = places.pressed_position(choice)
    last = places.advancing(choice)[-1:]
    oversized = bool(last) and not places.tail_fits(choice, last[0])
    return len(choice.tail) if oversized and choice.may_open and found == last[0] else found


def _inside_the_last_turn(choice: Choice) -> int | None:
    found = places.pressed_position(choice)
    return found + 1 if found is not None and 0 < found < len(choice.tail) - 1 else found


def _retry_drops_its_question(purpose: Purpose | None) -> bool:
    return purpose is not None


def _never_open(purpose: Purpose | None) -> bool:
    return False


def _always_worth_it(choice: Choice, position: int, divisor: int) -> bool:
    return True


def _never_worth_it(choice: Choice, position: int, divisor: int) -> bool:
    return False


# Sizes ---------------------------------------------------------------------------------------------------


def _nothing_is_hopeless(
    budgets: Budgets, scaled: Callable[[int], Tokens], *, draft: Tokens, question: Tokens
) -> LargePart | None:
    return None


def _draft_is_always_too_large(
    budgets: Budgets, scaled: Callable[[int], Tokens], *, draft: Tokens, question: Tokens
) -> LargePart | None:
    return pressing.too_large(budgets, scaled, draft=draft, question=question) or LargePart.DRAFT


def _presses_above_the_threshold(budgets: Budgets, tokens: int) -> bool:
    return tokens > budgets.threshold


def _presses_only_at_the_limit(budgets: Budgets, tokens: int) -> bool:
    return tokens > budgets.safe


def _goes_out_below_the_limit(budgets: Budgets, tokens: int) -> bool:
    return tokens < budgets.safe


def _goes_out_up_to_the_window(budgets: Budgets, tokens: int) -> bool:
    return tokens <= budgets.window


def _goes_out_whatever(budgets: Budgets, tokens: int) -> bool:
    return True


def _cannot_be_switched_off(settings: Settings, budgets: Budgets) -> bool:
    return budgets.margin > 0


def _compacts_without_room(settings: Settings, budgets: Budgets) -> bool:
    return settings.automatic


def _tries_again_and_again(attempted: StateKey | None, now: StateKey) -> bool:
    return False


def _tries_once_a_process(attempted: StateKey | None, now: StateKey) -> bool:
    return attempted is not None


def _metadata_of_an_attempt(attempted: StateKey | None, now: StateKey) -> bool:
    """Forgets that model and settings may have changed."""
    return attempted is not None and (attempted.leaf, attempted.revision) == (now.leaf, now.revision)


def _automatic_below(budgets: Budgets, tokens: int, *, undone: bool) -> bool:
    return tokens * 2 >= budgets.threshold


def _automatic_never(budgets: Budgets, tokens: int, *, undone: bool) -> bool:
    return False


def _undo_is_undone(budgets: Budgets, tokens: int, *, undone: bool) -> bool:
    return tokens >= budgets.threshold


def _nobody_undid(process: Process, session: SessionId) -> bool:
    return False


# Commit --------------------------------------------------------------------------------------------------


def _accepts(
    *reasons: FailureReason,
) -> Callable[..., FailureReason | None]:
    def summary_fault(
        plan: Plan, size: Tokens, scaled: Callable[[int], Tokens], *, fitted: bool
    ) -> FailureReason | None:
        fault = pressing.summary_fault(plan, size, scaled, fitted=fitted)
        return None if fault in reasons else fault

    return summary_fault


def _manual_is_strict_too(
    plan: Plan, size: Tokens, scaled: Callable[[int], Tokens], *, fitted: bool
) -> FailureReason | None:
    if scaled(size) > plan.budgets.summary:
        return FailureReason.ABOVE_BUDGET
    return pressing.summary_fault(plan, size, scaled, fitted=fitted)


def _fitting_draft_is_refused(
    plan: Plan, size: Tokens, scaled: Callable[[int], Tokens], *, fitted: bool
) -> FailureReason | None:
    return pressing.summary_fault(plan, size, scaled, fitted=False)


def _any_terms(brought: Plan, begun: Plan) -> bool:
    return True


def _any_state(brought: Plan, begun: Plan) -> bool:
    return pressing.same_terms(evolve(brought, leaf=begun.leaf, revision=begun.revision), begun)


def _one_name_for_all(
    trigger: Trigger, session: SessionId, revision: Revision, taken: Callable[[PlanId], bool]
) -> PlanId:
    return PlanId("compaction")


def _owns_nothing(process: Process, call: OpenCall) -> bool:
    return False


def _owns_everything(process: Process, call: OpenCall) -> bool:
    return True


def _anything_behind_an_open_place(leaf: TreeNode | None, message: Message) -> bool:
    return True


REQUESTS: tuple[WrongRule, ...] = (
    wrong(
        "tail-does-not-give-way",
        "The tail is as long as if no draft waited.",
        evolve(RULES, pressed_position=_tail_does_not_give_way),
    ),
    wrong(
        "ratio-ignored-in-the-tail",
        "The ratio is ignored in the tail budget of automatic and preflight compactions.",
        evolve(RULES, pressed_position=_ratio_ignored_in_the_tail),
    ),
    wrong(
        "ratio-ignored-by-hand",
        "The ratio is ignored in the tail budget of manual compactions.",
        evolve(RULES, manual_position=_ratio_ignored_by_hand),
    ),
    wrong(
        "stays-where-it-is",
        "Compacts automatically without moving its place.",
        evolve(RULES, pressed_position=_stays_where_it_is),
    ),
    wrong(
        "long-summary-stays",
        "A summary too long for the new model cannot be rewritten.",
        evolve(RULES, pressed_position=_long_summary_stays),
    ),
    wrong(
        "keeps-the-oversized-turn",
        "Keeps a last turn that leaves no room for the draft.",
        evolve(RULES, pressed_position=_keeps_the_oversized_turn),
    ),
    wrong(
        "drops-the-oversized-turn",
        "Drops a last turn that would fit.",
        evolve(RULES, pressed_position=_drops_the_oversized_turn),
    ),
    wrong(
        "inside-the-last-turn",
        "Cuts behind the question when it is pressed.",
        evolve(RULES, pressed_position=_inside_the_last_turn),
    ),
    wrong(
        "retry-drops-its-question",
        "A retry summarises the question that it asks.",
        evolve(RULES, may_open=_retry_drops_its_question),
    ),
    wrong(
        "never-open", "A send never drops the last turn for its draft.", evolve(RULES, may_open=_never_open)
    ),
    wrong("always-worth-it", "Compacts to free next to nothing.", evolve(RULES, worth_it=_always_worth_it)),
    wrong("never-worth-it", "Never finds a compaction worth it.", evolve(RULES, worth_it=_never_worth_it)),
    wrong(
        "hopeless-draft-compacts",
        "Compacts for a draft that cannot fit.",
        evolve(RULES, too_large=_nothing_is_hopeless),
    ),
    wrong(
        "draft-is-always-too-large",
        "Gives up without trying to make room.",
        evolve(RULES, too_large=_draft_is_always_too_large),
    ),
    wrong(
        "presses-above-the-threshold",
        "At the threshold nothing happens.",
        evolve(RULES, presses=_presses_above_the_threshold),
    ),
    wrong(
        "presses-only-at-the-limit",
        "Between threshold and limit no send compacts.",
        evolve(RULES, presses=_presses_only_at_the_limit),
    ),
    wrong(
        "goes-out-below-the-limit",
        "Refuses a request of exactly the safe limit.",
        evolve(RULES, goes_out=_goes_out_below_the_limit),
    ),
    wrong(
        "goes-out-up-to-the-window",
        "Sends what leaves no room for the answer.",
        evolve(RULES, goes_out=_goes_out_up_to_the_window),
    ),
    wrong("goes-out-whatever", "Sends whatever it is.", evolve(RULES, goes_out=_goes_out_whatever)),
    wrong(
        "cannot-be-switched-off",
        "Automatic compactions cannot be switched off.",
        evolve(RULES, automatic_is_on=_cannot_be_switched_off),
    ),
    wrong(
        "compacts-without-room",
        "Compacts automatically where the overhead leaves no room.",
        evolve(RULES, automatic_is_on=_compacts_without_room),
    ),
    wrong(
        "tries-again-and-again",
        "Tries a compaction that failed on every occasion.",
        evolve(RULES, is_hopeless_attempt=_tries_again_and_again),
    ),
    wrong(
        "tries-once-a-process",
        "Tries one automatic compaction and never another.",
        evolve(RULES, is_hopeless_attempt=_tries_once_a_process),
    ),
    wrong(
        "attempt-ignores-settings",
        "Another model or other settings are no reason to try again.",
        evolve(RULES, is_hopeless_attempt=_metadata_of_an_attempt),
    ),
    wrong(
        "automatic-below", "Compacts a half-empty window.", evolve(RULES, automatic_limit=_automatic_below)
    ),
    wrong("automatic-never", "Never compacts by itself.", evolve(RULES, automatic_limit=_automatic_never)),
    wrong(
        "undo-is-undone",
        "Compacts again right after an undo.",
        evolve(RULES, automatic_limit=_undo_is_undone),
    ),
    wrong(
        "nobody-undid",
        "Forgets that the user took a compaction back.",
        evolve(RULES, respects_undo=_nobody_undid),
    ),
    wrong(
        "long-summary-commits",
        "An automatic compaction takes a summary above its budget.",
        evolve(RULES, summary_fault=_accepts(FailureReason.ABOVE_BUDGET)),
    ),
    wrong(
        "larger-summary-commits",
        "Commits a summary larger than what it replaces.",
        evolve(RULES, summary_fault=_accepts(FailureReason.NOT_SMALLER)),
    ),
    wrong(
        "sent-too-large",
        "Sends behind a compaction that did not make room.",
        evolve(RULES, summary_fault=_accepts(FailureReason.STILL_TOO_LARGE)),
    ),
    wrong(
        "manual-is-strict-too",
        "A manual compaction fails where the next request would fit.",
        evolve(RULES, summary_fault=_manual_is_strict_too),
    ),
    wrong(
        "fitting-draft-is-refused",
        "Refuses a draft that fitted before its compaction.",
        evolve(RULES, summary_fault=_fitting_draft_is_refused),
    ),
    wrong(
        "any-terms",
        "Believes budgets and purpose of the plan that comes back.",
        evolve(RULES, same_terms=_any_terms),
    ),
    wrong(
        "any-state",
        "Believes leaf and revision of the plan that comes back.",
        evolve(RULES, same_terms=_any_state),
    ),
    wrong(
        "one-name-for-all",
        "All plans that nobody named have one name.",
        evolve(RULES, plan_id=_one_name_for_all),
    ),
    wrong(
        "owns-nothing", "Abandons calls that this process still answers.", evolve(RULES, owns=_owns_nothing)
    ),
    wrong(
        "owns-everything", "Leaves the calls of a dead process open.", evolve(RULES, owns=_owns_everything)
    ),
    wrong(
        "anything-behind-an-open-place",
        "An answer may stand behind a checkpoint that keeps nothing.",
        evolve(
            RULES,
            may_follow=_anything_behind_an_open_place,
            readings=Readings(oversized=OversizedReading.OPEN),
        ),
    ),
)
"""In the order of `tailmark_reference.model.rules.Rules`."""
