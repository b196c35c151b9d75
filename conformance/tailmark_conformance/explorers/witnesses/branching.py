"""Witnesses about retries, edits, forks and undos."""

from tailmark.identifiers import SessionId
from tailmark.messages import Message, Role
from tailmark.operations import (
    Append,
    Edit,
    Fork,
    Retry,
    Undo,
)
from tailmark.outcomes import (
    Done,
    RefusalCode,
    Refused,
    Sent,
)
from tailmark.plans import Checkpoint
from tailmark.rules.scene import Mark, latest_checkpoint
from tailmark_conformance.explorers.witnesses.moments import Moment, written


def _left_checkpoints(moment: Moment, session: SessionId) -> int:
    if not isinstance(moment.outcome, Sent):
        return 0
    kept = {mark.id for mark in moment.after.path(moment.after.leaf(session))}
    return sum(
        isinstance(mark.stored.content, Checkpoint) and mark.id not in kept
        for mark in moment.before.path(moment.before.leaf(session))
    )


def leaves_checkpoints(moment: Moment) -> bool:
    assert isinstance(moment.operation, Retry | Edit)
    return _left_checkpoints(moment, moment.operation.session) > 1


def keeps_checkpoint(moment: Moment) -> bool:
    assert isinstance(moment.operation, Retry | Edit)
    session = moment.operation.session
    moved = moment.before.leaf(session) != moment.after.leaf(session)
    return isinstance(moment.outcome, Sent) and moved and moment.after.checkpoint(session) is not None


def leaves_steering(moment: Moment) -> bool:
    return isinstance(moment.outcome, Sent) and bool(moment.outcome.left)


def unanswered_retry(moment: Moment) -> bool:
    """A retry of a question that has no answer."""
    assert isinstance(moment.operation, Retry)
    session = moment.operation.session
    return isinstance(moment.outcome, Sent) and moment.before.leaf(session) == moment.after.leaf(session)


def answered_anew(moment: Moment) -> bool:
    """An answer becomes the sibling of one that left the branch."""
    assert isinstance(moment.operation, Append)
    new = written(moment)
    if not new or new[0].role is not Role.ASSISTANT:
        return False
    parent = moment.before.leaf(moment.operation.session)
    return parent is not None and any(
        node.parent == parent and isinstance(node.content, Message) and node.content.role is Role.ASSISTANT
        for node in moment.before.nodes()
    )


def _forked(moment: Moment) -> Mark | None:
    assert isinstance(moment.operation, Fork)
    return moment.before.mark(moment.operation.target) if isinstance(moment.outcome, Done) else None


def _on_branch(moment: Moment) -> bool:
    assert isinstance(moment.operation, Fork)
    return moment.before.is_on_path(moment.operation.target, moment.before.end(moment.operation.session))


def fork_before_checkpoint(moment: Moment) -> bool:
    """A fork at an answer before the branch's checkpoint."""
    target = _forked(moment)
    assert isinstance(moment.operation, Fork)
    return (
        target is not None
        and _on_branch(moment)
        and latest_checkpoint(target) is None
        and moment.before.checkpoint(moment.operation.session) is not None
    )


def fork_behind_checkpoint(moment: Moment) -> bool:
    """A fork at an answer behind a checkpoint."""
    target = _forked(moment)
    return target is not None and latest_checkpoint(target) is not None


def fork_off_branch(moment: Moment) -> bool:
    """A fork at an answer that is on no session's branch any more."""
    target = _forked(moment)
    return target is not None and not any(
        moment.before.is_on_path(target.id, moment.before.end(session))
        for session in moment.before.sessions()
    )


def fork_of_running_answer(moment: Moment) -> bool:
    """A fork at what is being generated."""
    assert isinstance(moment.operation, Fork)
    mark = moment.before.mark(moment.operation.target)
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.UNSTABLE
        and mark is not None
        and not mark.open_calls
    )


def shared_nodes_grow(moment: Moment) -> bool:
    """A session writes on a branch whose beginning another session shares."""
    assert isinstance(moment.operation, Append)
    leaf = moment.before.leaf(moment.operation.session)
    return (
        bool(written(moment))
        and leaf is not None
        and any(
            moment.before.is_on_path(leaf, moment.before.end(session))
            for session in moment.before.sessions()
            if session != moment.operation.session
        )
    )


def undo_done(moment: Moment) -> bool:
    """A checkpoint is taken back."""
    return isinstance(moment.outcome, Done)


def undo_of_refresh(moment: Moment) -> bool:
    """A checkpoint that stood on another one is taken back."""
    assert isinstance(moment.operation, Undo)
    return isinstance(moment.outcome, Done) and moment.after.checkpoint(moment.operation.session) is not None


def undo_shows_way(moment: Moment) -> bool:
    """An undo that comes too late names a fork as the way."""
    return isinstance(moment.outcome, Refused) and moment.outcome.way is not None


def undo_shows_none(moment: Moment) -> bool:
    """An undo that is not possible and has no way out."""
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.NOT_A_CHECKPOINT
        and moment.outcome.way is None
    )
