"""Retry, edit, fork and undo: where the leaf goes, and what stays."""

from attrs import frozen

from tailmark.declarations import Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Role
from tailmark.operations import CommitCompaction, Edit, Fork, Retry, Undo
from tailmark.outcomes import Done, RefusalCode, Refused, Sent
from tailmark.plans import EditFor, Purpose, RetryFor
from tailmark.rules.answers import applicable, decided, is_success, may_be_forked
from tailmark.rules.changes import (
    added,
    any_change,
    field_change,
    in_both,
    is_checkpoint,
    listed,
    node_change,
    shown_outcome,
)
from tailmark.rules.compactions import chosen_places, new_checkpoints
from tailmark.rules.pressure import may_not_begin
from tailmark.rules.saving import refused
from tailmark.rules.scene import HiddenFieldError, Mark, Scene, latest_checkpoint
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


@frozen(kw_only=True)
class _LastTurn:
    """The last turn of a branch: the message that opened it, and everything behind it, checkpoints aside."""

    opener: Mark
    answer: tuple[Mark, ...]

    @property
    def steering(self) -> tuple[NodeId, ...]:
        """The user messages of the answer."""
        return tuple(
            mark.id for mark in self.answer if mark.message is not None and mark.message.role is Role.USER
        )


def _last_turn(scene: Scene, session: SessionId) -> _LastTurn | None:
    end = scene.end(session)
    answer: list[Mark] = []
    for mark in end.walk() if end is not None else ():
        if mark.opens_turn:
            return _LastTurn(opener=mark, answer=tuple(reversed(answer)))
        if mark.message is not None:
            answer.append(mark)
    return None


@frozen(kw_only=True)
class _Requested:
    """A retry or edit that was carried out: at once, or by the commit of the compaction that it needed.

    ``checkpoint`` is the one made for it. ``edit`` is what was asked, ``None`` for a retry.
    """

    session: SessionId
    turn: _LastTurn
    checkpoint: Mark | None
    edit: EditFor | None

    @property
    def base(self) -> Mark | None:
        """What the new answer or question follows, a checkpoint made for it aside."""
        if self.edit is not None:
            return self.turn.opener.above
        return self.turn.answer[0].above if self.turn.answer else None


def _requested(seen: Seen) -> _Requested | None:
    purpose: Purpose | None = None
    match seen.operation:
        case Retry(session=session):
            purpose = RetryFor()
        case Edit(session=session, target=target, message=message):
            purpose = EditFor(target=target, message=message)
        case CommitCompaction(plan=plan):
            session, purpose = plan.session, plan.purpose
        case _:
            return None
    if not isinstance(purpose, RetryFor | EditFor) or not isinstance(seen.outcome, Sent):
        return None
    if not in_both(seen, session) or applicable(seen):
        return None
    turn = _last_turn(seen.before, session)
    if turn is None:
        return None
    written = new_checkpoints(seen)
    return _Requested(
        session=session,
        turn=turn,
        checkpoint=written[0] if written else None,
        edit=purpose if isinstance(purpose, EditFor) else None,
    )


def _retried(seen: Seen) -> _Requested | None:
    """A retry that was carried out and had to be."""
    requested = _requested(seen)
    return requested if requested is not None and requested.edit is None else None


def _edited(seen: Seen) -> tuple[_Requested, EditFor] | None:
    """The same for an edit."""
    requested = _requested(seen)
    if requested is None or requested.edit is None:
        return None
    return requested, requested.edit


def _behind(requested: _Requested) -> NodeId | None:
    """What must stand right before the new answer or question: the checkpoint made for it, or the base."""
    if requested.checkpoint is not None:
        return requested.checkpoint.id
    return requested.base.id if requested.base is not None else None


def _wrong_parent(requested: _Requested) -> Violated | None:
    """A checkpoint made for the request follows the base."""
    checkpoint = requested.checkpoint
    base = requested.base.id if requested.base is not None else None
    if checkpoint is None or checkpoint.stored.parent == base:
        return None
    return Violated(
        f"expected the checkpoint behind {base}; saw it behind {checkpoint.stored.parent}", checkpoint.id
    )


