"""Every rule of the model as one pure function, and the record that holds them.

A mutant is this record with one function replaced. A function looks at nothing but its arguments.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import frozen

from tailmark.budgets import Budgets, Model, Settings, WrongSetting
from tailmark.declarations import Readings
from tailmark.identifiers import NodeId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import (
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.outcomes import FailureReason, NoopReason, Outcome, RefusalCode
from tailmark.plans import (
    Checkpoint,
    EditFor,
    FinishReason,
    Plan,
    Purpose,
    SendFor,
    SummariserReply,
    SummaryFailure,
    Trigger,
)
from tailmark.projections import Marking
from tailmark.views import OpenCall
from tailmark_reference.estimate import estimate, estimate_summary
from tailmark_reference.model.capacity import budgets, model_fault, settings_fault
from tailmark_reference.model.message_rules import (
    abandoned_result,
    calls_after,
    message_fault,
    opens_turn,
    projected,
    saved_again,
    with_result,
)
from tailmark_reference.model.occupancy import OccupancyRules
from tailmark_reference.model.places import Choice, manual_position, pressed_position, worth_it
from tailmark_reference.model.pressing import (
    AutomaticLimit,
    SummaryFault,
    TooLargePart,
    automatic_is_on,
    automatic_limit,
    goes_out,
    is_hopeless_attempt,
    plan_id,
    presses,
    respects_undo,
    same_terms,
    summary_fault,
    too_large,
)
from tailmark_reference.model.tree import OpenCalls, TreeNode, messages_up, walk
from tailmark_reference.model.world import PlanState, Process, Session, StateKey

# Branches -------------------------------------------------------------------------------------------------


def ends_in(leaf: TreeNode | None, named: NodeId) -> bool:
    """Whether the branch ends in the message that a writer names, checkpoints aside (TREE-12)."""
    last = next(messages_up(leaf), None)
    return last is not None and last.id == named


def latest_checkpoint(leaf: TreeNode | None) -> TreeNode | None:
    """The checkpoint nearest to the leaf by parent links (PROJ-3)."""
    if leaf is None or leaf.checkpoint is not None:
        return leaf
    return leaf.checkpoint_above


def tail_nodes(leaf: TreeNode | None, checkpoint: TreeNode | None) -> tuple[TreeNode, ...]:
    """The messages behind a checkpoint's place, in branch order; every message without one (PROJ-1, PROJ-2)."""
    first_kept = checkpoint.checkpoint.first_kept if checkpoint and checkpoint.checkpoint else None
    kept = []
    for node in walk(leaf):
        if first_kept is None and node is checkpoint:
            break
        if node.message is not None:
            kept.append(node)
        if node.id == first_kept:
            break
    return tuple(reversed(kept))


def marking() -> Marking:
    """How the summary is presented to the model (PROJ-9)."""
    return Marking.CONTEXT


def revision_after(revision: Revision, written: int) -> Revision:  # noqa: ARG001  # a wrong rule may count nodes
    """The revision behind an operation that changed the branch by ``written`` nodes (CMT-6)."""
    return Revision(revision + 1)


# Compaction -----------------------------------------------------------------------------------------------


def nothing_to_do(
    leaf: TreeNode | None, checkpoint: TreeNode | None, *, summary_too_long: bool
) -> NoopReason | None:
    """Why a manual compaction has nothing to do (TRG-2, TRG-3, TRG-10)."""
    if checkpoint is not None:
        return NoopReason.CHECKPOINT_IS_LEAF if leaf is checkpoint and not summary_too_long else None
    return NoopReason.TOO_FEW_TURNS if leaf is None or leaf.turns < 2 else None


def excluded(tail: tuple[TreeNode, ...], position: int) -> tuple[NodeId, ...]:
    """The messages between the present place and the new one (CHK-2)."""
    return tuple(node.id for node in tail[:position])


def may_open(purpose: Purpose | None) -> bool:
    """Whether a draft follows, so that nothing of the branch need be kept (BND-1, RETRY-6)."""
    return isinstance(purpose, SendFor | EditFor)


def same_leaf(session: Session, plan: Plan) -> bool:
    """The commit's first condition (CMT-1)."""
    return session.leaf is not None and session.leaf.id == plan.leaf


def same_revision(session: Session, plan: Plan) -> bool:
    """The commit's second condition (CMT-1, CMT-2)."""
    return session.revision == plan.revision


def is_stable(session: Session, *, answer_runs: bool) -> bool:
    """No open call on the branch, no running answer (CMT-3, DEF-STABLE)."""
    return not answer_runs and (session.leaf is None or not session.leaf.open_calls)


def same_plan(brought: Plan, determined: Plan) -> bool:
    """The commit's third condition: the plan is what the state determines (CMT-4)."""
    return brought == determined


def reply_fits(plan: Plan, reply: SummariserReply | None) -> bool:
    """A reply comes if and only if the plan made a request."""
    return (plan.request is None) == (reply is None)


