"""What a step did, in the words that several chapters share."""

from functools import lru_cache

from tailmark.declarations import Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message, ToolResult
from tailmark.operations import CommitCompaction, Operation, Restart
from tailmark.outcomes import Committed, Done, Outcome, Sent
from tailmark.plans import Checkpoint
from tailmark.rules.scene import HiddenFieldError, Scene
from tailmark.rules.verdicts import Seen
from tailmark.views import StoredNode


def session_of(operation: Operation) -> SessionId | None:
    """The session that an operation is about; ``None`` for `Restart`."""
    match operation:
        case Restart():
            return None
        case CommitCompaction(plan=plan):
            return plan.session
        case _:
            return operation.session


def shown_outcome(seen: Seen) -> Outcome:
    """The outcome, where a clause judges the answer itself. Hidden where the implementation shows none."""
    if Field.OUTCOME in seen.declaration.hidden:
        raise HiddenFieldError(Field.OUTCOME)
    return seen.outcome


def was_done(seen: Seen) -> bool:
    """Whether the operation was carried out."""
    return isinstance(seen.outcome, Done | Sent | Committed)


def in_both(seen: Seen, session: SessionId) -> bool:
    """Whether a session exists before and after the step."""
    return seen.before.knows_session(session) and seen.after.knows_session(session)


# Many predicates ask this of one step.
@lru_cache(maxsize=1)
def added(seen: Seen) -> tuple[StoredNode, ...]:
    """The nodes that the step stored."""
    return tuple(node for node in seen.change.nodes if seen.before.node(node.content.id) is None)


def added_chain(seen: Seen, leaf: NodeId | None) -> tuple[NodeId, ...]:
    """The ids of the added nodes that stand at the end of the path to ``leaf``, topmost first."""
    chain: list[NodeId] = []
    mark = seen.after.mark(leaf)
    while mark is not None and seen.before.node(mark.id) is None:
        chain.append(mark.id)
        mark = mark.above
    return tuple(reversed(chain))


# Many predicates ask this of one step.
@lru_cache(maxsize=1)
def altered(seen: Seen) -> tuple[tuple[StoredNode, StoredNode], ...]:
    """The stored nodes whose parent or content became another, each before and after. An estimate is no content."""
    pairs = ((seen.before.node(node.content.id), node) for node in seen.change.nodes)
    return tuple(
        (old, new)
        for old, new in pairs
        if old is not None and (old.parent != new.parent or old.content != new.content)
    )


# Many predicates ask this of one step.
@lru_cache(maxsize=1)
def gone(seen: Seen) -> tuple[NodeId, ...]:
    """The stored nodes that are there no more."""
    return tuple(
        node
        for node in seen.change.nodes_gone
        if seen.before.node(node) is not None and seen.after.node(node) is None
    )


def node_change(seen: Seen) -> str | None:
    """What happened to stored nodes, in words; ``None`` if nothing."""
    if nodes := added(seen):
        return f"{nodes[0].content.id} was stored"
    if pairs := altered(seen):
        return f"{pairs[0][0].content.id} became another"
    if lost := gone(seen):
        return f"{lost[0]} is there no more"
    return None


def field_change(
    before: Scene, after: Scene, session: SessionId, *, durable_only: bool = False
) -> str | None:
    """The first visible field in which a session differs, in words. Its running answer is not looked at.

    ``durable_only`` leaves out what follows from the nodes and the leaf.
    """
    if before.leaf(session) != after.leaf(session):
        return f"the leaf of {session} went from {before.leaf(session)} to {after.leaf(session)}"
    if before.shows(Field.REVISION) and before.revision(session) != after.revision(session):
        return f"the revision of {session} went from {before.revision(session)} to {after.revision(session)}"
    if change := setting_change(before, after, session):
        return change
    if durable_only:
        return None
    if before.shows(Field.PROJECTION) and before.projection(session) != after.projection(session):
        return f"the projection of {session} changed"
    if before.shows(Field.BRANCH) and before.shown_branch(session) != after.shown_branch(session):
        return f"the branch shown for {session} changed"
    if before.shows(Field.OPEN_CALLS) and before.shown_open_calls(session) != after.shown_open_calls(session):
        return f"the open calls shown for {session} changed"
    if before.shows(Field.CHECKPOINT) and before.shown_checkpoint(session) != after.shown_checkpoint(session):
        return f"the checkpoint shown for {session} changed"
    return None


def setting_change(before: Scene, after: Scene, session: SessionId) -> str | None:
    """The first of a session's model, settings and metadata that differs, in words."""
    if before.shows(Field.MODEL) and before.model(session) != after.model(session):
        return f"the model of {session} changed"
    if before.shows(Field.SETTINGS) and before.settings(session) != after.settings(session):
        return f"the settings of {session} changed"
    if before.shows(Field.METADATA) and before.metadata(session) != after.metadata(session):
        return f"the metadata of {session} changed"
    return None


def any_change(seen: Seen) -> str | None:
    """What changed in durable state or a projection, in words; ``None`` if nothing did."""
    if nodes := node_change(seen):
        return nodes
    for view in seen.change.sessions:
        if not seen.before.knows_session(view.session):
            return f"the session {view.session} appeared"
        if text := field_change(seen.before, seen.after, view.session):
            return text
    for session in seen.change.sessions_gone:
        if seen.before.knows_session(session) and not seen.after.knows_session(session):
            return f"the session {session} is there no more"
    return None


def listed(ids: tuple[str, ...]) -> str:
    """Ids in a sentence; long lists lose their middle."""
    if not ids:
        return "nothing"
    if len(ids) > 12:
        return f"{', '.join(ids[:5])}, … {len(ids) - 10} more …, {', '.join(ids[-5:])}"
    return ", ".join(ids)


def is_checkpoint(node: StoredNode | None) -> bool:
    """Whether a stored node is a checkpoint."""
    return node is not None and isinstance(node.content, Checkpoint)


def results_of(message: Message) -> tuple[ToolResult, ...]:
    """The results that a message carries, preliminary ones included."""
    return tuple(part for part in message.parts if isinstance(part, ToolResult))
