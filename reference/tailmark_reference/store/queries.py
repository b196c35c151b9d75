"""What the store asks its tables about a branch: walks from a leaf towards the root.

Each walk follows parents to smaller numbers and stops as early as the question allows. Sessions and nodes
are named by their ``seq``; ``NULL`` is no node.
"""

import sqlite3
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from tailmark.identifiers import CallId, NodeId, Revision, SessionId, Tokens
from tailmark_reference.store.schema import NodeKind

# Plain numbers for the loops: looking up a member of an enumeration for each row takes its time.
_USER = NodeKind.USER.value
_CHECKPOINT = NodeKind.CHECKPOINT.value


class SessionRow(NamedTuple):
    """A session and what its leaf's columns say. All of the leaf is ``None`` on an empty branch."""

    seq: int
    id: SessionId
    leaf: int | None
    revision: Revision
    leaf_id: NodeId | None
    leaf_kind: int | None
    checkpoint: int | None
    open_since: int | None


_SESSIONS = """
SELECT session.seq, session.id, session.leaf, session.revision, leaf.id, leaf.kind, leaf.checkpoint, leaf.open_since
FROM session LEFT JOIN node AS leaf ON leaf.seq = session.leaf ORDER BY session.seq
"""

_SESSION = """
SELECT session.seq, session.id, session.leaf, session.revision, leaf.id, leaf.kind, leaf.checkpoint, leaf.open_since
FROM session LEFT JOIN node AS leaf ON leaf.seq = session.leaf WHERE session.id = ?
"""

_SESSION_AND_NODE = """
SELECT (SELECT seq FROM node WHERE id = ?), session.seq, session.id, session.leaf, session.revision,
    leaf.id, leaf.kind, leaf.checkpoint, leaf.open_since
FROM session LEFT JOIN node AS leaf ON leaf.seq = session.leaf WHERE session.id = ?
"""


def session_row(connection: sqlite3.Connection, session: SessionId) -> SessionRow | None:
    """The session of this id."""
    row = connection.execute(_SESSION, (session,)).fetchone()
    return None if row is None else SessionRow(*row)


def session_and_node(
    connection: sqlite3.Connection, session: SessionId, node: NodeId
) -> tuple[SessionRow | None, int | None]:
    """The session of this id, and the number of the node of this id: one look for what every append asks."""
    row = connection.execute(_SESSION_AND_NODE, (node, session)).fetchone()
    if row is None:
        return None, None
    known, *columns = row
    return SessionRow(*columns), known


def session_rows(connection: sqlite3.Connection) -> list[SessionRow]:
    """All sessions, in the order in which they began."""
    return [SessionRow(*row) for row in connection.execute(_SESSIONS)]


def session_model(connection: sqlite3.Connection, session: SessionRow) -> str:
    """The body of the session's model."""
    (body,) = connection.execute("SELECT model FROM session WHERE seq = ?", (session.seq,)).fetchone()
    return str(body)


def session_sizes(connection: sqlite3.Connection, session: SessionRow) -> tuple[str, str]:
    """The bodies of the session's model and settings."""
    model, settings = connection.execute(
        "SELECT model, settings FROM session WHERE seq = ?", (session.seq,)
    ).fetchone()
    return str(model), str(settings)


def session_metadata(connection: sqlite3.Connection, session: SessionRow) -> dict[str, str]:
    """The session's metadata, by key."""
    return dict(
        connection.execute(
            "SELECT key, value FROM metadata WHERE session = ? ORDER BY key", (session.seq,)
        ).fetchall()
    )


class NodeRow(NamedTuple):
    """A node's columns, its content unread."""

    seq: int
    id: NodeId
    parent: int | None
    kind: int
    checkpoint: int | None
    open_since: int | None


def node_by_id(connection: sqlite3.Connection, node: NodeId) -> NodeRow | None:
    """The node of this id, on whatever branch."""
    row = connection.execute(
        "SELECT seq, id, parent, kind, checkpoint, open_since FROM node WHERE id = ?", (node,)
    ).fetchone()
    return None if row is None else NodeRow(*row)