def _wrong_left(seen: Seen, turn: _LastTurn) -> Violated | None:
    if Field.OUTCOME in seen.declaration.hidden:
        return None
    outcome = shown_outcome(seen)
    if isinstance(outcome, Sent) and outcome.left != turn.steering:
        return Violated(
            f"expected {listed(turn.steering)} to be named as left; saw {listed(outcome.left)}",
            turn.opener.id,
        )
    return None


def _wrong_checkpoint(scene: Scene, session: SessionId, expected: NodeId | None) -> Violated | None:
    """What is wrong with the checkpoint in force on a session, wherever it can be seen."""
    if not scene.shows(Field.CHECKPOINT) and not scene.shows(Field.PROJECTION):
        raise HiddenFieldError(Field.CHECKPOINT)
    if scene.shows(Field.CHECKPOINT) and scene.shown_checkpoint(session) != expected:
        return Violated(
            f"expected {_in_force(expected)} on {session}; saw {scene.shown_checkpoint(session)}", expected
        )
    if scene.shows(Field.PROJECTION):
        summaries = tuple(
            item.node
            for item in scene.projection(session)
            if item.node is not None and is_checkpoint(scene.node(item.node))
        )
        if summaries != ((expected,) if expected is not None else ()):
            return Violated(
                f"expected {_in_force(expected)} in the projection of {session}; saw {listed(summaries)}",
                expected,
            )
    return None


def _in_force(checkpoint: NodeId | None) -> str:
    return "no checkpoint in force" if checkpoint is None else f"{checkpoint} in force"


def _checkpoint_at(mark: Mark | None) -> NodeId | None:
    latest = latest_checkpoint(mark) if mark is not None else None
    return latest.id if latest is not None else None


def retry_1(seen: Seen) -> Result:
    """Retry moves the leaf to the parent of the first message behind the last turn opener, and names the steering messages that leave."""
    retried = _retried(seen)
    if retried is None or not retried.turn.answer:
        return None
    expected = _behind(retried)
    saw = seen.after.leaf(retried.session)
    if saw != expected:
        return Violated(f"expected the leaf {expected}; saw {saw}", expected)
    return _wrong_left(seen, retried.turn) or HOLDS


def retry_2(seen: Seen) -> Result:
    """Checkpoints behind the point that a retry goes back to leave the branch; earlier ones stay in force."""
    retried = _retried(seen)
    if retried is None or not retried.turn.answer or retried.checkpoint is not None:
        return None
    if seen.before.checkpoint(retried.session) is None:
        return None
    return _wrong_checkpoint(seen.after, retried.session, _checkpoint_at(retried.base)) or HOLDS


def retry_3(seen: Seen) -> Result:
    """The old answer stays stored as it was, and retry writes nothing but a checkpoint that it needs: the new answer becomes its sibling."""
    retried = _retried(seen)
    if retried is None or not retried.turn.answer:
        return None
    for mark in retried.turn.answer:
        stored = seen.after.node(mark.id)
        if stored is None:
            return Violated(f"expected {mark.id} to stay stored; saw it gone", mark.id)
        if (stored.parent, stored.content) != (mark.stored.parent, mark.stored.content):
            return Violated(f"expected {mark.id} to stay as it was; saw it changed", mark.id)
    for node in added(seen):
        if not is_checkpoint(node):
            return Violated(f"expected a retry to store no message; saw {node.content.id}", node.content.id)
    return _wrong_parent(retried) or HOLDS


def retry_4(seen: Seen) -> Result:
    """A question without an answer is retried where it is and nothing moves; without a question retry is refused."""
    if isinstance(seen.operation, Retry):
        answer = decided(seen, refused(RefusalCode.NO_QUESTION))
        if answer is not None:
            return answer
    retried = _retried(seen)
    if retried is None or retried.turn.answer:
        return None
    change = any_change(seen) if retried.checkpoint is None else None
    if change is not None:
        return Violated(f"expected nothing to move, because there is no answer yet; saw that {change}")
    return _wrong_left(seen, retried.turn) or HOLDS


def retry_5(seen: Seen) -> Result:
    """On an unstable branch retry, edit and undo are refused."""
    if not isinstance(seen.operation, Retry | Edit | Undo):
        return None
    return decided(seen, refused(RefusalCode.UNSTABLE))


