"""The readable part of a session in a store of its own (DMG-7), and long histories that lead nowhere (DMG-6)."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from damaged import OTHER, POSSIBLE, Inflicted, S, durable_bytes, history, inflict, store_file, store_in, view
from store_builders import MODEL
from tailmark.damage import Damage, DamageKind, Finding, FindingKind
from tailmark.identifiers import CallId, NodeId, PlanId, SessionId
from tailmark.messages import ToolCall, ToolResult
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Load, Settle
from tailmark.outcomes import Committed, Done, Planned, RefusalCode, Refused
from tailmark.plans import Checkpoint, Node
from tailmark.views import SessionView
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.scenarios.words import assistant, result, summary, user
from tailmark_conformance.subjects.targets import default_store_dir
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.damaging import repoint
from tailmark_reference.store.store import Store
from tailmark_reference.store.subject import SqliteSubject


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where files cost little."""
    with tempfile.TemporaryDirectory(dir=default_store_dir()) as directory:
        yield Path(directory)


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteSubject]:
    """The store, behind the history."""
    with store_in(folder) as subject:
        history(subject)
        yield subject


def _exported(store: SqliteSubject, path: Path, session: SessionId = S) -> SessionView:
    assert store.store.export(session, path) == Done()
    with closing(Store.open(path)) as copy:
        seen = copy.observe()
        assert seen == copy.observe_fresh()
    (shown,) = seen.sessions
    return shown


@pytest.mark.parametrize("damage", POSSIBLE)
def test_the_readable_part_is_a_whole_branch(damage: Inflicted, store: SqliteSubject, folder: Path) -> None:
    """Ids, contents and order are kept, nothing is damaged, it can be written to, and the source stays as it is."""
    inflict(store, damage)
    was = view(store)
    contents = {node.content.id: node.content for node in store.observe().nodes}
    before = durable_bytes(folder)
    path = folder / "copy" / "new.sqlite"
    path.parent.mkdir()
    shown = _exported(store, path)
    assert durable_bytes(folder)[store_file(folder).name] == before[store_file(folder).name]
    assert (shown.damage, shown.findings, shown.read_only) == ((), (), False)
    assert (shown.revision, shown.model, shown.settings) == (was.revision, was.model, was.settings)
    assert list(shown.branch) == _whole([contents[node] for node in was.branch])
    _go_on(path, shown)


def _whole(part: list[Node]) -> list[NodeId]:
    """The nodes of a part that need nothing from above it."""
    kept: list[NodeId] = []
    made: set[CallId] = set()
    for content in part:
        if isinstance(content, Checkpoint):
            whole = content.first_kept in (None, *kept)
        else:
            made |= {one.call for one in content.parts if isinstance(one, ToolCall)}
            whole = all(one.call in made for one in content.parts if isinstance(one, ToolResult))
        if whole:
            kept.append(content.id)
    return kept


def _go_on(path: Path, shown: SessionView) -> None:
    """Write to the exported branch, and let a call that was open be answered."""
    with closing(Store.open(path)) as copy:
        for call in shown.open_calls:
            settled = copy.perform(Settle(session=S, message=call.message, result=result(call.call)))
            assert settled == Done()
        assert copy.perform(Append(session=S, message=user("U100"))) == Done(written=(NodeId("U100"),))
        (now,) = copy.observe().sessions
        assert now.branch == (*shown.branch, "U100")
        assert now.open_calls == ()


def test_an_exported_branch_is_compacted_like_any_other(store: SqliteSubject, folder: Path) -> None:
    """The triggers and columns of the new store are those of one that was written step by step."""
    inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("A1")))
    path = folder / "new.sqlite"
    assert store.store.export(OTHER, path) == Done()
    with closing(Store.open(path)) as copy:
        copy.perform(Append(session=OTHER, message=user("V2")))
        copy.perform(Append(session=OTHER, message=assistant("W2")))
        outcome = copy.perform(BeginCompaction(session=OTHER, plan=PlanId("P9")))
        assert isinstance(outcome, Planned)
        committed = copy.perform(CommitCompaction(plan=outcome.plan, reply=summary("what was said")))
        assert isinstance(committed, Committed)
        (shown,) = copy.observe().sessions
        assert shown.checkpoint == committed.checkpoint
        connection = sqlite3.connect(path)
        with closing(connection):
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
                connection.execute("DELETE FROM node")


def test_a_sound_session_is_exported_whole(store: SqliteSubject, folder: Path) -> None:
    """Without damage the readable part is the branch."""
    was = view(store)
    shown = _exported(store, folder / "new.sqlite")
    assert (shown.branch, shown.projection, shown.occupancy) == (was.branch, was.projection, was.occupancy)


def test_an_export_overwrites_nothing(store: SqliteSubject, folder: Path) -> None:
    """An unknown session is refused; a file that exists and a folder that does not are one clear line."""
    path = folder / "new.sqlite"
    assert store.store.export(SessionId("nobody"), path) == Refused(code=RefusalCode.UNKNOWN_SESSION)
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        store.store.export(S, path)
    assert path.read_text() == "mine"
    with pytest.raises(StoreError, match="No such file"):
        store.store.export(S, folder / "no" / "new.sqlite")