def read_reply(reply: SummariserReply) -> str | FailureReason:
    """The summary's text, or why the reply is unusable (CMT-14, CMT-15)."""
    if isinstance(reply, SummaryFailure):
        return FailureReason.SUMMARISER
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    if reply.finish is FinishReason.LENGTH:
        return FailureReason.TRUNCATED
    if reply.finish is FinishReason.TOOL_CALL or any(isinstance(part, ToolCall) for part in reply.parts):
        return FailureReason.NOT_TEXT
    if not texts and any(isinstance(part, Reasoning) for part in reply.parts):
        return FailureReason.NOT_TEXT
    text = "\n\n".join(texts)
    return text if text.strip() else FailureReason.BLANK


def spends(outcome: Outcome) -> bool:  # noqa: ARG001  # a wrong rule may look at it
    """Whether an answer to its commit ends a plan (OUT-3). The reference folds nothing, so it never answers `More`."""
    return True


def checkpoint_id(plan: Plan, taken: Callable[[NodeId], bool]) -> NodeId:
    """The id of a plan's checkpoint."""
    name = NodeId(f"checkpoint:{plan.id}")
    count = 1
    while taken(name):
        count += 1
        name = NodeId(f"checkpoint:{plan.id}:{count}")
    return name


def checkpoint_of(
    plan: Plan, checkpoint: NodeId, summary: str, finish: FinishReason | None, size: Tokens
) -> Checkpoint:
    """The checkpoint that a plan becomes (CHK-7). ``size`` is the summary's estimate."""
    return Checkpoint(
        id=checkpoint,
        summary=summary,
        first_kept=plan.first_kept,
        old_first_kept=plan.old_first_kept,
        previous=plan.previous_checkpoint,
        first_excluded=plan.excluded[0] if plan.excluded else None,
        last_excluded=plan.excluded[-1] if plan.excluded else None,
        trigger=plan.trigger,
        model=plan.model.name,
        refresh=plan.refresh,
        instructions=plan.instructions,
        finish=finish,
        figure=plan.occupancy.figure,
        covered=plan.occupancy.covered,
        tokens_before=plan.tokens_before,
        tokens_after=Tokens(plan.tokens_after + size),
    )


def may_follow(leaf: TreeNode | None, message: Message) -> bool:
    """Whether a message may stand behind a leaf: behind an open checkpoint only the start of a turn (CHK-8)."""
    checkpoint = leaf.checkpoint if leaf is not None else None
    return checkpoint is None or checkpoint.first_kept is not None or message.role is Role.USER


def owns(process: Process, call: OpenCall) -> bool:
    """Whether this process stored the message that made an open call (TRG-14)."""
    return call.message in process.owned


def cancels(state: PlanState | None) -> bool:
    """Whether a cancel reaches a plan in this state (CMT-8)."""
    return state is PlanState.OPEN


# Retry, edit, fork, undo ----------------------------------------------------------------------------------


def last_opener(leaf: TreeNode | None) -> TreeNode | None:
    """The message that opened the last turn."""
    return next((node for node in walk(leaf) if node.opens_turn), None)


def answer_of(leaf: TreeNode, opener: TreeNode) -> tuple[TreeNode, ...]:
    """Everything behind the last turn opener, checkpoints aside, in branch order (RETRY-1)."""
    answer = []
    for node in messages_up(leaf):
        if node is opener:
            break
        answer.append(node)
    return tuple(reversed(answer))


def steering(answer: tuple[TreeNode, ...]) -> tuple[NodeId, ...]:
    """The user messages that leave with an answer (RETRY-1)."""
    return tuple(node.id for node in answer if node.message and node.message.role is Role.USER)


def retry_leaf(answer: tuple[TreeNode, ...]) -> TreeNode | None:
    """Where a retry moves the leaf: to the parent of the answer's first message."""
    return answer[0].parent


def edit_parent(opener: TreeNode) -> TreeNode | None:
    """Whose child an edited question becomes (EDIT-1)."""
    return opener.parent


def fork_fault(target: TreeNode, *, being_generated: bool) -> RefusalCode | None:
    """Why a session may not be forked at a node (FORK-1)."""
    if target.message is None or target.message.role is not Role.ASSISTANT:
        return RefusalCode.NOT_ASSISTANT
    return RefusalCode.UNSTABLE if target.open_calls or being_generated else None


def undo_leaf(leaf: TreeNode) -> TreeNode | None:
    """Where an undo moves the leaf (UNDO-1)."""
    return leaf.parent


def fork_instead(checkpoint: TreeNode | None) -> NodeId | None:
    """The answer to fork from, where an undo is refused (UNDO-2)."""
    before: Iterator[TreeNode] = walk(checkpoint.parent) if checkpoint is not None else iter(())
    return next((node.id for node in before if fork_fault(node, being_generated=False) is None), None)


class NothingToDo(Protocol):
    """The type of `nothing_to_do`."""

    def __call__(
        self, leaf: TreeNode | None, checkpoint: TreeNode | None, *, summary_too_long: bool
    ) -> NoopReason | None:
        """See `nothing_to_do`."""
        ...


