"""The records of a Claude Code file by their own parent links, and what is wrong with these.

A record may name a parent that does not exist, that stands later in the file, or that descends from the
record itself. Which of them it is can be said only at the end of the file; until then the record is taken to
follow the last one of its conversation. A record takes two numbers beside its entry in the index.
"""

from array import array
from collections.abc import Iterator

from attrs import frozen

from tailmark.identifiers import NodeId
from tailmark_conformance.recorded.importing import DAMAGE, Finding

_NONE = -1


@frozen(kw_only=True)
class _Waiting:
    """A record whose parent was not there when it came."""

    row: int
    line: int
    parent: str
    link: str


class Lineage:
    """Every record that has an id, and the node at which it stands."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._parents = array("q")
        self._nodes: list[NodeId | None] = []
        self._waiting: list[_Waiting] = []
        self._lost_lines: list[int] = []

    def __contains__(self, record: str) -> bool:
        return record in self._rows

    def add(self, record: str, *, parent: str | None, link: str, line: int) -> int:
        """Add a record and answer its row. ``link`` is what its parent is called where it is missing."""
        row = len(self._nodes)
        self._rows[record] = row
        self._nodes.append(None)
        above = self._rows.get(parent, _NONE) if parent is not None and parent != record else _NONE
        self._parents.append(above)
        if parent is not None and above == _NONE:
            self._waiting.append(_Waiting(row=row, line=line, parent=parent, link=link))
        return row

    def row(self, record: str | None) -> int | None:
        """The row of a record that was added."""
        return self._rows.get(record) if record is not None else None

    def node(self, row: int) -> NodeId | None:
        """The node at which a record stands: its own, or that of the nearest record above that has one."""
        return self._nodes[row]

    def stand(self, row: int, node: NodeId | None) -> None:
        """Say at which node a record stands."""
        self._nodes[row] = node

    def lose(self, line: int) -> None:
        """A line that may have held a record could not be read."""
        self._lost_lines.append(line)

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the parent links of the whole file."""
        for waiting in self._waiting:
            self._parents[waiting.row] = self._rows.get(waiting.parent, _NONE)
        circular = self._circular()
        for waiting in self._waiting:
            yield Finding(
                clause=DAMAGE,
                line=waiting.line,
                node=self._nodes[waiting.row],
                text=self._fault(waiting, circular=waiting.row in circular),
            )

    def _fault(self, waiting: _Waiting, *, circular: bool) -> str:
        taken = "it is taken to follow the record before it"
        if circular:
            return f"a cycle: the {waiting.link} {waiting.parent} descends from this record; {taken}"
        if waiting.parent in self._rows:
            return f"the {waiting.link} {waiting.parent} stands later in the file; {taken}"
        lost = [line for line in self._lost_lines if line < waiting.line]
        hint = f", unless it stood on line {lost[-1]}, which could not be read" if lost else ""
        return f"names a {waiting.link} that does not exist, {waiting.parent}{hint}; {taken}"

    def _circular(self) -> frozenset[int]:
        """The rows on cycles. Every row is visited once, so this is linear in the file."""
        unseen, on_walk, done = 0, 1, 2
        state = bytearray(len(self._nodes))
        circular: set[int] = set()
        for waiting in self._waiting:
            walk: list[int] = []
            row = waiting.row
            while row != _NONE and state[row] == unseen:
                state[row] = on_walk
                walk.append(row)
                row = self._parents[row]
            if row != _NONE and state[row] == on_walk:
                circular.update(walk[walk.index(row) :])
            for walked in walk:
                state[walked] = done
        return frozenset(circular)
