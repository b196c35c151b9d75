"""Wrong rules of compaction: plans, places, commits, checkpoints."""

from collections.abc import Callable

from attrs import evolve

from tailmark.identifiers import NodeId, Tokens
from tailmark.messages import Role
from tailmark.outcomes import FailureReason, NoopReason
from tailmark.plans import Checkpoint, FinishReason, Plan, SummariserReply, SummaryFailure
from tailmark_conformance.mutants.wrong_rule import WrongRule, wrong
from tailmark_reference.model import rules as right
from tailmark_reference.model.places import Choice, manual_candidates, manual_position, tail_fits
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.tree import TreeNode, walk
from tailmark_reference.model.world import PlanState, Session

# Every function below has the type of the rule that it replaces; arguments that it does not look at belong
# to that type.
# ruff: noqa: ARG001


def _compacts_behind_a_checkpoint(
    leaf: TreeNode | None, checkpoint: TreeNode | None, *, summary_too_long: bool
) -> NoopReason | None:
    if checkpoint is not None:
        return None
    return right.nothing_to_do(leaf, checkpoint, summary_too_long=summary_too_long)


def _wants_three_turns(
    leaf: TreeNode | None, checkpoint: TreeNode | None, *, summary_too_long: bool
) -> NoopReason | None:
    if checkpoint is None and (leaf is None or leaf.turns < 3):
        return NoopReason.TOO_FEW_TURNS
    return right.nothing_to_do(leaf, checkpoint, summary_too_long=summary_too_long)


def _never_again(
    leaf: TreeNode | None, checkpoint: TreeNode | None, *, summary_too_long: bool
) -> NoopReason | None:
    if checkpoint is not None:
        return NoopReason.CHECKPOINT_IS_LEAF
    return right.nothing_to_do(leaf, checkpoint, summary_too_long=summary_too_long)


def _budget_is_ignored(choice: Choice) -> int | None:
    return next(iter(manual_candidates(choice)), None)


def _last_turn_always(choice: Choice) -> int | None:
    return manual_candidates(choice)[-1] if manual_candidates(choice) else None


def _inside_a_turn(choice: Choice) -> int | None:
    place = manual_position(choice)
    return place + 1 if place is not None and place + 1 < len(choice.tail) else place


def _four_messages_stay(choice: Choice) -> int | None:
    return len(choice.tail) - 4 if len(choice.tail) > 4 else _last_turn_always(choice)


def _at_an_answer(choice: Choice) -> int | None:
    answers = [
        position
        for position, node in enumerate(choice.tail)
        if node.message and node.message.role is Role.ASSISTANT
    ]
    return answers[-1] if answers else _last_turn_always(choice)


def _oversized_turn_drags_the_older(choice: Choice) -> int | None:
    places = manual_candidates(choice)
    fitting = [place for place in places if tail_fits(choice, place)]
    return manual_position(choice) if fitting or not places else places[0]


def _last_excluded_is_forgotten(tail: tuple[TreeNode, ...], position: int) -> tuple[NodeId, ...]:
    return right.excluded(tail, position)[:-1]


def _previous_tail_is_forgotten(tail: tuple[TreeNode, ...], position: int) -> tuple[NodeId, ...]:
    dropped = tail[:position]
    since = dropped[-1].checkpoint_above if dropped else None
    kept = set(walk(since)) if since is not None else set()
    return tuple(node.id for node in dropped if node not in kept)


def _kept_is_summarised_too(tail: tuple[TreeNode, ...], position: int) -> tuple[NodeId, ...]:
    return tuple(node.id for node in tail)


def _any_leaf(session: Session, plan: Plan) -> bool:
    return True


def _any_revision(session: Session, plan: Plan) -> bool:
    return True


def _answer_may_run(session: Session, *, answer_runs: bool) -> bool:
    return right.is_stable(session, answer_runs=False)


def _calls_may_be_open(session: Session, *, answer_runs: bool) -> bool:
    return not answer_runs


