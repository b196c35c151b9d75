"""What can still be read of a damaged history, and which sessions are read-only (DMG).

Damage is inflicted from outside and remembered beside the tree. The readable part of a branch is built anew,
as if it were all that there is.
"""

from collections.abc import Iterator

from attrs import evolve

from tailmark.damage import Damage, DamageKind, Finding
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Role
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.tree import TreeNode, walk
from tailmark_reference.model.world import Session, World
from tailmark_reference.model.writing import make_node

_LINK = (DamageKind.MISSING_PARENT, DamageKind.CYCLE)


def _path(world: World, leaf: TreeNode | None) -> Iterator[TreeNode]:
    """From a leaf upwards as far as parents can be told."""
    for node in walk(leaf):
        yield node
        if world.damage.get(node.id) in _LINK:
            return


def _is_readable(world: World, node: TreeNode) -> bool:
    kind = world.damage.get(node.id)
    return kind is None or kind in _LINK


def damage_above(world: World, leaf: TreeNode | None) -> tuple[Damage, ...]:
    """What is wrong on a path, from the leaf upwards (DMG-1)."""
    if not world.damage:
        return ()
    return tuple(
        Damage(kind=world.damage[node.id], node=node.id)
        for node in _path(world, leaf)
        if node.id in world.damage
    )


def damage_of(world: World, session: Session) -> tuple[Damage, ...]:
    """What is wrong with a session's branch."""
    if session.id in world.lost_leaves:
        return (Damage(kind=DamageKind.MISSING_LEAF, node=None),)
    return damage_above(world, session.leaf)


def readable_leaf(rules: Rules, world: World, session: Session) -> TreeNode | None:
    """The end of the readable part of a session's branch, on a path that begins where that part begins (DMG-2)."""
    if session.id in world.lost_leaves:
        return None
    run: list[TreeNode] = []
    for node in _path(world, session.leaf):
        if _is_readable(world, node):
            run.append(node)
        elif run:
            break
    leaf: TreeNode | None = None
    for node in reversed(run):
        leaf = evolve(make_node(rules, node.content, leaf, node.late), estimate=node.estimate)
    return leaf


def findings_of(leaf: TreeNode | None) -> tuple[Finding, ...]:
    """What is unusual about the checkpoints of a branch, root first."""
    found = []
    checkpoint = leaf if leaf is None or leaf.checkpoint is not None else leaf.checkpoint_above
    while checkpoint is not None:
        if checkpoint.finding is not None:
            found.append(Finding(kind=checkpoint.finding, node=checkpoint.id))
        checkpoint = checkpoint.checkpoint_above
    return tuple(reversed(found))


def may_be_inflicted(world: World, session: Session, damage: DamageKind, node_id: NodeId) -> bool:
    """Whether a node can be damaged so: it is sound, and it is of the sort that the kind is about."""
    node = world.nodes.get(node_id)
    if node is None or node_id in world.damage:
        return False
    match damage:
        case DamageKind.MISSING_LEAF:
            return session.leaf is node and session.id not in world.lost_leaves
        case DamageKind.PLACE_NO_ANCESTOR:
            return node.checkpoint is not None
        case DamageKind.DANGLING_RESULT:
            return node.message is not None and node.message.role is Role.TOOL
        case _:
            return True


def inflicted(world: World, session: SessionId, damage: DamageKind, node: NodeId) -> World:
    """The world with one more damage in it."""
    if damage is DamageKind.MISSING_LEAF:
        return evolve(world, lost_leaves=world.lost_leaves | {session})
    return evolve(world, damage={**world.damage, node: damage})
