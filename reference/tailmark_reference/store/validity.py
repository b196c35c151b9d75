"""Which messages may be stored at all, whatever stands before them."""

from typing import assert_never

from tailmark.identifiers import CallId
from tailmark.messages import (
    Annotation,
    ApprovalRequest,
    Collection,
    EpubLocation,
    File,
    Image,
    Message,
    Part,
    PdfPage,
    Reference,
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)

# Sets of classes, because every append asks them.
_DATA = frozenset({Reference, PdfPage, EpubLocation, Annotation, Collection, Tag})
_FROM_USERS = frozenset({Text, Image, File, *_DATA})


def is_valid(message: Message) -> bool:
    """Whether parts and fields are such as the message's role may carry. Else it is `invalid-message`."""
    if len(message.parts) > 1 and len({part.id for part in message.parts}) < len(message.parts):
        return False
    match message.role:
        case Role.USER:
            return _has_no_answer_fields(message) and _FROM_USERS.issuperset(map(type, message.parts))
        case Role.ASSISTANT:
            return _DATA.isdisjoint(map(type, message.parts)) and _are_answer_parts(message.parts)
        case Role.TOOL:
            return _has_no_answer_fields(message) and _are_final_results(message.parts)
        case _:
            assert_never(message.role)


def _has_no_answer_fields(message: Message) -> bool:
    return message.end is None and message.built_on is None and message.usage is None


def _are_final_results(parts: tuple[Part, ...]) -> bool:
    return bool(parts) and all(isinstance(part, ToolResult) and not part.preliminary for part in parts)


def _are_answer_parts(parts: tuple[Part, ...]) -> bool:
    made: set[CallId] = set()
    settled: set[CallId] = set()
    for part in parts:
        match part:
            case ToolCall():
                made.add(part.call)
            case ApprovalRequest():
                if part.call not in made:
                    return False
            case ToolResult():
                if part.call not in made or part.call in settled:
                    return False
                if not part.preliminary:
                    settled.add(part.call)
            case _:
                pass
    return True
