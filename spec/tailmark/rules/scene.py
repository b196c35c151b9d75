"""What a predicate sees: the state before a step and after it, and the facts of branches.

A `Scene` is one observed state. It answers with observed fields and with facts that follow from them:
paths by parent links, open calls by place, turn openers, the latest checkpoint. Facts are remembered per
node, so that a step costs what it changes and not what the history is long. A field that the
implementation declared hidden raises `HiddenFieldError`, and the clause that asked for it stays unjudged.
"""

from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.damage import Damage, Finding
from tailmark.declarations import Field
from tailmark.identifiers import CallId, NodeId, PartId, Revision, SessionId, Tokens
from tailmark.json_form import JsonFormError, digest
from tailmark.messages import ApprovalRequest, Message, Role, ToolCall, ToolResult
from tailmark.plans import Checkpoint, Node
from tailmark.projections import ProjectionItem
from tailmark.views import Change, OpenCall, RunningAnswer, SessionView, StoredNode


class HiddenFieldError(Exception):
    """A predicate asked for a field that the implementation cannot show."""

    def __init__(self, hidden: Field) -> None:
        super().__init__(hidden.value)
        self.field = hidden


@frozen(kw_only=True)
class OpenAt:
    """A call without a final result: its id, the message and the part that made it, and whether it waits for the user's approval."""

    call: CallId
    message: NodeId
    part: PartId
    approval: bool = False


# Compared by identity: equality would walk the whole path.
@frozen(kw_only=True, eq=False, repr=False)
class Mark:
    """The facts of a node on its own path from the root.

    ``above`` is the parent's mark; ``broken`` says that the path ends there without reaching a root: the
    parent is missing or the path is a cycle. ``messages`` and ``turns`` count up to and including this
    node. ``open_calls`` are the calls open behind it. ``checkpoint`` is the latest one at or above it.
    """

    stored: StoredNode
    above: "Mark | None"
    broken: bool
    messages: int
    turns: int
    open_calls: tuple[OpenAt, ...]
    opens_turn: bool
    checkpoint: "Mark | None"

    @property
    def id(self) -> NodeId:
        """The node's id."""
        return self.stored.content.id

    @property
    def message(self) -> Message | None:
        """The node's content if it is a message."""
        content = self.stored.content
        return content if isinstance(content, Message) else None

    def walk(self) -> Iterator["Mark"]:
        """This node and those above it, up to the root or to where the path breaks."""
        mark: Mark | None = self
        while mark is not None:
            yield mark
            mark = mark.above


def settle(open_calls: tuple[OpenAt, ...], message: Message) -> tuple[OpenAt, ...]:
    """The calls open behind a message, given those open before it. A result settles the nearest earlier one of its id."""
    if message.role is Role.USER:
        return open_calls
    calls = list(open_calls)
    for part in message.parts:
        match part:
            case ToolCall():
                calls.append(OpenAt(call=part.call, message=message.id, part=part.id))
            case ApprovalRequest():
                for index, known in enumerate(calls):
                    if known.call == part.call and known.message == message.id:
                        calls[index] = evolve(known, approval=True)
            case ToolResult() if not part.preliminary:
                for index in range(len(calls) - 1, -1, -1):
                    if calls[index].call == part.call:
                        del calls[index]
                        break
            case _:
                pass
    return tuple(calls)


def _mark(stored: StoredNode, above: Mark | None, *, broken: bool) -> Mark:
    open_calls = above.open_calls if above is not None else ()
    messages = above.messages if above is not None else 0
    turns = above.turns if above is not None else 0
    content = stored.content
    if isinstance(content, Checkpoint):
        # The mark is its own latest checkpoint; `Scene` ties that knot by asking `latest_checkpoint`.
        return Mark(
            stored=stored,
            above=above,
            broken=broken,
            messages=messages,
            turns=turns,
            open_calls=open_calls,
            opens_turn=False,
            checkpoint=None,
        )
    opens_turn = content.role is Role.USER and not open_calls
    checkpoint = latest_checkpoint(above) if above is not None else None
    return Mark(
        stored=stored,
        above=above,
        broken=broken,
        messages=messages + 1,
        turns=turns + opens_turn,
        open_calls=settle(open_calls, content),
        opens_turn=opens_turn,
        checkpoint=checkpoint,
    )


