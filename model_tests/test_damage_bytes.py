"""Bytes of a store file are changed at random: it gives damage, or one clear line, and never anything else (DMG)."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from damaged import OTHER, S, durable_bytes, history, store_file, store_in
from tailmark.identifiers import NodeId, PlanId, SessionId
from tailmark.operations import Abandon, Append, BeginCompaction, Fork, Operation, Retry, Undo
from tailmark.outcomes import ReadOnly
from tailmark.views import Observation
from tailmark_conformance.scenarios.words import user
from tailmark_conformance.subjects.targets import default_store_dir
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.store import Store

_SEEDS = 12
_FILES = 40


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where files cost little."""
    with tempfile.TemporaryDirectory(dir=default_store_dir()) as directory:
        yield Path(directory)


@pytest.fixture
def sound(folder: Path) -> bytes:
    """The bytes of a sound store."""
    with store_in(folder) as subject:
        history(subject)
        subject.store.close()
        return store_file(folder).read_bytes()


def _operations(session: SessionId) -> tuple[Operation, ...]:
    return (
        Append(session=session, message=user("U9")),
        Abandon(session=session),
        Retry(session=session),
        BeginCompaction(session=session, plan=PlanId("P9")),
        Fork(session=session, target=NodeId("A3"), new_session=SessionId("S9")),
        Undo(session=session),
    )


@pytest.mark.parametrize("seed", range(_SEEDS))
def test_changed_bytes(seed: int, folder: Path, sound: bytes) -> None:
    """A store with some bytes changed opens and shows what is damaged, or says in one line why it does not."""
    random = Random(seed)
    path = folder / "changed.sqlite"
    outcomes = set()
    for _ in range(_FILES):
        changed = bytearray(sound)
        for _ in range(random.choice((1, 1, 1, 2, 8))):
            changed[random.randrange(len(changed))] = random.randrange(256)
        path.write_bytes(changed)
        outcomes.add(_looked_at(path, bytes(changed)))
        for file in folder.glob("changed.sqlite*"):
            file.unlink()
    assert len(outcomes) > 1


def _looked_at(path: Path, written: bytes) -> str:
    try:
        store = Store.open(path)
    except StoreError as error:
        _is_one_line(error)
        return "does not open"
    with closing(store):
        try:
            seen = store.observe()
            fresh = store.observe_fresh()
        except StoreError as error:
            _is_one_line(error)
            return "cannot be read"
        assert seen == fresh
        _refuse(store, seen, path, written)
        for session in (S, OTHER):
            for operation in _operations(session):
                _perform(store, operation)
        return "damage" if any(view.damage for view in seen.sessions) else "seen"


def _refuse(store: Store, seen: Observation, path: Path, written: bytes) -> None:
    """Damaged sessions refuse, and until another is written to the file is as it was."""
    for view in seen.sessions:
        if view.damage:
            for operation in _operations(view.session):
                assert store.perform(operation) == ReadOnly()
    assert path.read_bytes() == written
    assert f"{path.name}-wal" not in durable_bytes(path.parent)


def _perform(store: Store, operation: Operation) -> None:
    try:
        store.perform(operation)
    except StoreError as error:
        _is_one_line(error)


def _is_one_line(error: StoreError) -> None:
    assert str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_file(seed: int, folder: Path, sound: bytes) -> None:
    """A file that lost its end, as after a copy that broke off."""
    random = Random(seed)
    path = folder / "changed.sqlite"
    for _ in range(10):
        cut = sound[: random.randrange(1, len(sound))]
        path.write_bytes(cut)
        _looked_at(path, cut)
        for file in folder.glob("changed.sqlite*"):
            file.unlink()


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_log(seed: int, folder: Path) -> None:
    """After a death the log is read too: what of it is damaged was never committed, and the rest is a sound store."""
    random = Random(seed)
    with store_in(folder) as subject:
        history(subject)
        file = store_file(folder).read_bytes()
        (log,) = (path.read_bytes() for path in folder.glob("*-wal"))
    path = folder / "changed.sqlite"
    for _ in range(10):
        changed = bytearray(log)
        changed[random.randrange(len(changed))] = random.randrange(256)
        path.write_bytes(file)
        path.with_name(f"{path.name}-wal").write_bytes(changed)
        try:
            store = Store.open(path)
        except StoreError as error:
            _is_one_line(error)
        else:
            with closing(store):
                assert not any(view.damage for view in store.observe().sessions)
        for left in folder.glob("changed.sqlite*"):
            left.unlink()
