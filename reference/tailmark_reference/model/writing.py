"""What the transitions share: how nodes are made and replaced, and what is asked of a session."""

from attrs import evolve

from tailmark.damage import FindingKind
from tailmark.identifiers import NodeId, PartId
from tailmark.messages import Message, Role, ToolCall, ToolResult
from tailmark.outcomes import Done, Skipped, Stale
from tailmark.plans import Checkpoint, Node
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.tree import OpenCalls, TreeNode, walk
from tailmark_reference.model.world import Session, World


def make_node(
    rules: Rules, content: Node, parent: TreeNode | None, late: frozenset[PartId] = frozenset()
) -> TreeNode:
    """A node behind a parent, with all that follows from the path above it."""
    open_calls: OpenCalls = parent.open_calls if parent is not None else ()
    turns = parent.turns if parent is not None else 0
    messages = parent.messages if parent is not None else 0
    above = rules.latest_checkpoint(parent)
    if not isinstance(content, Message):
        place, finding = _place_of(content, parent, above)
        return TreeNode(
            content=content,
            parent=parent,
            estimate=rules.estimate_summary(content.summary),
            open_calls=open_calls,
            opens_turn=False,
            turns=turns,
            messages=messages,
            checkpoint_above=above,
            projected=None,
            place=place,
            finding=finding,
        )
    opens = content.role is Role.USER and rules.opens_turn(open_calls, content)
    return TreeNode(
        content=content,
        parent=parent,
        estimate=rules.estimate(content),
        open_calls=open_calls if content.role is Role.USER else rules.calls_after(open_calls, content),
        opens_turn=opens,
        turns=turns + opens,
        messages=messages + 1,
        checkpoint_above=above,
        projected=rules.projected(content),
        late=late,
    )


def _place_of(
    checkpoint: Checkpoint, parent: TreeNode | None, above: TreeNode | None
) -> tuple[int, FindingKind | None]:
    """How many messages stand before a checkpoint's place, and what is unusual about it (DMG-1)."""
    if checkpoint.first_kept is None:
        return (parent.messages if parent is not None else 0), None
    named = next((node for node in walk(parent) if node.id == checkpoint.first_kept), None)
    if named is None:
        return -1, None
    place = named.messages - 1
    if above is not None and place < above.place:
        return place, FindingKind.PLACE_MOVES_BACK
    return place, None if named.opens_turn else FindingKind.PLACE_OPENS_NO_TURN


def _late_results(old: TreeNode, content: Node) -> frozenset[PartId]:
    """The results of a message that stand in it now and did not when it was first stored."""
    if not isinstance(content, Message) or old.message is None or content is old.message:
        return old.late
    return old.late | {part.id for part in content.parts if part not in old.message.parts}


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
        content = changed.get(old.id, old.content)
        node = make_node(rules, content, node, _late_results(old, content))
        nodes = nodes.set(node.id, node)
    session = session.at(node if below else session.leaf, session.revision)
    return evolve(world, nodes=nodes, touched=(*world.touched, *changed)), session


def bumped(rules: Rules, session: Session, written: int) -> Session:
    """The session behind one change of its branch by ``written`` nodes."""
    return session.at(session.leaf, rules.revision_after(session.revision, written))


def write(rules: Rules, world: World, session: Session, content: Node) -> tuple[World, Session]:
    """Store a node behind the session's leaf and make it the leaf."""
    node = make_node(rules, content, session.leaf)
    world = world.with_node(node)
    if isinstance(content, Message) and any(isinstance(part, ToolCall) for part in content.parts):
        owned = world.process.owned.set(content.id, True)
        world = world.with_process(evolve(world.process, owned=owned))
    return world, session.at(node, session.revision)


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


def abandon_open_calls(rules: Rules, world: World, session: Session) -> tuple[World, Done]:
    """Give every open call of the branch an `abandoned` result, in one change."""
    open_calls = open_calls_of(session)
    if not open_calls:
        return world, Done()
    changed: dict[NodeId, Message] = {}
    for known in open_calls:
        node = world.nodes.get(known.message)
        message = changed.get(known.message) or (node.message if node is not None else None)
        if message is None:
            raise ValueError(f"the open call {known.call} stands in no message")
        changed[known.message] = _with_abandoned(rules, message, rules.abandoned_result(message, known))
    world, session = replace_messages(rules, world, session, changed)
    return (
        world.with_session(bumped(rules, session, 0)),
        Done(abandoned=tuple(known.call for known in open_calls)),
    )


def _with_abandoned(rules: Rules, message: Message, result: ToolResult) -> Message:
    content = rules.with_result(message, result)
    while content is None:
        # The id is derived, so another part may have it by chance.
        result = evolve(result, id=PartId(f"{result.id}'"))
        content = rules.with_result(message, result)
    return content
