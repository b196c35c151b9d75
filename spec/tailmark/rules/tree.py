"""Durable history: what may happen to stored nodes, leaves and ids."""

from tailmark.declarations import Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message, Role, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
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
from tailmark.outcomes import Committed, Done, RefusalCode
from tailmark.plans import Checkpoint, EditFor, SendFor
from tailmark.rules.answers import applicable, decided, is_about_the_store, is_success, name_of
from tailmark.rules.changes import (
    added,
    altered,
    any_change,
    field_change,
    gone,
    in_both,
    is_checkpoint,
    listed,
    node_change,
    session_of,
    setting_change,
    was_done,
)
from tailmark.rules.saving import (
    STALE,
    Known,
    known_message,
    only_settles,
    own_open_calls,
    refused,
    saved_path,
)
from tailmark.rules.scene import Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated
from tailmark.views import StoredNode


def tree_1(seen: Seen) -> Result:
    """What is appended becomes a child of the session's leaf, as it was given, and is the leaf then."""
    operation = seen.operation
    if not isinstance(operation, Append | Save) or not isinstance(seen.outcome, Done):
        return None
    session = operation.session
    if not in_both(seen, session):
        return None
    if isinstance(operation, Append):
        if seen.before.node(operation.message.id) is not None:
            return None
        new: tuple[Message, ...] = (operation.message,)
    else:
        saved = saved_path(seen)
        if saved is None or saved.answers:
            return None
        new = saved.new
    if not new:
        return None
    parent = seen.before.leaf(session)
    for message in new:
        stored = seen.after.node(message.id)
        if stored is None:
            return Violated(f"expected {message.id} to be stored; saw nothing of it", message.id)
        if stored.content != message:
            return Violated(f"expected {message.id} as it was given; saw other content", message.id)
        if stored.parent != parent:
            return Violated(
                f"expected {message.id} behind {parent}; saw it behind {stored.parent}", message.id
            )
        parent = message.id
    leaf = seen.after.leaf(session)
    return HOLDS if leaf == parent else Violated(f"expected the leaf {parent}; saw {leaf}", parent)


def tree_2(seen: Seen) -> Result:
    """No operation removes, rewrites, moves or copies a stored node; settling alone touches one (TREE-5)."""
    if lost := gone(seen):
        return Violated(f"expected {lost[0]} to stay stored; saw it gone", lost[0])
    for old, new in altered(seen):
        node = old.content.id
        if old.parent != new.parent:
            return Violated(f"expected {node} behind {old.parent}; saw it moved behind {new.parent}", node)
        if not (_is_assistant(old) and _is_assistant(new)):
            return Violated(f"expected {node} to stay as it was; saw it rewritten", node)
    for stored in added(seen):
        if not _was_asked_for(seen, stored):
            return Violated(
                f"expected {seen.operation.kind} to store no such node; saw {stored.content.id}",
                stored.content.id,
            )
    session = session_of(seen.operation)
    changed = bool(seen.change.nodes or seen.change.sessions)
    if session is None or not changed or not was_done(seen):
        return None
    return HOLDS if seen.before.leaf(session) is not None else None


def _is_assistant(node: StoredNode) -> bool:
    return isinstance(node.content, Message) and node.content.role is Role.ASSISTANT


def _was_asked_for(seen: Seen, stored: StoredNode) -> bool:
    node = stored.content.id
    match seen.operation:
        case Append(message=message) | Edit(message=message):
            return node == message.id
        case Send(message=message):
            # Abandoned results may go into `tool` messages of their own.
            return node == message.id or _is_tool_message(stored)
        case Save(path=path):
            # A checkpoint in the path is TREE-7's to judge.
            return any(entry.id == node for entry in path)
        case CommitCompaction(plan=plan):
            purpose = plan.purpose
            asked = isinstance(purpose, SendFor | EditFor) and node == purpose.message.id
            return asked or is_checkpoint(stored)
        case Abandon() | EndAnswer():
            return _is_tool_message(stored)
        case _:
            return False


def _is_tool_message(node: StoredNode) -> bool:
    return isinstance(node.content, Message) and node.content.role is Role.TOOL


def tree_3(seen: Seen) -> Result:
    """A compaction stores one node, the checkpoint, and touches no other."""
    if not isinstance(seen.operation, CommitCompaction) or not isinstance(seen.outcome, Committed):
        return None
    new = added(seen)
    if len(new) != 1 or not is_checkpoint(new[0]):
        saw = listed(tuple(node.content.id for node in new))
        return Violated(f"expected one new node, a checkpoint; saw {saw}")
    touched = (*(old.content.id for old, _ in altered(seen)), *gone(seen))
    if touched:
        return Violated(f"expected every other node to stay as it was; saw {touched[0]} touched", touched[0])
    return HOLDS


