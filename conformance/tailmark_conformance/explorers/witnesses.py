"""Situations that must be reached sometimes, or a passing check says little.

A witness looks at one step: the state before, the operation, the outcome, the state after, and the plans
begun so far. A test demands that a standard run on the model reaches every one.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from tailmark.identifiers import CallId, SessionId
from tailmark.messages import AnswerEnd, ApprovalRequest, Message, ResultStatus, Role, ToolCall, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    Save,
    SetMetadata,
    SetModel,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    FailureReason,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    Previewed,
    RefusalCode,
    Refused,
    Skipped,
    Stale,
)
from tailmark.plans import Checkpoint, Plan
from tailmark.rules.scene import Mark, Scene, latest_checkpoint
from tailmark.traces import Step
from tailmark_conformance.explorers.forging import FORGED_FIELDS
from tailmark_conformance.explorers.known import Known


@frozen(kw_only=True)
class Moment:
    """One step with what was known before it."""

    before: Scene
    step: Step
    after: Scene
    plans: tuple[Plan, ...]

    @property
    def operation(self) -> Operation:
        """What was asked."""
        return self.step.operation

    @property
    def outcome(self) -> Outcome:
        """What was answered."""
        return self.step.outcome

    def begun(self, plan: Plan) -> Plan | None:
        """The plan of that name and session as it was answered."""
        return next((one for one in self.plans if one.id == plan.id and one.session == plan.session), None)


Witness: TypeAlias = Callable[[Moment], bool]
_Kinds: TypeAlias = type[Operation] | tuple[type[Operation], ...]


def _session(operation: Operation) -> SessionId | None:
    match operation:
        case Restart():
            return None
        case CommitCompaction(plan=plan):
            return plan.session
        case _:
            return operation.session


# Outcomes: every answer that the page of operations lists ----------------------------------------------

_REFUSALS: Mapping[type[Operation], tuple[RefusalCode, ...]] = {
    Append: (
        RefusalCode.KNOWN_ID,
        RefusalCode.INVALID_MESSAGE,
        RefusalCode.CALL_ID,
        RefusalCode.NOT_OPEN,
    ),
    Save: (
        RefusalCode.INVALID_MESSAGE,
        RefusalCode.KNOWN_ID,
        RefusalCode.CALL_ID,
        RefusalCode.NOT_OPEN,
    ),
    Settle: (RefusalCode.UNKNOWN_NODE, RefusalCode.NOT_OPEN, RefusalCode.INVALID_MESSAGE),
    StartAnswer: (RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION),
    NextRequest: (RefusalCode.NO_ANSWER, RefusalCode.UNSTABLE),
    EndAnswer: (RefusalCode.NO_ANSWER,),
    BeginCompaction: (RefusalCode.TRIGGER, RefusalCode.KNOWN_ID),
    Preview: (RefusalCode.TRIGGER, RefusalCode.KNOWN_ID),
    CommitCompaction: (RefusalCode.SPENT, RefusalCode.PLAN),
    Retry: (RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION),
    Edit: (
        RefusalCode.UNSTABLE,
        RefusalCode.UNKNOWN_NODE,
        RefusalCode.NOT_LAST_TURN,
        RefusalCode.NOT_A_USER_MESSAGE,
        RefusalCode.KNOWN_ID,
        RefusalCode.INVALID_MESSAGE,
    ),
    Fork: (
        RefusalCode.KNOWN_ID,
        RefusalCode.UNKNOWN_NODE,
        RefusalCode.NOT_ASSISTANT,
        RefusalCode.UNSTABLE,
    ),
    Undo: (RefusalCode.UNSTABLE, RefusalCode.NOT_A_CHECKPOINT),
}
_OF_SESSIONS: tuple[type[Operation], ...] = (
    Append,
    Save,
    Settle,
    Abandon,
    StartAnswer,
    NextRequest,
    EndAnswer,
    BeginCompaction,
    Preview,
    CommitCompaction,
    CancelCompaction,
    Retry,
    Edit,
    Fork,
    Undo,
    SetModel,
    SetMetadata,
    Load,
)
_STALE: tuple[type[Operation], ...] = (
    Append,
    Save,
    Abandon,
    StartAnswer,
    CommitCompaction,
    Retry,
    Edit,
    Undo,
)


def _refused(code: RefusalCode) -> Witness:
    return lambda moment: isinstance(moment.outcome, Refused) and moment.outcome.code is code


def _answered(outcome: type[Outcome]) -> Witness:
    return lambda moment: isinstance(moment.outcome, outcome)


def _noop(reason: NoopReason) -> Witness:
    return lambda moment: isinstance(moment.outcome, Noop) and moment.outcome.reason is reason


def _failed(reason: FailureReason) -> Witness:
    return lambda moment: isinstance(moment.outcome, Failed) and moment.outcome.reason is reason


def _outcomes() -> dict[str, tuple[_Kinds, Witness]]:
    table: dict[str, tuple[_Kinds, Witness]] = {}
    for kind in _OF_SESSIONS:
        table[f"{kind.kind}: refused(unknown-session)"] = (kind, _refused(RefusalCode.UNKNOWN_SESSION))
    for kind, codes in _REFUSALS.items():
        for code in codes:
            table[f"{kind.kind}: refused({code})"] = (kind, _refused(code))
    for kind in _STALE:
        table[f"{kind.kind}: stale"] = (kind, _answered(Stale))
    for kind in (BeginCompaction, Preview):
        for reason in (NoopReason.CHECKPOINT_IS_LEAF, NoopReason.TOO_FEW_TURNS):
            table[f"{kind.kind}: noop({reason})"] = (kind, _noop(reason))
        table[f"{kind.kind}: skipped"] = (kind, _answered(Skipped))
    table["begin-compaction: planned"] = (BeginCompaction, _answered(Planned))
    table["preview: previewed"] = (Preview, _answered(Previewed))
    table["cancel-compaction: cancelled"] = (CancelCompaction, _answered(Cancelled))
    table["cancel-compaction: noop"] = (CancelCompaction, _noop(NoopReason.NO_SUCH_PLAN))
    table["commit-compaction: cancelled"] = (CommitCompaction, _answered(Cancelled))
    table["commit-compaction: skipped"] = (CommitCompaction, _answered(Skipped))
    table["commit-compaction: committed"] = (CommitCompaction, _answered(Committed))
    for failure in (
        FailureReason.SUMMARISER,
        FailureReason.TRUNCATED,
        FailureReason.NOT_TEXT,
        FailureReason.BLANK,
    ):
        table[f"commit-compaction: failed({failure})"] = (CommitCompaction, _failed(failure))
    return table


# Calls and results -------------------------------------------------------------------------------------


def _written(moment: Moment) -> tuple[Message, ...]:
    """The messages that an append or a save has written."""
    if not isinstance(moment.outcome, Done):
        return ()
    nodes = (moment.after.node(node) for node in moment.outcome.written)
    return tuple(node.content for node in nodes if node is not None and isinstance(node.content, Message))


def _made(message: Message) -> list[CallId]:
    return [part.call for part in message.parts if isinstance(part, ToolCall)]


def _finals(message: Message) -> list[CallId]:
    return [part.call for part in message.parts if isinstance(part, ToolResult) and not part.preliminary]


def parallel_calls(moment: Moment) -> bool:
    """A message makes several calls at once."""
    return any(len(_made(message)) > 1 for message in _written(moment))


def _settled(moment: Moment) -> list[int]:
    """Which of the calls open before were settled, by their order."""
    session = _session(moment.operation)
    if session is None or not moment.before.knows_session(session) or not isinstance(moment.outcome, Done):
        return []
    left = {(one.call, one.message) for one in moment.after.open_calls(session)}
    return [
        index
        for index, one in enumerate(moment.before.open_calls(session))
        if (one.call, one.message) not in left
    ]


def out_of_order(moment: Moment) -> bool:
    """A call is settled while one made before it is open."""
    settled = _settled(moment)
    return bool(settled) and settled[0] > 0 and not isinstance(moment.operation, Retry | Edit)


def late_result(moment: Moment) -> bool:
    """A result comes when other messages stand behind its call already."""
    session = _session(moment.operation)
    if session is None or not moment.before.knows_session(session):
        return False
    calls = moment.before.open_calls(session)
    return any(calls[index].message != moment.before.leaf(session) for index in _settled(moment))


def _styles(scene: Scene, session: SessionId) -> set[Role]:
    return {
        message.role
        for message in scene.message_path(scene.leaf(session))
        if message.role is not Role.USER and _finals(message)
    }


def both_styles(moment: Moment) -> bool:
    """Results in assistant messages and in tool messages on one branch."""
    session = _session(moment.operation)
    return session is not None and bool(_settled(moment)) and len(_styles(moment.after, session)) == 2


def preliminary_result(moment: Moment) -> bool:
    """A preliminary result is stored."""
    assert isinstance(moment.operation, Settle)
    return isinstance(moment.outcome, Done) and moment.operation.result.preliminary


def preliminary_replaced(moment: Moment) -> bool:
    """A result takes the place of a preliminary one."""
    assert isinstance(moment.operation, Settle)
    stored = moment.before.node(moment.operation.message)
    if not isinstance(moment.outcome, Done) or stored is None or not isinstance(stored.content, Message):
        return False
    return any(
        isinstance(part, ToolResult) and part.preliminary and part.call == moment.operation.result.call
        for part in stored.content.parts
    )


def settled_at_birth(moment: Moment) -> bool:
    """A message arrives with the results of its own calls in it."""
    return any(message.role is Role.ASSISTANT and _finals(message) for message in _written(moment))


def approval(moment: Moment) -> bool:
    """A call waits for the user's approval."""
    return any(isinstance(part, ApprovalRequest) for message in _written(moment) for part in message.parts)


