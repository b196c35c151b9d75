"""The database itself keeps history append-only: whoever writes past the store is refused."""
# ruff: noqa: S608  # all statements are made of this file's own text

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from store_builders import S1, add, answer, call, compact, new_store, result, rows, tool, user

# The numbers of the nodes below.
U1, A1, U2, A2, C1, U3, A3, T3, A4 = range(1, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a checkpoint, a call settled by a tool message, and a message with open calls."""
    path = tmp_path / "store.sqlite"
    store = new_store(path)
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    compact(store)
    add(store, user("U3"), answer("A3", call("settled")), tool("T3", result("settled")))
    add(store, answer("A4", call("open"), result("open", preliminary=True), call("other")))
    store.close()
    return path


@pytest.fixture
def plain(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that knows nothing of the store."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def _body(connection: sqlite3.Connection, seq: int) -> dict[str, list[dict[str, object]]]:
    (body,) = connection.execute("SELECT body FROM node WHERE seq = ?", (seq,)).fetchone()
    content: dict[str, list[dict[str, object]]] = json.loads(body)
    return content


def _is_refused(connection: sqlite3.Connection, statement: str, *values: object) -> None:
    before = rows(connection)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement, values)
    assert rows(connection) == before


@pytest.mark.parametrize("seq", [U1, A1, C1, A4])
def test_a_node_is_not_deleted(plain: sqlite3.Connection, seq: int) -> None:
    """TREE-2."""
    _is_refused(plain, "DELETE FROM node WHERE seq = ?", seq)


@pytest.mark.parametrize("seq", [U1, A1, C1, T3, A4])
@pytest.mark.parametrize(
    "change",
    [
        "id = 'another'",
        "parent = ifnull(parent, 0) - 1",
        "kind = kind % 3 + 1",
        "place = ifnull(place, 0) + 1",
        "session = ifnull(session, 0) + 1",
        "checkpoint = ifnull(checkpoint, 0) + 1",
        "open_since = ifnull(open_since, 0) + 1",
        "usage = 1 - usage",
        "seq = 100",
        "rowid = 100",
        "body = '{}'",
        "body = 'no JSON'",
    ],
)
def test_a_column_of_a_node_does_not_change(plain: sqlite3.Connection, seq: int, change: str) -> None:
    """TREE-2, for every kind of node and also for one with open calls."""
    before = rows(plain)
    with pytest.raises(sqlite3.DatabaseError):  # SQLite itself refuses to read what is no JSON
        plain.execute(f"UPDATE OR REPLACE node SET {change} WHERE seq = ?", (seq,))
    assert rows(plain) == before


@pytest.mark.parametrize("seq", [U1, A1, C1, A3])
def test_an_estimate_changes_with_an_open_call_alone(plain: sqlite3.Connection, seq: int) -> None:
    """TREE-5: what has no open call is fixed for good."""
    _is_refused(plain, "UPDATE node SET estimate = estimate + 1 WHERE seq = ?", seq)


def _result(name: str, **fields: object) -> dict[str, object]:
    return {
        "kind": "tool-result",
        "id": f"result:{name}",
        "call": name,
        "status": "output",
        "text": "found",
        **fields,
    }


def _set_body(connection: sqlite3.Connection, body: dict[str, list[dict[str, object]]]) -> None:
    connection.execute("UPDATE node SET body = ? WHERE seq = ?", (json.dumps(body), A4))


def test_a_message_grows_by_results_of_its_open_calls(plain: sqlite3.Connection) -> None:
    """TREE-5: in place of a preliminary result, and behind the last part."""
    body = _body(plain, A4)
    body["parts"][1] = _result("open")
    body["parts"].append(_result("other", preliminary=True))
    _set_body(plain, body)
    assert _body(plain, A4) == body


@pytest.mark.parametrize(
    ("position", "part"),
    [
        (0, _result("open")),  # in place of the call
        (1, _result("other")),  # in place of the other call's preliminary result
        (3, _result("unknown")),
        (3, _result("settled")),  # a call of another message
        (3, {"kind": "text", "id": "more", "text": "more"}),
        (3, {"kind": "tool-call", "id": "more", "call": "open", "name": "look", "input": ""}),
        (1, {"kind": "text", "id": "more", "text": "more"}),
    ],
)
def test_a_message_grows_by_nothing_else(
    plain: sqlite3.Connection, position: int, part: dict[str, object]
) -> None:
    """TREE-5: other parts, other calls and other places are refused."""
    body = _body(plain, A4)
    body["parts"][position : position + 1] = [part]
    _is_refused(plain, "UPDATE node SET body = ? WHERE seq = ?", json.dumps(body), A4)


def test_a_message_does_not_shrink(plain: sqlite3.Connection) -> None:
    """TREE-5: by addition."""
    body = _body(plain, A4)
    body["parts"].pop()
    _is_refused(plain, "UPDATE node SET body = ? WHERE seq = ?", json.dumps(body), A4)


def test_a_settled_result_stays(plain: sqlite3.Connection) -> None:
    """TREE-5: once a call is settled its result is fixed, while another call is still open."""
    body = _body(plain, A4)
    body["parts"][1] = _result("open")
    _set_body(plain, body)
    plain.execute("UPDATE call SET settled = node, late = 1 WHERE node = ? AND call = 'open'", (A4,))
    body["parts"][1] = _result("open", text="something else")
    _is_refused(plain, "UPDATE node SET body = ? WHERE seq = ?", json.dumps(body), A4)


@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE", "INSERT"])
@pytest.mark.parametrize(("seq", "node"), [(None, "U1"), (1, "new"), (1, "U1"), (2, "U1")])
def test_a_known_node_is_not_written_again(
    plain: sqlite3.Connection, verb: str, seq: int | None, node: str
) -> None:
    """TREE-10: replacing deletes without asking the triggers for deletion, so it is refused before."""
    _is_refused(
        plain,
        f"{verb} INTO node (seq, id, parent, kind, estimate, body) VALUES (?, ?, NULL, 1, 0, '{{}}')",
        seq,
        node,
    )


_CHECKPOINT = """
INSERT INTO node (seq, id, parent, kind, place, session, estimate, body) VALUES (?, 'forged', ?, 4, ?, ?, 0, '{}')
"""


@pytest.mark.parametrize("session", [1, 2, None])
@pytest.mark.parametrize("seq", [None, A4 + 1, C1, 0])
def test_a_checkpoint_is_written_by_a_commit_alone(
    plain: sqlite3.Connection, seq: int | None, session: int | None
) -> None:
    """TREE-7: the gate is shut, whatever number is tried and whosever commit it claims to be."""
    _is_refused(plain, _CHECKPOINT, seq, A2, U2, session)


def test_the_gate_is_for_one_checkpoint_of_one_session(plain: sqlite3.Connection) -> None:
    """Another session's is refused, and once it is written the next one."""
    plain.execute("INSERT INTO session (id, revision, model, settings) VALUES ('S2', 0, '{}', '{}')")
    plain.execute("UPDATE session SET gate = ? WHERE id = 'S1'", (A4 + 1,))
    _is_refused(plain, _CHECKPOINT, A4 + 2, A2, U2, 1)
    _is_refused(plain, _CHECKPOINT, A4 + 1, A2, U2, 2)
    plain.execute(_CHECKPOINT, (A4 + 1, A2, U2, 1))
    for seq in (None, A4 + 1, A4 + 2):
        _is_refused(plain, _CHECKPOINT.replace("forged", "forged again"), seq, A2, U2, 1)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO node (seq, id, parent, kind, estimate, body) VALUES (50, 'n', 50, 1, 0, '{}')",
        "INSERT INTO node (seq, id, parent, kind, estimate, body) VALUES (50, 'n', 60, 1, 0, '{}')",
        "INSERT INTO node (id, parent, kind, estimate, body) VALUES ('n', 1, 5, 0, '{}')",
        "INSERT INTO node (id, parent, kind, estimate, body) VALUES ('n', 1, 1, -1, '{}')",
        "INSERT INTO node (id, parent, kind, place, estimate, body) VALUES ('n', 1, 1, 1, 0, '{}')",
        "INSERT INTO node (id, parent, kind, session, estimate, body) VALUES ('n', 1, 1, 1, 0, '{}')",
        "INSERT INTO node (id, parent, kind, estimate, body) VALUES (NULL, 1, 1, 0, '{}')",
        "INSERT INTO node (id, parent, kind, estimate, body) VALUES ('n', 1, 1, 0, x'00')",
    ],
)
def test_a_node_has_sound_columns(plain: sqlite3.Connection, statement: str) -> None:
    """A parent is older than its child, only a checkpoint has a place, and values have their types."""
    _is_refused(plain, statement)


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM call WHERE node = {A4}",
        f"UPDATE call SET settled = NULL, late = 0 WHERE node = {A3}",
        f"UPDATE call SET settled = node, late = 1 WHERE node = {A3}",
        f"UPDATE call SET late = 1 WHERE node = {A3}",
        f"UPDATE call SET late = 1 WHERE node = {A4} AND position = 0",
        f"UPDATE call SET settled = node WHERE node = {A4} AND position = 0",
        f"UPDATE call SET settled = {U3} WHERE node = {A4}",
        f"UPDATE call SET settled = {A3} WHERE node = {A4}",
        f"UPDATE call SET call = 'x', settled = node, late = 1 WHERE node = {A4} AND position = 0",
        f"UPDATE call SET position = 7, settled = node, late = 1 WHERE node = {A4} AND position = 0",
        f"UPDATE call SET approval = 1, settled = node, late = 1 WHERE node = {A4} AND position = 0",
        f"UPDATE call SET node = {A3}, settled = {A4} WHERE node = {A4} AND position = 0",
        f"UPDATE call SET approval = 0 WHERE node = {A4}",
        f"INSERT INTO call (node, position, call, approval) VALUES ({A3}, 5, 'late', 0)",
        f"INSERT OR REPLACE INTO call (node, position, call, approval) VALUES ({A4}, 0, 'x', 0)",
        f"INSERT OR REPLACE INTO call (node, position, call, approval) VALUES ({A4}, 9, 'open', 0)",
    ],
)
def test_a_call_changes_only_by_being_settled(plain: sqlite3.Connection, statement: str) -> None:
    """TREE-5, TREE-11: once, by its own message or by a tool message."""
    _is_refused(plain, statement)


