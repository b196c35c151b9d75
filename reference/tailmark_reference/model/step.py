"""The transitions of the model: one operation leads from one world to the next, with an outcome.

`step` is the whole table. Everything that an operation decides is a rule; what stands here is the order
in which the rules are asked (see the documentation, "Operations, one by one") and what is written. An
outcome that is not a success leaves the world as it was, but for what the process remembers of a plan.
"""

from typing import assert_never

from attrs import evolve

from tailmark.identifiers import NodeId, PartId, Revision
from tailmark.messages import AnswerEnd, Message, Role, ToolResult
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
)
from tailmark.plans import FinishReason, Plan, SummaryAnswer, Trigger
from tailmark_reference.model.planning import determine_plan
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.tree import TreeNode, messages_up, walk
from tailmark_reference.model.world import PlanState, Process, Session, World
from tailmark_reference.model.writing import (
    bumped,
    follows,
    is_stable,
    on_branch,
    open_calls_of,
    replace_messages,
    runs,
    skipped,
    stale,
    write,
)

Next = tuple[World, Outcome]


def step(world: World, operation: Operation, rules: Rules = RULES) -> Next:
    """The world behind an operation, and the operation's outcome. Pure; never raises for bad input."""
    world = world.untouched()
    if isinstance(operation, Restart):
        return world.with_process(Process()), Done()
    asked = operation.plan.session if isinstance(operation, CommitCompaction) else operation.session
    session = world.sessions.get(asked)
    if session is None:
        return world, Refused(code=RefusalCode.UNKNOWN_SESSION)
    match operation:
        case Append():
            return _append(rules, world, session, operation)
        case Save():
            return _save(rules, world, session, operation)
        case Settle():
            return _settle(rules, world, session, operation)
        case Abandon():
            if not follows(rules, session, operation.follows):
                return world, stale(session)
            return _abandon_open_calls(rules, world, session)
        case StartAnswer():
            return _start_answer(rules, world, session, operation)
        case NextRequest():
            return world, _next_request(world, session)
        case EndAnswer():
            return _end_answer(rules, world, session, operation)
        case BeginCompaction():
            return _begin(rules, world, session, operation)
        case Preview():
            outcome = _plan(rules, world, session, operation)
            return world, Previewed(plan=outcome) if isinstance(outcome, Plan) else outcome
        case CommitCompaction():
            return _commit(rules, world, session, operation)
        case CancelCompaction():
            return _cancel(rules, world, session, operation)
        case Retry():
            return _retry(rules, world, session, operation)
        case Edit():
            return _edit(rules, world, session, operation)
        case Fork():
            return _fork(rules, world, session, operation)
        case Undo():
            return _undo(rules, world, session, operation)
        case SetModel():
            return world.with_session(evolve(session, model=operation.model)), Done()
        case SetMetadata():
            metadata = {**session.metadata, operation.key: operation.value}
            return world.with_session(evolve(session, metadata=metadata)), Done()
        case Load():
            return world, Done()
        case _:
            assert_never(operation)


# Ordinary saving -----------------------------------------------------------------------------------------


def _append(rules: Rules, world: World, session: Session, operation: Append) -> Next:
    message = operation.message
    known = world.nodes.get(message.id)
    if known is not None:
        return _append_known(rules, world, session, operation, known)
    fault = rules.message_fault(message, open_calls_of(session))
    if fault is not None:
        return world, Refused(code=fault)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    world, session = write(rules, world, session, message)
    return world.with_session(bumped(rules, session, 1)), Done(written=(message.id,))


def _append_known(rules: Rules, world: World, session: Session, operation: Append, known: TreeNode) -> Next:
    refused = Refused(code=RefusalCode.KNOWN_ID)
    if not on_branch(session, known):
        return world, refused
    if operation.follows is not None and not rules.ends_in(known.parent, operation.follows):
        return world, refused
    content = rules.saved_again(known, operation.message, open_calls_of(session))
    if content is None:
        return world, refused
    if content == known.content:
        return world, Done()
    world, session = replace_messages(rules, world, session, {known.id: content})
    return world.with_session(bumped(rules, session, 0)), Done()


def _save(rules: Rules, world: World, session: Session, operation: Save) -> Next:
    path = tuple(entry for entry in operation.path if isinstance(entry, Message))
    branch = tuple(reversed(tuple(messages_up(session.leaf))))
    if len({message.id for message in path}) != len(path):
        return world, Refused(code=RefusalCode.INVALID_MESSAGE)
    if any(message.id != stored.id for message, stored in zip(path, branch, strict=False)):
        return world, stale(session)
    changed = {}
    for message, stored in zip(path, branch, strict=False):
        content = rules.saved_again(stored, message, open_calls_of(session))
        if content is None:
            return world, Refused(code=RefusalCode.KNOWN_ID)
        if content != stored.content:
            changed[stored.id] = content
    saved = world
    if changed:
        saved, session = replace_messages(rules, saved, session, changed)
    rest = path[len(branch) :]
    for message in rest:
        if message.id in saved.nodes:
            return world, Refused(code=RefusalCode.KNOWN_ID)
        fault = rules.message_fault(message, open_calls_of(session))
        if fault is not None:
            return world, Refused(code=fault)
        saved, session = write(rules, saved, session, message)
    if not changed and not rest:
        return world, Done()
    return (
        saved.with_session(bumped(rules, session, len(rest))),
        Done(written=tuple(message.id for message in rest)),
    )