def tree_4(seen: Seen) -> Result:
    """The whole chain from the root to the leaf stays readable, checkpoints included, after compactions and restarts."""
    operation = seen.operation
    if isinstance(operation, Restart):
        sessions = seen.after.sessions()
    else:
        sessions = tuple(view.session for view in seen.change.sessions)
        asked = session_of(operation)
        if isinstance(operation, Load) and asked is not None and asked not in sessions:
            sessions = (*sessions, asked)
    exercised = False
    for session in sessions:
        if not seen.after.knows_session(session):
            continue
        problem = _chain_problem(seen, session)
        if problem is not None:
            return Violated(problem, seen.after.leaf(session))
        restarted = isinstance(operation, Restart | Load) and seen.after.leaf(session) is not None
        exercised = exercised or restarted or seen.after.checkpoint(session) is not None
    if seen.after.shows(Field.FRESH) and seen.fresh_change is not None:
        problem = _fresh_problem(seen)
        if problem is not None:
            return Violated(problem)
    return HOLDS if exercised else None


def _chain_problem(seen: Seen, session: SessionId) -> str | None:
    scene = seen.after
    shown = scene.shown_branch(session)
    leaf = scene.leaf(session)
    if isinstance(seen.operation, Append) and seen.before.knows_session(session):
        # Appends are frequent: what was shown before was judged then, so only the growth is looked at.
        grown = len(seen.before.shown_branch(session)) + len(added(seen))
        if len(shown) == grown and shown[-1:] == ((leaf,) if leaf is not None else ()):
            return None
    chain = tuple(mark.id for mark in scene.path(leaf))
    if shown == chain:
        return None
    return f"expected the branch of {session} to show {listed(chain)}; saw {listed(shown)}"


def _fresh_problem(seen: Seen) -> str | None:
    fresh = seen.fresh
    if fresh is None:
        return None
    for node in fresh.nodes:
        known = seen.after.node(node.content.id)
        if known is None or (known.parent, known.content) != (node.parent, node.content):
            return f"expected a fresh process to see the same nodes; it sees another {node.content.id}"
    if fresh.nodes_gone or fresh.sessions_gone:
        lost = (*fresh.nodes_gone, *fresh.sessions_gone)[0]
        return f"expected a fresh process to see the same nodes and sessions; it does not see {lost}"
    for view in fresh.sessions:
        session = view.session
        if not seen.after.knows_session(session):
            return f"expected a fresh process to see the same sessions; it sees {session} as well"
        if view.leaf != seen.after.leaf(session):
            return f"expected a fresh process to see the leaf {seen.after.leaf(session)} of {session}; it sees {view.leaf}"
        if seen.after.shows(Field.BRANCH) and view.branch != seen.after.shown_branch(session):
            return (
                f"expected a fresh process to see the same branch of {session}; it sees {listed(view.branch)}"
            )
    return None


def tree_5(seen: Seen) -> Result:
    """An assistant message changes only by results for its own open calls, which are added to it."""
    session = session_of(seen.operation)
    for old, new in altered(seen):
        if not isinstance(old.content, Message) or not isinstance(new.content, Message):
            continue
        if not (_is_assistant(old) and _is_assistant(new)):
            continue
        node = old.content.id
        if session is None or not _may_settle(seen, new.content):
            return Violated(f"expected {seen.operation.kind} to leave {node} alone; saw it changed", node)
        waiting = own_open_calls(seen.before, session, node) if seen.before.knows_session(session) else ()
        if not only_settles(old.content, new.content, frozenset(waiting)):
            return Violated(
                f"expected {node} to gain results for its open calls {listed(tuple(sorted(waiting)))} and nothing else; saw another change",
                node,
            )
        if other := _other_branch_with(seen.before, node, session):
            return Violated(
                f"expected no open call on a node of two sessions; saw {node} on {other} as well", node
            )
    return _settled_as_asked(seen)


def _may_settle(seen: Seen, content: Message) -> bool:
    match seen.operation:
        case Append(message=message):
            return message == content
        case Save(path=path):
            return any(entry == content for entry in path)
        case Settle(message=node):
            return node == content.id
        case Abandon() | EndAnswer() | Send():
            return True
        case _:
            return False


def _other_branch_with(scene: Scene, node: NodeId, session: SessionId) -> SessionId | None:
    return next(
        (
            other
            for other in scene.sessions()
            if other != session and scene.is_on_path(node, scene.end(other))
        ),
        None,
    )


