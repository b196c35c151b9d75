"""Damaged histories: what can be wrong with stored nodes (DMG)."""

from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import NodeId


class DamageKind(StrEnum):
    """What is wrong with a node, and so what `InflictDamage` does to it.

    Of the first two only the link to the parent is lost, so the node is readable; of the others the node is not.
    """

    MISSING_PARENT = "missing-parent"
    """Its parent is a node that is not stored."""
    CYCLE = "cycle"
    """Its parent is the node itself, or one behind it."""
    DUPLICATE_ID = "duplicate-id"
    """A second node has its id."""
    INVALID_MESSAGE = "invalid-message"
    """Its content cannot be read, or may not be stored. Any node can have this, a checkpoint too."""
    MISSING_LEAF = "missing-leaf"
    """The session's leaf names a node that is not stored. Inflicted on the leaf of the session that the operation names."""
    PLACE_NO_ANCESTOR = "place-no-ancestor"
    """A checkpoint's ``first_kept`` is no ancestor of it. Inflicted on checkpoints."""
    DANGLING_RESULT = "dangling-result"
    """A result whose call is not open before it. Inflicted on messages of the role `tool`."""


@frozen(kw_only=True)
class Damage:
    """Something wrong on a branch. ``node`` is the node that has it; for a missing leaf the id that the session names, if it can be told."""

    kind: DamageKind
    node: NodeId | None


class FindingKind(StrEnum):
    """What is unusual, but harms nobody (DMG-1)."""

    PLACE_OPENS_NO_TURN = "place-opens-no-turn"
    PLACE_MOVES_BACK = "place-moves-back"


@frozen(kw_only=True)
class Finding:
    """Something unusual about a stored checkpoint."""

    kind: FindingKind
    node: NodeId