def _any_plan(brought: Plan, determined: Plan) -> bool:
    return True


def _any_place_in_the_plan(brought: Plan, determined: Plan) -> bool:
    return right.same_plan(evolve(brought, first_kept=determined.first_kept), determined)


def _any_base_in_the_plan(brought: Plan, determined: Plan) -> bool:
    return right.same_plan(evolve(brought, base=determined.base), determined)


def _reply_need_not_fit(plan: Plan, reply: SummariserReply | None) -> bool:
    return True


def _usable_whatever(reason: FailureReason) -> Callable[[SummariserReply], str | FailureReason]:
    def read_reply(reply: SummariserReply) -> str | FailureReason:
        read = right.read_reply(reply)
        if read is not reason:
            return read
        if isinstance(reply, SummaryFailure):
            return reply.text
        return " ".join(getattr(part, "text", "") for part in reply.parts)

    return read_reply


def _one_id_for_all(plan: Plan, taken: Callable[[NodeId], bool]) -> NodeId:
    return NodeId("checkpoint")


def _checkpoint_with(
    change: Callable[[Checkpoint, Plan], Checkpoint],
) -> Callable[[Plan, NodeId, str, FinishReason | None, Tokens], Checkpoint]:
    def checkpoint_of(
        plan: Plan, checkpoint: NodeId, summary: str, finish: FinishReason | None, size: Tokens
    ) -> Checkpoint:
        return change(right.checkpoint_of(plan, checkpoint, summary, finish, size), plan)

    return checkpoint_of