def denied(moment: Moment) -> bool:
    """A call is denied."""
    assert isinstance(moment.operation, Settle)
    return isinstance(moment.outcome, Done) and moment.operation.result.status is ResultStatus.DENIED


def settled_by_append(moment: Moment) -> bool:
    """A known message is appended again, with results."""
    assert isinstance(moment.operation, Append)
    return moment.before.node(moment.operation.message.id) is not None and bool(_settled(moment))


def settled_by_save(moment: Moment) -> bool:
    """A saved path brings results for stored messages."""
    return bool(_settled(moment)) and any(
        moment.before.node(node.content.id) is not None for node in moment.step.change.nodes
    )


def returning_call(moment: Moment) -> bool:
    """A settled call's id is used once more on the same branch."""
    session = _session(moment.operation)
    assert session is not None
    made = {call for message in _written(moment) for call in _made(message)}
    if not made:
        return False
    return any(
        made.intersection(_made(one)) for one in moment.before.message_path(moment.before.leaf(session))
    )


def abandoned(moment: Moment) -> bool:
    """Open calls are abandoned."""
    return isinstance(moment.outcome, Done) and bool(moment.outcome.abandoned)


def abandoned_by_end(moment: Moment) -> bool:
    """An answer ends in failure and takes its open calls with it."""
    assert isinstance(moment.operation, EndAnswer)
    return abandoned(moment) and moment.operation.end is not AnswerEnd.FINAL


