"""Content blocks of Claude Code's records as parts of messages."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from tailmark.identifiers import CallId, ModelName, PartId, Tokens
from tailmark.messages import (
    AnswerEnd,
    File,
    Image,
    Part,
    Reasoning,
    ResultStatus,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tailmark_conformance.recorded.records import (
    json_text,
    name_at,
    object_at,
    objects_at,
    text_at,
    tokens_at,
)
from tailmark_reference.estimate import COSTS

_ENDS = {
    "end_turn": AnswerEnd.FINAL,
    "stop_sequence": AnswerEnd.FINAL,
    "max_tokens": AnswerEnd.FINAL,
    "refusal": AnswerEnd.FINAL,
}


@frozen(kw_only=True)
class UserContent:
    """What a record of the user's side carries: tool results, and what the user said. ``more_tokens`` is for images in results."""

    results: tuple[ToolResult, ...]
    said: tuple[Part, ...]
    more_tokens: int


def end_of(record: Mapping[str, object]) -> AnswerEnd | None:
    """How an answer ended, where the record tells."""
    if record.get("isApiErrorMessage") is True:
        return AnswerEnd.FAILED
    return _ENDS.get(str(object_at(record, "message").get("stop_reason")))


def usage_of(message: Mapping[str, object]) -> Usage | None:
    """The usage that a record carries. The last record of an answer has the whole output."""
    usage = object_at(message, "usage")
    cached = tokens_at(usage, "cache_read_input_tokens")
    total = Tokens(
        tokens_at(usage, "input_tokens") + cached + tokens_at(usage, "cache_creation_input_tokens")
    )
    if not total:
        return None
    return Usage(
        input=total,
        cached=cached,
        output=tokens_at(usage, "output_tokens"),
        model=ModelName(name_at(message, "model") or ""),
    )


def answer_parts(message: Mapping[str, object], first: int) -> tuple[Part, ...]:
    """The parts of a model's record. Their ids count on from ``first``."""
    content = text_at(message, "content")
    if content is not None:
        return (Text(id=PartId(f"p{first}"), text=content),)
    return tuple(
        _answer_part(PartId(f"p{first + number}"), block)
        for number, block in enumerate(objects_at(message, "content"))
    )


def _answer_part(part: PartId, block: Mapping[str, object]) -> Part:
    match block.get("type"):
        case "text":
            return Text(id=part, text=text_at(block, "text") or "")
        case "thinking":
            return Reasoning(
                id=part, text=text_at(block, "thinking") or "", replayable=bool(text_at(block, "signature"))
            )
        case "redacted_thinking":
            return Reasoning(id=part, text=text_at(block, "data") or "", replayable=True)
        case "tool_use" | "server_tool_use":
            return ToolCall(
                id=part,
                call=CallId(name_at(block, "id") or ""),
                name=name_at(block, "name") or "",
                input=json_text(block.get("input")),
            )
        case str() as kind if kind.endswith("_tool_result"):
            # A tool that the provider ran: its result stands in the answer itself.
            return ToolResult(
                id=part,
                call=CallId(name_at(block, "tool_use_id") or ""),
                status=ResultStatus.OUTPUT,
                text=json_text(block.get("content")),
            )
        case _:
            return Text(id=part, text=json_text(block))


def user_content(message: Mapping[str, object]) -> UserContent:
    """What a record of the user's side carries."""
    content = text_at(message, "content")
    if content is not None:
        return UserContent(results=(), said=(Text(id=PartId("p0"), text=content),), more_tokens=0)
    results: list[ToolResult] = []
    said: list[Part] = []
    images = 0
    for number, block in enumerate(objects_at(message, "content")):
        part = PartId(f"p{number}")
        if block.get("type") == "tool_result":
            inner = objects_at(block, "content")
            images += sum(one.get("type") == "image" for one in inner)
            results.append(_result(part, block, inner))
        else:
            said.append(_said(part, block))
    return UserContent(results=tuple(results), said=tuple(said), more_tokens=images * COSTS.per_image)


def _result(part: PartId, block: Mapping[str, object], inner: Sequence[Mapping[str, object]]) -> ToolResult:
    text = text_at(block, "content")
    return ToolResult(
        id=part,
        call=CallId(name_at(block, "tool_use_id") or ""),
        status=ResultStatus.ERROR if block.get("is_error") is True else ResultStatus.OUTPUT,
        text=text if text is not None else joined_text(inner),
    )


def joined_text(blocks: Iterable[Mapping[str, object]]) -> str:
    """The texts of the text blocks, a line each."""
    return "\n".join(text_at(block, "text") or "" for block in blocks if block.get("type") == "text")


def _said(part: PartId, block: Mapping[str, object]) -> Part:
    media_type = name_at(object_at(block, "source"), "media_type") or ""
    match block.get("type"):
        case "text":
            return Text(id=part, text=text_at(block, "text") or "")
        case "image":
            return Image(id=part, name="", media_type=media_type)
        case "document":
            return File(id=part, name=name_at(block, "title") or "", media_type=media_type)
        case _:
            return Text(id=part, text=json_text(block))
