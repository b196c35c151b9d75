"""The model's view: what the next request carries."""

from functools import lru_cache

from attrs import frozen

from tailmark.declarations import Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message, Role, ToolCall, ToolResult
from tailmark.operations import Edit, Fork, Load, NextRequest, Restart, Retry, StartAnswer, Undo
from tailmark.outcomes import RefusalCode, Sent
from tailmark.projections import Marking, ProjectionItem
from tailmark.rules.answers import decided
from tailmark.rules.changes import field_change, is_checkpoint, listed, node_change, session_of
from tailmark.rules.saving import refused
from tailmark.rules.scene import Mark, OpenAt, Scene, checkpoint_of, latest_checkpoint, settle
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated


def _shown(seen: Seen) -> tuple[SessionId, ...]:
    """The sessions whose view changed, and those that the operation read anew."""
    sessions = tuple(view.session for view in seen.change.sessions if seen.after.knows_session(view.session))
    match seen.operation:
        case Restart():
            return seen.after.sessions()
        case Load(session=session) | StartAnswer(session=session) | NextRequest(session=session):
            known = seen.after.knows_session(session)
            return (*sessions, session) if known and session not in sessions else sessions
        case _:
            return sessions


@frozen(kw_only=True, eq=False)
class _Sent:
    """What a session sends: its projection, sorted by what the items are, and what it follows from.

    ``messages`` are the items that are stored messages, with their marks; ``summaries`` those that are stored
    checkpoints, with their index; ``made_up`` those that are neither. ``carried`` as in `Scene.carried`.
    """

    session: SessionId
    items: tuple[ProjectionItem, ...]
    latest: Mark | None
    carried: tuple[NodeId, ...] | None
    messages: tuple[tuple[ProjectionItem, Mark], ...]
    summaries: tuple[tuple[int, NodeId], ...]
    made_up: tuple[ProjectionItem, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The items' ids, for a sentence."""
        return _ids(self.items)


@lru_cache(maxsize=1)
def _sent(seen: Seen) -> tuple[_Sent, ...]:
    """What each session sends whose view changed or was read anew."""
    return tuple(_sort(seen.after, session) for session in _shown(seen))


def _sort(scene: Scene, session: SessionId) -> _Sent:
    items = scene.projection(session)
    messages: list[tuple[ProjectionItem, Mark]] = []
    summaries: list[tuple[int, NodeId]] = []
    made_up: list[ProjectionItem] = []
    for index, item in enumerate(items):
        mark = scene.mark(item.node)
        if mark is None:
            made_up.append(item)
        elif mark.message is None:
            summaries.append((index, mark.id))
        else:
            messages.append((item, mark))
    return _Sent(
        session=session,
        items=items,
        latest=scene.checkpoint(session),
        carried=scene.carried(session),
        messages=tuple(messages),
        summaries=tuple(summaries),
        made_up=tuple(made_up),
    )


def _ids(items: tuple[ProjectionItem, ...]) -> tuple[str, ...]:
    return tuple("something not stored" if item.node is None else item.node for item in items)


def proj_1(seen: Seen) -> Result:
    """Without a checkpoint on the branch the projection is every message from the root to the leaf."""
    exercised = False
    for sent in _sent(seen):
        if sent.latest is not None:
            continue
        expected = sent.carried or ()
        if tuple(item.node for item in sent.items) != expected:
            return Violated(f"expected every message, {listed(expected)}; saw {listed(sent.ids)}")
        exercised = exercised or bool(expected)
    return HOLDS if exercised else None


def proj_2(seen: Seen) -> Result:
    """With a checkpoint the projection is the summary of the latest one and then every message after its place."""
    exercised = False
    for sent in _sent(seen):
        latest = sent.latest
        if latest is None or sent.carried is None:
            continue
        if tuple(item.node for item in sent.items) != sent.carried:
            return Violated(
                f"expected the summary and what follows the place, {listed(sent.carried)}; saw {listed(sent.ids)}",
                latest.id,
            )
        if seen.after.sent_digest(latest.id) not in (None, sent.items[0].digest):
            return Violated(
                f"expected the summary of {latest.id} as it is stored; saw another text", latest.id
            )
        exercised = True
    return HOLDS if exercised else None


def proj_3(seen: Seen) -> Result:
    """The latest checkpoint is the one nearest to the leaf by parent links, whatever was stored last."""
    exercised = False
    scene = seen.after
    for sent in _sent(seen):
        latest = sent.latest
        expected = latest.id if latest is not None else None
        if scene.shows(Field.CHECKPOINT) and scene.shown_checkpoint(sent.session) != expected:
            shown = scene.shown_checkpoint(sent.session)
            return Violated(f"expected the latest checkpoint {expected}; saw {shown}", expected)
        if latest is None:
            continue
        other = next((checkpoint for _, checkpoint in sent.summaries if checkpoint != latest.id), None)
        if other is not None:
            return Violated(f"expected the summary of {latest.id}; saw that of {other}", latest.id)
        earlier = latest.above is not None and latest_checkpoint(latest.above) is not None
        exercised = exercised or earlier or _another_checkpoint(seen, latest.id)
    return HOLDS if exercised else None


def _moves_leaves(seen: Seen) -> bool:
    return isinstance(seen.operation, Retry | Edit | Fork | Undo | Load | Restart)


def _another_checkpoint(seen: Seen, latest: NodeId) -> bool:
    # This walks all nodes, so it is asked only where a checkpoint may have left a branch.
    return _moves_leaves(seen) and any(
        is_checkpoint(node) and node.content.id != latest for node in seen.after.nodes()
    )


def proj_4(seen: Seen) -> Result:
    """What is verbatim is the durable content, each message once, in branch order; preliminary results alone stay out."""
    exercised = False
    scene = seen.after
    for sent in _sent(seen):
        last = 0
        for item, mark in sent.messages:
            if mark.messages <= last:
                return Violated(
                    f"expected {item.node} once and in branch order; saw it out of place", item.node
                )
            last = mark.messages
            message = mark.message
            if message is None or item.role is not message.role or item.marking is not Marking.VERBATIM:
                return Violated(
                    f"expected {item.node} as an ordinary message of its role; saw {item.role}, {item.marking}",
                    item.node,
                )
            if scene.sent_digest(mark.id) not in (None, item.digest):
                return Violated(f"expected the stored content of {item.node}; saw other content", item.node)
            exercised = True
    return HOLDS if exercised else None


def proj_5(seen: Seen) -> Result:
    """A checkpoint that is not on the branch contributes nothing to it."""
    exercised = False
    scene = seen.after
    for sent in _sent(seen):
        on_branch = sent.latest.id if sent.latest is not None else None
        for _, checkpoint in sent.summaries:
            if checkpoint != on_branch and not scene.is_on_path(checkpoint, scene.end(sent.session)):
                return Violated(
                    f"expected nothing of {checkpoint}, which is not on the branch; saw its summary",
                    checkpoint,
                )
        exercised = exercised or (_moves_leaves(seen) and _has_checkpoint_elsewhere(scene, sent.session))
    return HOLDS if exercised else None


def _has_checkpoint_elsewhere(scene: Scene, session: SessionId) -> bool:
    checkpoints = {node.content.id for node in scene.nodes() if is_checkpoint(node)}
    end = scene.end(session)
    return bool(checkpoints - {mark.id for mark in end.walk()}) if end is not None else False


def proj_6(seen: Seen) -> Result:
    """A checkpoint's parent says when it was made, its first_kept says where the verbatim part resumes."""
    exercised = False
    for sent in _sent(seen):
        latest = sent.latest
        if latest is None or sent.carried is None:
            continue
        first_kept = checkpoint_of(latest).first_kept
        parent = latest.above.id if latest.above is not None else None
        if first_kept is None or first_kept == parent:
            continue
        saw = sent.messages[0][0].node if sent.messages else None
        if saw != first_kept:
            return Violated(
                f"expected the verbatim part to begin with {first_kept}; saw it begin with {saw}", first_kept
            )
        exercised = True
    return HOLDS if exercised else None


def proj_7(seen: Seen) -> Result:
    """Projecting is a read: loading, restarting and looking from a fresh process change nothing and show the same projection."""
    exercised = False
    if isinstance(seen.operation, Restart | Load):
        if change := node_change(seen):
            return Violated(f"expected {seen.operation.kind} to write nothing; saw that {change}")
        for lost in seen.change.sessions_gone:
            if seen.before.knows_session(lost):
                return Violated(f"expected {seen.operation.kind} to keep the session {lost}; saw it gone")
        for session in _shown(seen):
            if not seen.before.knows_session(session):
                return Violated(f"expected {seen.operation.kind} to make no session; saw {session}")
            if change := field_change(seen.before, seen.after, session):
                return Violated(f"expected {seen.operation.kind} to change nothing; saw that {change}")
            exercised = exercised or bool(seen.after.projection(session))
    if seen.after.shows(Field.FRESH) and seen.fresh_change is not None:
        for view in seen.fresh_change.sessions:
            if not seen.after.knows_session(view.session):
                continue
            here = seen.after.projection(view.session)
            if view.projection != here:
                return Violated(
                    f"expected a fresh process to project {listed(_ids(here))}; it projects {listed(_ids(view.projection))}"
                )
        asked = session_of(seen.operation)
        looked = asked is not None and seen.after.knows_session(asked)
        exercised = exercised or (looked and asked is not None and bool(seen.after.projection(asked)))
    return HOLDS if exercised else None


def proj_8(seen: Seen) -> Result:
    """A projection has no result without its call and no call without its result but open ones, and no request is made while one is open."""
    if _asks_for_a_request(seen):
        answer = decided(seen, refused(RefusalCode.UNSTABLE))
        if answer is not None:
            return answer
    exercised = isinstance(seen.outcome, Sent)
    asked = session_of(seen.operation)
    if isinstance(seen.outcome, Sent) and asked is not None and seen.after.open_calls(asked):
        waiting = seen.after.open_calls(asked)[0]
        return Violated(f"expected no request while {waiting.call} is open; saw one sent", waiting.message)
    for sent in _sent(seen):
        calls = _projected_calls(seen.after, sent)
        if isinstance(calls, Violated):
            return calls
        exercised = exercised or calls
    return HOLDS if exercised else None


def _asks_for_a_request(seen: Seen) -> bool:
    match seen.operation:
        case NextRequest(session=session):
            return seen.before.knows_session(session)
        case StartAnswer(session=session):
            # A start while another answer runs is refused as well; that is DEF-STABLE's.
            return seen.before.knows_session(session) and bool(seen.before.open_calls(session))
        case _:
            return False


def _projected_calls(scene: Scene, sent: _Sent) -> Violated | bool:
    """Whether the projection has calls at all, or what is wrong with them."""
    waiting: tuple[OpenAt, ...] = ()
    exercised = False
    for item, mark in sent.messages:
        message = mark.message
        if message is None or message.role is Role.USER:
            continue
        made = sum(isinstance(part, ToolCall) for part in message.parts)
        results = _final_results(message)
        if not made and not results:
            continue
        expected = len(waiting) + made - results
        waiting = settle(waiting, message)
        exercised = True
        if len(waiting) != expected:
            return Violated(
                f"expected the call of each result; saw a result in {item.node} without it", item.node
            )
    open_calls = {(known.call, known.message) for known in scene.open_calls(sent.session)}
    lost = next((known for known in waiting if (known.call, known.message) not in open_calls), None)
    if lost is not None:
        return Violated(f"expected the result of {lost.call}; saw its call without it", lost.message)
    return exercised


def _final_results(message: Message) -> int:
    return sum(isinstance(part, ToolResult) and not part.preliminary for part in message.parts)


def proj_9(seen: Seen) -> Result:
    """The summary is one item, the first, marked as context and not as anybody's instruction."""
    exercised = False
    for sent in _sent(seen):
        if sent.latest is None:
            continue
        latest = sent.latest.id
        where = [index for index, _ in sent.summaries]
        if where != [0]:
            return Violated(f"expected one summary, first; saw {len(where)}, in {listed(sent.ids)}", latest)
        if sent.items[0].marking is not Marking.CONTEXT:
            return Violated(f"expected the summary marked as context; saw it {sent.items[0].marking}", latest)
        exercised = True
    return HOLDS if exercised else None


def proj_10(seen: Seen) -> Result:
    """Nothing is made up: every item but the summary is a message of the branch."""
    exercised = False
    scene = seen.after
    for sent in _sent(seen):
        if sent.made_up:
            item = sent.made_up[0]
            what = "an item that is not stored" if item.node is None else f"{item.node}, which is not stored"
            return Violated(f"expected stored messages alone; saw {what}", item.node)
        unexpected = {mark.id for _, mark in sent.messages}.difference(sent.carried or ())
        if unexpected:
            # It may be of the branch all the same, in front of the place: then it is PROJ-2's.
            on_branch = {mark.id for mark in scene.path(scene.leaf(sent.session))}
            stray = min(unexpected - on_branch, default=None)
            if stray is not None:
                return Violated(f"expected messages of the branch alone; saw {stray}", stray)
        exercised = exercised or bool(sent.items)
    return HOLDS if exercised else None


def proj_11(seen: Seen) -> Result:
    """A request takes its history from the projection, and display takes it from the chain: they differ once a checkpoint is there."""
    wrong = _wrong_request(seen)
    if wrong is not None:
        return wrong
    exercised = isinstance(seen.outcome, Sent)
    scene = seen.after
    for sent in _sent(seen):
        before = scene.place(sent.latest) if sent.latest is not None else None
        if not before:
            continue
        for item, mark in sent.messages:
            if mark.messages <= before:
                return Violated(
                    f"expected {item.node} in the chain alone, because the summary stands for it; saw it in the projection",
                    item.node,
                )
        if not isinstance(seen.operation, StartAnswer | NextRequest | Load | Restart):
            continue
        shown = set(scene.shown_branch(sent.session))
        missing = next((mark for mark in scene.path(scene.leaf(sent.session)) if mark.id not in shown), None)
        if missing is not None:
            return Violated(f"expected {missing.id} to be displayed; saw a chain without it", missing.id)
        exercised = True
    return HOLDS if exercised else None


def _wrong_request(seen: Seen) -> Violated | None:
    """In what a request that goes out is not the projection behind the step."""
    outcome, session = seen.outcome, session_of(seen.operation)
    if not isinstance(outcome, Sent) or session is None or not seen.after.knows_session(session):
        return None
    request, scene = outcome.request, seen.after
    if request.items != scene.projection(session):
        return Violated(
            f"expected the projection in the request, {listed(_ids(scene.projection(session)))}; saw {listed(_ids(request.items))}"
        )
    if request.built_on != scene.leaf(session):
        return Violated(
            f"expected a request built on {scene.leaf(session)}; saw {request.built_on}", request.built_on
        )
    if scene.shows(Field.SETTINGS) and request.head != scene.settings(session).head:
        return Violated(f"expected the head {scene.settings(session).head!r}; saw {request.head!r}")
    return None