def final_with_open_calls(moment: Moment) -> bool:
    """An answer ends well and its calls wait for somebody else."""
    assert isinstance(moment.operation, EndAnswer)
    return (
        isinstance(moment.outcome, Done)
        and moment.operation.end is AnswerEnd.FINAL
        and bool(moment.after.open_calls(moment.operation.session))
    )


def answer_died(moment: Moment) -> bool:
    """A restart ends a running answer."""
    return any(moment.before.running(session) is not None for session in moment.before.sessions())


# Turns -------------------------------------------------------------------------------------------------


def steering_on_calls(moment: Moment) -> bool:
    """A user message arrives while a call is open."""
    assert isinstance(moment.operation, Append)
    return any(message.role is Role.USER for message in _written(moment)) and bool(
        moment.before.open_calls(moment.operation.session)
    )


def steering_on_answer(moment: Moment) -> bool:
    """A user message arrives while an answer runs and no call is open."""
    assert isinstance(moment.operation, Append)
    session = moment.operation.session
    return (
        any(message.role is Role.USER for message in _written(moment))
        and not moment.before.open_calls(session)
        and moment.before.running(session) is not None
    )


def _turn_costs(scene: Scene, plan: Plan) -> list[int]:
    """What each turn of the branch behind the present place costs, in order."""
    costs: list[int] = []
    for mark in scene.tail(plan.session):
        if mark.opens_turn or not costs:
            costs.append(0)
        costs[-1] += scene.estimate(mark.id)
    return costs