def retry_6(seen: Seen) -> Result:
    """A compaction for a retry keeps the question whole, and never takes the end of the branch as its place."""
    places = chosen_places(seen)
    chosen = places[0] if places else None
    if chosen is None or chosen.terms is None or not isinstance(chosen.terms.purpose, RetryFor):
        return None
    question = next((mark for mark in chosen.branch.walk() if mark.opens_turn), None)
    if question is None or chosen.place is None:
        return None
    return holds_if(
        chosen.place < question.messages,
        f"expected the question {question.id} to be kept, saw the place behind it",
        question.id,
    )


_EDIT_CODES = (
    refused(RefusalCode.UNKNOWN_NODE),
    refused(RefusalCode.NOT_LAST_TURN),
    refused(RefusalCode.NOT_A_USER_MESSAGE),
)


def edit_1(seen: Seen) -> Result:
    """Edit puts a new message beside the one that opened the last turn and makes it the leaf; other targets are refused."""
    if isinstance(seen.operation, Edit):
        answer = decided(seen, *_EDIT_CODES)
        if answer is not None:
            return answer
    edited = _edited(seen)
    if edited is None:
        return None
    requested, asked = edited
    message, opener = asked.message, requested.turn.opener
    stored = seen.after.node(message.id)
    if stored is None or stored.content != message:
        return Violated(f"expected {message.id} to be stored as it was given; saw otherwise", message.id)
    wrong = _wrong_parent(requested)
    if wrong is not None:
        return wrong
    if stored.parent != _behind(requested):
        return Violated(
            f"expected {message.id} beside {opener.id}, behind {_behind(requested)}; saw it behind {stored.parent}",
            message.id,
        )
    leaf = seen.after.leaf(requested.session)
    if leaf != message.id:
        return Violated(f"expected the leaf {message.id}; saw {leaf}", message.id)
    if seen.after.node(opener.id) != opener.stored:
        return Violated(f"expected {opener.id} to stay stored as it was; saw otherwise", opener.id)
    return _wrong_left(seen, requested.turn) or HOLDS


def edit_2(seen: Seen) -> Result:
    """A checkpoint before the edited message stays in force; a later one leaves with the turn."""
    edited = _edited(seen)
    if edited is None or edited[0].checkpoint is not None:
        return None
    requested, _ = edited
    if seen.before.checkpoint(requested.session) is None:
        return None
    return _wrong_checkpoint(seen.after, requested.session, _checkpoint_at(requested.base)) or HOLDS


def edit_3(seen: Seen) -> Result:
    """An edit that is not sent leaves the old branch as it was."""
    operation = seen.operation
    if isinstance(operation, CommitCompaction):
        if not isinstance(operation.plan.purpose, EditFor):
            return None
    elif not isinstance(operation, Edit):
        return None
    if isinstance(shown_outcome(seen), Sent):
        return None
    change = any_change(seen)
    return holds_if(change is None, f"expected the old branch to stay as it was, saw that {change}")


_FORK_CODES = (
    refused(RefusalCode.UNKNOWN_NODE),
    refused(RefusalCode.NOT_ASSISTANT),
    refused(RefusalCode.UNSTABLE),
)


def fork_1(seen: Seen) -> Result:
    """A fork is made at any stored assistant message whose own branch is stable and which is not being generated, and nowhere else."""
    if not isinstance(seen.operation, Fork):
        return None
    answer = decided(seen, *_FORK_CODES)
    if answer is not None or not is_success(seen) or applicable(seen):
        return answer
    if not seen.after.knows_session(seen.operation.new_session):
        return Violated(f"expected the session {seen.operation.new_session}; saw none", seen.operation.target)
    return HOLDS


def _forked(seen: Seen) -> tuple[Fork, Mark] | None:
    operation = seen.operation
    if not isinstance(operation, Fork) or not isinstance(seen.outcome, Done) or applicable(seen):
        return None
    target = seen.before.mark(operation.target)
    if target is None or not seen.after.knows_session(operation.new_session):
        return None
    return operation, target


def fork_2(seen: Seen) -> Result:
    """A fork inherits a checkpoint if and only if that is an ancestor of the target."""
    forked = _forked(seen)
    if forked is None:
        return None
    operation, target = forked
    expected = _checkpoint_at(target)
    wrong = _wrong_checkpoint(seen.after, operation.new_session, expected)
    if wrong is not None:
        return wrong
    return HOLDS if expected is not None or seen.before.checkpoint(operation.session) is not None else None


