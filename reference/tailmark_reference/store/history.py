"""Operations that add to a branch: append, save, settle, abandon (TREE)."""

import sqlite3
from collections.abc import Iterable
from typing import assert_never

from tailmark.identifiers import NodeId
from tailmark.messages import Message, Role, ToolCall, ToolResult
from tailmark.operations import Abandon, Append, Save, Settle
from tailmark.outcomes import Done, Outcome, RefusalCode, Refused, Stale
from tailmark.plans import Checkpoint
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import (
    grown_by,
    to_body,
    to_message,
    with_result,
)
from tailmark_reference.store.queries import (
    NodeRow,
    OpenCallRow,
    SessionRow,
    branch,
    is_on_branch,
    is_open_checkpoint,
    last_message,
    message_before,
    node_body,
    node_by_id,
    node_by_seq,
    open_calls,
    session_and_node,
    session_row,
)
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.validity import is_valid
from tailmark_reference.store.writing import End, abandon_calls, grow, insert_message, move_leaf

UNKNOWN_SESSION = Refused(code=RefusalCode.UNKNOWN_SESSION)


def stale(session: SessionRow) -> Stale:
    """What the branch is now."""
    return Stale(leaf=session.leaf_id, revision=session.revision)


def follows_otherwise(connection: sqlite3.Connection, session: SessionRow, follows: NodeId | None) -> bool:
    """Whether the branch ends in another message than the caller thinks (TREE-12)."""
    return follows is not None and last_message(connection, session) != follows


def calls_at_end(connection: sqlite3.Connection, session: SessionRow) -> tuple[OpenCallRow, ...]:
    """The calls that are open at the end of the session's branch, in branch order."""
    return open_calls(connection, session.leaf, session.open_since)


def refusal_of_message(message: Message, calls: Iterable[OpenCallRow]) -> Refused | None:
    """Why a message cannot be stored behind a branch at whose end these calls are open."""
    if not is_valid(message):
        return Refused(code=RefusalCode.INVALID_MESSAGE)
    match message.role:
        case Role.USER:
            return None
        case Role.ASSISTANT:
            made = [part.call for part in message.parts if isinstance(part, ToolCall)]
            if made and (len(set(made)) < len(made) or not {call.call for call in calls}.isdisjoint(made)):
                return Refused(code=RefusalCode.CALL_ID)
            return None
        case Role.TOOL:
            answered = [part.call for part in message.parts if isinstance(part, ToolResult)]
            if len(set(answered)) < len(answered) or not {call.call for call in calls}.issuperset(answered):
                return Refused(code=RefusalCode.NOT_OPEN)
            return None
        case _:
            assert_never(message.role)


def _resettle(
    connection: sqlite3.Connection,
    estimator: Estimator,
    stored: NodeRow,
    message: Message,
    calls: tuple[OpenCallRow, ...],
) -> bool | None:
    """Bring a stored message to the content that is offered for it.

    False if it is the same, true if it grew by results of its open calls, ``None`` if it is neither.
    """
    # What is stored is valid, so what is not valid is something else.
    if stored.kind == NodeKind.CHECKPOINT or not is_valid(message):
        return None
    body = node_body(connection, stored.seq)
    if body == to_body(message):
        return False
    results = grown_by(to_message(body), message)
    own = {call.call: call for call in calls if call.node == stored.seq}
    if results is None or not all(result.call in own for result in results):
        return None
    settled = [own[result.call] for result in results if not result.preliminary]
    grow(connection, estimator, stored.seq, message, settled)
    return True


def append(connection: sqlite3.Connection, estimator: Estimator, operation: Append) -> Outcome:
    """Add one message behind the session's leaf (TREE-1), or say again what is stored (TREE-6)."""
    message = operation.message
    session, known = session_and_node(connection, operation.session, message.id)
    if session is None:
        return UNKNOWN_SESSION
    if known is not None:
        return _append_known(connection, estimator, session, node_by_seq(connection, known), operation)
    calls = calls_at_end(connection, session)
    refusal = refusal_of_message(message, calls)
    if refusal is not None:
        return refusal
    if message.role is not Role.USER and is_open_checkpoint(connection, session.leaf, session.leaf_kind):
        return Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    end = End(session.leaf, session.checkpoint, calls)
    leaf = insert_message(connection, end, message, to_body(message), estimator.message(message))
    move_leaf(connection, session, leaf)
    return Done(written=(message.id,))