def _planned(moment: Moment) -> Plan | None:
    return moment.outcome.plan if isinstance(moment.outcome, Planned) else None


def oversized_last(moment: Moment) -> bool:
    """A compaction is planned where the last turn alone exceeds the budget."""
    plan = _planned(moment)
    if plan is None or plan.model.tail_budget is None:
        return False
    return _turn_costs(moment.before, plan)[-1] > plan.model.tail_budget


def oversized_middle(moment: Moment) -> bool:
    """A compaction is planned where a turn before the last exceeds the budget and the last does not."""
    plan = _planned(moment)
    if plan is None or plan.model.tail_budget is None:
        return False
    *middle, last = _turn_costs(moment.before, plan)
    return last <= plan.model.tail_budget < max(middle, default=0)


def keeps_several_turns(moment: Moment) -> bool:
    """A planned tail has more than one turn, and something is excluded."""
    plan = _planned(moment)
    if plan is None or not plan.excluded or plan.first_kept is None:
        return False
    openers = [mark.id for mark in moment.before.tail(plan.session) if mark.opens_turn]
    return plan.first_kept in openers[:-1]


# Compactions -------------------------------------------------------------------------------------------


def first_checkpoint(moment: Moment) -> bool:
    """The first checkpoint of a branch."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.previous_checkpoint is None


def advancing_checkpoint(moment: Moment) -> bool:
    """A later checkpoint whose place advances."""
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return isinstance(moment.outcome, Committed) and plan.previous_checkpoint is not None and not plan.refresh


def refresh(moment: Moment) -> bool:
    """A refresh is committed."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.refresh


def third_checkpoint(moment: Moment) -> bool:
    """Three checkpoints or more on one branch."""
    assert isinstance(moment.operation, CommitCompaction)
    return (
        isinstance(moment.outcome, Committed)
        and sum(
            isinstance(mark.stored.content, Checkpoint)
            for mark in moment.after.path(moment.after.leaf(moment.operation.plan.session))
        )
        > 2
    )


def instructed(moment: Moment) -> bool:
    """A compaction with the user's instructions commits."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.instructions is not None


def compacted_after_undo(moment: Moment) -> bool:
    """A checkpoint is committed on a base that had another one, taken back since."""
    assert isinstance(moment.operation, CommitCompaction)
    if not isinstance(moment.outcome, Committed):
        return False
    base = moment.operation.plan.base
    return any(node.parent == base and isinstance(node.content, Checkpoint) for node in moment.before.nodes())


def stale_by_leaf(moment: Moment) -> bool:
    """The leaf moved between begin and commit."""
    return isinstance(moment.outcome, Stale) and _honest(moment) and not _same_leaf(moment)


def stale_by_revision(moment: Moment) -> bool:
    """The same leaf with another revision."""
    return isinstance(moment.outcome, Stale) and _honest(moment) and _same_leaf(moment)


def _honest(moment: Moment) -> bool:
    assert isinstance(moment.operation, CommitCompaction)
    return moment.begun(moment.operation.plan) == moment.operation.plan


def _same_leaf(moment: Moment) -> bool:
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return moment.before.leaf(plan.session) == plan.leaf


def stale_over_other_answers(moment: Moment) -> bool:
    """The plan is stale, and the branch is unstable or the plan had its answer as well."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Stale) and not moment.before.is_stable(moment.operation.plan.session)


