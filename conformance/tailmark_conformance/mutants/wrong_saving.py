"""Wrong rules of saving and projecting: messages, calls, branches, revisions."""

from attrs import evolve

from tailmark.identifiers import NodeId, Revision
from tailmark.messages import Message, ResultStatus, Role, ToolResult
from tailmark.outcomes import RefusalCode
from tailmark.projections import Marking
from tailmark.views import OpenCall
from tailmark_conformance.mutants.wrong_rule import WrongRule, wrong
from tailmark_reference.model import message_rules
from tailmark_reference.model import rules as right
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.tree import OpenCalls, TreeNode, messages_up, walk

# Every function below has the type of the rule that it replaces; arguments that it does not look at belong
# to that type.
# ruff: noqa: ARG001


def _any_message(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    return None


def _any_result(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    fault = message_rules.message_fault(message, open_calls)
    return None if fault is RefusalCode.NOT_OPEN else fault


def _any_call_id(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    fault = message_rules.message_fault(message, open_calls)
    return None if fault is RefusalCode.CALL_ID else fault


def _preliminary_settles(open_calls: OpenCalls, message: Message) -> OpenCalls:
    parts = tuple(
        evolve(part, preliminary=False) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message_rules.calls_after(open_calls, evolve(message, parts=parts))


def _tool_messages_settle_nothing(open_calls: OpenCalls, message: Message) -> OpenCalls:
    return open_calls if message.role is Role.TOOL else message_rules.calls_after(open_calls, message)


def _one_result_settles_all(open_calls: OpenCalls, message: Message) -> OpenCalls:
    after = message_rules.calls_after(open_calls, message)
    return () if len(after) < len(open_calls) else after


def _steering_opens_a_turn(open_calls_before: OpenCalls, message: Message) -> bool:
    return message.role is Role.USER


def _everything_is_projected(message: Message) -> Message:
    return message


def _abandoned_looks_like_output(message: Message, call: OpenCall) -> ToolResult:
    return evolve(message_rules.abandoned_result(message, call), status=ResultStatus.OUTPUT)


def _preliminary_stays(message: Message, result: ToolResult) -> Message | None:
    if any(part.id == result.id for part in message.parts):
        return None
    return evolve(message, parts=(*message.parts, result))


def _saving_rewrites(stored: TreeNode, given: Message, open_calls: OpenCalls) -> Message | None:
    return given


def _saving_again_is_refused(stored: TreeNode, given: Message, open_calls: OpenCalls) -> Message | None:
    return None


def _follows_anything(leaf: TreeNode | None, named: NodeId) -> bool:
    return True


def _follows_the_leaf(leaf: TreeNode | None, named: NodeId) -> bool:
    return leaf is not None and leaf.id == named


def _oldest_checkpoint(leaf: TreeNode | None) -> TreeNode | None:
    return next((node for node in reversed(tuple(walk(leaf))) if node.checkpoint is not None), None)


def _checkpoint_only_at_the_leaf(leaf: TreeNode | None) -> TreeNode | None:
    return leaf if leaf is not None and leaf.checkpoint is not None else None


def _first_kept_is_lost(leaf: TreeNode | None, checkpoint: TreeNode | None) -> tuple[TreeNode, ...]:
    tail = right.tail_nodes(leaf, checkpoint)
    return tail[1:] if checkpoint is not None and len(tail) > 1 else tail


def _tail_behind_the_checkpoint(leaf: TreeNode | None, checkpoint: TreeNode | None) -> tuple[TreeNode, ...]:
    kept = []
    for node in walk(leaf):
        if node is checkpoint:
            break
        if node.message is not None:
            kept.append(node)
    return tuple(reversed(kept))


def _everything_stays(leaf: TreeNode | None, checkpoint: TreeNode | None) -> tuple[TreeNode, ...]:
    return tuple(reversed(tuple(messages_up(leaf))))


def _summary_as_instruction() -> Marking:
    return Marking.UNMARKED


def _revision_counts_nodes(revision: Revision, written: int) -> Revision:
    return Revision(revision + written)


def _revision_stands_still(revision: Revision, written: int) -> Revision:
    return revision


def _settling_keeps_the_revision(revision: Revision, written: int) -> Revision:
    return Revision(revision + (1 if written else 0))


SAVING: tuple[WrongRule, ...] = (
    wrong("any-message", "Stores whatever it is given.", evolve(RULES, message_fault=_any_message)),
    wrong(
        "any-result", "Takes results for calls that are not open.", evolve(RULES, message_fault=_any_result)
    ),
    wrong("any-call-id", "Takes a call whose id is open already.", evolve(RULES, message_fault=_any_call_id)),
    wrong(
        "preliminary-settles",
        "A preliminary result settles its call.",
        evolve(RULES, calls_after=_preliminary_settles),
    ),
    wrong(
        "tool-messages-settle-nothing",
        "Only results inside the answer settle.",
        evolve(RULES, calls_after=_tool_messages_settle_nothing),
    ),
    wrong(
        "one-result-settles-all",
        "The first of several parallel results settles all calls.",
        evolve(RULES, calls_after=_one_result_settles_all),
    ),
    wrong(
        "steering-opens-a-turn",
        "A user message typed while tools run opens a turn.",
        evolve(RULES, opens_turn=_steering_opens_a_turn),
    ),
    wrong(
        "preliminary-is-projected",
        "Preliminary results are sent to the model.",
        evolve(RULES, projected=_everything_is_projected),
    ),
    wrong(
        "abandoned-looks-like-output",
        "An abandoned call looks answered.",
        evolve(RULES, abandoned_result=_abandoned_looks_like_output),
    ),
    wrong(
        "preliminary-stays",
        "The final result is put beside the preliminary one.",
        evolve(RULES, with_result=_preliminary_stays),
    ),
    wrong(
        "saving-rewrites",
        "Saving a known id rewrites the stored message.",
        evolve(RULES, saved_again=_saving_rewrites),
    ),
    wrong(
        "saving-again-is-refused",
        "Saving what is durable is refused.",
        evolve(RULES, saved_again=_saving_again_is_refused),
    ),
    wrong("follows-anything", "A stale writer is let through.", evolve(RULES, ends_in=_follows_anything)),
    wrong(
        "follows-the-leaf", "A checkpoint makes every writer stale.", evolve(RULES, ends_in=_follows_the_leaf)
    ),
    wrong(
        "oldest-checkpoint",
        "The first checkpoint of the branch stays in force.",
        evolve(RULES, latest_checkpoint=_oldest_checkpoint),
    ),
    wrong(
        "checkpoint-only-at-the-leaf",
        "The checkpoint is forgotten when a message follows it.",
        evolve(RULES, latest_checkpoint=_checkpoint_only_at_the_leaf),
    ),
    wrong(
        "first-kept-is-lost",
        "The tail begins one message too late.",
        evolve(RULES, tail_nodes=_first_kept_is_lost),
    ),
    wrong(
        "tail-behind-the-checkpoint",
        "The tail before the checkpoint is lost.",
        evolve(RULES, tail_nodes=_tail_behind_the_checkpoint),
    ),
    wrong(
        "everything-stays", "What was summarised is still sent.", evolve(RULES, tail_nodes=_everything_stays)
    ),
    wrong(
        "summary-as-instruction",
        "The summary looks like a user's message.",
        evolve(RULES, marking=_summary_as_instruction),
    ),
    wrong(
        "revision-counts-nodes",
        "The revision grows by the nodes written.",
        evolve(RULES, revision_after=_revision_counts_nodes),
    ),
    wrong(
        "revision-stands-still",
        "The revision never grows.",
        evolve(RULES, revision_after=_revision_stands_still),
    ),
    wrong(
        "settling-keeps-the-revision",
        "Only new nodes bump the revision.",
        evolve(RULES, revision_after=_settling_keeps_the_revision),
    ),
)
"""In the order of `tailmark_reference.model.rules.Rules`."""
