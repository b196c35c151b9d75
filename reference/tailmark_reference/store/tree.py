"""Operations that go on elsewhere in the tree without a request: fork, undo."""

import sqlite3

from tailmark.identifiers import NodeId
from tailmark.operations import Fork, Undo
from tailmark.outcomes import Done, Outcome, RefusalCode, Refused
from tailmark_reference.store.history import (
    UNKNOWN_SESSION,
    calls_at_end,
    follows_otherwise,
    stale,
)
from tailmark_reference.store.process import Process, Running
from tailmark_reference.store.queries import (
    NodeRow,
    SessionRow,
    node_by_id,
    node_by_seq,
    open_calls,
    session_row,
    session_sizes,
    upwards,
)
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.writing import insert_session, move_leaf

_UNSTABLE = Refused(code=RefusalCode.UNSTABLE)


def is_stable(connection: sqlite3.Connection, process: Process, session: SessionRow) -> bool:
    """Whether no call is open at the end of the branch and no answer runs on the session."""
    return process.running(session.id) is None and not calls_at_end(connection, session)


def _is_being_generated(connection: sqlite3.Connection, running: Running, node: NodeRow) -> bool:
    """Whether a node stands behind the one that an answer follows, on that session's branch."""
    if node.seq <= running.follows:
        return False
    session = session_row(connection, running.session)
    assert session is not None  # sessions are never deleted
    generated = {above.seq for above in upwards(connection, session.leaf, lowest=running.follows)}
    return running.follows in generated and node.seq in generated


def _may_fork(connection: sqlite3.Connection, process: Process, node: NodeRow) -> bool:
    """Whether nothing is open or being generated at an assistant message (FORK-1)."""
    if open_calls(connection, node.seq, node.open_since):
        return False
    return not any(_is_being_generated(connection, running, node) for running in process.all_running())


def fork(connection: sqlite3.Connection, process: Process, operation: Fork) -> Outcome:
    """Open a new session at a stored assistant message (FORK)."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if session_row(connection, operation.new_session) is not None:
        return Refused(code=RefusalCode.KNOWN_ID)
    target = node_by_id(connection, operation.target)
    if target is None:
        return Refused(code=RefusalCode.UNKNOWN_NODE)
    if target.kind != NodeKind.ASSISTANT:
        return Refused(code=RefusalCode.NOT_ASSISTANT)
    if not _may_fork(connection, process, target):
        return _UNSTABLE
    insert_session(connection, operation.new_session, target.seq, *session_sizes(connection, session))
    return Done()


def undo(connection: sqlite3.Connection, process: Process, operation: Undo) -> Outcome:
    """Take back the checkpoint that is the leaf, or say from where to fork instead (UNDO-1, UNDO-2)."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if not is_stable(connection, process, session):
        return _UNSTABLE
    if session.leaf is None or session.leaf_kind != NodeKind.CHECKPOINT:
        way = _way(connection, process, session)
        return Refused(code=RefusalCode.NOT_A_CHECKPOINT, way=way)
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    move_leaf(connection, session, node_by_seq(connection, session.leaf).parent)
    return Done()


def _way(connection: sqlite3.Connection, process: Process, session: SessionRow) -> NodeId | None:
    if session.checkpoint is None:
        return None
    for node in upwards(connection, session.checkpoint):
        if node.kind == NodeKind.ASSISTANT and _may_fork(connection, process, node):
            return node.id
    return None