def test_a_cycle_of_several_nodes(store: SqliteSubject, folder: Path) -> None:
    """DMG-1, DMG-6: the node whose parent stands behind it is named; the walk ends there."""
    repoint(store_file(folder), NodeId("A2"), NodeId("A5"))
    store.store.perform(Load(session=S))
    shown = view(store)
    assert shown.damage == (Damage(kind=DamageKind.CYCLE, node=NodeId("A2")),)
    assert shown.branch[0] == "A2"


def test_findings_are_no_damage(store: SqliteSubject, folder: Path) -> None:
    """DMG-1A: a place that opens no turn, and one that moves back, are shown, and the session is written to."""
    store.perform(Append(session=S, message=assistant("A8")))
    path = store_file(folder)
    _settle_all(store)
    _move_place(path, "checkpoint:P1", "A3")
    store.store.perform(Load(session=S))
    shown = view(store)
    assert shown.findings == (Finding(kind=FindingKind.PLACE_OPENS_NO_TURN, node=NodeId("checkpoint:P1")),)
    outcome = store.perform(BeginCompaction(session=S, plan=PlanId("P9")))
    assert isinstance(outcome, Planned)
    committed = store.perform(CommitCompaction(plan=outcome.plan, reply=summary("what was said")))
    assert isinstance(committed, Committed)
    _move_place(path, committed.checkpoint, "U1")
    assert view(store).findings == (
        Finding(kind=FindingKind.PLACE_OPENS_NO_TURN, node=NodeId("checkpoint:P1")),
        Finding(kind=FindingKind.PLACE_MOVES_BACK, node=committed.checkpoint),
    )
    assert store.perform(Append(session=S, message=user("U9"))) == Done(written=(NodeId("U9"),))
    assert not view(store).read_only


def _settle_all(store: SqliteSubject) -> None:
    assert store.perform(Settle(session=S, message=NodeId("A7"), result=result("c3"))) == Done()


def _move_place(path: Path, checkpoint: str, place: str) -> None:
    """As another program could have stored it: column and body say the same."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(
            """
            UPDATE node SET body = json_set(body, '$.first_kept', ?2), place = (SELECT seq FROM node WHERE id = ?2)
            WHERE id = ?1
            """,
            (checkpoint, place),
        )
        for _, statement in triggers:
            connection.execute(statement)


def _long(path: Path, count: int, parent_of_first: int | None) -> None:
    """A chain of questions, written past all operations; its first node has the given parent."""
    with closing(Store.open(path)) as store:
        store.add_session(S, MODEL)
        store.perform(Append(session=S, message=user("N1")))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("DROP TRIGGER node_insert")
        connection.execute("DROP TRIGGER node_update")
        connection.execute("DROP TRIGGER session_update")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO node (seq, id, parent, kind, estimate, body) VALUES (?, ?, ?, 1, 8, ?)",
            ((seq, f"N{seq}", seq - 1, to_body(user(f"N{seq}"))) for seq in range(2, count + 1)),
        )
        connection.execute("UPDATE node SET parent = ? WHERE seq = 1", (parent_of_first,))
        connection.execute("UPDATE session SET leaf = ?", (count,))
        connection.execute("COMMIT")


@pytest.mark.parametrize("shape", ["chain", "to itself", "to the end", "to nothing"])
def test_the_walk_is_linear(shape: str, folder: Path) -> None:
    """DMG-6: ten times the nodes take about ten times SQLite's own steps, whatever the first parent is."""
    small, large = (_steps(folder / f"{count}.sqlite", count, shape) for count in (1_000, 10_000))
    assert large < 11 * small


def _steps(path: Path, count: int, shape: str) -> int:
    parents = {"chain": None, "to itself": 1, "to the end": count, "to nothing": -1}
    kinds = {
        "to itself": DamageKind.CYCLE,
        "to the end": DamageKind.CYCLE,
        "to nothing": DamageKind.MISSING_PARENT,
    }
    _long(path, count, parents[shape])
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    def counting(uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        connection.set_progress_handler(step, 1)
        return connection

    with closing(Store.open(path, connection_factory=counting)) as store:
        taken = 0
        assert store.perform(Load(session=S)) == Done()
        walked = taken
        (shown,) = store.observe().sessions
        named = () if shape == "chain" else (Damage(kind=kinds[shape], node=NodeId("N1")),)
        assert shown.damage == named
        assert len(shown.branch) == count
    return walked


def test_the_command_line(store: SqliteSubject, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tailmark export` says what it wrote; what it cannot do is one line, and leaves no file."""
    inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("U3")))
    branch = view(store).branch
    path, new = store_file(folder), folder / "new.sqlite"
    store.store.close()
    assert main(["export", str(path), "S", str(new)]) == Exit.CONFORMS
    assert f"S, {len(branch)} nodes up to A7" in capsys.readouterr().out
    for arguments, said in (
        ((str(path), "S", str(new)), "exists already"),
        ((str(path), "nobody", str(folder / "other")), "no session 'nobody'"),
        ((str(folder / "nothing"), "S", str(folder / "other")), "no such file"),
    ):
        assert main(["export", *arguments]) == Exit.USAGE
        assert said in capsys.readouterr().err
    assert not (folder / "other").exists()
    assert not (folder / "nothing").exists()
