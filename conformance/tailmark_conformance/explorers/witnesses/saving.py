"""Witnesses about messages and paths that are stored already."""

from tailmark.messages import Message
from tailmark.operations import (
    Abandon,
    Append,
    Edit,
    Retry,
    Save,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Done,
    RefusalCode,
    Refused,
    Stale,
)
from tailmark.plans import Checkpoint
from tailmark_conformance.explorers.witnesses.moments import Moment


def _saved(moment: Moment) -> tuple[list[Message], list[Message]] | None:
    """What a save that was taken brought, and what the branch had."""
    assert isinstance(moment.operation, Save)
    if not isinstance(moment.outcome, Done):
        return None
    path = [node for node in moment.operation.path if isinstance(node, Message)]
    return path, list(moment.before.message_path(moment.before.leaf(moment.operation.session)))


def saved_again(moment: Moment) -> bool:
    """The branch as it stands is saved once more."""
    saved = _saved(moment)
    return saved is not None and bool(saved[0]) and saved[0] == saved[1]


def saved_prefix(moment: Moment) -> bool:
    """A shorter path is saved."""
    saved = _saved(moment)
    return saved is not None and 0 < len(saved[0]) < len(saved[1])


def saved_extension(moment: Moment) -> bool:
    """A longer path is saved, more than one message longer."""
    saved = _saved(moment)
    return saved is not None and len(saved[0]) > len(saved[1]) + 1 > 1


def saved_checkpoints(moment: Moment) -> bool:
    """A path with the branch's checkpoints in it is saved."""
    assert isinstance(moment.operation, Save)
    return isinstance(moment.outcome, Done) and any(
        isinstance(node, Checkpoint) and moment.before.node(node.id) is not None
        for node in moment.operation.path
    )


def saved_changed_checkpoint(moment: Moment) -> bool:
    """A path with a checkpoint that is stored with another content, or not at all."""
    assert isinstance(moment.operation, Save)
    return isinstance(moment.outcome, Done) and any(
        isinstance(node, Checkpoint)
        and ((stored := moment.before.node(node.id)) is None or stored.content != node)
        for node in moment.operation.path
    )


def appended_again(moment: Moment) -> bool:
    """A known message is appended once more, and nothing happens."""
    assert isinstance(moment.operation, Append)
    return isinstance(moment.outcome, Done) and not moment.step.change.nodes


def known_elsewhere(moment: Moment) -> bool:
    """A message that is stored off the branch is appended."""
    assert isinstance(moment.operation, Append)
    node = moment.operation.message.id
    return (
        isinstance(moment.outcome, Refused)
        and moment.outcome.code is RefusalCode.KNOWN_ID
        and not moment.before.is_on_path(node, moment.before.end(moment.operation.session))
    )


def right_follows(moment: Moment) -> bool:
    """What an operation follows is named behind a checkpoint, and rightly."""
    if not isinstance(moment.operation, Append | Abandon | StartAnswer | Retry | Edit | Undo):
        return False
    end = moment.before.end(moment.operation.session)
    return (
        moment.operation.follows is not None
        and isinstance(moment.outcome, Done)
        and end is not None
        and isinstance(end.stored.content, Checkpoint)
    )


def checkpoint_as_follows(moment: Moment) -> bool:
    """A checkpoint is named as what is followed: stale, because it is no message."""
    if not isinstance(moment.operation, Append | Abandon | StartAnswer | Retry | Edit | Undo):
        return False
    session = moment.operation.session
    return (
        isinstance(moment.outcome, Stale)
        and moment.operation.follows == moment.before.leaf(session)
        and moment.operation.follows is not None
    )