def stale_of_two(moment: Moment) -> bool:
    """Of two plans on one state the other has won."""
    if not isinstance(moment.outcome, Stale) or not _honest(moment):
        return False
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    children = [
        node.content.id
        for node in moment.before.nodes()
        if node.parent == plan.base and isinstance(node.content, Checkpoint)
    ]
    return bool(children) and any(
        one.id != plan.id
        and evolve(one, id=plan.id, instructions=None, request=None)
        == evolve(plan, instructions=None, request=None)
        for one in moment.plans
    )


def answer_between(moment: Moment) -> bool:
    """An answer runs at the commit, and leaf and revision are the plan's."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Skipped) and _honest(moment)


def forgotten_plan(moment: Moment) -> bool:
    """A restart stands between begin and commit, and nothing else."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Refused) and moment.outcome.code is RefusalCode.PLAN and _honest(moment)


def undisturbed(moment: Moment) -> bool:
    """The model of the session is not the plan's any more, and yet it commits."""
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return isinstance(moment.outcome, Committed) and moment.before.model(plan.session) != plan.model


def cancelled_too_late(moment: Moment) -> bool:
    """A cancel names a plan that is committed."""
    assert isinstance(moment.operation, CancelCompaction)
    operation = moment.operation
    return isinstance(moment.outcome, Noop) and any(
        one.id == operation.plan and one.session == operation.session for one in moment.plans
    )


def _forged(field: str) -> Witness:
    def witness(moment: Moment) -> bool:
        assert isinstance(moment.operation, CommitCompaction)
        plan = moment.operation.plan
        if isinstance(moment.outcome, Committed):
            return False
        # A plan with a forged id or session has no begin of its own.
        return any(_differ_in(one, plan, field) for one in moment.plans)

    return witness


def _differ_in(begun: Plan, plan: Plan, field: str) -> bool:
    return all((getattr(begun, name) != getattr(plan, name)) == (name == field) for name in FORGED_FIELDS)


def _reply(missing: bool) -> Witness:
    def witness(moment: Moment) -> bool:
        assert isinstance(moment.operation, CommitCompaction)
        return (
            isinstance(moment.outcome, Refused)
            and moment.outcome.code is RefusalCode.PLAN
            and (moment.operation.reply is None) == missing
            and (moment.operation.plan.request is None) != missing
            and _honest(moment)
        )

    return witness


# Saving ------------------------------------------------------------------------------------------------


def _saved(moment: Moment) -> tuple[list[Message], list[Message]] | None:
    """What a save that was taken brought, and what the branch had."""
    assert isinstance(moment.operation, Save)
    if not isinstance(moment.outcome, Done):
        return None
    path = [node for node in moment.operation.path if isinstance(node, Message)]
    return path, list(moment.before.message_path(moment.before.leaf(moment.operation.session)))


def saved_again(moment: Moment) -> bool:
    """The branch as it stands is saved once more."""
    saved = _saved(moment)
    return saved is not None and bool(saved[0]) and saved[0] == saved[1]


def saved_prefix(moment: Moment) -> bool:
    """A shorter path is saved."""
    saved = _saved(moment)
    return saved is not None and 0 < len(saved[0]) < len(saved[1])


def saved_extension(moment: Moment) -> bool:
    """A longer path is saved, more than one message longer."""
    saved = _saved(moment)
    return saved is not None and len(saved[0]) > len(saved[1]) + 1 > 1


def saved_checkpoints(moment: Moment) -> bool:
    """A path with the branch's checkpoints in it is saved."""
    assert isinstance(moment.operation, Save)
    return isinstance(moment.outcome, Done) and any(
        isinstance(node, Checkpoint) and moment.before.node(node.id) is not None
        for node in moment.operation.path
    )