def _settle(rules: Rules, world: World, session: Session, operation: Settle) -> Next:
    node = world.nodes.get(operation.message)
    result = operation.result
    if node is None:
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    waiting = any((known.call, known.message) == (result.call, node.id) for known in open_calls_of(session))
    if node.message is None or not waiting or not on_branch(session, node):
        return world, Refused(code=RefusalCode.NOT_OPEN)
    if result in node.message.parts:
        return world, Done()
    content = rules.with_result(node.message, result)
    if content is None:
        return world, Refused(code=RefusalCode.INVALID_MESSAGE)
    world, session = replace_messages(rules, world, session, {node.id: content})
    return world.with_session(bumped(rules, session, 0)), Done()


def _abandon_open_calls(rules: Rules, world: World, session: Session) -> Next:
    open_calls = open_calls_of(session)
    if not open_calls:
        return world, Done()
    changed: dict[NodeId, Message] = {}
    for known in open_calls:
        node = world.nodes.get(known.message)
        message = changed.get(known.message) or (node.message if node is not None else None)
        if message is None:
            raise ValueError(f"the open call {known.call} stands in no message")
        changed[known.message] = _with_abandoned(rules, message, rules.abandoned_result(message, known))
    world, session = replace_messages(rules, world, session, changed)
    return (
        world.with_session(bumped(rules, session, 0)),
        Done(abandoned=tuple(known.call for known in open_calls)),
    )


def _with_abandoned(rules: Rules, message: Message, result: ToolResult) -> Message:
    content = rules.with_result(message, result)
    while content is None:
        # The id is derived, so another part may have it by chance.
        result = evolve(result, id=PartId(f"{result.id}'"))
        content = rules.with_result(message, result)
    return content


# The running answer --------------------------------------------------------------------------------------


def _start_answer(rules: Rules, world: World, session: Session, operation: StartAnswer) -> Next:
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    if session.leaf is None:
        return world, Refused(code=RefusalCode.NO_QUESTION)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    running = {**world.process.running, session.id: session.leaf.id}
    return world.with_process(evolve(world.process, running=running)), Done()


def _next_request(world: World, session: Session) -> Outcome:
    if not runs(world, session):
        return Refused(code=RefusalCode.NO_ANSWER)
    return Refused(code=RefusalCode.UNSTABLE) if open_calls_of(session) else Done()


def without_answer(world: World, session: Session) -> World:
    """The world in which no answer runs on the session."""
    running = {key: follows for key, follows in world.process.running.items() if key != session.id}
    return world.with_process(evolve(world.process, running=running))


def _end_answer(rules: Rules, world: World, session: Session, operation: EndAnswer) -> Next:
    if not runs(world, session):
        return world, Refused(code=RefusalCode.NO_ANSWER)
    world = without_answer(world, session)
    if operation.end is AnswerEnd.FINAL:
        return world, Done()
    # The answer began on a stable branch, so every open call is its own.
    return _abandon_open_calls(rules, world, session)


# Compaction ----------------------------------------------------------------------------------------------


def _plan(
    rules: Rules, world: World, session: Session, operation: BeginCompaction | Preview
) -> Plan | Outcome:
    if operation.trigger is not Trigger.MANUAL:
        return Refused(code=RefusalCode.TRIGGER)
    if (session.id, operation.plan) in world.process.plans:
        return Refused(code=RefusalCode.KNOWN_ID)
    if not is_stable(rules, world, session):
        return skipped(world, session)
    reason = rules.nothing_to_do(session.leaf, rules.latest_checkpoint(session.leaf))
    if reason is not None:
        return Noop(reason=reason)
    plan = determine_plan(
        rules,
        session,
        operation.plan,
        trigger=operation.trigger,
        model=session.model,
        instructions=operation.instructions,
    )
    return plan if plan is not None else Noop(reason=NoopReason.TOO_FEW_TURNS)


def _begin(rules: Rules, world: World, session: Session, operation: BeginCompaction) -> Next:
    outcome = _plan(rules, world, session, operation)
    if not isinstance(outcome, Plan):
        return world, outcome
    return _remember(world, outcome, PlanState.OPEN), Planned(plan=outcome)


def _remember(world: World, plan: Plan, state: PlanState) -> World:
    plans = {**world.process.plans, (plan.session, plan.id): state}
    return world.with_process(evolve(world.process, plans=plans))


