"""Connections to a store file: how it is opened, how transactions begin and end, how long they wait."""

import os
import random
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

from tailmark.outcomes import Committed, Done, Failed, FailureReason, Outcome, ReadOnly, Sent
from tailmark_reference.store.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION

T = TypeVar("T")

ConnectionFactory: TypeAlias = Callable[[str], sqlite3.Connection]
"""Opens the SQLite URI that it is given, in autocommit mode and without a busy timeout of its own."""

WAIT_SECONDS = 5.0
"""How long a transaction waits for another process before it gives up."""

_SHORTEST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.025


class StoreError(Exception):
    """The store cannot be opened, read or written. The text is one line for people."""


class LockedError(StoreError):
    """Another process held the store for longer than the declared wait. Nothing changed."""


class UnwritableError(StoreError):
    """The file can be read, but not written. Nothing changed."""


def answered(do: Callable[[], Outcome]) -> Outcome:
    """What was done: `failed(locked)` where the store was held for too long, `read-only` where it cannot be written."""
    try:
        return do()
    except LockedError:
        return Failed(reason=FailureReason.LOCKED)
    except UnwritableError:
        return ReadOnly()


def connect(uri: str) -> sqlite3.Connection:
    """The default `ConnectionFactory`."""
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)


def _told(error: Exception) -> str:
    # A damaged file can have anything in its texts, and so in SQLite's words about it.
    if isinstance(error, UnicodeDecodeError):
        return "damaged: a text that is no UTF-8"
    return " ".join(str(error).split())


def _is(error: Exception, code: int) -> bool:
    # An error that SQLite did not raise has no code; the low byte is the primary one.
    return bool(getattr(error, "sqlite_errorcode", 0) & 0xFF == code)


class Database:
    """One connection to a store file. ``wait_seconds`` bounds each wait for another process."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, wait_seconds: float, *, read_only: bool
    ) -> None:
        self.connection = connection
        self.read_only = read_only
        self._path = path
        self._wait_seconds = wait_seconds

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``work`` on one snapshot of the store. It must not write, and is done again if the store was held.

        Raises `LockedError`, and `StoreError` for what SQLite reports.
        """

        def attempt() -> T:
            self._begin("BEGIN")
            try:
                return work(self.connection)
            finally:
                self._roll_back()

        try:
            return self._patiently(attempt)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{self._path}: {_told(error)}") from error

    def write(self, work: Callable[[sqlite3.Connection], Outcome]) -> Outcome:
        """Do ``work`` as one transaction, alone. What is none of `Done`, `Sent` and `Committed` leaves no trace.

        Raises `LockedError`, `UnwritableError`, and `StoreError` for what SQLite reports otherwise.
        """
        if self.read_only:
            raise UnwritableError(f"{self._path}: the file cannot be written")
        try:
            # Mostly nobody is in the way and nothing is left behind.
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not _is(error, sqlite3.SQLITE_BUSY) and not self.connection.in_transaction:
                    raise
                self._patiently(lambda: self._begin("BEGIN IMMEDIATE"))
            try:
                outcome = work(self.connection)
                if isinstance(outcome, Done | Sent | Committed):
                    self.connection.execute("COMMIT")
            finally:
                self._roll_back()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if _is(error, sqlite3.SQLITE_READONLY):
                raise UnwritableError(f"{self._path}: the file cannot be written") from error
            raise StoreError(f"{self._path}: {_told(error)}") from error
        return outcome

    def close(self) -> None:
        """Give the file back."""
        self.connection.close()

    def _begin(self, statement: str) -> None:
        # Something may be left of a transaction whose end failed.
        self._roll_back()
        self.connection.execute(statement)

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """SQLite's own busy handler is unfair to the one who waits longest, so the pauses are drawn here."""
        deadline: float | None = None
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not _is(error, sqlite3.SQLITE_BUSY):
                    raise
                now = time.monotonic()
                if deadline is None:
                    deadline = now + self._wait_seconds
                if now >= deadline:
                    raise LockedError(
                        f"{self._path}: another process held the store for {self._wait_seconds:g} seconds"
                    ) from error
            pause = random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)  # jitter
            time.sleep(min(pause, deadline - now))

    def prepare(self) -> None:
        """Set the connection up, make the tables in an empty file, and refuse a file that is not a store."""
        try:
            # Done again as a whole where another process was in the way: each part of it may be.
            self._patiently(self._prepare)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if _is(error, sqlite3.SQLITE_NOTADB):
                raise StoreError(f"{self._path}: not an SQLite file") from error
            raise StoreError(f"{self._path}: {_told(error)}") from error

    def _prepare(self) -> None:
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA synchronous = FULL")
        if not self._is_store() and not self.read_only and self._is_empty():
            self._make_tables()
        if not self._is_store():
            raise StoreError(f"{self._path}: an SQLite file, but not a store of tailmark")
        version = self._number("PRAGMA user_version")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._path}: has schema version {version}; this program reads version {SCHEMA_VERSION}"
            )

    def _make_tables(self) -> None:
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster.
            if self._is_empty():
                for statement in SCHEMA:
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                self.connection.execute("COMMIT")
        finally:
            self._roll_back()

    def _is_store(self) -> bool:
        return self._number("PRAGMA application_id") == APPLICATION_ID

    def _number(self, statement: str) -> int:
        (number,) = self.connection.execute(statement).fetchone()
        return int(number)

    def _is_empty(self) -> bool:
        return (
            self._number("PRAGMA application_id") == 0
            and self._number("PRAGMA user_version") == 0
            and self._number("SELECT count(*) FROM sqlite_schema") == 0
        )


def _is_read_only(path: Path, mode: int) -> bool:
    """Nobody may write it, or not this user. The first also binds a user who may write everything."""
    return not mode & 0o222 or not os.access(path, os.W_OK)


def open_database(
    path: Path, *, connection_factory: ConnectionFactory = connect, wait_seconds: float = WAIT_SECONDS
) -> Database:
    """Open the store at ``path``, or make a new one where no file is.

    Raises `StoreError` with one clear line.
    """
    try:
        mode_bits = path.stat().st_mode
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise StoreError(f"{path}: the folder {path.parent} does not exist") from None
        read_only = False
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    else:
        if stat.S_ISDIR(mode_bits):
            raise StoreError(f"{path}: a folder, not a store file")
        read_only = _is_read_only(path, mode_bits)
    mode = "ro" if read_only else "rwc"
    try:
        connection = connection_factory(f"{path.absolute().as_uri()}?mode={mode}")
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    database = Database(connection, path, wait_seconds, read_only=read_only)
    try:
        database.prepare()
    except BaseException:
        connection.close()
        raise
    return database