def fork_3(seen: Seen) -> Result:
    """A fork shares the nodes of its branch: nothing is copied, no id is renamed."""
    forked = _forked(seen)
    if forked is None:
        return None
    operation, target = forked
    if change := node_change(seen):
        return Violated(f"expected a fork to share its nodes; saw that {change}", target.id)
    if seen.after.shows(Field.BRANCH):
        chain = tuple(mark.id for mark in seen.before.path(target.id))
        shown = seen.after.shown_branch(operation.new_session)
        if shown != chain:
            return Violated(
                f"expected {operation.new_session} to show {listed(chain)}; saw {listed(shown)}", target.id
            )
    return HOLDS


def fork_4(seen: Seen) -> Result:
    """A fork is a session with a new name, a leaf and a revision of its own; the one it was asked from does not change."""
    if not isinstance(seen.operation, Fork):
        return None
    answer = decided(seen, refused(RefusalCode.KNOWN_ID))
    forked = _forked(seen)
    if answer is not None or forked is None:
        return answer
    operation, target = forked
    new, source, after = operation.new_session, operation.session, seen.after
    if after.leaf(new) != target.id:
        return Violated(f"expected the leaf {target.id} on {new}; saw {after.leaf(new)}", target.id)
    if after.shows(Field.REVISION) and after.revision(new) != 0:
        return Violated(f"expected revision 0 on {new}; saw {after.revision(new)}")
    if after.shows(Field.MODEL) and after.model(new) != seen.before.model(source):
        return Violated(f"expected the model of {source} on {new}; saw {after.model(new).name}")
    if after.shows(Field.SETTINGS) and after.settings(new) != seen.before.settings(source):
        return Violated(f"expected the settings of {source} on {new}; saw others")
    if after.shows(Field.METADATA) and after.metadata(new):
        return Violated(f"expected no metadata on {new}; saw {dict(after.metadata(new))}")
    if not after.knows_session(source):
        return Violated(f"expected {source} to stay; saw it gone")
    if change := field_change(seen.before, after, source):
        return Violated(f"expected {source} to stay as it was; saw that {change}")
    return HOLDS


def undo_1(seen: Seen) -> Result:
    """Undoing the checkpoint that is the leaf moves the leaf to its parent: the projection is what it was, the node stays stored."""
    operation = seen.operation
    if not isinstance(operation, Undo) or not isinstance(seen.outcome, Done):
        return None
    session = operation.session
    if not in_both(seen, session) or applicable(seen):
        return None
    end = seen.before.end(session)
    if end is None:
        return None
    parent = end.stored.parent
    if seen.after.leaf(session) != parent:
        return Violated(f"expected the leaf {parent}; saw {seen.after.leaf(session)}", parent)
    if change := node_change(seen):
        return Violated(f"expected every node to stay as it was; saw that {change}", end.id)
    expected = seen.after.carried(session)
    if expected is not None and seen.after.shows(Field.PROJECTION):
        shown = tuple(item.node for item in seen.after.projection(session))
        if shown != expected:
            saw = tuple(str(node) for node in shown)
            return Violated(
                f"expected the projection from before {end.id}, {listed(expected)}; saw {listed(saw)}", end.id
            )
    return HOLDS


def undo_2(seen: Seen) -> Result:
    """Any other undo is refused and names the nearest answer before the latest checkpoint from which a fork is the way back."""
    operation = seen.operation
    if not isinstance(operation, Undo):
        return None
    answer = decided(seen, refused(RefusalCode.NOT_A_CHECKPOINT))
    if answer != HOLDS or not isinstance(seen.outcome, Refused):
        return answer
    expected = _way_back(seen.before, operation.session)
    if seen.outcome.way != expected:
        return Violated(f"expected {expected} to be named as the way; saw {seen.outcome.way}", expected)
    return HOLDS


def _way_back(scene: Scene, session: SessionId) -> NodeId | None:
    latest = scene.checkpoint(session)
    if latest is None:
        return None
    return next((mark.id for mark in latest.walk() if may_be_forked(scene, mark)), None)


def undo_3(seen: Seen) -> Result:
    """Behind an undo nothing is compacted below the safe limit until a compaction commits or the user asks."""
    return may_not_begin(
        seen, lambda pressure: pressure.undone, "the last checkpoint was taken back", above_limit=False
    )
