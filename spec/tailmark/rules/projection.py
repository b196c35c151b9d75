"""The model's view: what the next request carries."""

from collections.abc import Iterator

from tailmark.declarations import Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message, Role, ToolCall, ToolResult
from tailmark.operations import Edit, Fork, Load, NextRequest, Restart, Retry, StartAnswer, Undo
from tailmark.outcomes import RefusalCode
from tailmark.rules.answers import decided
from tailmark.rules.changes import field_change, is_checkpoint, listed, node_change, session_of
from tailmark.rules.saving import refused
from tailmark.rules.scene import Mark, OpenAt, Scene, checkpoint_of, latest_checkpoint, settle
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated
from tailmark.views import Marking, ProjectionItem


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


def _ids(items: tuple[ProjectionItem, ...]) -> tuple[str, ...]:
    return tuple("something not stored" if item.node is None else item.node for item in items)


def _is_summary(scene: Scene, item: ProjectionItem) -> bool:
    return item.node is not None and is_checkpoint(scene.node(item.node))


def proj_1(seen: Seen) -> Result:
    """Without a checkpoint on the branch the projection is every message from the root to the leaf."""
    exercised = False
    for session in _shown(seen):
        if seen.after.checkpoint(session) is not None:
            continue
        expected = seen.after.carried(session) or ()
        shown = seen.after.projection(session)
        if tuple(item.node for item in shown) != expected:
            return Violated(f"expected every message, {listed(expected)}; saw {listed(_ids(shown))}")
        exercised = exercised or bool(expected)
    return HOLDS if exercised else None


def proj_2(seen: Seen) -> Result:
    """With a checkpoint the projection is the summary of the latest one and then every message after its place."""
    exercised = False
    for session in _shown(seen):
        latest = seen.after.checkpoint(session)
        expected = seen.after.carried(session)
        if latest is None or expected is None:
            continue
        shown = seen.after.projection(session)
        if tuple(item.node for item in shown) != expected:
            return Violated(
                f"expected the summary and what follows the place, {listed(expected)}; saw {listed(_ids(shown))}",
                latest.id,
            )
        if shown[0].digest != seen.after.sent_digest(latest.id):
            return Violated(
                f"expected the summary of {latest.id} as it is stored; saw another text", latest.id
            )
        exercised = True
    return HOLDS if exercised else None


def proj_3(seen: Seen) -> Result:
    """The latest checkpoint is the one nearest to the leaf by parent links, whatever was stored last."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        latest = scene.checkpoint(session)
        if latest is None:
            continue
        for item in scene.projection(session):
            if _is_summary(scene, item) and item.node != latest.id:
                return Violated(f"expected the summary of {latest.id}; saw that of {item.node}", latest.id)
        if scene.shows(Field.CHECKPOINT) and scene.shown_checkpoint(session) != latest.id:
            return Violated(
                f"expected the latest checkpoint {latest.id}; saw {scene.shown_checkpoint(session)}",
                latest.id,
            )
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
    for session in _shown(seen):
        last = 0
        for item, mark in _messages(scene, session):
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
            if item.digest != scene.sent_digest(mark.id):
                return Violated(f"expected the stored content of {item.node}; saw other content", item.node)
            exercised = True
    return HOLDS if exercised else None


def _messages(scene: Scene, session: SessionId) -> Iterator[tuple[ProjectionItem, Mark]]:
    """The items that are stored messages, with their marks."""
    for item in scene.projection(session):
        mark = scene.mark(item.node)
        if mark is not None and mark.message is not None:
            yield item, mark


def proj_5(seen: Seen) -> Result:
    """A checkpoint that is not on the branch contributes nothing to it."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        latest = scene.checkpoint(session)
        on_branch = latest.id if latest is not None else None
        for item in scene.projection(session):
            if not _is_summary(scene, item) or item.node == on_branch or item.node is None:
                continue
            if not scene.is_on_path(item.node, scene.end(session)):
                return Violated(
                    f"expected nothing of {item.node}, which is not on the branch; saw its summary", item.node
                )
        exercised = exercised or (_moves_leaves(seen) and _has_checkpoint_elsewhere(scene, session))
    return HOLDS if exercised else None


def _has_checkpoint_elsewhere(scene: Scene, session: SessionId) -> bool:
    checkpoints = {node.content.id for node in scene.nodes() if is_checkpoint(node)}
    end = scene.end(session)
    return bool(checkpoints - {mark.id for mark in end.walk()}) if end is not None else False


