"""What one process knows of the soundness of its sessions: each is audited once, when it is first worked with (DMG-1)."""

import hashlib
import sqlite3
from pathlib import Path

from attrs import Factory, define, frozen

from tailmark.damage import Damage
from tailmark.identifiers import SessionId
from tailmark_reference.store.audit import (
    Fault,
    as_damage,
    audit,
    duplicate_ids,
    readable_run,
    unreadable_nodes,
)
from tailmark_reference.store.queries import SessionRow, is_on_branch
from tailmark_reference.store.readable import scratch


@frozen(eq=False)
class Damaged:
    """A damaged session: what is wrong, and its readable part as a store of its own."""

    damage: tuple[Damage, ...]
    part: sqlite3.Connection


@define
class Audits:
    """The audits of one process. What this or another process wrote later is sound, so they hold until somebody reads anew."""

    _known: dict[SessionId, Damaged | None] = Factory(dict)
    _duplicates: frozenset[bytes] | None = None
    _unreadable: frozenset[int] | None = None

    def of(self, connection: sqlite3.Connection, session: SessionRow) -> Damaged | None:
        """What is wrong with a session's branch; ``None`` if nothing is. The first call walks the branch."""
        if session.id not in self._known:
            self._known[session.id] = self._audited(connection, session)
        return self._known[session.id]

    def known(self, session: SessionId) -> Damaged | None:
        """What was found when the session was audited; ``None`` if it was not."""
        return self._known.get(session)

    def is_damaged_above(self, connection: sqlite3.Connection, session: SessionRow, target: int) -> bool:
        """Whether a node, or one above it, is damaged. The nodes of a sound session are sound."""
        if self.of(connection, session) is None and is_on_branch(connection, session.leaf, target):
            return False
        return bool(self._faults(connection, target))

    def unreadable(self, connection: sqlite3.Connection) -> frozenset[int]:
        """The numbers of all nodes that cannot be read. The first call walks the whole store."""
        if self._unreadable is None:
            self._unreadable = unreadable_nodes(connection, self._doubled(connection))
        return self._unreadable

    def found_damage(self) -> bool:
        """Whether any audited session is damaged."""
        return any(damaged is not None for damaged in self._known.values())

    def forget(self, session: SessionId) -> None:
        """The session is read anew by whoever asks next."""
        damaged = self._known.pop(session, None)
        if damaged is not None:
            damaged.part.close()
        self._duplicates = self._unreadable = None

    def close(self) -> None:
        """Give back what the readable parts take."""
        for session in tuple(self._known):
            self.forget(session)

    def _audited(self, connection: sqlite3.Connection, session: SessionRow) -> Damaged | None:
        faults = self._faults(connection, session.leaf)
        if not faults:
            return None
        run = readable_run(connection, session.leaf, faults)
        return Damaged(as_damage(faults), scratch(connection, session.id, run))

    def _faults(self, connection: sqlite3.Connection, leaf: int | None) -> tuple[Fault, ...]:
        return audit(connection, leaf, self._doubled(connection)) if leaf is not None else ()

    def _doubled(self, connection: sqlite3.Connection) -> frozenset[bytes]:
        if self._duplicates is None:
            self._duplicates = duplicate_ids(connection)
        return self._duplicates


def store_digest(path: Path) -> str:
    """A digest of the durable bytes: the file, and the log of what is not in it yet (DMG-4)."""
    hashed = hashlib.sha256()
    for file in (path, path.with_name(f"{path.name}-wal")):
        # A log that holds nothing and none are the same.
        if file.exists():
            with file.open("rb") as stream:
                for block in iter(lambda: stream.read(1 << 20), b""):
                    hashed.update(block)
    return hashed.hexdigest()
