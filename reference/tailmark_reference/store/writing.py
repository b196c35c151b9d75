"""What the store writes: nodes, calls, results, leaves. Used inside a writing transaction only."""

import sqlite3
from collections.abc import Iterable

from attrs import frozen

from tailmark.identifiers import CallId, PartId, SessionId, Tokens
from tailmark.messages import ApprovalRequest, Message, ResultStatus, Role, ToolCall, ToolResult
from tailmark.plans import Checkpoint
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import to_body, to_message, with_result
from tailmark_reference.store.queries import OpenCallRow, SessionRow, next_seq, node_body
from tailmark_reference.store.schema import NodeKind

# Plain numbers: sqlite3 takes long to find out that a member of an IntEnum is one.
_KINDS = {
    Role.USER: NodeKind.USER.value,
    Role.ASSISTANT: NodeKind.ASSISTANT.value,
    Role.TOOL: NodeKind.TOOL.value,
}


@frozen
class End:
    """Where a branch ends, as far as the next node needs to know it."""

    leaf: int | None
    checkpoint: int | None
    open_calls: tuple[OpenCallRow, ...]


def _final_results(message: Message) -> frozenset[CallId]:
    return frozenset(
        part.call for part in message.parts if isinstance(part, ToolResult) and not part.preliminary
    )


def insert_message(
    connection: sqlite3.Connection, end: End, message: Message, body: str, estimate: Tokens
) -> int:
    """Write a message as the child of a branch's end, with its calls, and settle what its results settle.

    Its results were found to be for open calls. Answers the new node's number.
    """
    if not end.open_calls and message.role is not Role.ASSISTANT:
        return insert_row(connection, message, body, estimate, end.leaf, end.checkpoint, None)
    calls = [(place, part) for place, part in enumerate(message.parts) if isinstance(part, ToolCall)]
    finals = _final_results(message) if calls or message.role is Role.TOOL else frozenset()
    settles = [call for call in end.open_calls if message.role is Role.TOOL and call.call in finals]
    still_open = [call.node for call in end.open_calls if call not in settles]
    if still_open:
        open_since: int | None = min(still_open)
    elif any(part.call not in finals for _, part in calls):
        open_since = next_seq(connection)
    else:
        open_since = None
    seq = insert_row(connection, message, body, estimate, end.leaf, end.checkpoint, open_since)
    if calls:
        asked = {part.call for part in message.parts if isinstance(part, ApprovalRequest)}
        for position, part in calls:
            connection.execute(
                "INSERT INTO call (node, position, call, approval, settled) VALUES (?, ?, ?, ?, ?)",
                (seq, position, part.call, int(part.call in asked), seq if part.call in finals else None),
            )
    for call in settles:
        _settle(connection, call, seq)
    return seq


def insert_row(
    connection: sqlite3.Connection,
    message: Message,
    body: str,
    estimate: Tokens,
    parent: int | None,
    checkpoint: int | None,
    open_since: int | None,
) -> int:
    """Write a message's own row and nothing else. The last three are columns. Answers its number."""
    cursor = connection.execute(
        "INSERT INTO node (id, parent, kind, checkpoint, open_since, usage, estimate, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            message.id,
            parent,
            _KINDS[message.role],
            checkpoint,
            open_since,
            0 if message.usage is None or message.built_on is None else 1,
            estimate,
            body,
        ),
    )
    return _made(cursor)


def _settle(connection: sqlite3.Connection, call: OpenCallRow, node: int) -> None:
    connection.execute(
        "UPDATE call SET settled = ?, late = ? WHERE node = ? AND position = ?",
        (node, int(node == call.node), call.node, call.position),
    )


def grow(
    connection: sqlite3.Connection,
    estimator: Estimator,
    node: int,
    message: Message,
    settled: Iterable[OpenCallRow],
) -> None:
    """Write an assistant message that grew by results, of which ``settled`` are answered for good (TREE-5)."""
    # The message first: it may grow only while its calls are open.
    connection.execute(
        "UPDATE node SET body = ?, estimate = ? WHERE seq = ?",
        (to_body(message), estimator.message(message), node),
    )
    for call in settled:
        _settle(connection, call, node)