def proj_6(seen: Seen) -> Result:
    """A checkpoint's parent says when it was made, its first_kept says where the verbatim part resumes."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        latest = scene.checkpoint(session)
        if latest is None or scene.place(latest) is None:
            continue
        first_kept = checkpoint_of(latest).first_kept
        parent = latest.above.id if latest.above is not None else None
        if first_kept is None or first_kept == parent:
            continue
        first = next(_messages(scene, session), None)
        saw = first[0].node if first is not None else None
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
    if isinstance(seen.operation, StartAnswer | NextRequest):
        asked = seen.operation.session
        if seen.before.knows_session(asked) and seen.before.open_calls(asked):
            answer = decided(seen, refused(RefusalCode.UNSTABLE))
            if answer is not None:
                return answer
    exercised = False
    for session in _shown(seen):
        calls = _projected_calls(seen.after, session)
        if isinstance(calls, Violated):
            return calls
        exercised = exercised or calls
    return HOLDS if exercised else None


def _projected_calls(scene: Scene, session: SessionId) -> Violated | bool:
    """Whether the projection has calls at all, or what is wrong with them."""
    waiting: tuple[OpenAt, ...] = ()
    exercised = False
    for item, mark in _messages(scene, session):
        message = mark.message
        if message is None or message.role is Role.USER:
            continue
        calls = len(waiting) + sum(isinstance(part, ToolCall) for part in message.parts)
        results = _final_results(message)
        waiting = settle(waiting, message)
        exercised = exercised or calls > 0
        if len(waiting) != calls - results:
            return Violated(
                f"expected the call of each result; saw a result in {item.node} without it", item.node
            )
    open_calls = {(known.call, known.message) for known in scene.open_calls(session)}
    lost = next((known for known in waiting if (known.call, known.message) not in open_calls), None)
    if lost is not None:
        return Violated(f"expected the result of {lost.call}; saw its call without it", lost.message)
    return exercised


def _final_results(message: Message) -> int:
    return sum(isinstance(part, ToolResult) and not part.preliminary for part in message.parts)


def proj_9(seen: Seen) -> Result:
    """The summary is one item, the first, marked as context and not as anybody's instruction."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        latest = scene.checkpoint(session)
        if latest is None:
            continue
        items = scene.projection(session)
        where = [index for index, item in enumerate(items) if _is_summary(scene, item)]
        if where != [0]:
            return Violated(
                f"expected one summary, first; saw {len(where)}, in {listed(_ids(items))}", latest.id
            )
        if items[0].marking is not Marking.CONTEXT:
            return Violated(f"expected the summary marked as context; saw it {items[0].marking}", latest.id)
        exercised = True
    return HOLDS if exercised else None


def proj_10(seen: Seen) -> Result:
    """Nothing is made up: every item but the summary is a message of the branch."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        items = scene.projection(session)
        for item in items:
            if item.node is None:
                return Violated("expected stored messages alone; saw an item that is not stored")
            if scene.node(item.node) is None:
                return Violated(
                    f"expected stored messages alone; saw {item.node}, which is not stored", item.node
                )
        ids = {mark.id for _, mark in _messages(scene, session)}
        off = ids - set(scene.carried(session) or ids)
        if off:
            end = scene.end(session)
            on_branch = {mark.id for mark in end.walk()} if end is not None else set()
            stray = next(iter(sorted(off - on_branch)), None)
            if stray is not None:
                return Violated(f"expected messages of the branch alone; saw {stray}", stray)
        exercised = exercised or bool(items)
    return HOLDS if exercised else None


def proj_11(seen: Seen) -> Result:
    """A request takes its history from the projection, and display takes it from the chain: they differ once a checkpoint is there."""
    exercised = False
    scene = seen.after
    for session in _shown(seen):
        latest = scene.checkpoint(session)
        before = scene.place(latest) if latest is not None else None
        if latest is None or not before:
            continue
        for item, mark in _messages(scene, session):
            if mark.messages <= before:
                return Violated(
                    f"expected {item.node} in the chain alone, because the summary stands for it; saw it in the projection",
                    item.node,
                )
        if not isinstance(seen.operation, StartAnswer | NextRequest | Load | Restart):
            continue
        shown = set(scene.shown_branch(session))
        end = scene.end(session)
        missing = (
            next((mark for mark in end.walk() if mark.id not in shown), None) if end is not None else None
        )
        if missing is not None:
            return Violated(f"expected {missing.id} to be displayed; saw a chain without it", missing.id)
        exercised = True
    return HOLDS if exercised else None