def _append_known(
    connection: sqlite3.Connection,
    estimator: Estimator,
    session: SessionRow,
    stored: NodeRow,
    operation: Append,
) -> Outcome:
    refused = Refused(code=RefusalCode.KNOWN_ID)
    if not is_on_branch(connection, session.leaf, stored.seq):
        return refused
    if operation.follows is not None and message_before(connection, stored) != operation.follows:
        return refused
    calls = calls_at_end(connection, session)
    grown = _resettle(connection, estimator, stored, operation.message, calls)
    if grown is None:
        return refused
    if grown:
        move_leaf(connection, session, session.leaf)
    return Done()


def save(connection: sqlite3.Connection, estimator: Estimator, operation: Save) -> Outcome:
    """Make a whole path durable. Checkpoints in it are passed over (TREE-7, TREE-12)."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    path = [node for node in operation.path if not isinstance(node, Checkpoint)]
    if len({message.id for message in path}) < len(path):
        return Refused(code=RefusalCode.INVALID_MESSAGE)
    stored = [node for node in branch(connection, session.leaf) if node.kind != NodeKind.CHECKPOINT]
    if any(node.id != message.id for node, message in zip(stored, path, strict=False)):
        return stale(session)
    calls = calls_at_end(connection, session)
    changed = False
    for node, message in zip(stored, path, strict=False):
        grown = _resettle(connection, estimator, node, message, calls)
        if grown is None:
            return Refused(code=RefusalCode.KNOWN_ID)
        changed = changed or grown
    written: list[NodeId] = []
    leaf, open_since = session.leaf, session.open_since
    for message in path[len(stored) :]:
        if node_by_id(connection, message.id) is not None:
            return Refused(code=RefusalCode.KNOWN_ID)
        calls = open_calls(connection, leaf, open_since)
        refusal = refusal_of_message(message, calls)
        if refusal is not None:
            return refusal
        # Only the present leaf can be a checkpoint.
        is_open = not written and is_open_checkpoint(connection, session.leaf, session.leaf_kind)
        if is_open and message.role is not Role.USER:
            return Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
        end = End(leaf, session.checkpoint, calls)
        leaf = insert_message(connection, end, message, to_body(message), estimator.message(message))
        open_since = min((call.node for call in calls), default=leaf)
        written.append(message.id)
    if changed or written:
        move_leaf(connection, session, leaf)
    return Done(written=tuple(written))


def settle(connection: sqlite3.Connection, estimator: Estimator, operation: Settle) -> Outcome:
    """Put a result into the assistant message that made the call (TREE-5, TREE-11)."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    node = node_by_id(connection, operation.message)
    if node is None:
        return Refused(code=RefusalCode.UNKNOWN_NODE)
    result = operation.result
    own = [
        call
        for call in calls_at_end(connection, session)
        if call.node == node.seq and call.call == result.call
    ]
    if not own:
        return Refused(code=RefusalCode.NOT_OPEN)
    message = to_message(node_body(connection, node.seq))
    if result in message.parts:
        return Done()
    content = with_result(message, result)
    if len({part.id for part in content.parts}) < len(content.parts):
        return Refused(code=RefusalCode.INVALID_MESSAGE)
    grow(
        connection,
        estimator,
        node.seq,
        content,
        () if result.preliminary else own,
    )
    move_leaf(connection, session, session.leaf)
    return Done()


def abandon(connection: sqlite3.Connection, estimator: Estimator, operation: Abandon) -> Outcome:
    """Give every open call of the branch an `abandoned` result."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    return abandon_open_calls(connection, estimator, session)


def abandon_open_calls(connection: sqlite3.Connection, estimator: Estimator, session: SessionRow) -> Done:
    """As `abandon`, for a session whose state is known to the caller."""
    calls = calls_at_end(connection, session)
    if calls:
        abandon_calls(connection, estimator, calls)
        move_leaf(connection, session, session.leaf)
    return Done(abandoned=tuple(call.call for call in calls))
