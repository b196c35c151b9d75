"""What the store asks its tables about a branch: walks from a leaf towards the root.

Each walk follows parents to smaller numbers and stops as early as the question allows. Sessions and nodes
are named by their ``seq``; ``NULL`` is no node.
"""

import sqlite3
from collections.abc import Iterator

from attrs import frozen

from tailmark.identifiers import CallId, NodeId, Revision, SessionId, Tokens
from tailmark_reference.store.schema import NodeKind


@frozen
class SessionRow:
    """A session and what its leaf's columns say. All of the leaf is ``None`` on an empty branch."""

    seq: int
    id: SessionId
    leaf: int | None
    revision: Revision
    leaf_id: NodeId | None
    leaf_kind: int | None
    checkpoint: int | None
    open_since: int | None


_SESSION = """
SELECT session.seq, session.id, session.leaf, session.revision, leaf.id, leaf.kind, leaf.checkpoint, leaf.open_since
FROM session LEFT JOIN node AS leaf ON leaf.seq = session.leaf
"""


def session_row(connection: sqlite3.Connection, session: SessionId) -> SessionRow | None:
    """The session of this id."""
    row = connection.execute(f"{_SESSION} WHERE session.id = ?", (session,)).fetchone()
    return None if row is None else SessionRow(*row)


def session_rows(connection: sqlite3.Connection) -> list[SessionRow]:
    """All sessions, in the order in which they began."""
    return [SessionRow(*row) for row in connection.execute(f"{_SESSION} ORDER BY session.seq")]


def session_model(connection: sqlite3.Connection, session: SessionRow) -> str:
    """The body of the session's model."""
    (body,) = connection.execute("SELECT model FROM session WHERE seq = ?", (session.seq,)).fetchone()
    return str(body)


def session_metadata(connection: sqlite3.Connection, session: SessionRow) -> dict[str, str]:
    """The session's metadata, by key."""
    return dict(
        connection.execute(
            "SELECT key, value FROM metadata WHERE session = ? ORDER BY key", (session.seq,)
        ).fetchall()
    )


@frozen
class NodeRow:
    """A node's columns, its content unread."""

    seq: int
    id: NodeId
    parent: int | None
    kind: int
    checkpoint: int | None
    open_since: int | None


_NODE = "SELECT seq, id, parent, kind, checkpoint, open_since FROM node"


def node_by_id(connection: sqlite3.Connection, node: NodeId) -> NodeRow | None:
    """The node of this id, on whatever branch."""
    row = connection.execute(f"{_NODE} WHERE id = ?", (node,)).fetchone()
    return None if row is None else NodeRow(*row)


def node_by_seq(connection: sqlite3.Connection, seq: int) -> NodeRow:
    """The node of this number, which must exist."""
    return NodeRow(*connection.execute(f"{_NODE} WHERE seq = ?", (seq,)).fetchone())


def node_body(connection: sqlite3.Connection, seq: int) -> str:
    """The stored content of a node."""
    (body,) = connection.execute("SELECT body FROM node WHERE seq = ?", (seq,)).fetchone()
    return str(body)


def next_seq(connection: sqlite3.Connection) -> int:
    """The number that the next node will get. Right only inside a writing transaction."""
    (seq,) = connection.execute("SELECT ifnull(max(seq), 0) + 1 FROM node").fetchone()
    return int(seq)


# From a leaf upwards, to a lowest number. Rows come leaf first and are read one at a time.
_UPWARDS = """
WITH RECURSIVE up (seq, id, parent, kind, checkpoint, open_since) AS (
    SELECT seq, id, parent, kind, checkpoint, open_since FROM node WHERE seq = :leaf AND seq >= :lowest
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind, node.checkpoint, node.open_since
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :lowest
)
SELECT seq, id, parent, kind, checkpoint, open_since FROM up
"""


def upwards(connection: sqlite3.Connection, leaf: int | None, lowest: int = 0) -> Iterator[NodeRow]:
    """The path from a leaf towards the root, leaf first, as far as numbers are ``lowest`` or more."""
    for row in connection.execute(_UPWARDS, {"leaf": leaf, "lowest": lowest}):
        yield NodeRow(*row)


def branch(connection: sqlite3.Connection, leaf: int | None) -> list[NodeRow]:
    """The whole path, root first, checkpoints included."""
    return list(upwards(connection, leaf))[::-1]


def last_message(connection: sqlite3.Connection, session: SessionRow) -> NodeId | None:
    """The message that the branch ends in, checkpoints aside."""
    if session.leaf_kind != NodeKind.CHECKPOINT:
        return session.leaf_id
    for node in upwards(connection, session.leaf):
        if node.kind != NodeKind.CHECKPOINT:
            return node.id
    return None


def message_before(connection: sqlite3.Connection, node: NodeRow) -> NodeId | None:
    """The message before a node, checkpoints aside."""
    for above in upwards(connection, node.parent):
        if above.kind != NodeKind.CHECKPOINT:
            return above.id
    return None


