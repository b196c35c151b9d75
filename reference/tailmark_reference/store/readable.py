"""The readable part of a damaged branch, copied into a store of its own (DMG-2, DMG-7).

What a damaged session shows is "as if the readable part were all". So the part becomes the whole branch of the
same session in another database of the same layout, and what is asked of a session is asked there. Numbers
stay, so everything that compares them holds there too.
"""

import sqlite3
from collections.abc import Iterator

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
    connection: sqlite3.Connection, copy: sqlite3.Connection, session: SessionId, run: tuple[int, int] | None
) -> None:
    """Write the run, its calls and the session into empty tables without triggers, numbers kept."""
    _insert(copy, "session", _rows(connection, "SELECT * FROM session WHERE id = ?", (session,)))
    copy.execute("UPDATE session SET leaf = ?", (run[1] if run is not None else None,))
    # Its text is unique there, so the number is looked up here and not carried along.
    _insert(
        copy,
        "metadata",
        _rows(
            connection,
            "SELECT metadata.* FROM metadata JOIN session ON session.seq = metadata.session WHERE session.id = ?",
            (session,),
        ),
    )
    if run is None:
        return
    top, end = run
    _insert(copy, "node", _rows(connection, _PART, {"top": top, "end": end}))
    copy.execute("UPDATE node SET parent = NULL WHERE seq = ?", (top,))
    for (node,) in copy.execute("SELECT seq FROM node WHERE kind = 2").fetchall():
        _insert(copy, "call", _rows(connection, "SELECT * FROM call WHERE node = ?", (node,)))
    # The latest checkpoint at or above a node can be one that is not in the part.
    copy.execute("UPDATE node SET checkpoint = NULL WHERE checkpoint < ?", (top,))
    copy.execute("UPDATE node SET place = ? WHERE place < ?", (ABOVE, top))


_Columns = tuple[str, ...]
_Values = tuple[object, ...]


def _rows(
    connection: sqlite3.Connection, query: str, parameters: dict[str, int] | tuple[object, ...]
) -> Iterator[tuple[_Columns, _Values]]:
    cursor = connection.execute(query, parameters)
    columns = tuple(column[0] for column in cursor.description)
    for row in cursor:
        yield columns, row


def _insert(copy: sqlite3.Connection, table: str, rows: Iterator[tuple[_Columns, _Values]]) -> None:
    for columns, values in rows:
        marks = ", ".join("?" * len(columns))
        copy.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values)  # noqa: S608  # names are the schema's
