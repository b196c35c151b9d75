"""How a store is opened, and which of its replaceable parts it works with."""

from pathlib import Path

from attrs import frozen

from tailmark.declarations import Readings
from tailmark_reference.estimate import ESTIMATOR, Estimator
from tailmark_reference.store.conditions import COMMIT_CONDITIONS, CommitConditions
from tailmark_reference.store.connection import (
    WAIT_SECONDS,
    ConnectionFactory,
    Database,
    connect,
    open_database,
)


@frozen(kw_only=True)
class Settings:
    """What `Store.open` was given.

    ``wait_seconds``: how long an operation waits for another process before it answers `failed(locked)`.
    """

    connection_factory: ConnectionFactory = connect
    wait_seconds: float = WAIT_SECONDS
    estimator: Estimator = ESTIMATOR
    readings: Readings = Readings()
    conditions: CommitConditions = COMMIT_CONDITIONS

    def opened(self, path: Path) -> Database:
        """A connection to the store at ``path``. Raises `StoreError`."""
        return open_database(path, connection_factory=self.connection_factory, wait_seconds=self.wait_seconds)