def node_by_seq(connection: sqlite3.Connection, seq: int) -> NodeRow:
    """The node of this number, which must exist."""
    row = connection.execute(
        "SELECT seq, id, parent, kind, checkpoint, open_since FROM node WHERE seq = ?", (seq,)
    )
    return NodeRow(*row.fetchone())


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
    if session.leaf_kind != _CHECKPOINT:
        return session.leaf_id
    for node in upwards(connection, session.leaf):
        if node.kind != _CHECKPOINT:
            return node.id
    return None


def message_before(connection: sqlite3.Connection, node: NodeRow) -> NodeId | None:
    """The message before a node, checkpoints aside."""
    for above in upwards(connection, node.parent):
        if above.kind != _CHECKPOINT:
            return above.id
    return None


def is_on_branch(connection: sqlite3.Connection, leaf: int | None, node: int) -> bool:
    """Whether a node stands on the path to this leaf."""
    return any(above.seq == node for above in upwards(connection, leaf, lowest=node))


class OpenCallRow(NamedTuple):
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


class Messages(NamedTuple):
    """A run of messages that ends a branch, column by column, in branch order.

    ``openers`` are the positions of those that open a turn. ``usages`` are the numbers of those that say what their
    requests cost, newest first. ``tail_costs`` says of each message what it and all behind it cost.
    """

    seqs: tuple[int, ...]
    ids: tuple[NodeId, ...]
    kinds: tuple[int, ...]
    openers: list[int]
    usages: list[int]
    tail_costs: list[Tokens]


# The last column says until where a call of the message was open; the largest number stands for "still". A
# call that was settled within its message never stood open behind it, so `open_since` says where to look.
_TAIL = """
WITH RECURSIVE up (seq, id, parent, kind, estimate, open_since, usage) AS (
    SELECT seq, id, parent, kind, estimate, open_since, usage FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind, node.estimate, node.open_since, node.usage
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :lowest
)
SELECT seq, id, kind, estimate, usage, CASE WHEN open_since IS NOT NULL AND kind = 2 THEN (
    SELECT max(ifnull(settled, 9223372036854775807)) FROM call WHERE node = up.seq
) END
FROM up WHERE kind <> 4
"""

# Up to a user message before which nothing was open when it was written: that one opens a turn for good.
_LAST_TURN = """
WITH RECURSIVE up (seq, id, parent, kind, estimate, open_since, usage) AS (
    SELECT seq, id, parent, kind, estimate, open_since, usage FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.id, node.parent, node.kind, node.estimate, node.open_since, node.usage
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND NOT (up.kind = 1 AND node.open_since IS NULL)
)
SELECT seq, id, kind, estimate, usage, CASE WHEN open_since IS NOT NULL AND kind = 2 THEN (
    SELECT max(ifnull(settled, 9223372036854775807)) FROM call WHERE node = up.seq
) END
FROM up WHERE kind <> 4
"""


def _messages(cursor: sqlite3.Cursor) -> Messages:
    """What such a walk met. A user message opens a turn if no call is open before it."""
    rows = cursor.fetchall()
    if not rows:
        return Messages((), (), (), [], [], [])
    tail_costs = list(accumulate(map(itemgetter(3), rows)))
    usages = [row[0] for row in rows if row[4]]
    tail_costs.reverse()
    rows.reverse()
    seqs, ids, kinds, _, _, settled = zip(*rows, strict=True)
    openers = []
    open_until = 0
    for position, (seq, kind, until) in enumerate(zip(seqs, kinds, settled, strict=True)):
        if kind == _USER and open_until < seq:
            openers.append(position)
        elif until is not None and until > open_until:
            open_until = until
    return Messages(seqs, ids, kinds, openers, usages, tail_costs)


def messages_from(connection: sqlite3.Connection, leaf: int | None, lowest: int) -> Messages:
    """The messages of the branch whose numbers are ``lowest`` or more, to its end; 0 is the root."""
    return _messages(connection.execute(_TAIL, {"leaf": leaf, "lowest": lowest}))


