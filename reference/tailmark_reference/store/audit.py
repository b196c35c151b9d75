"""Looks a stored branch over and names what is damaged (DMG-1).

One walk from the leaf upwards. Nodes are read one at a time, and what has still to be met further up (a
checkpoint's place, the call of a result) is all that is remembered. Parents have smaller numbers, so a
link that does not lead to a smaller number leads back into what was walked, and ends the walk (DMG-6).
"""

import json
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from attrs import define, field, frozen

from tailmark import json_form
from tailmark.damage import Damage, DamageKind
from tailmark.identifiers import CallId, NodeId
from tailmark.json_form import JsonFormError
from tailmark.messages import ApprovalRequest, Message, Role, ToolCall, ToolResult
from tailmark.plans import Checkpoint
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.validity import is_valid

_ORDER = {kind: position for position, kind in enumerate(DamageKind)}
_LINKS = (DamageKind.MISSING_PARENT, DamageKind.CYCLE)
_KINDS = {
    Role.USER: NodeKind.USER.value,
    Role.ASSISTANT: NodeKind.ASSISTANT.value,
    Role.TOOL: NodeKind.TOOL.value,
}
_ASSISTANT = NodeKind.ASSISTANT.value
_CHECKPOINT = NodeKind.CHECKPOINT.value


class _Row(NamedTuple):
    """A node as it lies in the file: any column may hold anything."""

    seq: int
    id: object
    parent: object
    kind: object
    place: object
    checkpoint: object
    estimate: object
    body: object


# Text is asked for as bytes, so that one that is no UTF-8 is damage of its node and not an error of the walk.
_PATH = """
WITH RECURSIVE up (seq, parent) AS (
    SELECT seq, parent FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.parent FROM up JOIN node ON node.seq = up.parent WHERE node.seq < up.seq
)
SELECT node.seq, CAST(node.id AS BLOB), node.parent, node.kind, node.place, node.checkpoint, node.estimate, CAST(node.body AS BLOB)
FROM up CROSS JOIN node ON node.seq = up.seq
"""

_LINES = """
WITH RECURSIVE up (seq, parent) AS (
    SELECT seq, parent FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.parent FROM up JOIN node ON node.seq = up.parent WHERE node.seq < up.seq
)
SELECT seq FROM up
"""

_CALLS = "SELECT position, CAST(call AS BLOB), approval, settled FROM call WHERE node = ?"

# In the index no id stands twice, so the rows have none twice either if it has all of them. Rows that say
# another id than the index are found out by their bodies.
_COUNTS = """
SELECT (SELECT count(*) FROM node NOT INDEXED) = (SELECT count(*) FROM node INDEXED BY sqlite_autoindex_node_1)
"""

_DUPLICATES = "SELECT CAST(id AS BLOB) FROM node NOT INDEXED GROUP BY id HAVING count(*) > 1"


@frozen
class Fault:
    """A kind of damage and the number of the node that has it."""

    seq: int
    kind: DamageKind
    node: NodeId | None

    @property
    def is_unreadable(self) -> bool:
        """Whether the node itself cannot be read, and not only its link upwards is lost."""
        return self.kind not in _LINKS


class _Content(NamedTuple):
    """What the audit needs of a readable body."""

    id: NodeId
    kind: int
    first_kept: NodeId | None
    results: tuple[CallId, ...]
    calls: tuple[tuple[int, CallId, bool, bool], ...]
    """Position, id, whether the user is asked, and whether the message itself has the final result."""


# Finding out the encoding, as `json.loads` does, takes its time.
_decode = json.JSONDecoder().decode


# Looking at one store again and again reads the same bodies; equal bytes are equal content.
@lru_cache(maxsize=4096)
def _read(body: bytes, kind: int) -> _Content | None:
    """What a body says; ``None`` if it cannot be read, or may not be stored under this kind."""
    try:
        plain = _decode(body.decode())
        if kind == _CHECKPOINT:
            checkpoint = json_form.structure(plain, Checkpoint)
            return _Content(checkpoint.id, kind, checkpoint.first_kept, (), ())
        message = json_form.structure(plain, Message)
    except (ValueError, JsonFormError, RecursionError):
        return None
    if _KINDS[message.role] != kind or not is_valid(message):
        return None
    finals = [part.call for part in message.parts if isinstance(part, ToolResult) and not part.preliminary]
    if message.role is not Role.ASSISTANT:
        return _Content(message.id, kind, None, tuple(finals), ())
    asked = {part.call for part in message.parts if isinstance(part, ApprovalRequest)}
    calls = tuple(
        (position, part.call, part.call in asked, part.call in finals)
        for position, part in enumerate(message.parts)
        if isinstance(part, ToolCall)
    )
    return _Content(message.id, kind, None, (), calls)