def is_on_branch(connection: sqlite3.Connection, leaf: int | None, node: int) -> bool:
    """Whether a node stands on the path to this leaf."""
    return any(above.seq == node for above in upwards(connection, leaf, lowest=node))


@frozen
class OpenCallRow:
    """A call that is open at the end of a branch. ``position`` is that of its part in the message."""

    node: int
    message: NodeId
    position: int
    call: CallId
    approval: bool


# Only calls from the leaf's `open_since` on can be open behind it.
_OPEN_CALLS = """
WITH RECURSIVE up (seq, id, parent, kind) AS (
    SELECT seq, id, parent, kind FROM node WHERE seq = :leaf AND :since IS NOT NULL
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :since
)
SELECT up.seq, up.id, call.position, call.call, call.approval
FROM up JOIN call ON call.node = up.seq
WHERE up.kind = 2 AND (call.settled IS NULL OR call.settled > :leaf)
ORDER BY up.seq, call.position
"""


def open_calls(
    connection: sqlite3.Connection, leaf: int | None, open_since: int | None
) -> tuple[OpenCallRow, ...]:
    """The calls that are open behind a node, in branch order. ``open_since`` is that node's."""
    if leaf is None or open_since is None:
        return ()
    rows = connection.execute(_OPEN_CALLS, {"leaf": leaf, "since": open_since})
    return tuple(
        OpenCallRow(node, message, position, call, bool(approval))
        for node, message, position, call, approval in rows
    )


@frozen
class MessageRow:
    """A message of a walk. ``tail_cost`` adds the estimates from it to the end of the branch."""

    seq: int
    id: NodeId
    kind: int
    opens_turn: bool
    tail_cost: Tokens


# A user message opens a turn if no call made before it is settled behind it or open (the largest number).
_MESSAGES = """
, message (seq, id, kind, estimate, settled) AS (
    SELECT up.seq, up.id, up.kind, up.estimate,
        CASE up.kind WHEN 2 THEN (
            SELECT max(ifnull(settled, 9223372036854775807)) FROM call WHERE node = up.seq
        ) END
    FROM up WHERE up.kind <> 4
)
SELECT seq, id, kind,
    kind = 1 AND ifnull(
        max(settled) OVER (ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0
    ) < seq,
    sum(estimate) OVER (ORDER BY seq DESC)
FROM message ORDER BY seq
"""

_TAIL = """
WITH RECURSIVE up (seq, id, parent, kind, estimate) AS (
    SELECT seq, id, parent, kind, estimate FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind, node.estimate
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :lowest
)
"""

# Up to a user message before which nothing was open when it was written: that one opens a turn for good.
_LAST_TURN = """
WITH RECURSIVE up (seq, id, parent, kind, estimate) AS (
    SELECT seq, id, parent, kind, estimate FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind, node.estimate
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND NOT (up.kind = 1 AND node.open_since IS NULL)
)
"""


def _message_rows(rows: sqlite3.Cursor) -> list[MessageRow]:
    return [MessageRow(seq, node, kind, bool(opens_turn), cost) for seq, node, kind, opens_turn, cost in rows]


def messages_from(connection: sqlite3.Connection, leaf: int | None, place: int | None) -> list[MessageRow]:
    """The messages from a place to the end of the branch, in branch order; from the root without a place."""
    return _message_rows(connection.execute(_TAIL + _MESSAGES, {"leaf": leaf, "lowest": place or 0}))


def last_turn(connection: sqlite3.Connection, leaf: int | None) -> list[MessageRow]:
    """The last turn opener and the messages behind it, in branch order. Empty where no turn was opened."""
    rows = _message_rows(connection.execute(_LAST_TURN + _MESSAGES, {"leaf": leaf}))
    for position in reversed(range(len(rows))):
        if rows[position].opens_turn:
            return rows[position:]
    return []


@frozen
class CheckpointRow:
    """The checkpoint that is in force on a branch. ``place`` is the first message that it keeps."""

    id: NodeId
    place: int
    estimate: Tokens
    body: str


def checkpoint_row(connection: sqlite3.Connection, checkpoint: int) -> CheckpointRow:
    """The checkpoint of this number, which must exist."""
    row = connection.execute("SELECT id, place, estimate, body FROM node WHERE seq = ?", (checkpoint,))
    return CheckpointRow(*row.fetchone())


@frozen
class TailRow:
    """A message of a projection, its content unread."""

    id: NodeId
    kind: int
    body: str


_PROJECTED = """
WITH RECURSIVE up (seq, parent) AS (
    SELECT seq, parent FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.parent FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :lowest
)
SELECT node.id, node.kind, node.body FROM up JOIN node ON node.seq = up.seq
WHERE node.kind <> 4 ORDER BY up.seq
"""


def projected(connection: sqlite3.Connection, leaf: int | None, place: int | None) -> list[TailRow]:
    """The messages that the next request carries verbatim, in branch order (PROJ-1, PROJ-2)."""
    return [TailRow(*row) for row in connection.execute(_PROJECTED, {"leaf": leaf, "lowest": place or 0})]