def _commit(rules: Rules, world: World, session: Session, operation: CommitCompaction) -> Next:
    plan = operation.plan
    state = world.process.plans.get((session.id, plan.id))
    after, outcome = _try_commit(rules, world, session, operation, state)
    if state is PlanState.OPEN and rules.spends(outcome):
        after = _remember(after, plan, PlanState.SPENT)
    return after, outcome


def _try_commit(
    rules: Rules,
    world: World,
    session: Session,
    operation: CommitCompaction,
    state: PlanState | None,
) -> Next:
    plan, reply = operation.plan, operation.reply
    if state is PlanState.CANCELLED:
        return world, Cancelled()
    if not rules.same_leaf(session, plan) or not rules.same_revision(session, plan):
        return world, stale(session)
    if not is_stable(rules, world, session):
        return world, skipped(world, session)
    if state is PlanState.SPENT:
        return world, Refused(code=RefusalCode.SPENT)
    determined = determine_plan(
        rules, session, plan.id, trigger=Trigger.MANUAL, model=plan.model, instructions=plan.instructions
    )
    if state is None or determined is None:
        return world, Refused(code=RefusalCode.PLAN)
    if not rules.same_plan(plan, determined) or not rules.reply_fits(plan, reply):
        return world, Refused(code=RefusalCode.PLAN)
    summary = rules.read_reply(reply) if reply is not None else plan.previous_summary or ""
    if isinstance(summary, FailureReason):
        return world, Failed(reason=summary)
    finish: FinishReason | None = reply.finish if isinstance(reply, SummaryAnswer) else None
    name = rules.checkpoint_id(plan, world.nodes.__contains__)
    size = rules.estimate_summary(summary)
    checkpoint = rules.checkpoint_of(plan, name, summary, finish, size)
    world, session = write(rules, world, session, checkpoint)
    return world.with_session(bumped(rules, session, 1)), Committed(checkpoint=name)


def _cancel(rules: Rules, world: World, session: Session, operation: CancelCompaction) -> Next:
    key = (session.id, operation.plan)
    if not rules.cancels(world.process.plans.get(key)):
        return world, Noop(reason=NoopReason.NO_SUCH_PLAN)
    plans = {**world.process.plans, key: PlanState.CANCELLED}
    return world.with_process(evolve(world.process, plans=plans)), Cancelled()


# Retry, edit, fork, undo ---------------------------------------------------------------------------------


def _retry(rules: Rules, world: World, session: Session, operation: Retry) -> Next:
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    opener = rules.last_opener(session.leaf)
    if session.leaf is None or opener is None:
        return world, Refused(code=RefusalCode.NO_QUESTION)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    answer = rules.answer_of(session.leaf, opener)
    if not answer:
        return world, Done()
    session = bumped(rules, session.at(rules.retry_leaf(answer), session.revision), 0)
    return world.with_session(session), Done(left=rules.steering(answer))


def _edit(rules: Rules, world: World, session: Session, operation: Edit) -> Next:
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    target = world.nodes.get(operation.target)
    if target is None:
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    opener = rules.last_opener(session.leaf)
    if session.leaf is None or opener is None or opener.id != target.id:
        return world, Refused(code=RefusalCode.NOT_LAST_TURN)
    message = operation.message
    if message.role is not Role.USER:
        return world, Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    if message.id in world.nodes:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    parent = rules.edit_parent(opener)
    fault = rules.message_fault(message, parent.open_calls if parent is not None else ())
    if fault is not None:
        return world, Refused(code=fault)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    left = rules.steering(rules.answer_of(session.leaf, opener))
    world, session = write(rules, world, session.at(parent, session.revision), message)
    return world.with_session(bumped(rules, session, 1)), Done(written=(message.id,), left=left)


def _fork(rules: Rules, world: World, session: Session, operation: Fork) -> Next:
    if operation.new_session in world.sessions:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    target = world.nodes.get(operation.target)
    if target is None:
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    fault = rules.fork_fault(target, being_generated=_is_being_generated(world, target))
    if fault is not None:
        return world, Refused(code=fault)
    forked = Session(
        id=operation.new_session, leaf=target, revision=Revision(0), model=session.model, metadata={}
    )
    return world.with_session(forked), Done()


def _is_being_generated(world: World, target: TreeNode) -> bool:
    return any(
        _stands_behind(world.sessions[session].leaf, target, follows)
        for session, follows in world.process.running.items()
    )


def _stands_behind(leaf: TreeNode | None, target: TreeNode, follows: NodeId) -> bool:
    for node in walk(leaf):
        if node.id == follows:
            return False
        if node.id == target.id:
            return True
    return False


def _undo(rules: Rules, world: World, session: Session, operation: Undo) -> Next:
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    if session.leaf is None or session.leaf.checkpoint is None:
        way = rules.fork_instead(rules.latest_checkpoint(session.leaf))
        return world, Refused(code=RefusalCode.NOT_A_CHECKPOINT, way=way)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    session = bumped(rules, session.at(rules.undo_leaf(session.leaf), session.revision), 0)
    return world.with_session(session), Done()
