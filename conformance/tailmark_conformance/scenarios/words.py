"""Short words for messages, so that a scenario reads as a story."""

from collections.abc import Sequence

from tailmark.identifiers import CallId, NodeId, PartId
from tailmark.messages import AnswerEnd, Message, Part, ResultStatus, Role, Text, ToolCall, ToolResult, Usage
from tailmark.plans import FinishReason, SummaryAnswer, SummaryFailure


def words(tokens: int) -> str:
    """A text of so many tokens of the model's estimate. A message of one text costs 6 more."""
    return "word" * tokens


def user(name: str, text: str = "question") -> Message:
    """A user's message of one text."""
    return Message(id=NodeId(name), role=Role.USER, parts=(Text(id=PartId("text"), text=text),))


def assistant(
    name: str,
    text: str | None = "answer",
    *,
    calls: Sequence[str] = (),
    results: Sequence[str] = (),
    end: AnswerEnd | None = None,
    built_on: str | None = None,
    usage: Usage | None = None,
) -> Message:
    """An assistant's message: a text, calls, and results for those of its own calls that are settled already."""
    parts: list[Part] = []
    if text is not None:
        parts.append(Text(id=PartId("text"), text=text))
    parts.extend(
        ToolCall(id=PartId(f"call-{call}"), call=CallId(call), name="look", input="{}") for call in calls
    )
    parts.extend(result(call) for call in results)
    return Message(
        id=NodeId(name),
        role=Role.ASSISTANT,
        parts=tuple(parts),
        end=end,
        built_on=NodeId(built_on) if built_on is not None else None,
        usage=usage,
    )


def tool(name: str, *calls: str, text: str = "found") -> Message:
    """A ``tool`` message with a final result for each call."""
    return Message(id=NodeId(name), role=Role.TOOL, parts=tuple(result(call, text) for call in calls))


def result(
    call: str,
    text: str = "found",
    *,
    status: ResultStatus = ResultStatus.OUTPUT,
    preliminary: bool = False,
) -> ToolResult:
    """A result for a call, final unless said otherwise."""
    return ToolResult(
        id=PartId(f"result-{call}"), call=CallId(call), status=status, text=text, preliminary=preliminary
    )


def summary(text: str, finish: FinishReason = FinishReason.STOP) -> SummaryAnswer:
    """What a summariser returns when all is well."""
    return SummaryAnswer(parts=(Text(id=PartId("text"), text=text),), finish=finish)


def failure(text: str = "no connection") -> SummaryFailure:
    """What a summariser's error looks like."""
    return SummaryFailure(text=text)
