"""Exports the readable part of a session to a new store, ids kept (DMG-7)."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tailmark_reference.store.audit import audit, duplicate_ids, readable_run
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.queries import SessionRow
from tailmark_reference.store.readable import GUARDS, TABLES, copy_part
from tailmark_reference.store.schema import APPLICATION_ID, SCHEMA_VERSION, NodeKind

_CHECKPOINT = NodeKind.CHECKPOINT.value


def export(connection: sqlite3.Connection, session: SessionRow, path: Path) -> None:
    """Write a session's readable part to a new store at ``path``: one session of the same id, and its branch.

    Revision, model, settings and metadata come along. A checkpoint whose place is not in the part is left out, and so is a
    tool message with a result whose call is not. The source is only read. Raises `StoreError` with one clear line; then no file is left behind.
    """
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        raise StoreError(f"{path}: exists already; name a new file") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            _write(connection, session, copy)
    except BaseException as error:
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{path}: {error}") from error
        raise


def _write(connection: sqlite3.Connection, session: SessionRow, copy: sqlite3.Connection) -> None:
    copy.execute("PRAGMA journal_mode = WAL")
    copy.execute("PRAGMA synchronous = FULL")
    copy.execute("PRAGMA foreign_keys = OFF")
    copy.execute("PRAGMA ignore_check_constraints = ON")
    copy.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        copy.execute(statement)
    faults = audit(connection, session.leaf, duplicate_ids(connection))
    run = readable_run(connection, session.leaf, faults) if session.leaf is not None else None
    copy_part(connection, copy, session.id, run)
    copy.execute("UPDATE session SET gate = 0")
    if run is not None:
        _cut_loose(copy, *run)
        _leave_behind(copy)
    for statement in GUARDS:
        copy.execute(statement)
    copy.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    copy.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    copy.execute("COMMIT")


def _cut_loose(copy: sqlite3.Connection, top: int, end: int) -> None:
    """Let no column name a node above or behind the part, or a session that did not come along."""
    copy.execute("UPDATE node SET session = (SELECT seq FROM session) WHERE kind = 4")
    copy.execute("UPDATE node SET open_since = ? WHERE open_since < ?", (top, top))
    # A call that was answered behind the part is open at its end.
    copy.execute("UPDATE call SET settled = NULL WHERE settled > ?", (end,))


def _leave_behind(copy: sqlite3.Connection) -> None:
    """Take out what would be damage without what stands above the part: checkpoints without their place, results without their call."""
    while True:
        (leaf,) = copy.execute("SELECT leaf FROM session").fetchone()
        lacking = {fault.seq for fault in audit(copy, leaf, frozenset())}
        if not lacking:
            return
        copy.executemany("DELETE FROM node WHERE seq = ?", ((seq,) for seq in lacking))
        _reopen(copy)
        _join(copy)


def _reopen(copy: sqlite3.Connection) -> None:
    """A call whose result is taken out is open again, and all nodes behind it say so."""
    reopened = copy.execute(
        "SELECT node, position FROM call WHERE settled NOT IN (SELECT seq FROM node)"
    ).fetchall()
    copy.executemany("UPDATE call SET settled = NULL WHERE node = ? AND position = ?", reopened)
    if reopened:
        oldest = min(node for node, _ in reopened)
        copy.execute(
            "UPDATE node SET open_since = min(ifnull(open_since, ?1), ?1) WHERE seq >= ?1", (oldest,)
        )


def _join(copy: sqlite3.Connection) -> None:
    """Join what is left to one chain again; its order is that of the numbers."""
    above: int | None = None
    latest: int | None = None
    for seq, kind in copy.execute("SELECT seq, kind FROM node ORDER BY seq").fetchall():
        latest = seq if kind == _CHECKPOINT else latest
        copy.execute("UPDATE node SET parent = ?, checkpoint = ? WHERE seq = ?", (above, latest, seq))
        above = seq
    copy.execute("UPDATE session SET leaf = ?", (above,))