def _sent(content: Node) -> Message | str:
    if isinstance(content, Checkpoint):
        return content.summary
    parts = tuple(part for part in content.parts if not (isinstance(part, ToolResult) and part.preliminary))
    return content if len(parts) == len(content.parts) else evolve(content, parts=parts)


def latest_checkpoint(mark: Mark) -> Mark | None:
    """The checkpoint nearest to a node by parent links, the node itself included (PROJ-3)."""
    return mark if isinstance(mark.stored.content, Checkpoint) else mark.checkpoint


def checkpoint_of(mark: Mark) -> Checkpoint:
    """The content of a mark that `latest_checkpoint` returned."""
    content = mark.stored.content
    if not isinstance(content, Checkpoint):
        raise TypeError(f"{content.id} is no checkpoint")
    return content


@frozen(eq=False, repr=False)
class Scene:
    """One observed state. Begin with `empty_scene`; see the module."""

    _nodes: dict[NodeId, StoredNode]
    _sessions: Mapping[SessionId, SessionView]
    _marks: dict[NodeId, Mark]
    _hidden: frozenset[Field]
    # Ids that entered the shared table after this state.
    _later: set[NodeId] = field(factory=set)
    # What was computed once of a content, and that content.
    _digests: dict[NodeId, tuple[Node, str]] = field(factory=dict)
    _store: str | None = None

    def after(self, change: Change) -> "Scene":
        """The state that a change leads to. This state stays as it is."""
        store = change.store or self._store
        sessions: Mapping[SessionId, SessionView] = self._sessions
        if change.sessions or change.sessions_gone:
            table = {**sessions, **{view.session: view for view in change.sessions}}
            for session in change.sessions_gone:
                table.pop(session, None)
            sessions = table
        if not change.nodes and not change.nodes_gone:
            return Scene(self._nodes, sessions, self._marks, self._hidden, self._later, self._digests, store)
        if change.nodes_gone or self._later or any(node.content.id in self._nodes for node in change.nodes):
            # A known node differs: nothing remembered of its descendants holds any more.
            nodes = {id_: node for id_, node in self._nodes.items() if id_ not in self._later}
            for gone in change.nodes_gone:
                nodes.pop(gone, None)
            nodes.update((node.content.id, node) for node in change.nodes)
            return Scene(nodes, sessions, {}, self._hidden, digests=self._digests, store=store)
        # Only new nodes: both states share the table, and this one does not look at what came later.
        for node in change.nodes:
            self._nodes[node.content.id] = node
            self._later.add(node.content.id)
        return Scene(self._nodes, sessions, self._marks, self._hidden, digests=self._digests, store=store)

    def _show(self, wanted: Field) -> None:
        if wanted in self._hidden:
            raise HiddenFieldError(wanted)

    # What was observed ------------------------------------------------------------------------------

    def shows(self, wanted: Field) -> bool:
        """Whether the implementation can show a field, for a predicate that judges whatever can be seen."""
        return wanted not in self._hidden

    def views(self) -> tuple[SessionView, ...]:
        """What all sessions show, hidden fields included: for whoever builds another state from this one, not for predicates."""
        return tuple(self._sessions.values())

    def view(self, session: SessionId) -> SessionView:
        """What a session shows, hidden fields included: for whoever remembers or rebuilds a state, not for predicates."""
        return self._sessions[session]

    def store(self) -> str | None:
        """The digest of the durable bytes as it was shown last; ``None`` while nobody looked."""
        return self._store

    def sessions(self) -> tuple[SessionId, ...]:
        """All sessions."""
        return tuple(self._sessions)

    def knows_session(self, session: SessionId) -> bool:
        """Whether the session exists."""
        return session in self._sessions

    def leaf(self, session: SessionId) -> NodeId | None:
        """The session's leaf; ``None`` while it is empty or unknown."""
        view = self._sessions.get(session)
        return view.leaf if view is not None else None

    def revision(self, session: SessionId) -> Revision:
        """The session's revision."""
        self._show(Field.REVISION)
        return self._sessions[session].revision

    def shown_branch(self, session: SessionId) -> tuple[NodeId, ...]:
        """The branch as the implementation shows it. For the branch by parent links see `path`."""
        self._show(Field.BRANCH)
        return self._sessions[session].branch

    def shown_open_calls(self, session: SessionId) -> tuple[OpenCall, ...]:
        """The open calls as the implementation shows them. For those that follow from the tree see `open_calls`."""
        self._show(Field.OPEN_CALLS)
        return self._sessions[session].open_calls

    def running(self, session: SessionId) -> RunningAnswer | None:
        """The answer that runs on the session in this process."""
        self._show(Field.RUNNING)
        return self._sessions[session].running

    def shown_checkpoint(self, session: SessionId) -> NodeId | None:
        """The latest checkpoint as the implementation shows it."""
        self._show(Field.CHECKPOINT)
        return self._sessions[session].checkpoint

    def projection(self, session: SessionId) -> tuple[ProjectionItem, ...]:
        """What the next request would carry."""
        self._show(Field.PROJECTION)
        return self._sessions[session].projection

    def model(self, session: SessionId) -> Model:
        """The session's model."""
        self._show(Field.MODEL)
        return self._sessions[session].model

    def settings(self, session: SessionId) -> Settings:
        """The session's settings."""
        self._show(Field.SETTINGS)
        return self._sessions[session].settings

    def budgets(self, session: SessionId) -> Budgets:
        """The budgets that follow from the session's model and settings."""
        self._show(Field.BUDGETS)
        return self._sessions[session].budgets

    def occupancy(self, session: SessionId) -> Occupancy:
        """How full the window is with the session's projection."""
        self._show(Field.OCCUPANCY)
        return self._sessions[session].occupancy

    def read_only(self, session: SessionId) -> bool:
        """Whether nothing may be written to the session."""
        self._show(Field.DAMAGE)
        return self._sessions[session].read_only

    def damage(self, session: SessionId) -> tuple[Damage, ...]:
        """What is said to be wrong with the session's branch."""
        self._show(Field.DAMAGE)
        return self._sessions[session].damage

    def findings(self, session: SessionId) -> tuple[Finding, ...]:
        """What is said to be unusual about checkpoints of the session's branch."""
        self._show(Field.DAMAGE)
        return self._sessions[session].findings

    def is_damaged(self, session: SessionId) -> bool:
        """Whether a session shows damage, for clauses that speak of sound histories only."""
        view = self._sessions.get(session)
        return view is not None and view.read_only

    def metadata(self, session: SessionId) -> Mapping[str, str]:
        """The session's metadata."""
        self._show(Field.METADATA)
        return self._sessions[session].metadata

    def node(self, node: NodeId) -> StoredNode | None:
        """A stored node, on or off any branch."""
        return self._nodes.get(node) if node not in self._later else None

    def nodes(self) -> Iterator[StoredNode]:
        """All stored nodes. This walks the whole history."""
        return (node for id_, node in self._nodes.items() if id_ not in self._later)

    def estimate(self, node: NodeId) -> Tokens:
        """What a stored message, or a checkpoint's summary, costs in a request."""
        self._show(Field.ESTIMATE)
        return self._nodes[node].estimate

    def sent_digest(self, node: NodeId) -> str | None:
        """The digest of what a projection sends of a stored node (PROJ-4): a message without its preliminary results, or a summary.

        ``None`` if the node is not stored, or its content has no JSON form and so no digest.
        """
        stored = self.node(node)
        if stored is None:
            return None
        known = self._digests.get(node)
        if known is not None and known[0] is stored.content:
            return known[1]
        try:
            computed = digest(_sent(stored.content))
        except JsonFormError:
            # Such as a part id twice: that it was stored is DEF-MESSAGE's to say.
            return None
        self._digests[node] = (stored.content, computed)
        return computed

    # What follows from it ---------------------------------------------------------------------------

    def mark(self, node: NodeId | None) -> Mark | None:
        """The facts of a node on its own path; ``None`` if it is not stored."""
        if node is None or node in self._later:
            return None
        known = self._marks.get(node)
        if known is not None:
            return known
        pending: list[StoredNode] = []
        seen: set[NodeId] = set()
        above: Mark | None = None
        broken = False
        step: NodeId | None = node
        while step is not None:
            above = self._marks.get(step)
            if above is not None:
                break
            stored = self._nodes.get(step)
            if stored is None or step in seen or step in self._later:
                broken = bool(pending)
                break
            seen.add(step)
            pending.append(stored)
            step = stored.parent
        for stored in reversed(pending):
            above = _mark(stored, above, broken=broken)
            self._marks[stored.content.id] = above
            broken = False
        return above

    def end(self, session: SessionId) -> Mark | None:
        """The facts of the session's leaf."""
        return self.mark(self.leaf(session))

    def path(self, node: NodeId | None) -> tuple[Mark, ...]:
        """Root to node by parent links, both included. This walks the whole path."""
        mark = self.mark(node)
        return tuple(reversed(tuple(mark.walk()))) if mark is not None else ()

    def message_path(self, node: NodeId | None) -> tuple[Message, ...]:
        """The messages on the path from the root to a node. This walks the whole path."""
        return tuple(mark.message for mark in self.path(node) if mark.message is not None)

    def open_calls(self, session: SessionId) -> tuple[OpenAt, ...]:
        """The calls open at the end of the session's branch, in branch order."""
        end = self.end(session)
        return end.open_calls if end is not None else ()

    def is_stable(self, session: SessionId) -> bool:
        """No call open on the branch, no answer running (DEF-STABLE)."""
        return not self.open_calls(session) and self.running(session) is None

    def checkpoint(self, session: SessionId) -> Mark | None:
        """The checkpoint nearest to the leaf by parent links."""
        end = self.end(session)
        return latest_checkpoint(end) if end is not None else None

    def is_on_path(self, node: NodeId, end: Mark | None) -> bool:
        """Whether a node is an ancestor of ``end`` or ``end`` itself."""
        return end is not None and any(mark.id == node for mark in end.walk())

    def last_message(self, session: SessionId) -> Mark | None:
        """The last message of the branch, checkpoints aside."""
        end = self.end(session)
        if end is None:
            return None
        return next((mark for mark in end.walk() if mark.message is not None), None)

    def last_opener(self, session: SessionId) -> Mark | None:
        """The last turn opener of the branch."""
        end = self.end(session)
        if end is None:
            return None
        return next((mark for mark in end.walk() if mark.opens_turn), None)

    def place(self, checkpoint: Mark) -> int | None:
        """How many messages of its branch stand before a checkpoint's place; ``None`` if ``first_kept`` is no ancestor of it."""
        first_kept = checkpoint_of(checkpoint).first_kept
        if first_kept is None:
            return checkpoint.messages
        for mark in checkpoint.walk():
            if mark.id == first_kept and mark.message is not None:
                return mark.messages - 1
        return None

    def tail(self, session: SessionId) -> tuple[Mark, ...]:
        """The messages behind the present place, in branch order. It reads up to the place and no further."""
        end = self.end(session)
        if end is None:
            return ()
        latest = latest_checkpoint(end)
        before = self.place(latest) if latest is not None else 0
        if before is None:
            before = 0
        kept = []
        for mark in end.walk():
            if mark.messages <= before:
                break
            if mark.message is not None:
                kept.append(mark)
        return tuple(reversed(kept))

    def carried(self, session: SessionId) -> tuple[NodeId, ...] | None:
        """What a projection must carry: the latest checkpoint, then the tail. ``None`` if its ``first_kept`` is no ancestor."""
        latest = self.checkpoint(session)
        if latest is not None and self.place(latest) is None:
            return None
        summary = (latest.id,) if latest is not None else ()
        return (*summary, *(mark.id for mark in self.tail(session)))


def empty_scene(hidden: frozenset[Field] = frozenset()) -> Scene:
    """The state of an empty store without sessions."""
    return Scene({}, {}, {}, hidden)
