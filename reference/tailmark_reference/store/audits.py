"""What one process knows of the soundness of its sessions: each is audited once, when it is first worked with (DMG-1)."""

import sqlite3

from attrs import Factory, define

from tailmark.damage import Damage
from tailmark.identifiers import SessionId
from tailmark.json_form import JsonFormError
from tailmark.operations import (
    CancelCompaction,
    CommitCompaction,
    Fork,
    InflictDamage,
    Load,
    Operation,
    Restart,
)
from tailmark_reference.store.audit import (
    Fault,
    as_damage,
    audit,
    duplicate_ids,
    readable_run,
    unreadable_nodes,
)
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.queries import (
    SessionRow,
    is_on_branch,
    node_by_id,
    session_row,
    session_sizes,
)
from tailmark_reference.store.readable import scratch
from tailmark_reference.store.sizes import sizes


@define(eq=False)
class Damaged:
    """A damaged session: what is wrong, and its readable part, which is copied when somebody first asks for it."""

    session: SessionId
    leaf: int | None
    faults: tuple[Fault, ...]
    _part: sqlite3.Connection | None = None

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What the session shows of it."""
        return as_damage(self.faults)

    def of_part(self, connection: sqlite3.Connection) -> tuple[sqlite3.Connection, SessionRow]:
        """A store that holds the readable part of the session and nothing else, and the session there."""
        if self._part is None:
            run = readable_run(connection, self.leaf, self.faults)
            self._part = scratch(connection, self.session, run)
        row = session_row(self._part, self.session)
        assert row is not None  # it was copied
        return self._part, row

    def close(self) -> None:
        """Give back what the part takes."""
        if self._part is not None:
            self._part.close()
            self._part = None


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

    def is_sound(self, session: SessionId) -> bool:
        """Whether the session was audited and nothing was found."""
        return session in self._known and self._known[session] is None

    def trust(self, session: SessionId) -> None:
        """The session's branch was seen to be sound already, as that of a fork is."""
        self._known[session] = None

    def is_allowed(self, operation: Operation) -> bool:
        """Whether it is known without another look that no damage forbids an operation."""
        match operation:
            case CancelCompaction() | Load() | Restart() | InflictDamage():
                return True
            case Fork():
                return False
            case CommitCompaction(plan=plan):
                return self.is_sound(plan.session)
            case _:
                return self.is_sound(operation.session)

    def refuse(self, connection: sqlite3.Connection, operation: Operation) -> bool:
        """Whether damage forbids an operation: on the session that it is about, or above the target of a fork (DMG-3)."""
        if isinstance(operation, CancelCompaction | Load | Restart | InflictDamage):
            return False
        session = operation.plan.session if isinstance(operation, CommitCompaction) else operation.session
        row = session_row(connection, session)
        if row is None:
            return False
        if self.of(connection, row) is not None:
            return True
        if not isinstance(operation, Fork) or session_row(connection, operation.new_session) is not None:
            return False
        target = node_by_id(connection, operation.target)
        return target is not None and self._is_damaged_above(connection, row, target.seq)

    def known(self, session: SessionId) -> Damaged | None:
        """What was found when the session was audited; ``None`` if it was not."""
        return self._known.get(session)

    def _is_damaged_above(self, connection: sqlite3.Connection, session: SessionRow, target: int) -> bool:
        # The nodes of a sound session are sound.
        if is_on_branch(connection, session.leaf, target):
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
            damaged.close()
        self._duplicates = self._unreadable = None

    def close(self) -> None:
        """Give back what the readable parts take."""
        for session in tuple(self._known):
            self.forget(session)

    def _audited(self, connection: sqlite3.Connection, session: SessionRow) -> Damaged | None:
        check_session(connection, session)
        faults = self._faults(connection, session.leaf)
        return Damaged(session.id, session.leaf, faults) if faults else None

    def _faults(self, connection: sqlite3.Connection, leaf: int | None) -> tuple[Fault, ...]:
        return audit(connection, leaf, self._doubled(connection)) if leaf is not None else ()

    def _doubled(self, connection: sqlite3.Connection) -> frozenset[bytes]:
        if self._duplicates is None:
            self._duplicates = duplicate_ids(connection)
        return self._duplicates


def check_session(connection: sqlite3.Connection, session: SessionRow) -> None:
    """Raises `StoreError` where a session's own row cannot be read: there is no node to name for it."""
    try:
        sizes(*session_sizes(connection, session))
        readable = session.revision >= 0
    except (ValueError, TypeError, JsonFormError):
        readable = False
    if not readable:
        raise StoreError(
            f"the session {session.id} cannot be read: its model, settings or revision is damaged"
        )
