"""What is unusual about the checkpoints of a branch, and harms nobody (DMG-1)."""

import sqlite3
from typing import NamedTuple

from tailmark.damage import Finding, FindingKind
from tailmark.identifiers import NodeId
from tailmark_reference.store.schema import NodeKind

_USER = NodeKind.USER.value
_ASSISTANT = NodeKind.ASSISTANT.value
_CHECKPOINT = NodeKind.CHECKPOINT.value

_PATH = """
WITH RECURSIVE up (seq, parent, id, kind, place) AS (
    SELECT seq, parent, id, kind, place FROM node WHERE seq = :leaf
    UNION ALL
    SELECT node.seq, node.parent, node.id, node.kind, node.place
    FROM up JOIN node ON node.seq = up.parent WHERE node.seq < up.seq
)
SELECT seq, id, kind, place FROM up
"""

# The largest number stands for a call that is still open.
_OPEN_UNTIL = "SELECT max(ifnull(settled, 9223372036854775807)) FROM call WHERE node = ?"


class _Placed(NamedTuple):
    """A checkpoint and its place; ``None`` is the place behind itself, 0 one above the readable part."""

    seq: int
    node: NodeId
    place: int | None

    @property
    def position(self) -> int:
        """Of two places the larger is further down the branch."""
        return self.seq if self.place is None else self.place


def findings(connection: sqlite3.Connection, leaf: int | None) -> tuple[Finding, ...]:
    """Checkpoints whose place opens no turn, or stands before that of the checkpoint before them. Root first.

    The branch was audited. One walk upwards, in memory that grows with the checkpoints.
    """
    checkpoints: list[_Placed] = []
    named: set[int] = set()
    openers: set[int] = set()
    # Places met so far before which no open call was found yet; the last is the highest up.
    likely: list[int] = []
    for seq, node, kind, place in connection.execute(_PATH, {"leaf": leaf}):
        if kind == _CHECKPOINT:
            checkpoints.append(_Placed(seq, node, place))
            if place is not None:
                named.add(place)
        elif kind == _ASSISTANT and likely:
            (until,) = connection.execute(_OPEN_UNTIL, (seq,)).fetchone()
            while likely and until is not None and likely[-1] < until:
                openers.discard(likely.pop())
        if seq in named and kind == _USER:
            likely.append(seq)
            openers.add(seq)
    found = []
    before = 0
    for checkpoint in reversed(checkpoints):
        # A place above the readable part says nothing.
        if checkpoint.place != 0:
            if checkpoint.position < before:
                found.append(Finding(kind=FindingKind.PLACE_MOVES_BACK, node=checkpoint.node))
            elif checkpoint.place is not None and checkpoint.place not in openers:
                found.append(Finding(kind=FindingKind.PLACE_OPENS_NO_TURN, node=checkpoint.node))
        before = checkpoint.position
    return tuple(found)