def saved_changed_checkpoint(moment: Moment) -> bool:
    """A path with a checkpoint that is stored with another content, or not at all."""
    assert isinstance(moment.operation, Save)
    return isinstance(moment.outcome, Done) and any(
        isinstance(node, Checkpoint)
        and ((stored := moment.before.node(node.id)) is None or stored.content != node)
        for node in moment.operation.path
    )


def appended_again(moment: Moment) -> bool:
    """A known message is appended once more, and nothing happens."""
    assert isinstance(moment.operation, Append)
    return isinstance(moment.outcome, Done) and not moment.step.change.nodes


def known_elsewhere(moment: Moment) -> bool:
    """A message that is stored off the branch is appended."""
    assert isinstance(moment.operation, Append)
    node = moment.operation.message.id
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.KNOWN_ID
        and not moment.before.is_on_path(node, moment.before.end(moment.operation.session))
    )


def right_follows(moment: Moment) -> bool:
    """What an operation follows is named behind a checkpoint, and rightly."""
    if not isinstance(moment.operation, Append | Abandon | StartAnswer | Retry | Edit | Undo):
        return False
    end = moment.before.end(moment.operation.session)
    return (
        moment.operation.follows is not None
        and isinstance(moment.outcome, Done)
        and end is not None
        and isinstance(end.stored.content, Checkpoint)
    )


def checkpoint_as_follows(moment: Moment) -> bool:
    """A checkpoint is named as what is followed: stale, because it is no message."""
    if not isinstance(moment.operation, Append | Abandon | StartAnswer | Retry | Edit | Undo):
        return False
    session = moment.operation.session
    return (
        isinstance(moment.outcome, Stale)
        and moment.operation.follows == moment.before.leaf(session)
        and moment.operation.follows is not None
    )


# Branching ---------------------------------------------------------------------------------------------


def _left_checkpoints(moment: Moment, session: SessionId) -> int:
    if not isinstance(moment.outcome, Done):
        return 0
    kept = {mark.id for mark in moment.after.path(moment.after.leaf(session))}
    return sum(
        isinstance(mark.stored.content, Checkpoint) and mark.id not in kept
        for mark in moment.before.path(moment.before.leaf(session))
    )


def _leaves_checkpoints(moment: Moment) -> bool:
    assert isinstance(moment.operation, Retry | Edit)
    return _left_checkpoints(moment, moment.operation.session) > 1


def _keeps_checkpoint(moment: Moment) -> bool:
    assert isinstance(moment.operation, Retry | Edit)
    session = moment.operation.session
    moved = moment.before.leaf(session) != moment.after.leaf(session)
    return isinstance(moment.outcome, Done) and moved and moment.after.checkpoint(session) is not None


def _leaves_steering(moment: Moment) -> bool:
    return isinstance(moment.outcome, Done) and bool(moment.outcome.left)


def unanswered_retry(moment: Moment) -> bool:
    """A retry of a question that has no answer."""
    assert isinstance(moment.operation, Retry)
    session = moment.operation.session
    return isinstance(moment.outcome, Done) and moment.before.leaf(session) == moment.after.leaf(session)


def answered_anew(moment: Moment) -> bool:
    """An answer becomes the sibling of one that left the branch."""
    assert isinstance(moment.operation, Append)
    written = _written(moment)
    if not written or written[0].role is not Role.ASSISTANT:
        return False
    parent = moment.before.leaf(moment.operation.session)
    return parent is not None and any(
        node.parent == parent and isinstance(node.content, Message) and node.content.role is Role.ASSISTANT
        for node in moment.before.nodes()
    )


def _forked(moment: Moment) -> Mark | None:
    assert isinstance(moment.operation, Fork)
    return moment.before.mark(moment.operation.target) if isinstance(moment.outcome, Done) else None


def _on_branch(moment: Moment) -> bool:
    assert isinstance(moment.operation, Fork)
    return moment.before.is_on_path(moment.operation.target, moment.before.end(moment.operation.session))