def late_calls(connection: sqlite3.Connection, node: int) -> frozenset[CallId]:
    """The calls of a message whose results were put into it after it was written."""
    rows = connection.execute("SELECT call FROM call WHERE node = ? AND late = 1", (node,))
    return frozenset(call for (call,) in rows)


class Turn(NamedTuple):
    """The last turn of a branch. ``estimate`` is what its opener costs; ``answer``: the first message behind it; ``steering``: its user messages."""

    opener: int
    answer: int | None
    estimate: Tokens
    steering: tuple[NodeId, ...]


def last_turn(connection: sqlite3.Connection, leaf: int | None) -> Turn | None:
    """The last turn of the branch; ``None`` where no turn was opened."""
    messages = _messages(connection.execute(_LAST_TURN, {"leaf": leaf}))
    if not messages.openers:
        return None
    behind = messages.openers[-1] + 1
    answer = zip(messages.ids[behind:], messages.kinds[behind:], strict=True)
    return Turn(
        opener=messages.seqs[behind - 1],
        answer=messages.seqs[behind] if behind < len(messages.seqs) else None,
        estimate=Tokens(
            messages.tail_costs[behind - 1]
            - (messages.tail_costs[behind] if behind < len(messages.seqs) else 0)
        ),
        steering=tuple(node for node, kind in answer if kind == _USER),
    )


class CheckpointRow(NamedTuple):
    """The checkpoint that is in force on a branch. ``place`` is the first message that it keeps; ``None`` right behind it."""

    seq: int
    id: NodeId
    place: int | None
    estimate: Tokens
    body: str

    @property
    def lowest(self) -> int:
        """The smallest number that a message behind its place can have."""
        return self.place if self.place is not None else self.seq + 1


def checkpoint_row(connection: sqlite3.Connection, checkpoint: int) -> CheckpointRow:
    """The checkpoint of this number, which must exist."""
    row = connection.execute("SELECT seq, id, place, estimate, body FROM node WHERE seq = ?", (checkpoint,))
    return CheckpointRow(*row.fetchone())


class ProjectedRow(NamedTuple):
    """A node of a projection, its content unread."""

    id: NodeId
    kind: int
    estimate: Tokens
    body: str


# The walk meets the latest checkpoint first, and ends at that one's place; an open place is the checkpoint itself.
_PROJECTED = """
WITH RECURSIVE up (seq, parent, stop, id, kind, estimate, body) AS (
    SELECT seq, parent, CASE kind WHEN 4 THEN ifnull(place, seq) END, id, kind, estimate, body FROM node WHERE seq = ?
    UNION ALL
    SELECT node.seq, node.parent,
        ifnull(up.stop, CASE node.kind WHEN 4 THEN ifnull(node.place, node.seq) END),
        node.id, node.kind, node.estimate, node.body
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND up.seq IS NOT up.stop
)
SELECT id, kind, estimate, body FROM up
"""


class Projected(NamedTuple):
    """What the next request carries: the summary of the checkpoint in force, and messages in branch order."""

    checkpoint: ProjectedRow | None
    messages: list[ProjectedRow]


def projected(connection: sqlite3.Connection, leaf: int | None) -> Projected:
    """The projection of the branch that ends in a node (PROJ-1, PROJ-2)."""
    rows = list(map(ProjectedRow._make, connection.execute(_PROJECTED, (leaf,))))
    checkpoint = next((row for row in rows if row.kind == _CHECKPOINT), None)
    return Projected(checkpoint, [row for row in reversed(rows) if row.kind != _CHECKPOINT])


def is_open_checkpoint(connection: sqlite3.Connection, node: int | None, kind: int | None) -> bool:
    """Whether a node is a checkpoint whose place is right behind it (CHK-8)."""
    if node is None or kind != _CHECKPOINT:
        return False
    return checkpoint_row(connection, node).place is None
