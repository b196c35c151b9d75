"""Wrong rules of retry, edit, fork and undo."""

from collections.abc import Iterator

from attrs import evolve

from tailmark.identifiers import NodeId
from tailmark.messages import Role
from tailmark.outcomes import RefusalCode
from tailmark_conformance.mutants.wrong_rule import WrongRule, wrong
from tailmark_reference.model import rules as right
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.tree import TreeNode, walk

# Every function below has the type of the rule that it replaces; arguments that it does not look at belong
# to that type.
# ruff: noqa: ARG001


def _first_opener(leaf: TreeNode | None) -> TreeNode | None:
    openers: Iterator[TreeNode] = (node for node in reversed(tuple(walk(leaf))) if node.opens_turn)
    return next(openers, None)


def _last_user_message(leaf: TreeNode | None) -> TreeNode | None:
    return next((n for n in walk(leaf) if n.message is not None and n.message.role is Role.USER), None)


def _only_the_last_message(leaf: TreeNode, opener: TreeNode) -> tuple[TreeNode, ...]:
    return right.answer_of(leaf, opener)[-1:]


def _steering_is_not_named(answer: tuple[TreeNode, ...]) -> tuple[NodeId, ...]:
    return ()


def _question_leaves_too(answer: tuple[TreeNode, ...]) -> TreeNode | None:
    parent = answer[0].parent
    return parent.parent if parent is not None else None


def _retry_behind_the_answer(answer: tuple[TreeNode, ...]) -> TreeNode | None:
    return answer[-1]


def _behind_the_old_question(opener: TreeNode) -> TreeNode | None:
    return opener


def _forks_anywhere(target: TreeNode, *, being_generated: bool) -> RefusalCode | None:
    fault = right.fork_fault(target, being_generated=being_generated)
    return None if fault is RefusalCode.NOT_ASSISTANT else fault


def _forks_at_open_calls(target: TreeNode, *, being_generated: bool) -> RefusalCode | None:
    fault = right.fork_fault(target, being_generated=being_generated)
    return None if fault is RefusalCode.UNSTABLE and not being_generated else fault


def _forks_into_a_running_answer(target: TreeNode, *, being_generated: bool) -> RefusalCode | None:
    return right.fork_fault(target, being_generated=False)


def _undo_goes_nowhere(leaf: TreeNode) -> TreeNode | None:
    return leaf


def _undo_goes_to_the_previous(leaf: TreeNode) -> TreeNode | None:
    return leaf.checkpoint_above or leaf.parent


def _names_no_way(checkpoint: TreeNode | None) -> NodeId | None:
    return None


BRANCHING: tuple[WrongRule, ...] = (
    wrong("first-opener", "Retry and edit go to the first turn.", evolve(RULES, last_opener=_first_opener)),
    wrong(
        "last-user-message",
        "Retry and edit take steering for the question.",
        evolve(RULES, last_opener=_last_user_message),
    ),
    wrong(
        "only-the-last-message",
        "Retry drops the last message instead of the answer.",
        evolve(RULES, answer_of=_only_the_last_message),
    ),
    wrong(
        "steering-is-not-named",
        "Steering messages leave unnoticed.",
        evolve(RULES, steering=_steering_is_not_named),
    ),
    wrong(
        "question-leaves-too",
        "Retry drops the question as well.",
        evolve(RULES, retry_leaf=_question_leaves_too),
    ),
    wrong(
        "retry-behind-the-answer",
        "Retry keeps the old answer on the branch.",
        evolve(RULES, retry_leaf=_retry_behind_the_answer),
    ),
    wrong(
        "behind-the-old-question",
        "An edited question follows the old one.",
        evolve(RULES, edit_parent=_behind_the_old_question),
    ),
    wrong(
        "forks-anywhere",
        "Forks at user and tool messages and at checkpoints.",
        evolve(RULES, fork_fault=_forks_anywhere),
    ),
    wrong(
        "forks-at-open-calls", "Forks where calls are open.", evolve(RULES, fork_fault=_forks_at_open_calls)
    ),
    wrong(
        "forks-into-a-running-answer",
        "Forks at a message that is being generated.",
        evolve(RULES, fork_fault=_forks_into_a_running_answer),
    ),
    wrong(
        "undo-goes-nowhere",
        "Undo leaves the checkpoint in force.",
        evolve(RULES, undo_leaf=_undo_goes_nowhere),
    ),
    wrong(
        "undo-goes-to-the-previous",
        "Undo goes back to the previous checkpoint and loses what came since.",
        evolve(RULES, undo_leaf=_undo_goes_to_the_previous),
    ),
    wrong(
        "names-no-way",
        "A refused undo does not say how to get there.",
        evolve(RULES, fork_instead=_names_no_way),
    ),
)
"""In the order of `tailmark_reference.model.rules.Rules`."""