def test_a_user_message_makes_no_call(plain: sqlite3.Connection) -> None:
    """Only an assistant message does, and only when it is written."""
    plain.execute("INSERT INTO node (id, parent, kind, estimate, body) VALUES ('U9', ?, 1, 0, '{}')", (A4,))
    _is_refused(
        plain, "INSERT INTO call (node, position, call, approval) SELECT max(seq), 0, 'x', 0 FROM node"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM session",
        "UPDATE session SET revision = revision - 1",
        "UPDATE session SET revision = 0",
        "UPDATE session SET revision = revision + 2",
        "UPDATE session SET leaf = 1",
        "UPDATE session SET leaf = NULL",
        "UPDATE session SET id = 'S2', revision = revision + 1",
        "UPDATE session SET seq = 7, revision = revision + 1",
        "INSERT OR REPLACE INTO session (id, revision, model, settings) VALUES ('S1', 0, '{}', '{}')",
        "INSERT OR REPLACE INTO session (seq, id, revision, model, settings) VALUES (1, 'S2', 0, '{}', '{}')",
        "INSERT INTO session (id, revision, model, settings) VALUES ('S2', 4, '{}', '{}')",
    ],
)
def test_a_revision_counts_changes(plain: sqlite3.Connection, statement: str) -> None:
    """CMT-6: it never goes back or jumps, and no leaf moves without it."""
    _is_refused(plain, statement)


def test_a_revision_grows_by_one(plain: sqlite3.Connection) -> None:
    """What the store itself writes is let through: with a new leaf, with the same, or only another model and settings."""
    plain.execute("UPDATE session SET leaf = ?, revision = revision + 1", (A2,))
    plain.execute("UPDATE session SET revision = revision + 1")
    plain.execute("UPDATE session SET model = '{}', settings = '{}'")
    assert plain.execute("SELECT id, leaf FROM session").fetchall() == [(S1, A2)]