def fork_before_checkpoint(moment: Moment) -> bool:
    """A fork at an answer before the branch's checkpoint."""
    target = _forked(moment)
    assert isinstance(moment.operation, Fork)
    return (
        target is not None
        and _on_branch(moment)
        and latest_checkpoint(target) is None
        and moment.before.checkpoint(moment.operation.session) is not None
    )


def fork_behind_checkpoint(moment: Moment) -> bool:
    """A fork at an answer behind a checkpoint."""
    target = _forked(moment)
    return target is not None and latest_checkpoint(target) is not None


def fork_off_branch(moment: Moment) -> bool:
    """A fork at an answer that is on no session's branch any more."""
    target = _forked(moment)
    return target is not None and not any(
        moment.before.is_on_path(target.id, moment.before.end(session))
        for session in moment.before.sessions()
    )


def fork_of_running_answer(moment: Moment) -> bool:
    """A fork at what is being generated."""
    assert isinstance(moment.operation, Fork)
    mark = moment.before.mark(moment.operation.target)
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.UNSTABLE
        and mark is not None
        and not mark.open_calls
    )


def shared_nodes_grow(moment: Moment) -> bool:
    """A session writes on a branch whose beginning another session shares."""
    assert isinstance(moment.operation, Append)
    leaf = moment.before.leaf(moment.operation.session)
    return (
        bool(_written(moment))
        and leaf is not None
        and any(
            moment.before.is_on_path(leaf, moment.before.end(session))
            for session in moment.before.sessions()
            if session != moment.operation.session
        )
    )


def undo_done(moment: Moment) -> bool:
    """A checkpoint is taken back."""
    return isinstance(moment.outcome, Done)


def undo_of_refresh(moment: Moment) -> bool:
    """A checkpoint that stood on another one is taken back."""
    assert isinstance(moment.operation, Undo)
    return isinstance(moment.outcome, Done) and moment.after.checkpoint(moment.operation.session) is not None


def undo_shows_way(moment: Moment) -> bool:
    """An undo that comes too late names a fork as the way."""
    return isinstance(moment.outcome, Refused) and moment.outcome.way is not None


def undo_shows_none(moment: Moment) -> bool:
    """An undo that is not possible and has no way out."""
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.NOT_A_CHECKPOINT
        and moment.outcome.way is None
    )


_ANY: tuple[type[Operation], ...] = (*_OF_SESSIONS, Restart)
_WRITES: tuple[type[Operation], ...] = (Append, Save)
_SETTLES: tuple[type[Operation], ...] = (Append, Save, Settle)
_FOLLOWS: tuple[type[Operation], ...] = (Append, Abandon, StartAnswer, Retry, Edit, Undo)

