"""Opening a store: what is made, and one clear line for each file that cannot be used."""

import re
import sqlite3
from pathlib import Path

import pytest
from attrs import evolve
from typing_extensions import override

from store_builders import MODEL, REPLY, S1, add, answer, begin, compact, new_store, seen_anew, user, view
from tailmark.declarations import Readings, TailReading
from tailmark.identifiers import NodeId, PlanId, SessionId
from tailmark.messages import AnswerEnd
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    Operation,
    Preview,
    Retry,
    Save,
    SetMetadata,
    SetModel,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Done, Previewed, ReadOnly, RefusalCode, Refused
from tailmark_reference.store.connection import StoreError, connect
from tailmark_reference.store.schema import SCHEMA_VERSION
from tailmark_reference.store.store import Store


def _error(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line


def test_a_missing_file_becomes_an_empty_store(tmp_path: Path) -> None:
    """An empty store has no session and no node."""
    path = tmp_path / "a file with spaces, # and ?.sqlite"
    assert seen_anew(path).sessions == ()
    assert path.is_file()
    assert seen_anew(path).nodes == ()


def test_an_empty_file_becomes_an_empty_store(tmp_path: Path) -> None:
    """A file of no bytes has no other owner."""
    path = tmp_path / "store.sqlite"
    path.touch()
    assert seen_anew(path).sessions == ()


def test_a_store_is_set_up_for_durability(tmp_path: Path) -> None:
    """Write-ahead log, full syncs, foreign keys: for each connection."""
    settings: dict[str, tuple[object, ...]] = {}

    class Watched(sqlite3.Connection):
        @override
        def close(self) -> None:
            for name in ("journal_mode", "synchronous", "foreign_keys"):
                settings[name] = self.execute(f"PRAGMA {name}").fetchone()
            super().close()

    path = tmp_path / "store.sqlite"
    new_store(path).close()
    store = Store.open(
        path,
        connection_factory=lambda uri: sqlite3.connect(uri, uri=True, isolation_level=None, factory=Watched),
    )
    store.close()
    assert settings == {"journal_mode": ("wal",), "synchronous": (2,), "foreign_keys": (1,)}


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema(tmp_path: Path, version: int) -> None:
    """What an earlier or a later program wrote is not guessed at."""
    path = tmp_path / "store.sqlite"
    new_store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    assert _error(path).endswith(f"schema version {version}; this program reads version {SCHEMA_VERSION}")
    assert path.read_bytes() == before


def test_a_file_that_is_not_sqlite(tmp_path: Path) -> None:
    """It is left as it is."""
    path = tmp_path / "store.sqlite"
    path.write_text("Dear diary, " * 100)
    assert _error(path).endswith("not an SQLite file")
    assert path.read_text() == "Dear diary, " * 100


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE other (x)", "PRAGMA user_version = 3", "PRAGMA application_id = 3"]
)
def test_somebody_elses_database(tmp_path: Path, statement: str) -> None:
    """It is left as it is, also where it has no table yet."""
    path = tmp_path / "store.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert _error(path).endswith("not a store of tailmark")
    assert path.read_bytes() == before


def test_a_folder(tmp_path: Path) -> None:
    """A folder is no file."""
    assert _error(tmp_path).endswith("a folder, not a store file")


def test_a_missing_folder(tmp_path: Path) -> None:
    """No folder is made."""
    path = tmp_path / "missing" / "store.sqlite"
    assert _error(path).endswith("missing does not exist")
    assert not path.parent.exists()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """What the system reports, in one line."""
    (tmp_path / "file").touch()
    assert re.search("Not a directory$", _error(tmp_path / "file" / "store.sqlite"))


def test_an_unusable_name(tmp_path: Path) -> None:
    """What the system reports, in one line."""
    assert "File name too long" in _error(tmp_path / ("x" * 300))


def test_what_the_library_reports(tmp_path: Path) -> None:
    """A connection that cannot be made is one line as well."""

    def broken(uri: str) -> sqlite3.Connection:
        raise sqlite3.OperationalError(f"unable to open {uri[:4]}")

    path = tmp_path / "store.sqlite"
    with pytest.raises(StoreError, match=r"store\.sqlite: unable to open file$"):
        Store.open(path, connection_factory=broken)


def test_a_reading_that_the_store_does_not_have(tmp_path: Path) -> None:
    """A store that keeps nothing would be another one."""
    with pytest.raises(ValueError, match="keeps-nothing"):
        Store.open(tmp_path / "store.sqlite", readings=Readings(tail=TailReading.KEEPS_NOTHING))


def _writing() -> tuple[Operation, ...]:
    return (
        Append(session=S1, message=user("U9")),
        Append(session=S1, message=user("U1")),
        Append(session=SessionId("unknown"), message=user("U9")),
        Save(session=S1, path=()),
        Abandon(session=S1),
        BeginCompaction(session=S1, plan=PlanId("P9")),
        Retry(session=S1),
        Edit(session=S1, target=NodeId("U2"), message=user("U9")),
        Fork(session=S1, target=NodeId("A1"), new_session=SessionId("S2")),
        Undo(session=S1),
        SetModel(session=S1, model=MODEL),
        SetMetadata(session=S1, key="title", value="new"),
    )


def test_a_read_only_file_is_read(tmp_path: Path) -> None:
    """Views are as ever, but say so, every writing operation answers `read-only`, and no byte changes."""
    path = tmp_path / "store.sqlite"
    store = new_store(path)
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    compact(store)
    add(store, user("U3"), answer("A3"))
    plan = begin(store, "P2")
    seen = store.observe()
    expected = evolve(seen, sessions=tuple(evolve(one, read_only=True) for one in seen.sessions))
    store.close()
    path.chmod(0o444)
    before = path.read_bytes()
    store = Store.open(path)
    assert evolve(store.observe(), store=None) == expected
    assert evolve(store.observe_fresh(), store=None) == expected
    assert store.observe().store is not None
    for operation in _writing():
        assert store.perform(operation) == ReadOnly(), operation
    assert store.perform(CommitCompaction(plan=plan, reply=REPLY)) == ReadOnly()
    assert store.add_session(SessionId("S3"), MODEL) == ReadOnly()
    assert isinstance(store.perform(Preview(session=S1, plan=PlanId("P9"))), Previewed)
    assert store.perform(Load(session=S1)) == Done()
    assert store.perform(Load(session=SessionId("unknown"))) == Refused(code=RefusalCode.UNKNOWN_SESSION)
    # An answer is the process's own, and nothing is open that its end would have to write.
    assert store.perform(StartAnswer(session=S1)) == Done()
    assert view(store).running is not None
    assert store.perform(EndAnswer(session=S1, end=AnswerEnd.FAILED)) == Done()
    assert evolve(store.observe(), store=None) == expected
    store.close()
    assert path.read_bytes() == before


def test_a_file_that_the_system_will_not_let_be_written(tmp_path: Path) -> None:
    """Whatever its mode says: what SQLite finds when it writes is answered in the same way."""
    path = tmp_path / "store.sqlite"
    new_store(path).close()
    store = Store.open(path, connection_factory=lambda uri: connect(uri.replace("mode=rwc", "mode=ro")))
    assert store.perform(Append(session=S1, message=user("U1"))) == ReadOnly()
    assert view(store).leaf is None
    store.close()