def _settled_as_asked(seen: Seen) -> Result:
    operation = seen.operation
    if not isinstance(operation, Append | Save | Settle) or not isinstance(seen.outcome, Done):
        return None
    if not in_both(seen, operation.session) or applicable(seen):
        return None
    leaf: NodeId | None = seen.before.leaf(operation.session)
    expected = _messages_to_settle(seen, operation)
    if not expected:
        return None
    saved = saved_path(seen)
    if saved is not None and saved.new:
        leaf = saved.new[-1].id
    for message in expected:
        after = seen.after.node(message.id)
        if after is None or after.content != message:
            return Violated(f"expected {message.id} to carry its result in place; saw otherwise", message.id)
    saw = seen.after.leaf(operation.session)
    return HOLDS if saw == leaf else Violated(f"expected the leaf {leaf}; saw {saw}", leaf)


def _messages_to_settle(seen: Seen, operation: Append | Save | Settle) -> tuple[Message, ...]:
    """The messages that an operation gives results to, with them."""
    match operation:
        case Append():
            settles = known_message(seen.before, operation.session, operation) is Known.SETTLES
            return (operation.message,) if settles else ()
        case Save():
            saved = saved_path(seen)
            return saved.settled if saved is not None else ()
        case Settle():
            stored = seen.before.node(operation.message)
            if stored is None or not isinstance(stored.content, Message):
                return ()
            if operation.result in stored.content.parts:
                return ()
            return (_with_result(stored.content, operation.result),)


def _with_result(message: Message, result: ToolResult) -> Message:
    parts = list(message.parts)
    for index, part in enumerate(parts):
        if isinstance(part, ToolResult) and part.preliminary and part.call == result.call:
            parts[index] = result
            break
    else:
        parts.append(result)
    return Message(
        id=message.id,
        role=message.role,
        parts=tuple(parts),
        end=message.end,
        built_on=message.built_on,
        usage=message.usage,
    )


def tree_6(seen: Seen) -> Result:
    """Saving what is durable already changes nothing: no node, no leaf, no revision."""
    operation = seen.operation
    if not isinstance(operation, Append | Save | Settle) or not seen.before.knows_session(operation.session):
        return None
    if not _is_saved_already(seen, operation) or is_about_the_store(seen.outcome):
        return None
    if not is_success(seen):
        if not seen.after.shows(Field.OUTCOME):
            return None
        return Violated(f"expected done, because it is durable already; saw {name_of(seen.outcome)}")
    change = any_change(seen)
    return (
        HOLDS
        if change is None
        else Violated(f"expected no change, because it is durable already; saw that {change}")
    )


def _is_saved_already(seen: Seen, operation: Append | Save | Settle) -> bool:
    match operation:
        case Append():
            return known_message(seen.before, operation.session, operation) is Known.SAME
        case Save():
            saved = saved_path(seen)
            nothing = saved is not None and not (saved.answers or saved.settled or saved.new)
            return nothing and any(isinstance(entry, Message) for entry in operation.path)
        case Settle():
            stored = seen.before.node(operation.message)
            return (
                stored is not None
                and isinstance(stored.content, Message)
                and operation.result in stored.content.parts
                and not applicable(seen)
            )


def tree_7(seen: Seen) -> Result:
    """Ordinary saving never creates, changes or drops a checkpoint, even when its input contains one."""
    operation = seen.operation
    if not isinstance(operation, Append | Save | Settle | Abandon | EndAnswer) or not was_done(seen):
        return None
    session = operation.session
    if not in_both(seen, session):
        return None
    for stored in seen.change.nodes:
        if is_checkpoint(stored) and seen.before.node(stored.content.id) != stored:
            return Violated(
                f"expected no checkpoint to be written; saw {stored.content.id}", stored.content.id
            )
    lost = next((node for node in gone(seen) if is_checkpoint(seen.before.node(node))), None)
    if lost is not None:
        return Violated(f"expected the checkpoint {lost} to stay; saw it gone", lost)
    before, after = seen.before.checkpoint(session), seen.after.checkpoint(session)
    was = before.id if before is not None else None
    now = after.id if after is not None else None
    if was != now:
        return Violated(f"expected the latest checkpoint {was}; saw {now}", was)
    if seen.after.shows(Field.CHECKPOINT) and seen.after.shown_checkpoint(session) != was:
        shown = seen.after.shown_checkpoint(session)
        return Violated(f"expected the latest checkpoint {was}; saw {shown}", was)
    offered = isinstance(operation, Save) and any(isinstance(entry, Checkpoint) for entry in operation.path)
    return HOLDS if offered or was is not None else None


