"""The readable part of a damaged branch, copied into a store of its own (DMG-2, DMG-7).

What a damaged session shows is "as if the readable part were all". So the part becomes the whole branch of the
same session in another database of the same layout, and what is asked of a session is asked there. Numbers
stay, so everything that compares them holds there too.
"""

import sqlite3

from tailmark.identifiers import SessionId
from tailmark_reference.store.schema import SCHEMA, NodeKind

_CHECKPOINT = NodeKind.CHECKPOINT.value

_PART = """
WITH RECURSIVE up (seq, parent) AS (
    SELECT seq, parent FROM node WHERE seq = :end
    UNION ALL
    SELECT node.seq, node.parent FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND node.seq >= :top
)
SELECT node.* FROM up CROSS JOIN node ON node.seq = up.seq
"""

_METADATA = """
SELECT metadata.* FROM metadata JOIN session ON session.seq = metadata.session WHERE session.id = ?
"""

ABOVE = 0
"""The column ``place`` of a checkpoint whose place lies above the readable part: no walk meets it, so everything of the part follows."""


def _is_guard(statement: str) -> bool:
    return statement.lstrip().startswith("CREATE TRIGGER") or "\nCREATE TRIGGER" in statement


TABLES = tuple(statement for statement in SCHEMA if not _is_guard(statement))
"""The layout without the triggers, which refuse what is not written by an operation."""

GUARDS = tuple(statement for statement in SCHEMA if _is_guard(statement))
"""The triggers."""


def scratch(
    connection: sqlite3.Connection, session: SessionId, run: tuple[int, int] | None
) -> sqlite3.Connection:
    """A database of its own with this session, whose branch is the readable run (see `audit.readable_run`).

    SQLite keeps it in a nameless temporary file, so its size costs no memory. It is gone when it is closed.
    """
    copy = sqlite3.connect("", isolation_level=None)
    try:
        copy.execute("PRAGMA foreign_keys = OFF")
        copy.execute("PRAGMA ignore_check_constraints = ON")
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("BEGIN")
        for statement in TABLES:
            copy.execute(statement)
        copy_part(connection, copy, session, run)
        copy.execute("COMMIT")
    except BaseException:
        copy.close()
        raise
    return copy


def copy_part(
    connection: sqlite3.Connection,
    copy: sqlite3.Connection,
    session: SessionId,
    run: tuple[int, int] | None,
) -> None:
    """Write the run, its calls and the session into empty tables without triggers, numbers kept."""
    _copy(copy, "session", connection.execute("SELECT * FROM session WHERE id = ?", (session,)))
    copy.execute("UPDATE session SET leaf = ?", (run[1] if run is not None else None,))
    _copy(copy, "metadata", connection.execute(_METADATA, (session,)))
    if run is None:
        return
    top, end = run
    _copy(copy, "node", connection.execute(_PART, {"top": top, "end": end}))
    _copy(copy, "call", connection.execute("SELECT * FROM call WHERE node BETWEEN ? AND ?", run))
    # Numbers between the two can be of other branches.
    copy.execute("DELETE FROM call WHERE node NOT IN (SELECT seq FROM node)")
    copy.execute("UPDATE node SET parent = NULL WHERE seq = ?", (top,))
    # The latest checkpoint at or above a node can be one that is not in the part.
    copy.execute("UPDATE node SET checkpoint = NULL WHERE checkpoint < ?", (top,))
    copy.execute("UPDATE node SET place = ? WHERE place < ?", (ABOVE, top))


def _copy(copy: sqlite3.Connection, table: str, rows: sqlite3.Cursor) -> None:
    """Write rows into the table that they come from, one at a time."""
    columns = [column[0] for column in rows.description]
    marks = ", ".join("?" * len(columns))
    copy.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608  # names are the schema's
