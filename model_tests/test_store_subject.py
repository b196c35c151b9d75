"""The store as a subject."""

from pathlib import Path

import pytest

from store_builders import MODEL, S1, user
from tailmark.budgets import Settings
from tailmark.declarations import Capability, Readings, RefreshReading
from tailmark.identifiers import SessionId
from tailmark.operations import Append
from tailmark.outcomes import Done
from tailmark.views import Observation
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.subject import SqliteSubject


def test_each_reset_begins_a_new_file(tmp_path: Path) -> None:
    """Nothing of what was before is seen or left behind. What is durable outlives its end."""
    subject = SqliteSubject(tmp_path)
    subject.reset((S1,), MODEL, Settings())
    assert isinstance(subject.perform(Append(session=S1, message=user("U1"))), Done)
    (before,) = tmp_path.glob("*.sqlite")
    subject.reset((SessionId("S2"), S1), MODEL, Settings())
    (after,) = tmp_path.glob("*.sqlite")
    assert before != after
    seen = subject.observe()
    assert [view.session for view in seen.sessions] == ["S2", "S1"]
    assert seen.nodes == ()
    assert subject.observe_fresh() == seen
    subject.close()
    assert list(tmp_path.iterdir()) == [after]


def test_no_sessions(tmp_path: Path) -> None:
    """An empty store is a store."""
    subject = SqliteSubject(tmp_path)
    subject.reset((), MODEL, Settings())
    assert subject.observe() == Observation(sessions=(), nodes=())
    subject.close()


def test_before_the_first_reset_there_is_nothing(tmp_path: Path) -> None:
    """It says so, and closing is no fault."""
    subject = SqliteSubject(tmp_path)
    with pytest.raises(StoreError, match="no store was begun"):
        subject.observe()
    subject.close()


def test_it_declares_its_readings(tmp_path: Path) -> None:
    """What it offers is the same for its whole life."""
    readings = Readings(refresh=RefreshReading.VERBATIM)
    declaration = SqliteSubject(tmp_path, readings=readings, implementation="mine").declaration
    assert declaration.readings == readings
    assert declaration.implementation == "mine"
    assert Capability.COMMIT in declaration.capabilities
