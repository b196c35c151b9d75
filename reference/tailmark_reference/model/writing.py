"""What the transitions share: how nodes are made and replaced, and what is asked of a session."""

from attrs import evolve

from tailmark.identifiers import NodeId
from tailmark.messages import Message, Role
from tailmark.outcomes import (
    Skipped,
    Stale,
)
from tailmark.plans import Node
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.tree import OpenCalls, TreeNode, walk
from tailmark_reference.model.world import Session, World


def make_node(rules: Rules, content: Node, parent: TreeNode | None) -> TreeNode:
    """A node behind a parent, with all that follows from the path above it."""
    open_calls: OpenCalls = parent.open_calls if parent is not None else ()
    turns = parent.turns if parent is not None else 0
    above = rules.latest_checkpoint(parent)
    if not isinstance(content, Message):
        return TreeNode(
            content=content,
            parent=parent,
            estimate=rules.estimate_summary(content.summary),
            open_calls=open_calls,
            opens_turn=False,
            turns=turns,
            checkpoint_above=above,
            projected=None,
        )
    opens = content.role is Role.USER and rules.opens_turn(open_calls, content)
    return TreeNode(
        content=content,
        parent=parent,
        estimate=rules.estimate(content),
        open_calls=open_calls if content.role is Role.USER else rules.calls_after(open_calls, content),
        opens_turn=opens,
        turns=turns + opens,
        checkpoint_above=above,
        projected=rules.projected(content),
    )


def replace_messages(
    rules: Rules, world: World, session: Session, changed: dict[NodeId, Message]
) -> tuple[World, Session]:
    """Put changed messages into the branch. The nodes from the topmost one down to the leaf are made anew, ids kept."""
    missing = set(changed)
    below: list[TreeNode] = []
    node = session.leaf
    while node is not None and missing:
        below.append(node)
        missing.discard(node.id)
        node = node.parent
    nodes = world.nodes
    for old in reversed(below):
        node = make_node(rules, changed.get(old.id, old.content), node)
        nodes = nodes.set(node.id, node)
    session = session.at(node if below else session.leaf, session.revision)
    return evolve(world, nodes=nodes, touched=(*world.touched, *changed)), session


def bumped(rules: Rules, session: Session, written: int) -> Session:
    """The session behind one change of its branch by ``written`` nodes."""
    return session.at(session.leaf, rules.revision_after(session.revision, written))


def write(rules: Rules, world: World, session: Session, content: Node) -> tuple[World, Session]:
    """Store a node behind the session's leaf and make it the leaf."""
    node = make_node(rules, content, session.leaf)
    return world.with_node(node), session.at(node, session.revision)


def stale(session: Session) -> Stale:
    """The answer to a caller that names another branch than the present one."""
    return Stale(leaf=session.leaf.id if session.leaf is not None else None, revision=session.revision)


def follows(rules: Rules, session: Session, named: NodeId | None) -> bool:
    """Whether the branch ends in the message that a caller names, if it names one."""
    return named is None or rules.ends_in(session.leaf, named)


def runs(world: World, session: Session) -> bool:
    """Whether an answer runs on the session in this process."""
    return session.id in world.process.running


def open_calls_of(session: Session) -> OpenCalls:
    """The calls open at the end of the session's branch."""
    return session.leaf.open_calls if session.leaf is not None else ()


def is_stable(rules: Rules, world: World, session: Session) -> bool:
    """Whether no call is open on the branch and no answer runs."""
    return rules.is_stable(session, answer_runs=runs(world, session))


def skipped(world: World, session: Session) -> Skipped:
    """The answer of a compaction on an unstable branch, with what is open."""
    return Skipped(
        open_calls=tuple(known.call for known in open_calls_of(session)), answer_running=runs(world, session)
    )


def on_branch(session: Session, node: TreeNode) -> bool:
    """Whether a node is on the session's branch."""
    return any(other.id == node.id for other in walk(session.leaf))