def tree_8(seen: Seen) -> Result:
    """An operation on one session changes no other session's leaf, revision or projection, and makes and drops none."""
    asked = session_of(seen.operation)
    if asked is None:
        return None
    made = seen.operation.new_session if isinstance(seen.operation, Fork) else None
    for view in seen.change.sessions:
        other = view.session
        if other == asked:
            continue
        if not seen.before.knows_session(other):
            if other != made:
                return Violated(f"expected no new session; saw {other}")
            continue
        if change := field_change(seen.before, seen.after, other):
            return Violated(f"expected {other} to stay as it was; saw that {change}")
    for lost in seen.change.sessions_gone:
        if seen.before.knows_session(lost):
            return Violated(f"expected the session {lost} to stay; saw it gone")
    changed = bool(seen.change.sessions or seen.change.nodes)
    return HOLDS if changed and any(other != asked for other in seen.before.sessions()) else None


def tree_9(seen: Seen) -> Result:
    """Metadata, settings and the choice of a model move no leaf and no revision, and nothing else changes them."""
    operation = seen.operation
    if not isinstance(operation, SetMetadata | SetModel | SetSettings):
        return _settings_untouched(seen)
    session = operation.session
    if not isinstance(seen.outcome, Done) or not in_both(seen, session):
        return None
    before, after = seen.before, seen.after
    if change := node_change(seen):
        return Violated(f"expected no node to change; saw that {change}")
    if before.leaf(session) != after.leaf(session):
        return Violated(f"expected the leaf {before.leaf(session)}; saw {after.leaf(session)}")
    if before.shows(Field.REVISION) and before.revision(session) != after.revision(session):
        return Violated(f"expected revision {before.revision(session)}; saw {after.revision(session)}")
    if before.shows(Field.METADATA):
        expected = dict(before.metadata(session))
        if isinstance(operation, SetMetadata):
            expected[operation.key] = operation.value
        if dict(after.metadata(session)) != expected:
            return Violated(f"expected the metadata {expected}; saw {dict(after.metadata(session))}")
    if before.shows(Field.MODEL):
        model = operation.model if isinstance(operation, SetModel) else before.model(session)
        if after.model(session) != model:
            return Violated(f"expected the model {model.name}; saw {after.model(session).name}")
    if before.shows(Field.SETTINGS):
        settings = operation.settings if isinstance(operation, SetSettings) else before.settings(session)
        if after.settings(session) != settings:
            return Violated(f"expected the settings {settings}; saw {after.settings(session)}")
    titled = not isinstance(operation, SetModel) and before.shows(Field.PROJECTION)
    if titled and before.projection(session) != after.projection(session):
        return Violated("expected the projection to stay as it was; saw another")
    return HOLDS


def _settings_untouched(seen: Seen) -> Result:
    for view in seen.change.sessions:
        known = seen.before.knows_session(view.session)
        if known and (change := setting_change(seen.before, seen.after, view.session)):
            return Violated(f"expected {seen.operation.kind} to change no setting; saw that {change}")
    return None


def tree_10(seen: Seen) -> Result:
    """A node id is unique: under a known id nothing else is ever stored, whether its node is on the branch or off it."""
    if not isinstance(seen.operation, Append | Save | Send | Edit | CommitCompaction):
        return None
    return decided(seen, refused(RefusalCode.KNOWN_ID))


_CALL_CODES = (
    refused(RefusalCode.NOT_OPEN),
    refused(RefusalCode.CALL_ID),
    refused(RefusalCode.UNKNOWN_NODE),
)


def tree_11(seen: Seen) -> Result:
    """A result is accepted only for a call that is open on the branch, and a call only under an id that is not open."""
    operation = seen.operation
    if not isinstance(operation, Append | Save | Settle):
        return None
    result = decided(seen, *_CALL_CODES)
    if result is not None or not is_success(seen):
        return result
    brings_results = isinstance(operation, Settle) or (
        isinstance(operation, Append) and operation.message.role is Role.TOOL
    )
    return HOLDS if brings_results and not applicable(seen) else None


def tree_12(seen: Seen) -> Result:
    """A writer that names another message than the one that the branch ends in is stale; so is a saved path beside the branch."""
    operation = seen.operation
    match operation:
        case Append() | Abandon() | StartAnswer() | Send() | Retry() | Edit() | Undo():
            named = operation.follows is not None
        case Save():
            named = bool(operation.path)
        case _:
            return None
    result = decided(seen, STALE)
    if result is not None or not named or not is_success(seen):
        return result
    return HOLDS if not applicable(seen) else None
