"""The short way of an append: where the process knows how a branch ended, SQLite need not be asked first.

A session's revision counts every change of its branch, so at the revision that was seen it ends as it ended
then. The short way writes the message behind that end and lets the database say whether that was right: its
trigger refuses a known id, and at another revision the session's row is not touched. In both cases nothing
is kept, and the append goes the long way (`tailmark_reference.store.history`).
"""

import sqlite3
from typing import NamedTuple

from tailmark.identifiers import NodeId, Revision
from tailmark.messages import Message, Role, ToolCall
from tailmark.operations import Append
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.queries import SessionRow
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.validity import is_valid
from tailmark_reference.store.writing import insert_row


class Tip(NamedTuple):
    """The end of a session's branch at a revision: a message behind which no call is open."""

    session: int
    revision: Revision
    leaf: int
    leaf_id: NodeId
    checkpoint: int | None


class MovedError(Exception):
    """The branch does not end in the tip any more, or the message's id is known."""


def tip_of(session: SessionRow) -> Tip | None:
    """The tip that a session's columns show; ``None`` if something is open or the leaf is no message."""
    if session.leaf is None or session.leaf_id is None:
        return None
    if session.open_since is not None or session.leaf_kind == NodeKind.CHECKPOINT:
        return None
    return Tip(session.seq, session.revision, session.leaf, session.leaf_id, session.checkpoint)


def may_go_behind(tip: Tip, operation: Append) -> bool:
    """Whether the short way is open: to a valid message that neither makes nor settles a call."""
    message = operation.message
    return (
        message.role is not Role.TOOL
        and (operation.follows is None or operation.follows == tip.leaf_id)
        and ToolCall not in map(type, message.parts)
        and is_valid(message)
    )


def append_behind(connection: sqlite3.Connection, estimator: Estimator, tip: Tip, message: Message) -> Tip:
    """Write the message behind the tip. Answers the new tip. Raises `MovedError` to leave by the long way."""
    body, estimate = to_body(message), estimator.message(message)
    try:
        leaf = insert_row(connection, message, body, estimate, tip.leaf, tip.checkpoint, None)
    except sqlite3.IntegrityError as error:
        raise MovedError from error
    changed = connection.execute(
        "UPDATE session SET leaf = ?, revision = revision + 1 WHERE seq = ? AND revision = ?",
        (leaf, tip.session, tip.revision),
    )
    if changed.rowcount == 0:
        raise MovedError
    return Tip(tip.session, Revision(tip.revision + 1), leaf, message.id, tip.checkpoint)
