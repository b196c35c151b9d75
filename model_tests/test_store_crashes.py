"""A process dies at any statement of any writer: what is found afterwards is the old state or the new one."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen
from typing_extensions import override

from store_builders import (
    MODEL,
    REPLY,
    S1,
    add,
    answer,
    begin,
    call,
    compact,
    do,
    long,
    needs_room,
    new_store,
    on_small_model,
    result,
    seen_anew,
    tool,
    user,
)
from tailmark.budgets import Model, Settings
from tailmark.identifiers import ModelName, NodeId, SessionId
from tailmark.messages import AnswerEnd
from tailmark.operations import (
    Abandon,
    Append,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    Operation,
    Restart,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Committed, Done, Sent
from tailmark.plans import SummaryFailure
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.store import Store


class CrashError(Exception):
    """The process is dead. Nothing of the store catches it."""


class Fuse:
    """Counts statements, and says before or behind which one the process dies."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.armed = False
        self.before: int | None = None
        self.behind: int | None = None
        self.error: Callable[[], Exception] = CrashError
        self.stays_dead = True
        self._blown = False

    def burn(self, statement: str) -> int | None:
        """Note a statement. Raises where the process dies; answers the statement's number."""
        if not self.armed:
            return None
        if self._blown and self.stays_dead:
            raise self.error()
        number = len(self.statements)
        self.statements.append(statement.strip())
        if number == self.before:
            self._blow()
        return number

    def burnt(self, number: int | None) -> None:
        """Note that a statement is done. Raises where the process dies."""
        if number is not None and number == self.behind:
            self._blow()

    def _blow(self) -> None:
        self._blown = True
        raise self.error()

    def connect(self, uri: str) -> sqlite3.Connection:
        """A connection on this fuse."""
        fuse = self

        class Fused(sqlite3.Connection):
            @override
            def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
                number = fuse.burn(sql)
                # Any of sqlite3's own parameter types; the store's are right or fail here.
                cursor = super().execute(sql, parameters)  # type: ignore[arg-type]  # as said above
                fuse.burnt(number)
                return cursor

        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0, factory=Fused)


@frozen
class Writer:
    """One operation that writes. ``ready`` leads a store to where it is asked for, and answers it."""

    name: str
    ready: Callable[[Store], Operation]


def _two_turns(store: Store) -> None:
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))


def _open_calls(store: Store) -> None:
    _two_turns(store)
    add(store, user("U3"), answer("A3", call("a"), result("a", preliminary=True), call("b")))
    add(store, answer("A4", call("c")))


def _append(store: Store) -> Operation:
    _two_turns(store)
    return Append(session=S1, message=user("U3"))


def _append_calls(store: Store) -> Operation:
    _two_turns(store)
    return Append(session=S1, message=answer("A3", call("a"), result("a"), call("b")))


def _append_results(store: Store) -> Operation:
    _open_calls(store)
    return Append(session=S1, message=tool("T1", result("c"), result("a")))


def _append_again(store: Store) -> Operation:
    _open_calls(store)
    return Append(session=S1, message=answer("A3", call("a"), result("a"), call("b"), result("b")))


def _save(store: Store) -> Operation:
    _two_turns(store)
    add(store, answer("A3", call("a"), call("b")))
    path = (
        user("U1"),
        answer("A1"),
        user("U2"),
        answer("A2"),
        answer("A3", call("a"), call("b"), result("b")),
    )
    return Save(session=S1, path=(*path, tool("T1", result("a")), answer("A4", call("a")), user("U3")))


def _settle(store: Store) -> Operation:
    _open_calls(store)
    return Settle(session=S1, message=NodeId("A3"), result=result("a"))


def _abandon(store: Store) -> Operation:
    _open_calls(store)
    return Abandon(session=S1)


def _end_answer(store: Store) -> Operation:
    _two_turns(store)
    do(store, StartAnswer(session=S1))
    add(store, answer("A3", call("a"), call("b")))
    return EndAnswer(session=S1, end=AnswerEnd.ABORTED)


