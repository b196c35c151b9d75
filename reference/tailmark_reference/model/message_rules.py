"""The rules of messages and calls: what may be stored, what a result settles, what a projection carries.

The record that holds them is `tailmark_reference.model.rules.Rules`.
"""

from attrs import evolve

from tailmark.identifiers import PartId
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
    ResultStatus,
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.outcomes import RefusalCode
from tailmark.views import OpenCall
from tailmark_reference.model.tree import OpenCalls, TreeNode


def message_fault(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    """Why a message may not be stored behind a branch with these open calls (TREE-10, TREE-11)."""
    if len({part.id for part in message.parts}) != len(message.parts):
        return RefusalCode.INVALID_MESSAGE
    match message.role:
        case Role.USER:
            return _user_fault(message)
        case Role.TOOL:
            return _tool_fault(message, open_calls)
        case Role.ASSISTANT:
            return _assistant_fault(message, open_calls)


def _has_answer_fields(message: Message) -> bool:
    return message.end is not None or message.built_on is not None or message.usage is not None


_USER_PARTS = Text | Image | File | Reference | PdfPage | EpubLocation | Annotation | Collection | Tag
_ASSISTANT_PARTS = Text | Reasoning | ToolCall | ToolResult | ApprovalRequest | Image | File


def _user_fault(message: Message) -> RefusalCode | None:
    fits = all(isinstance(part, _USER_PARTS) for part in message.parts)
    return None if fits and not _has_answer_fields(message) else RefusalCode.INVALID_MESSAGE


def _tool_fault(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    results = [part for part in message.parts if isinstance(part, ToolResult) and not part.preliminary]
    if not results or len(results) != len(message.parts) or _has_answer_fields(message):
        return RefusalCode.INVALID_MESSAGE
    waiting = {known.call for known in open_calls}
    for result in results:
        if result.call not in waiting:
            return RefusalCode.NOT_OPEN
        waiting.remove(result.call)
    return None


def _assistant_fault(message: Message, open_calls: OpenCalls) -> RefusalCode | None:
    made = set()
    settled = set()
    twice = False
    for part in message.parts:
        if not isinstance(part, _ASSISTANT_PARTS):
            return RefusalCode.INVALID_MESSAGE
        match part:
            case ToolCall():
                twice = twice or part.call in made
                made.add(part.call)
            case ToolResult():
                if part.call not in made or part.call in settled:
                    return RefusalCode.INVALID_MESSAGE
                if not part.preliminary:
                    settled.add(part.call)
            case ApprovalRequest():
                if part.call not in made:
                    return RefusalCode.INVALID_MESSAGE
            case _:
                pass
    if twice or any(known.call in made for known in open_calls):
        return RefusalCode.CALL_ID
    return None


def calls_after(open_calls: OpenCalls, message: Message) -> OpenCalls:
    """The calls open behind a message. A final result settles the nearest earlier open call of its id."""
    if message.role is Role.USER:
        return open_calls
    calls = list(open_calls)
    for part in message.parts:
        match part:
            case ToolCall():
                calls.append(OpenCall(call=part.call, message=message.id))
            case ApprovalRequest():
                calls = [
                    evolve(known, approval_pending=True)
                    if (known.call, known.message) == (part.call, message.id)
                    else known
                    for known in calls
                ]
            case ToolResult(preliminary=False):
                settled = next((known for known in reversed(calls) if known.call == part.call), None)
                if settled is not None:
                    calls.remove(settled)
            case _:
                pass
    return tuple(calls)


def opens_turn(open_calls_before: OpenCalls, message: Message) -> bool:
    """Whether a message opens a turn (DEF-TURN)."""
    return message.role is Role.USER and not open_calls_before


def projected(message: Message) -> Message:
    """What a projection carries of a message: all but its preliminary results."""
    if not any(isinstance(part, ToolResult) and part.preliminary for part in message.parts):
        return message
    kept = tuple(part for part in message.parts if not (isinstance(part, ToolResult) and part.preliminary))
    return evolve(message, parts=kept)


def abandoned_result(message: Message, call: OpenCall) -> ToolResult:
    """The result that says that nobody will answer a call any more."""
    # The latest call of the id: a settled id may return within one message only by mistake, and then the last is open.
    part = next(
        part for part in reversed(message.parts) if isinstance(part, ToolCall) and part.call == call.call
    )
    return ToolResult(
        id=PartId(f"abandoned:{part.id}"), call=call.call, status=ResultStatus.ABANDONED, text=""
    )


def with_result(message: Message, result: ToolResult) -> Message | None:
    """A message with a result put into it: in place of the call's preliminary one, or as the last part.

    ``None`` if the result's part id is taken by another part.
    """
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolResult) and part.preliminary and part.call == result.call:
            parts = (*message.parts[:index], result, *message.parts[index + 1 :])
            break
    else:
        parts = (*message.parts, result)
    if len({part.id for part in parts}) != len(parts):
        return None
    return evolve(message, parts=parts)


def saved_again(stored: TreeNode, given: Message, open_calls: OpenCalls) -> Message | None:
    """What a node's content becomes when its id is saved again: unchanged, or with results for its own open calls.

    ``None`` if the given content differs in any other way (TREE-5, TREE-6, TREE-10).
    """
    content = stored.message
    if content is None or content == given:
        return content
    waiting = {known.call for known in open_calls if known.message == stored.id}
    known_ids = {part.id for part in content.parts if not (isinstance(part, ToolResult) and part.preliminary)}
    grown: Message | None = content
    for part in given.parts:
        if grown is None:
            return None
        if isinstance(part, ToolResult) and part.call in waiting and part.id not in known_ids:
            if part not in content.parts:
                grown = with_result(grown, part)
            if not part.preliminary:
                waiting.remove(part.call)
    return grown if grown == given else None