def is_readable(body: object, kind: object) -> bool:
    """Whether a body is the content of a node of this kind."""
    return isinstance(body, bytes) and isinstance(kind, int) and _read(body, kind) is not None


def duplicate_ids(connection: sqlite3.Connection) -> frozenset[bytes]:
    """The ids that more than one row has. This reads the whole table, in the memory of SQLite's sorter."""
    try:
        if connection.execute(_COUNTS).fetchone() == (1,):
            return frozenset()
    except sqlite3.OperationalError:
        pass  # without the index only the rows can say it
    return frozenset(row[0] for row in connection.execute(_DUPLICATES))


def audit(
    connection: sqlite3.Connection, leaf: int | None, duplicates: frozenset[bytes]
) -> tuple[Fault, ...]:
    """What is damaged on the path that ends in ``leaf``, from there upwards; of one node in the order of `DamageKind`."""
    if leaf is None:
        return ()
    walk = _Walk(connection, duplicates)
    for values in connection.execute(_PATH, {"leaf": leaf}):
        walk.meet(_Row._make(values))
    if walk.last is None:
        return (Fault(leaf, DamageKind.MISSING_LEAF, None),)
    walk.end()
    return tuple(sorted(walk.faults.values(), key=lambda fault: (-fault.seq, _ORDER[fault.kind])))


@frozen
class _Waiting:
    """A checkpoint whose place is still to be met. ``first_kept`` is ``None`` where its body cannot be read."""

    checkpoint: int
    node: NodeId | None
    first_kept: NodeId | None


@define
class _Walk:
    """One walk upwards: what was found, and what is still to be met."""

    connection: sqlite3.Connection
    duplicates: frozenset[bytes]
    faults: dict[tuple[int, DamageKind], Fault] = field(factory=dict)
    last: _Row | None = None
    # By the number of the place; the highest of them is met first.
    _places: dict[int, list[_Waiting]] = field(factory=dict)
    # By call: the tool messages below that have a result for it, and their ids.
    _results: dict[CallId, list[tuple[int, NodeId | None]]] = field(factory=dict)

    def meet(self, row: _Row) -> None:
        """The next node of the path."""
        node = _text(row.id)
        kind = row.kind if isinstance(row.kind, int) else 0
        content = _read(row.body, kind) if isinstance(row.body, bytes) else None
        if row.id in self.duplicates:
            self._found(row.seq, DamageKind.DUPLICATE_ID, node)
        rows = self._call_rows(row.seq) if kind == _ASSISTANT else ()
        if content is None or content.id != node or not self._columns_fit(row, content, rows):
            content = None
            self._found(row.seq, DamageKind.INVALID_MESSAGE, node)
        if self.last is not None:
            self._link_columns(self.last, row)
        self._meet_places(row, node)
        self._meet_calls(rows)
        if kind == _CHECKPOINT:
            self._await_place(row, node, content)
        for call in content.results if content is not None else ():
            self._results.setdefault(call, []).append((row.seq, node))
        self.last = row

    def end(self) -> None:
        """The path goes no further: at a root, or because the last node's link is lost."""
        assert self.last is not None
        parent = self.last.parent
        broken = parent is not None
        if broken:
            leads_back = isinstance(parent, int) and self._is_stored(parent)
            kind = DamageKind.CYCLE if leads_back else DamageKind.MISSING_PARENT
            self._found(self.last.seq, kind, _text(self.last.id))
        elif self.last.checkpoint != (self.last.seq if self.last.kind == _CHECKPOINT else None):
            self._found(self.last.seq, DamageKind.INVALID_MESSAGE, _text(self.last.id))
        for place, waiting in self._places.items():
            # Above a lost link a place may be an ancestor, if it is anywhere.
            if not broken or place > self.last.seq or not self._is_stored(place):
                for one in waiting:
                    self._found(one.checkpoint, DamageKind.PLACE_NO_ANCESTOR, one.node)
        dangling = [(seq, node, call) for call, below in self._results.items() for seq, node in below]
        if broken and dangling:
            # Calls above the lost link may be what these results are for.
            known = self._settled_above(self.last.seq, {seq for seq, _, _ in dangling})
            dangling = [one for one in dangling if (one[0], one[2]) not in known]
        for seq, node, _ in dangling:
            self._found(seq, DamageKind.DANGLING_RESULT, node)

    def _found(self, seq: int, kind: DamageKind, node: NodeId | None) -> None:
        self.faults[seq, kind] = Fault(seq, kind, node)

    def _columns_fit(self, row: _Row, content: _Content, rows: tuple[tuple[object, ...], ...]) -> bool:
        """Whether the columns say what the body says."""
        if not isinstance(row.estimate, int) or row.estimate < 0:
            return False
        if len(rows) != len(content.calls):
            return False
        for (position, call, approval, settled), said in zip(rows, content.calls, strict=True):
            if position != said[0] or str(_text(call)) != str(said[1]) or approval != int(said[2]):
                return False
            # A result that the message has itself settles the call there, any other further down.
            if (settled == row.seq) is not said[3] or not (settled is None or isinstance(settled, int)):
                return False
        return True

    def _link_columns(self, below: _Row, above: _Row) -> None:
        """The latest checkpoint follows from the parent."""
        latest = above.seq if above.kind == _CHECKPOINT else above.checkpoint
        own = below.seq if below.kind == _CHECKPOINT else latest
        if below.checkpoint != own:
            self._found(below.seq, DamageKind.INVALID_MESSAGE, _text(below.id))

    def _await_place(self, row: _Row, node: NodeId | None, content: _Content | None) -> None:
        first_kept = content.first_kept if content is not None else None
        if row.place is None and first_kept is None:
            return  # open: its place is behind itself
        if (
            isinstance(row.place, int)
            and 0 < row.place < row.seq
            and (content is None or first_kept is not None)
        ):
            self._places.setdefault(row.place, []).append(_Waiting(row.seq, node, first_kept))
        else:
            self._found(row.seq, DamageKind.PLACE_NO_ANCESTOR, node)

    def _meet_places(self, row: _Row, node: NodeId | None) -> None:
        for waiting in self._places.pop(row.seq, ()):
            fits = row.kind != _CHECKPOINT and waiting.first_kept in (None, node)
            if not fits:
                self._found(waiting.checkpoint, DamageKind.PLACE_NO_ANCESTOR, waiting.node)

    def _call_rows(self, seq: int) -> tuple[tuple[object, ...], ...]:
        return tuple(self.connection.execute(_CALLS, (seq,)))

    def _meet_calls(self, rows: tuple[tuple[object, ...], ...]) -> None:
        """A call is answered by the nearest result below it; the table says by which."""
        if not self._results:
            return
        for _, call, _, settled in rows:
            name = _text(call)
            if name is None:
                continue
            for seq, node in self._results.pop(CallId(name), ()):
                if seq != settled:
                    self._found(seq, DamageKind.DANGLING_RESULT, node)

    def _settled_above(self, seq: int, by: set[int]) -> set[tuple[int, CallId]]:
        rows: Iterator[tuple[object, object]] = self.connection.execute(
            "SELECT settled, CAST(call AS BLOB) FROM call WHERE node < ? AND settled IS NOT NULL", (seq,)
        )
        return {
            (settled, CallId(name))
            for settled, call in rows
            if isinstance(settled, int) and settled in by and (name := _text(call)) is not None
        }

    def _is_stored(self, seq: int) -> bool:
        return self.connection.execute("SELECT 1 FROM node WHERE seq = ?", (seq,)).fetchone() is not None