class IsStable(Protocol):
    """The type of `is_stable`."""

    def __call__(self, session: Session, *, answer_runs: bool) -> bool:
        """See `is_stable`."""
        ...


class ForkFault(Protocol):
    """The type of `fork_fault`."""

    def __call__(self, target: TreeNode, *, being_generated: bool) -> RefusalCode | None:
        """See `fork_fault`."""
        ...


@frozen(kw_only=True)
class Rules:
    """All rules of the model. The defaults are right; a mutant replaces one."""

    message_fault: Callable[[Message, OpenCalls], RefusalCode | None] = message_fault
    calls_after: Callable[[OpenCalls, Message], OpenCalls] = calls_after
    opens_turn: Callable[[OpenCalls, Message], bool] = opens_turn
    projected: Callable[[Message], Message] = projected
    abandoned_result: Callable[[Message, OpenCall], ToolResult] = abandoned_result
    with_result: Callable[[Message, ToolResult], Message | None] = with_result
    saved_again: Callable[[TreeNode, Message, OpenCalls], Message | None] = saved_again
    ends_in: Callable[[TreeNode | None, NodeId], bool] = ends_in
    latest_checkpoint: Callable[[TreeNode | None], TreeNode | None] = latest_checkpoint
    tail_nodes: Callable[[TreeNode | None, TreeNode | None], tuple[TreeNode, ...]] = tail_nodes
    marking: Callable[[], Marking] = marking
    revision_after: Callable[[Revision, int], Revision] = revision_after
    nothing_to_do: NothingToDo = nothing_to_do
    manual_position: Callable[[Choice], int | None] = manual_position
    pressed_position: Callable[[Choice], int | None] = pressed_position
    worth_it: Callable[[Choice, int, int], bool] = worth_it
    may_open: Callable[[Purpose | None], bool] = may_open
    excluded: Callable[[tuple[TreeNode, ...], int], tuple[NodeId, ...]] = excluded
    model_fault: Callable[[Model], WrongSetting | None] = model_fault
    settings_fault: Callable[[Model, Settings], WrongSetting | None] = settings_fault
    budgets: Callable[[Model, Settings], Budgets] = budgets
    occupancy: OccupancyRules = OccupancyRules()
    too_large: TooLargePart = too_large
    presses: Callable[[Budgets, int], bool] = presses
    goes_out: Callable[[Budgets, int], bool] = goes_out
    automatic_is_on: Callable[[Settings, Budgets], bool] = automatic_is_on
    is_hopeless_attempt: Callable[[StateKey | None, StateKey], bool] = is_hopeless_attempt
    automatic_limit: AutomaticLimit = automatic_limit
    summary_fault: SummaryFault = summary_fault
    plan_id: Callable[[Trigger, SessionId, Revision, Callable[[PlanId], bool]], PlanId] = plan_id
    respects_undo: Callable[[Process, SessionId], bool] = respects_undo
    same_terms: Callable[[Plan, Plan], bool] = same_terms
    owns: Callable[[Process, OpenCall], bool] = owns
    may_follow: Callable[[TreeNode | None, Message], bool] = may_follow
    same_leaf: Callable[[Session, Plan], bool] = same_leaf
    same_revision: Callable[[Session, Plan], bool] = same_revision
    is_stable: IsStable = is_stable
    same_plan: Callable[[Plan, Plan], bool] = same_plan
    reply_fits: Callable[[Plan, SummariserReply | None], bool] = reply_fits
    read_reply: Callable[[SummariserReply], str | FailureReason] = read_reply
    spends: Callable[[Outcome], bool] = spends
    checkpoint_id: Callable[[Plan, Callable[[NodeId], bool]], NodeId] = checkpoint_id
    checkpoint_of: Callable[[Plan, NodeId, str, FinishReason | None, Tokens], Checkpoint] = checkpoint_of
    cancels: Callable[[PlanState | None], bool] = cancels
    last_opener: Callable[[TreeNode | None], TreeNode | None] = last_opener
    answer_of: Callable[[TreeNode, TreeNode], tuple[TreeNode, ...]] = answer_of
    steering: Callable[[tuple[TreeNode, ...]], tuple[NodeId, ...]] = steering
    retry_leaf: Callable[[tuple[TreeNode, ...]], TreeNode | None] = retry_leaf
    edit_parent: Callable[[TreeNode], TreeNode | None] = edit_parent
    fork_fault: ForkFault = fork_fault
    undo_leaf: Callable[[TreeNode], TreeNode | None] = undo_leaf
    fork_instead: Callable[[TreeNode | None], NodeId | None] = fork_instead
    estimate: Callable[[Message], Tokens] = estimate
    estimate_summary: Callable[[str], Tokens] = estimate_summary
    readings: Readings = Readings()
    worth_divisor: int = 8


RULES = Rules()
"""The reference's own rules."""
