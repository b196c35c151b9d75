"""Damages a store file on purpose: the tester's tool behind `InflictDamage` (DMG).

No operation of a store does such a thing, and its triggers and checks refuse it. So they are put aside, the
rows are changed as a fault of the disk or of another program could have, and the triggers are put back.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, SessionId
from tailmark_reference.store.audit import audit, duplicate_ids
from tailmark_reference.store.schema import NodeKind

_INDEX = "sqlite_autoindex_node_1"


class CannotBeInflictedError(Exception):
    """The node is not stored, or is not such that this kind of damage can be inflicted on it."""


def damage_store(path: Path, session: SessionId, kind: DamageKind, node: NodeId) -> None:
    """Damage one node of a store. Whoever has it open is to open it anew.

    Raises `CannotBeInflictedError`; then nothing changed.
    """
    with _unguarded(path) as connection:
        seq = _number_of(connection, node)
        if any(fault.seq == seq for fault in audit(connection, seq, duplicate_ids(connection))):
            raise CannotBeInflictedError(f"{node} is damaged already")
        if kind is DamageKind.MISSING_LEAF:
            _lose_leaf(connection, session, seq)
        else:
            _INFLICT[kind](connection, seq)


def repoint(path: Path, node: NodeId, parent: NodeId) -> None:
    """Give a node another parent, such as one behind it. Raises `CannotBeInflictedError`."""
    with _unguarded(path) as connection:
        numbers = (_number_of(connection, parent), _number_of(connection, node))
        connection.execute("UPDATE node SET parent = ? WHERE seq = ?", numbers)


@contextmanager
def _unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("BEGIN IMMEDIATE")
        try:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f'DROP TRIGGER "{name}"')
            yield connection
            for _, statement in triggers:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _number_of(connection: sqlite3.Connection, node: NodeId) -> int:
    row = connection.execute("SELECT seq FROM node WHERE id = ?", (node,)).fetchone()
    if row is None:
        raise CannotBeInflictedError(f"{node} is not stored")
    return int(row[0])


def _kind_of(connection: sqlite3.Connection, seq: int) -> int:
    (kind,) = connection.execute("SELECT kind FROM node WHERE seq = ?", (seq,)).fetchone()
    return int(kind)


def _lose_leaf(connection: sqlite3.Connection, session: SessionId, seq: int) -> None:
    # No node has a negative number, and none will have.
    changed = connection.execute("UPDATE session SET leaf = -leaf WHERE id = ? AND leaf = ?", (session, seq))
    if changed.rowcount != 1:
        raise CannotBeInflictedError("the node is not the session's leaf")


def _lose_parent(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("UPDATE node SET parent = -seq WHERE seq = ?", (seq,))


def _close_cycle(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("UPDATE node SET parent = seq WHERE seq = ?", (seq,))


def _break_body(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("UPDATE node SET body = substr(body, 1, length(body) / 2) WHERE seq = ?", (seq,))


def _misplace(connection: sqlite3.Connection, seq: int) -> None:
    if _kind_of(connection, seq) != NodeKind.CHECKPOINT:
        raise CannotBeInflictedError("the node is no checkpoint")
    body = _body(connection, seq)
    body["first_kept"] = "nowhere"
    connection.execute("UPDATE node SET place = -seq, body = ? WHERE seq = ?", (_text(body), seq))


def _let_dangle(connection: sqlite3.Connection, seq: int) -> None:
    if _kind_of(connection, seq) != NodeKind.TOOL:
        raise CannotBeInflictedError("the node is no tool message")
    body = _body(connection, seq)
    for part in body["parts"]:
        part["call"] = f"never made: {part['call']}"
    connection.execute("UPDATE node SET body = ? WHERE seq = ?", (_text(body), seq))


# A column that is unique has an index that SQLite keeps up. It is taken out of the schema for the one row, so
# that afterwards it lacks the row, as after a fault of the disk.
def _double(connection: sqlite3.Connection, seq: int) -> None:
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    (table,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'node'").fetchone()
    (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (_INDEX,)).fetchone()
    _rewrite_schema(
        connection,
        version + 1,
        lambda: (
            connection.execute(
                "UPDATE sqlite_schema SET sql = ? WHERE name = 'node'",
                (table.replace("NOT NULL UNIQUE", "NOT NULL"),),
            ),
            connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (_INDEX,)),
        ),
    )
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(node)") if name != "seq"]
    listed = ", ".join(columns)
    connection.execute(
        f"INSERT INTO node (seq, {listed}) SELECT (SELECT max(seq) + 1 FROM node), {listed} FROM node WHERE seq = ?",  # noqa: S608  # the columns are the schema's
        (seq,),
    )
    _rewrite_schema(
        connection,
        version + 2,
        lambda: (
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'node'", (table,)),
            connection.execute(
                "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('index', ?, 'node', ?, NULL)",
                (_INDEX, root),
            ),
        ),
    )


def _rewrite_schema(connection: sqlite3.Connection, version: int, rewrite: Callable[[], object]) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    rewrite()
    connection.execute(f"PRAGMA schema_version = {version}")
    connection.execute("PRAGMA writable_schema = RESET")


def _body(connection: sqlite3.Connection, seq: int) -> dict[str, Any]:  # Any: plain JSON values
    (body,) = connection.execute("SELECT body FROM node WHERE seq = ?", (seq,)).fetchone()
    plain: dict[str, Any] = json.loads(body)  # Any: as above
    return plain


def _text(body: dict[str, Any]) -> str:  # Any: as above
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


_INFLICT: Mapping[DamageKind, Callable[[sqlite3.Connection, int], None]] = {
    DamageKind.MISSING_PARENT: _lose_parent,
    DamageKind.CYCLE: _close_cycle,
    DamageKind.DUPLICATE_ID: _double,
    DamageKind.INVALID_MESSAGE: _break_body,
    DamageKind.PLACE_NO_ANCESTOR: _misplace,
    DamageKind.DANGLING_RESULT: _let_dangle,
}
