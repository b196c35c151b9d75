"""What ordinary saving is given, beside what is stored: which messages may be stored, and what a known id means."""

from enum import Enum
from functools import lru_cache

from attrs import frozen

from tailmark.identifiers import CallId, NodeId, PartId, SessionId
from tailmark.messages import (
    Annotation,
    ApprovalRequest,
    Collection,
    EpubLocation,
    File,
    Image,
    Message,
    PdfPage,
    Reasoning,
    Reference,
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.operations import Append, Save
from tailmark.outcomes import RefusalCode
from tailmark.plans import Checkpoint
from tailmark.rules.scene import Mark, OpenAt, Scene, settle
from tailmark.rules.verdicts import Seen


def refused(code: RefusalCode) -> str:
    """The name of a refusal as an answer."""
    return f"refused({code})"


def is_open_end(end: Mark | None) -> bool:
    """Whether a branch ends in an open checkpoint (CHK-8)."""
    content = end.stored.content if end is not None else None
    return isinstance(content, Checkpoint) and content.first_kept is None


def named(code: RefusalCode, applies: bool) -> tuple[str, ...]:
    """The name of a refusal if it applies."""
    return (refused(code),) if applies else ()


STALE = "stale"
"""The name of `Stale` as an answer."""

_USER_PARTS = (Text, Image, File, Reference, PdfPage, EpubLocation, Annotation, Collection, Tag)
_ASSISTANT_PARTS = (Text, Reasoning, ToolCall, ToolResult, ApprovalRequest, Image, File)


def may_be_stored(message: Message) -> bool:
    """Whether a message is well formed whatever the branch holds (DEF-MESSAGE)."""
    if len({part.id for part in message.parts}) != len(message.parts):
        return False
    if message.role is Role.ASSISTANT:
        return _is_answer(message)
    if message.end is not None or message.built_on is not None or message.usage is not None:
        return False
    if message.role is Role.USER:
        return all(isinstance(part, _USER_PARTS) for part in message.parts)
    final = [part for part in message.parts if isinstance(part, ToolResult) and not part.preliminary]
    return bool(final) and len(final) == len(message.parts)


def _is_answer(message: Message) -> bool:
    made: set[CallId] = set()
    settled: set[CallId] = set()
    for part in message.parts:
        if not isinstance(part, _ASSISTANT_PARTS):
            return False
        if isinstance(part, ToolCall):
            made.add(part.call)
        elif isinstance(part, ApprovalRequest):
            if part.call not in made:
                return False
        elif isinstance(part, ToolResult):
            if part.call not in made or part.call in settled:
                return False
            if not part.preliminary:
                settled.add(part.call)
    return True


def faults(message: Message, open_calls: tuple[OpenAt, ...]) -> tuple[str, ...]:
    """Why a message may not be stored behind a branch with these open calls, in order (DEF-MESSAGE, TREE-11)."""
    if message.role is Role.USER:
        return named(RefusalCode.INVALID_MESSAGE, not may_be_stored(message))
    waiting = {known.call for known in open_calls}
    made = [part.call for part in message.parts if isinstance(part, ToolCall)]
    taken = len(set(made)) != len(made) or not waiting.isdisjoint(made)
    not_open = False
    if message.role is Role.TOOL:
        answered = [part.call for part in message.parts if isinstance(part, ToolResult)]
        not_open = len(set(answered)) != len(answered) or not waiting.issuperset(answered)
    return (
        *named(RefusalCode.INVALID_MESSAGE, not may_be_stored(message)),
        *named(RefusalCode.CALL_ID, taken),
        *named(RefusalCode.NOT_OPEN, not_open),
    )


class Known(Enum):
    """What it means that the id of a message to be saved is stored already."""

    SAME = "same"
    """On this branch, with equal content: there is nothing to save (TREE-6)."""
    SETTLES = "settles"
    """On this branch, and the new content adds results for its own open calls (TREE-5)."""
    TAKEN = "taken"
    """The id belongs to something else (TREE-10)."""


def own_open_calls(scene: Scene, session: SessionId, message: NodeId) -> frozenset[CallId]:
    """The calls of a message that are open at the end of a session's branch."""
    return frozenset(known.call for known in scene.open_calls(session) if known.message == message)


def compared(stored: Message, given: Message, waiting: frozenset[CallId]) -> Known:
    """What saving ``given`` over ``stored`` means, where ``waiting`` are its own open calls."""
    if stored == given:
        return Known.SAME
    return Known.SETTLES if only_settles(stored, given, waiting) else Known.TAKEN


def only_settles(stored: Message, given: Message, waiting: frozenset[CallId]) -> bool:
    """Whether a message differs from the stored one only by results for its own open calls (TREE-5).

    A result takes the place of the call's first preliminary one, or stands behind all stored parts.
    """
    if _frame(stored) != _frame(given) or len(given.parts) < len(stored.parts):
        return False
    if len({part.id for part in given.parts}) != len(given.parts):
        return False
    replaceable: dict[CallId, PartId] = {}
    for part in stored.parts:
        if isinstance(part, ToolResult) and part.preliminary:
            replaceable.setdefault(part.call, part.id)
    settled: set[CallId] = set()
    for old, new in zip(stored.parts, given.parts, strict=False):
        if old == new:
            continue
        if not isinstance(new, ToolResult) or new.call not in waiting or new.call in settled:
            return False
        if replaceable.get(new.call) != old.id:
            return False
        settled.add(new.call)
    for part in given.parts[len(stored.parts) :]:
        if not isinstance(part, ToolResult) or part.call not in waiting:
            return False
        if part.call in settled or part.call in replaceable:
            return False
        settled.add(part.call)
    return bool(settled)


def _frame(message: Message) -> tuple[object, ...]:
    return (message.id, message.role, message.end, message.built_on, message.usage)


def known_message(scene: Scene, session: SessionId, operation: Append) -> Known | None:
    """What it means that an appended message's id is stored; ``None`` if it is not."""
    message = operation.message
    if scene.node(message.id) is None:
        return None
    mark = next((mark for mark in branch_up(scene, session) if mark.id == message.id), None)
    if mark is None or mark.message is None:
        return Known.TAKEN
    if operation.follows is not None:
        above = mark.above
        while above is not None and above.message is None:
            above = above.above
        if above is None or above.id != operation.follows:
            return Known.TAKEN
    return compared(mark.message, message, own_open_calls(scene, session, message.id))


def branch_up(scene: Scene, session: SessionId) -> tuple[Mark, ...]:
    """The branch of a session from its leaf up to the root."""
    end = scene.end(session)
    return tuple(end.walk()) if end is not None else ()


@frozen(kw_only=True)
class SavedPath:
    """A path beside the branch that it is saved to: what is settled, what is new, and why it cannot be saved."""

    settled: tuple[Message, ...]
    new: tuple[Message, ...]
    answers: tuple[str, ...]


@lru_cache(maxsize=1)
def saved_path(seen: Seen) -> SavedPath | None:
    """Compare a saved path with the session's branch, checkpoints aside; ``None`` for other operations and unknown sessions."""
    scene, operation = seen.before, seen.operation
    if not isinstance(operation, Save) or not scene.knows_session(operation.session):
        return None
    path = tuple(entry for entry in operation.path if isinstance(entry, Message))
    marks = tuple(reversed(branch_up(scene, operation.session)))
    branch = tuple(mark.message for mark in marks if mark.message is not None)
    pairs = tuple(zip(branch, path, strict=False))
    new = path[len(branch) :]
    open_calls = scene.open_calls(operation.session)
    answers = named(RefusalCode.INVALID_MESSAGE, len({message.id for message in path}) != len(path))
    if any(stored.id != given.id for stored, given in pairs):
        return SavedPath(settled=(), new=new, answers=(*answers, STALE))
    settled = []
    taken = False
    for stored, given in pairs:
        own = frozenset(known.call for known in open_calls if known.message == stored.id)
        match compared(stored, given, own):
            case Known.SETTLES:
                settled.append(given)
            case Known.TAKEN:
                taken = True
            case Known.SAME:
                pass
    if taken:
        return SavedPath(settled=(), new=new, answers=(*answers, refused(RefusalCode.KNOWN_ID)))
    for given in settled:
        finals = {part.call for part in given.parts if isinstance(part, ToolResult) and not part.preliminary}
        open_calls = tuple(
            known for known in open_calls if known.message != given.id or known.call not in finals
        )
    first_faults: tuple[str, ...] = ()
    at_open_end = is_open_end(scene.end(operation.session))
    for message in new:
        first_faults = (
            *named(RefusalCode.KNOWN_ID, scene.node(message.id) is not None),
            *faults(message, open_calls),
            *named(RefusalCode.NOT_A_USER_MESSAGE, at_open_end and message.role is not Role.USER),
        )
        at_open_end = False
        if first_faults:
            break
        open_calls = settle(open_calls, message)
    return SavedPath(settled=tuple(settled), new=new, answers=(*answers, *first_faults))