def _stays_at_the_old_place(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    return evolve(checkpoint, first_kept=plan.old_first_kept or plan.first_kept)


def _forgets_the_previous(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    return evolve(checkpoint, previous=None)


def _stacks_summaries(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    return evolve(checkpoint, summary=f"{plan.previous_summary or ''}{checkpoint.summary}")


def _forgets_the_range(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    return evolve(checkpoint, first_excluded=None, last_excluded=None)


def _keeps_the_first_message(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    return evolve(checkpoint, first_kept=plan.leaf)


def _cancels_everything(state: PlanState | None) -> bool:
    return True


def _cancels_nothing(state: PlanState | None) -> bool:
    return False


def _never_spent(outcome: object) -> bool:
    return False


COMPACTION: tuple[WrongRule, ...] = (
    wrong(
        "compacts-behind-a-checkpoint",
        "Compacts although the leaf is a checkpoint.",
        evolve(RULES, nothing_to_do=_compacts_behind_a_checkpoint),
    ),
    wrong(
        "wants-three-turns", "Two turns are too few for it.", evolve(RULES, nothing_to_do=_wants_three_turns)
    ),
    wrong("never-again", "Compacts once and never again.", evolve(RULES, nothing_to_do=_never_again)),
    wrong(
        "budget-is-ignored",
        "The tail is as long as can be, whatever it costs.",
        evolve(RULES, manual_position=_budget_is_ignored),
    ),
    wrong(
        "last-turn-always",
        "Moves the place to the last turn where it should refresh.",
        evolve(RULES, manual_position=_last_turn_always),
    ),
    wrong("inside-a-turn", "Cuts behind the question.", evolve(RULES, manual_position=_inside_a_turn)),
    wrong(
        "four-messages-stay",
        "Keeps the last four messages.",
        evolve(RULES, manual_position=_four_messages_stay),
    ),
    wrong(
        "at-an-answer",
        "Cuts before the last assistant message.",
        evolve(RULES, manual_position=_at_an_answer),
    ),
    wrong(
        "oversized-turn-drags-the-older",
        "An oversized last turn keeps older turns with it.",
        evolve(RULES, manual_position=_oversized_turn_drags_the_older),
    ),
    wrong(
        "last-excluded-is-forgotten",
        "The last message before the place is not summarised.",
        evolve(RULES, excluded=_last_excluded_is_forgotten),
    ),
    wrong(
        "previous-tail-is-forgotten",
        "What the first compaction kept is not summarised by the second.",
        evolve(RULES, excluded=_previous_tail_is_forgotten),
    ),
    wrong(
        "kept-is-summarised-too",
        "The tail is summarised and kept.",
        evolve(RULES, excluded=_kept_is_summarised_too),
    ),
    wrong("any-leaf", "The commit does not compare the leaf.", evolve(RULES, same_leaf=_any_leaf)),
    wrong(
        "any-revision",
        "The commit does not compare the revision.",
        evolve(RULES, same_revision=_any_revision),
    ),
    wrong("answer-may-run", "Compacts while an answer runs.", evolve(RULES, is_stable=_answer_may_run)),
    wrong("calls-may-be-open", "Compacts while calls are open.", evolve(RULES, is_stable=_calls_may_be_open)),
    wrong("any-plan", "Believes the plan that the commit brings.", evolve(RULES, same_plan=_any_plan)),
    wrong(
        "any-place-in-the-plan",
        "Believes the place that the commit brings.",
        evolve(RULES, same_plan=_any_place_in_the_plan),
    ),
    wrong(
        "any-base-in-the-plan",
        "Believes the base that the commit brings.",
        evolve(RULES, same_plan=_any_base_in_the_plan),
    ),
    wrong(
        "reply-need-not-fit",
        "Takes no reply for an empty summary.",
        evolve(RULES, reply_fits=_reply_need_not_fit),
    ),
    wrong(
        "error-as-summary",
        "The summariser's error becomes the summary.",
        evolve(RULES, read_reply=_usable_whatever(FailureReason.SUMMARISER)),
    ),
    wrong(
        "blank-summary",
        "A blank summary is committed.",
        evolve(RULES, read_reply=_usable_whatever(FailureReason.BLANK)),
    ),
    wrong(
        "truncated-summary",
        "A summary cut off at its cap is committed.",
        evolve(RULES, read_reply=_usable_whatever(FailureReason.TRUNCATED)),
    ),
    wrong(
        "tool-call-as-summary",
        "Reasoning or a tool call is committed as a summary.",
        evolve(RULES, read_reply=_usable_whatever(FailureReason.NOT_TEXT)),
    ),
    wrong(
        "never-spent", "A plan that had its answer can be tried again.", evolve(RULES, spends=_never_spent)
    ),
    wrong(
        "one-id-for-all", "Every checkpoint has the same id.", evolve(RULES, checkpoint_id=_one_id_for_all)
    ),
    wrong(
        "stays-at-the-old-place",
        "The checkpoint names the old place.",
        evolve(RULES, checkpoint_of=_checkpoint_with(_stays_at_the_old_place)),
    ),
    wrong(
        "forgets-the-previous",
        "The checkpoint does not say which one it takes over from.",
        evolve(RULES, checkpoint_of=_checkpoint_with(_forgets_the_previous)),
    ),
    wrong(
        "stacks-summaries",
        "The previous summary is glued to the new one.",
        evolve(RULES, checkpoint_of=_checkpoint_with(_stacks_summaries)),
    ),
    wrong(
        "forgets-the-range",
        "The checkpoint does not say what it was made from.",
        evolve(RULES, checkpoint_of=_checkpoint_with(_forgets_the_range)),
    ),
    wrong(
        "keeps-the-first-message",
        "Mixes up where the checkpoint stands and where the tail begins.",
        evolve(RULES, checkpoint_of=_checkpoint_with(_keeps_the_first_message)),
    ),
    wrong(
        "cancels-everything",
        "A cancel reaches finished plans and unknown ones.",
        evolve(RULES, cancels=_cancels_everything),
    ),
    wrong(
        "cancels-nothing",
        "A cancelled compaction commits all the same.",
        evolve(RULES, cancels=_cancels_nothing),
    ),
)
"""In the order of `tailmark_reference.model.rules.Rules`."""
