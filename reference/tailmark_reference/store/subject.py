"""The store as a subject: what the conformance suite drives."""

from itertools import count
from pathlib import Path
from typing import Final

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability, Declaration, Readings
from tailmark.identifiers import SessionId
from tailmark.operations import InflictDamage, Operation
from tailmark.outcomes import Done, Outcome, RefusalCode, Refused
from tailmark.views import Observation
from tailmark_reference.estimate import ESTIMATOR, Estimator
from tailmark_reference.store.conditions import COMMIT_CONDITIONS, CommitConditions
from tailmark_reference.store.connection import WAIT_SECONDS, ConnectionFactory, StoreError, connect
from tailmark_reference.store.damaging import CannotBeInflictedError, damage_store
from tailmark_reference.store.store import Store

CAPABILITIES: Final = (
    Capability.VIEW,
    Capability.HISTORY,
    Capability.TREE,
    Capability.COMMIT,
    Capability.CAPACITY,
    Capability.DURABILITY,
)
"""What the store offers."""


class SqliteSubject:
    """A store in a folder of its own. Each reset begins a new file there, and deletes the one before and any that has the new one's name."""

    def __init__(
        self,
        folder: Path,
        *,
        connection_factory: ConnectionFactory = connect,
        wait_seconds: float = WAIT_SECONDS,
        estimator: Estimator = ESTIMATOR,
        readings: Readings = Readings(),  # noqa: B008  # a frozen value
        conditions: CommitConditions = COMMIT_CONDITIONS,
        implementation: str = "reference store",
    ) -> None:
        self._folder = folder
        self._connection_factory = connection_factory
        self._wait_seconds = wait_seconds
        self._estimator = estimator
        self._readings = readings
        self._conditions = conditions
        self._numbers = count(1)
        self._path: Path | None = None
        self._store: Store | None = None
        self._declaration = Declaration(
            implementation=implementation, capabilities=CAPABILITIES, readings=readings
        )

    @property
    def declaration(self) -> Declaration:
        """What the store says of itself."""
        return self._declaration

    @property
    def store(self) -> Store:
        """The open store. Raises `StoreError` before the first reset."""
        if self._store is None:
            raise StoreError(f"{self._folder}: no store was begun")
        return self._store

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """Start from an empty store with these sessions. Raises `StoreError`."""
        self._forget()
        self._path = self._folder / f"store-{next(self._numbers)}.sqlite"
        # A subject that was here before leaves its file.
        _delete(self._path)
        self._store = self._opened(self._path)
        for session in sessions:
            self._store.add_session(session, model, settings)

    def reopen(self) -> None:
        """Go on with the store that the first reset of another process began in this folder. Raises `StoreError`."""
        self._forget()
        self._path = self._folder / f"store-{next(self._numbers)}.sqlite"
        self._store = self._opened(self._path)

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation. The store does not damage itself, so that one is done here."""
        if isinstance(operation, InflictDamage):
            return self._damage(operation)
        return self.store.perform(operation)

    def observe(self) -> Observation:
        """What can be seen now."""
        return self.store.observe()

    def observe_fresh(self) -> Observation:
        """What another process sees."""
        return self.store.observe_fresh()

    def close(self) -> None:
        """Close the store. Its file stays."""
        self._close()

    def _opened(self, path: Path) -> Store:
        return Store.open(
            path,
            connection_factory=self._connection_factory,
            wait_seconds=self._wait_seconds,
            estimator=self._estimator,
            readings=self._readings,
            conditions=self._conditions,
        )

    def _damage(self, operation: InflictDamage) -> Outcome:
        """The rows are changed first, for nothing may end if they cannot be; then the process ends and another begins."""
        store, path = self.store, self._path
        assert path is not None  # a store was begun
        outcome = store.perform(operation)
        if outcome == Refused(code=RefusalCode.UNKNOWN_SESSION):
            return outcome
        try:
            damage_store(path, operation.session, operation.damage, operation.node)
        except CannotBeInflictedError:
            return Refused(code=RefusalCode.UNKNOWN_NODE)
        store.close()
        self._store = self._opened(path)
        return Done()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _forget(self) -> None:
        self._close()
        if self._path is not None:
            _delete(self._path)
            self._path = None


def _delete(path: Path) -> None:
    """Remove a store with its log and shared memory, where they are."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