def _commit(store: Store) -> Operation:
    _two_turns(store)
    return CommitCompaction(plan=begin(store), reply=REPLY)


def _second_commit(store: Store) -> Operation:
    _two_turns(store)
    compact(store)
    add(store, user("U3"), answer("A3"))
    return CommitCompaction(plan=begin(store, "P2"), reply=REPLY)


def _send(store: Store) -> Operation:
    _two_turns(store)
    return Send(session=S1, message=user("U3"))


def _send_over_open_calls(store: Store) -> Operation:
    """Whoever owned the calls is gone, and the history is audited."""
    _open_calls(store)
    do(store, Restart(), Load(session=S1))
    return Send(session=S1, message=user("U5"))


def _commit_and_send(store: Store) -> Operation:
    on_small_model(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    return CommitCompaction(plan=needs_room(store, Send(session=S1, message=long("U3", 66))), reply=REPLY)


def _commit_of_everything_and_send(store: Store) -> Operation:
    """The draft leaves no room for any turn: the place is `open`."""
    on_small_model(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    plan = needs_room(store, Send(session=S1, message=long("U3", 80)))
    assert plan.first_kept is None
    return CommitCompaction(plan=plan, reply=REPLY)


def _send_without_the_commit(store: Store) -> Operation:
    """It fits without a compaction, and the summariser fails."""
    on_small_model(store, long("U1", 26), answer("A1"), user("U2"), answer("A2"))
    plan = needs_room(store, Send(session=S1, message=long("U3", 39)))
    return CommitCompaction(plan=plan, reply=SummaryFailure(text="out of order"))


def _commit_and_retry(store: Store) -> Operation:
    _two_turns(store)
    on_small_model(store, long("U3", 66), answer("A3"))
    return CommitCompaction(plan=needs_room(store, Retry(session=S1)), reply=REPLY)


def _commit_and_edit(store: Store) -> Operation:
    _two_turns(store)
    on_small_model(store, user("U3"), answer("A3"))
    edit = Edit(session=S1, target=NodeId("U3"), message=long("U4", 66))
    return CommitCompaction(plan=needs_room(store, edit), reply=REPLY)


def _retry(store: Store) -> Operation:
    _two_turns(store)
    return Retry(session=S1)


def _edit(store: Store) -> Operation:
    _two_turns(store)
    return Edit(session=S1, target=NodeId("U2"), message=user("U3"))


def _fork(store: Store) -> Operation:
    _two_turns(store)
    return Fork(session=S1, target=NodeId("A1"), new_session=SessionId("S2"))


def _undo(store: Store) -> Operation:
    _two_turns(store)
    compact(store)
    return Undo(session=S1)


def _set_model(store: Store) -> Operation:
    _two_turns(store)
    return SetModel(session=S1, model=Model(name=ModelName("another")))


def _set_settings(store: Store) -> Operation:
    _two_turns(store)
    return SetSettings(session=S1, settings=Settings(automatic=False))


def _set_metadata(store: Store) -> Operation:
    _two_turns(store)
    return SetMetadata(session=S1, key="title", value="new")


WRITERS: Final = tuple(
    Writer(ready.__name__.removeprefix("_"), ready)
    for ready in (
        _append,
        _append_calls,
        _append_results,
        _append_again,
        _save,
        _settle,
        _abandon,
        _end_answer,
        _commit,
        _second_commit,
        _send,
        _send_over_open_calls,
        _commit_and_send,
        _commit_of_everything_and_send,
        _send_without_the_commit,
        _commit_and_retry,
        _commit_and_edit,
        _retry,
        _edit,
        _fork,
        _undo,
        _set_model,
        _set_settings,
        _set_metadata,
    )
)

each_writer = pytest.mark.parametrize("writer", WRITERS, ids=[writer.name for writer in WRITERS])


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in main memory where there is one: what is tested does not depend on the disk."""
    memory = Path("/dev/shm")  # noqa: S108  # the usual place
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


class Stage:
    """A store file that a writer found, to be used again for each statement."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.path = folder / "store.sqlite"
        self._writer = writer

    def set(self, fuse: Fuse) -> tuple[Store, Operation]:
        """A store that has come to where the operation is asked for, its fuse armed."""
        for old in self.path.parent.glob("store.sqlite*"):
            old.unlink()
        new_store(self.path).close()
        store = Store.open(self.path, connection_factory=fuse.connect)
        operation = self._writer.ready(store)
        fuse.armed = True
        return store, operation


def _undisturbed(stage: Stage) -> list[str]:
    fuse = Fuse()
    store, operation = stage.set(fuse)
    assert isinstance(store.perform(operation), Done | Sent | Committed)
    fuse.armed = False
    store.close()
    return fuse.statements


@each_writer
def test_a_death_leaves_the_old_state_or_the_new(folder: Path, writer: Writer) -> None:
    """CMT-5, CMT-12: before COMMIT is done nothing of the operation is there, behind it everything."""
    stage = Stage(folder, writer)
    store, _ = stage.set(Fuse())
    store.close()
    old = seen_anew(stage.path)
    statements = _undisturbed(stage)
    new = seen_anew(stage.path)
    assert old != new
    assert statements.count("COMMIT") == 1
    durable = statements.index("COMMIT")
    # To die behind a statement is to die before the next one, but for the one that makes it durable.
    deaths = [(number, None) for number in range(len(statements))] + [(None, durable)]
    for before, behind in deaths:
        fuse = Fuse()
        store, operation = stage.set(fuse)
        fuse.before, fuse.behind = before, behind
        with pytest.raises(CrashError):
            store.perform(operation)
        fuse.armed = False
        store.close()
        is_new = before is None or before > durable
        assert seen_anew(stage.path) == (new if is_new else old), (before, behind)


@each_writer
def test_an_error_of_the_disk_changes_nothing(folder: Path, writer: Writer) -> None:
    """What fails once is told in one line, leaves process and file as they were, and can be done again."""
    stage = Stage(folder, writer)
    statements = _undisturbed(stage)
    new = seen_anew(stage.path)
    for number in range(statements.index("COMMIT") + 1):
        fuse = Fuse()
        store, operation = stage.set(fuse)
        old = store.observe()
        fuse = _fails_once(fuse, number + len(fuse.statements))
        with pytest.raises(StoreError, match=r"store\.sqlite: disk I/O error$"):
            store.perform(operation)
        assert store.observe() == old, statements[number]
        assert store.observe_fresh().nodes == old.nodes
        assert isinstance(store.perform(operation), Done | Sent | Committed), statements[number]
        fuse.armed = False
        store.close()
        assert seen_anew(stage.path) == new, statements[number]


def _fails_once(fuse: Fuse, number: int) -> Fuse:
    fuse.error = lambda: sqlite3.OperationalError("disk I/O error")
    fuse.stays_dead = False
    fuse.before = number
    return fuse


def test_a_death_while_a_store_is_made(tmp_path: Path) -> None:
    """A file is a whole store or none yet; either way the next process can use it."""
    path = tmp_path / "store.sqlite"
    fuse = Fuse()
    fuse.armed = True
    Store.open(path, connection_factory=fuse.connect).close()
    for number in range(len(fuse.statements)):
        path.unlink(missing_ok=True)
        dying = Fuse()
        dying.armed = True
        dying.before = number
        with pytest.raises(CrashError):
            Store.open(path, connection_factory=dying.connect)
        assert seen_anew(path).sessions == ()
        store = Store.open(path)
        assert store.add_session(S1, MODEL) == Done()
        store.close()


def test_a_copy_made_while_the_store_is_open_is_whole(tmp_path: Path) -> None:
    """What was acknowledged is in the file and its log, whatever else the process still had in mind."""
    path, copy = tmp_path / "store.sqlite", tmp_path / "copy.sqlite"
    store = new_store(path)
    _open_calls(store)
    expected = store.observe()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    assert seen_anew(copy) == expected
    store.close()