WITNESSES: Mapping[str, tuple[_Kinds, Witness]] = {
    **_outcomes(),
    "parallel calls": (_WRITES, parallel_calls),
    "results out of order": (_SETTLES, out_of_order),
    "a late result": (_SETTLES, late_result),
    "results in both styles": (_SETTLES, both_styles),
    "a preliminary result": (Settle, preliminary_result),
    "a preliminary result is replaced": (Settle, preliminary_replaced),
    "a message with its results in it": (_WRITES, settled_at_birth),
    "an approval": (_WRITES, approval),
    "a denial": (Settle, denied),
    "results by a second append": (Append, settled_by_append),
    "results by a save": (Save, settled_by_save),
    "a call id returns": (_WRITES, returning_call),
    "calls abandoned": (Abandon, abandoned),
    "calls abandoned by an answer's end": (EndAnswer, abandoned_by_end),
    "an answer ends and its calls stay open": (EndAnswer, final_with_open_calls),
    "a restart ends an answer": (Restart, answer_died),
    "steering while calls are open": (Append, steering_on_calls),
    "steering while an answer runs": (Append, steering_on_answer),
    "an oversized turn last": (BeginCompaction, oversized_last),
    "an oversized turn in the middle": (BeginCompaction, oversized_middle),
    "a tail of several turns": (BeginCompaction, keeps_several_turns),
    "a first checkpoint": (CommitCompaction, first_checkpoint),
    "a checkpoint that advances": (CommitCompaction, advancing_checkpoint),
    "a refresh": (CommitCompaction, refresh),
    "three checkpoints on a branch": (CommitCompaction, third_checkpoint),
    "instructions": (CommitCompaction, instructed),
    "a compaction after an undo": (CommitCompaction, compacted_after_undo),
    "stale by another leaf": (CommitCompaction, stale_by_leaf),
    "stale by another revision on the same leaf": (CommitCompaction, stale_by_revision),
    "stale on an unstable branch": (CommitCompaction, stale_over_other_answers),
    "two plans on one state": (CommitCompaction, stale_of_two),
    "an answer starts between begin and commit": (CommitCompaction, answer_between),
    "a restart between begin and commit": (CommitCompaction, forgotten_plan),
    "another model between begin and commit": (CommitCompaction, undisturbed),
    "a cancel after the end": (CancelCompaction, cancelled_too_late),
    "a reply is missing": (CommitCompaction, _reply(missing=True)),
    **{f"a plan with a forged {field}": (CommitCompaction, _forged(field)) for field in FORGED_FIELDS},
    "the same path saved": (Save, saved_again),
    "a prefix saved": (Save, saved_prefix),
    "an extension saved": (Save, saved_extension),
    "a path with checkpoints saved": (Save, saved_checkpoints),
    "a path with other checkpoints saved": (Save, saved_changed_checkpoint),
    "a known message appended again": (Append, appended_again),
    "a message from off the branch appended": (Append, known_elsewhere),
    "follows behind a checkpoint": (_FOLLOWS, right_follows),
    "a checkpoint as what is followed": (_FOLLOWS, checkpoint_as_follows),
    "a retry across checkpoints": (Retry, _leaves_checkpoints),
    "an edit across checkpoints": (Edit, _leaves_checkpoints),
    "a retry behind a checkpoint": (Retry, _keeps_checkpoint),
    "an edit behind a checkpoint": (Edit, _keeps_checkpoint),
    "a retry leaves steering messages": (Retry, _leaves_steering),
    "an edit leaves steering messages": (Edit, _leaves_steering),
    "a retry without an answer": (Retry, unanswered_retry),
    "a second answer to a question": (Append, answered_anew),
    "a fork before a checkpoint": (Fork, fork_before_checkpoint),
    "a fork behind a checkpoint": (Fork, fork_behind_checkpoint),
    "a fork from off all branches": (Fork, fork_off_branch),
    "a fork of what is being generated": (Fork, fork_of_running_answer),
    "a shared beginning": (Append, shared_nodes_grow),
    "an undo": (Undo, undo_done),
    "an undo down to another checkpoint": (Undo, undo_of_refresh),
    "an undo too late, with a way": (Undo, undo_shows_way),
    "an undo without a way": (Undo, undo_shows_none),
}
"""Every witness by its name, and the kinds of operations at which it looks."""


class Watch:
    """Looks at one run's steps for the witnesses of the given names, and adds those reached to ``reached``."""

    def __init__(self, known: Known, names: Collection[str], reached: set[str]) -> None:
        self._known = known
        self._reached = reached
        self._by_kind: dict[type[Operation], dict[str, Witness]] = {kind: {} for kind in _ANY}
        for name in names:
            kinds, witness = WITNESSES[name]
            for kind in kinds if isinstance(kinds, tuple) else (kinds,):
                self._by_kind[kind][name] = witness

    def feed(self, step: Step) -> None:
        """Look at a step, and then let what is known take it over."""
        wanted = self._by_kind[type(step.operation)]
        plans = tuple(begun.plan for begun in self._known.plans) if wanted else ()
        before = self._known.scene
        self._known.feed(step)
        if not wanted:
            return
        moment = Moment(before=before, step=step, after=self._known.scene, plans=plans)
        for name, witness in list(wanted.items()):
            if witness(moment):
                self._reached.add(name)
                del wanted[name]