def _with_abandoned(message: Message, call: OpenCallRow) -> Message:
    part_id = f"abandoned:{message.parts[call.position].id}"
    while True:
        result = ToolResult(id=PartId(part_id), call=call.call, status=ResultStatus.ABANDONED, text="")
        content = with_result(message, result)
        if len({part.id for part in content.parts}) == len(content.parts):
            return content
        # The id is derived, so another part may have it by chance.
        part_id += "'"


def abandon_calls(
    connection: sqlite3.Connection, estimator: Estimator, calls: tuple[OpenCallRow, ...]
) -> None:
    """Give each of these open calls an `abandoned` result, in the message that made it."""
    by_node: dict[int, list[OpenCallRow]] = {}
    for call in calls:
        by_node.setdefault(call.node, []).append(call)
    for node, own in by_node.items():
        message = to_message(node_body(connection, node))
        for call in own:
            message = _with_abandoned(message, call)
        grow(connection, estimator, node, message, own)


def move_leaf(connection: sqlite3.Connection, session: SessionRow, leaf: int | None) -> None:
    """Name the session's leaf after a change of its branch, and count that change (CMT-6)."""
    connection.execute(
        "UPDATE session SET leaf = ?, revision = revision + 1 WHERE seq = ?", (leaf, session.seq)
    )


def insert_checkpoint(
    connection: sqlite3.Connection,
    session: SessionRow,
    base: int,
    checkpoint: Checkpoint,
    estimate: Tokens,
    open_since: int | None,
) -> int:
    """Write a checkpoint behind its base, through the gate that only a commit opens. Answers its number."""
    seq = next_seq(connection)
    connection.execute("UPDATE session SET gate = ? WHERE seq = ?", (seq, session.seq))
    connection.execute(
        """
        INSERT INTO node (seq, id, parent, kind, place, session, checkpoint, open_since, estimate, body) VALUES (
            ?, ?, ?, 4, (SELECT seq FROM node WHERE id = ?), ?, ?, ?, ?, ?
        )
        """,
        (
            seq,
            checkpoint.id,
            base,
            checkpoint.first_kept,
            session.seq,
            seq,  # the latest checkpoint at or above a checkpoint is itself
            open_since,
            estimate,
            to_body(checkpoint),
        ),
    )
    return seq


def _made(cursor: sqlite3.Cursor) -> int:
    seq = cursor.lastrowid
    assert seq is not None  # an insert has one
    return seq


def insert_session(
    connection: sqlite3.Connection, session: SessionId, leaf: int | None, model: str, settings: str
) -> None:
    """Write a new session at revision 0, without metadata. ``model`` and ``settings`` are bodies."""
    connection.execute(
        "INSERT INTO session (id, leaf, revision, model, settings) VALUES (?, ?, 0, ?, ?)",
        (session, leaf, model, settings),
    )


def set_model(connection: sqlite3.Connection, session: SessionRow, model: str) -> None:
    """Replace the session's model by another, given as its body."""
    connection.execute("UPDATE session SET model = ? WHERE seq = ?", (model, session.seq))


def set_settings(connection: sqlite3.Connection, session: SessionRow, settings: str) -> None:
    """Replace the session's settings by others, given as their body."""
    connection.execute("UPDATE session SET settings = ? WHERE seq = ?", (settings, session.seq))


def set_metadata(connection: sqlite3.Connection, session: SessionRow, key: str, value: str) -> None:
    """Set one entry of the session's metadata."""
    connection.execute(
        "INSERT INTO metadata (session, key, value) VALUES (?, ?, ?) "
        "ON CONFLICT (session, key) DO UPDATE SET value = excluded.value",
        (session.seq, key, value),
    )