def _text(value: object) -> NodeId | None:
    """Text that was asked for as bytes; ``None`` where it is none."""
    if not isinstance(value, bytes):
        return None
    try:
        return NodeId(value.decode())
    except UnicodeDecodeError:
        return None


def as_damage(faults: tuple[Fault, ...]) -> tuple[Damage, ...]:
    """What a session shows of the faults on its branch."""
    return tuple(Damage(kind=fault.kind, node=fault.node) for fault in faults)


def readable_run(
    connection: sqlite3.Connection, leaf: int | None, faults: tuple[Fault, ...]
) -> tuple[int, int] | None:
    """The lowest and the highest number of the readable part of a path (DMG-2); ``None`` where nothing of it is readable."""
    unreadable = {fault.seq for fault in faults if fault.is_unreadable}
    top: int | None = None
    end: int | None = None
    for (seq,) in connection.execute(_LINES, {"leaf": leaf}):
        if seq not in unreadable:
            top = seq
            end = seq if end is None else end
        elif end is not None:
            break
    return None if top is None or end is None else (top, end)


def unreadable_nodes(connection: sqlite3.Connection, duplicates: frozenset[bytes]) -> frozenset[int]:
    """The numbers of the nodes that cannot be read, on and off all branches. This walks every branch."""
    parents = {
        parent for (parent,) in connection.execute("SELECT parent FROM node NOT INDEXED WHERE parent < seq")
    }
    # Every path downwards along growing numbers ends at one of these, even out of a cycle.
    tips = [seq for (seq,) in connection.execute("SELECT seq FROM node NOT INDEXED") if seq not in parents]
    return frozenset(
        fault.seq for tip in tips for fault in audit(connection, tip, duplicates) if fault.is_unreadable
    )
