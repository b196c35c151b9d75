"""The transitions of the model: one operation leads from one world to the next, with an outcome.

`step` is the whole table. Everything that an operation decides is a rule; what stands here is the order
in which the rules are asked (see the documentation, "Operations, one by one") and what is written. An
outcome that is not a success leaves the world as it was, but for what the process remembers of a plan.
"""

from typing import assert_never

from attrs import evolve

from tailmark.budgets import WrongSetting
from tailmark.identifiers import NodeId, Revision
from tailmark.messages import AnswerEnd, Message, Role
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    InflictDamage,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Done,
    Outcome,
    Previewed,
    ReadOnly,
    RefusalCode,
    Refused,
)
from tailmark.plans import Plan
from tailmark_reference.model.compaction import begin, cancel, commit, plan_manually, with_automatic
from tailmark_reference.model.damage import damage_above, damage_of, inflicted, may_be_inflicted
from tailmark_reference.model.requests import above_the_limit, edit, retry, send, was_sent
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.tree import TreeNode, messages_up, walk
from tailmark_reference.model.world import Process, Session, World
from tailmark_reference.model.writing import (
    abandon_open_calls,
    bumped,
    follows,
    is_stable,
    on_branch,
    open_calls_of,
    replace_messages,
    runs,
    stale,
    write,
)

Next = tuple[World, Outcome]

_FOR_ANYBODY = CancelCompaction | Load | InflictDamage
"""What is answered on a read-only session as on any other."""


def is_read_only(world: World, session: Session) -> bool:
    """Whether a session's history is damaged, so that nothing may be written to it (DMG-2, DMG-3)."""
    return bool(damage_of(world, session))


def step(world: World, operation: Operation, rules: Rules = RULES) -> Next:
    """The world behind an operation, and the operation's outcome. Pure; never raises for bad input."""
    world = world.untouched()
    if isinstance(operation, Restart):
        return world.with_process(Process()), Done()
    asked = operation.plan.session if isinstance(operation, CommitCompaction) else operation.session
    session = world.sessions.get(asked)
    if session is None:
        return world, Refused(code=RefusalCode.UNKNOWN_SESSION)
    if is_read_only(world, session) and not isinstance(operation, _FOR_ANYBODY):
        return world, ReadOnly()
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
            return abandon_open_calls(rules, world, session)
        case StartAnswer():
            return _start_answer(rules, world, session, operation)
        case NextRequest():
            return _next_request(rules, world, session)
        case EndAnswer():
            return _end_answer(rules, world, session, operation)
        case BeginCompaction():
            return begin(rules, world, session, operation)
        case Preview():
            outcome = plan_manually(rules, world, session, operation)
            return world, Previewed(plan=outcome) if isinstance(outcome, Plan) else outcome
        case CommitCompaction():
            return commit(rules, world, session, operation)
        case CancelCompaction():
            return cancel(rules, world, session, operation)
        case Send():
            return send(rules, world, session, operation)
        case Retry():
            return retry(rules, world, session, operation)
        case Edit():
            return edit(rules, world, session, operation)
        case Fork():
            return _fork(rules, world, session, operation)
        case Undo():
            return _undo(rules, world, session, operation)
        case SetModel():
            fault = rules.model_fault(operation.model)
            return _with_sizes(rules, world, session, evolve(session, model=operation.model), fault)
        case SetSettings():
            fault = rules.settings_fault(session.model, operation.settings)
            return _with_sizes(rules, world, session, evolve(session, settings=operation.settings), fault)
        case SetMetadata():
            metadata = {**session.metadata, operation.key: operation.value}
            return world.with_session(evolve(session, metadata=metadata)), Done()
        case Load():
            return world, Done()
        case InflictDamage():
            return _inflict_damage(world, session, operation)
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
    if not rules.may_follow(session.leaf, message):
        return world, Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
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
        if not rules.may_follow(session.leaf, message):
            return world, Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
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


# The running answer --------------------------------------------------------------------------------------


def _start_answer(rules: Rules, world: World, session: Session, operation: StartAnswer) -> Next:
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    if session.leaf is None or is_open(session.leaf):
        return world, Refused(code=RefusalCode.NO_QUESTION)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    above = above_the_limit(rules, session)
    if above is not None and not was_sent(world, session):
        return world, above
    running = {**world.process.running, session.id: session.leaf.id}
    return world.with_process(evolve(world.process, running=running)), Done()


def _next_request(rules: Rules, world: World, session: Session) -> Next:
    if not runs(world, session):
        return world, Refused(code=RefusalCode.NO_ANSWER)
    if open_calls_of(session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    above = above_the_limit(rules, session)
    # The answer is over, so that the branch is stable and the user can go on.
    return (world, Done()) if above is None else (without_answer(world, session), above)


def is_open(leaf: TreeNode) -> bool:
    """Whether a branch ends in an open checkpoint, so that nothing is there to be answered (CHK-8)."""
    return leaf.checkpoint is not None and leaf.checkpoint.first_kept is None


def without_answer(world: World, session: Session) -> World:
    """The world in which no answer runs on the session."""
    running = {key: follows for key, follows in world.process.running.items() if key != session.id}
    return world.with_process(evolve(world.process, running=running))


def _end_answer(rules: Rules, world: World, session: Session, operation: EndAnswer) -> Next:
    if not runs(world, session):
        return world, Refused(code=RefusalCode.NO_ANSWER)
    world = without_answer(world, session)
    if operation.end is AnswerEnd.FINAL:
        return with_automatic(rules, world, session, Done())
    # The answer began on a stable branch, so every open call is its own.
    return abandon_open_calls(rules, world, session)


# Fork, undo, settings, damage -----------------------------------------------------------------------------


def _fork(rules: Rules, world: World, session: Session, operation: Fork) -> Next:
    if operation.new_session in world.sessions:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    target = world.nodes.get(operation.target)
    if target is None:
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    if damage_above(world, target):
        return world, ReadOnly()
    fault = rules.fork_fault(target, being_generated=_is_being_generated(world, target))
    if fault is not None:
        return world, Refused(code=fault)
    forked = Session(
        id=operation.new_session,
        leaf=target,
        revision=Revision(0),
        model=session.model,
        settings=session.settings,
        metadata={},
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
    undone = world.process.undone | {session.id}
    return world.with_session(session).with_process(evolve(world.process, undone=undone)), Done()


def _with_sizes(
    rules: Rules, world: World, session: Session, changed: Session, fault: WrongSetting | None
) -> Next:
    """Another model or other settings, and the automatic compaction that may be due under them (CAP-2, CAP-7, TRG-5)."""
    if fault is not None:
        return world, Refused(code=RefusalCode.SETTINGS, wrong=fault)
    world = world.with_session(changed)
    message = changed.leaf.message if changed.leaf is not None else None
    if changed.key == session.key or message is None or message.role is not Role.ASSISTANT:
        return world, Done()
    return with_automatic(rules, world, changed, Done())


def _inflict_damage(world: World, session: Session, operation: InflictDamage) -> Next:
    if not may_be_inflicted(world, session, operation.damage, operation.node):
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    damaged = inflicted(world, session.id, operation.damage, operation.node)
    return damaged.with_process(Process()), Done()
