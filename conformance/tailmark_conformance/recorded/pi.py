"""Reads the session files of the pi coding agent, format version 1.

A file is a header and a list of entries. Entries have no ids: a node is named ``entry:`` and its index,
counted from 0 over all entries of the file that can be read, as ``firstKeptEntryIndex`` counts them. Each message
follows the one before it. A command that the user ran himself (``bashExecution``) is sent to the model as a user's
message, so it is one here. The format does not say what triggered a compaction.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping

from attrs import evolve

from tailmark.declarations import Declaration, Readings
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, SessionId, Tokens
from tailmark.messages import (
    AnswerEnd,
    Image,
    Message,
    Part,
    Reasoning,
    ResultStatus,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tailmark_conformance.recorded.chain import Chain, LoggedCheckpoint, logged
from tailmark_conformance.recorded.importing import (
    DAMAGE,
    Finding,
    Format,
    Imported,
    Tally,
    declaration_of,
)
from tailmark_conformance.recorded.records import (
    json_text,
    name_at,
    natural_at,
    object_at,
    objects_at,
    text_at,
    tokens_at,
)
from tailmark_conformance.recorded.table import NodeTable
from tailmark_reference.estimate import COSTS

_ENDS = {
    "stop": AnswerEnd.FINAL,
    "length": AnswerEnd.FINAL,
    "error": AnswerEnd.FAILED,
    "aborted": AnswerEnd.ABORTED,
}
_USER_ROLES = ("user", "bashExecution", "hookMessage", "custom")
ROLES = ("assistant", "toolResult", *_USER_ROLES)
"""The roles that a message of this format may have."""


class PiImporter:
    """Reads one file. See `Importer`."""

    def __init__(self) -> None:
        self._table = NodeTable()
        self._tally = Tally()
        self._chain = Chain(SessionId("session"), self._table, self._tally)
        self._begun = False
        self._entries = 0
        # Indexes of the entries that are messages of the branch.
        self._messages = array("q")
        # Calls that were ever made: a result for another one is dangling.
        self._calls: set[CallId] = set()
        self._branched_from: str | None = None

    @property
    def format(self) -> Format:
        return Format.PI_1

    @property
    def declaration(self) -> Declaration:
        return declaration_of("pi coding agent, format version 1", Readings())

    @property
    def tally(self) -> Tally:
        return self._tally

    @property
    def branched_from(self) -> str | None:
        return self._branched_from

    def open_calls(self) -> int:
        return len(self._chain.open_calls)

    def lost_line(self, line: int) -> None:  # pi itself skips such lines, too
        """Nothing hangs on it: the entries have no ids."""

    def feed(self, line: int, record: Mapping[str, object]) -> Iterator[Imported]:
        index = self._entries
        self._entries += 1
        match record.get("type"):
            case "session":
                self._tally.other_records += 1
                yield from self._begin(line, record, index)
            case "message":
                yield from self._begin(line, {}, index)
                yield from self._message(line, index, _node(index), object_at(record, "message"))
            case "compaction":
                yield from self._begin(line, {}, index)
                yield from self._checkpoint(line, index, record)
            case "model_change":
                self._tally.other_records += 1
                self._chain.model = ModelName(name_at(record, "modelId") or "")
            case _:
                self._tally.other_records += 1

    def finish(self) -> Iterator[Imported]:
        yield from self._chain.finish()
        self._tally.branches = self._table.ends()

    def _begin(self, line: int, header: Mapping[str, object], index: int) -> Iterator[Imported]:
        if self._begun:
            if header:
                yield Finding(
                    clause=DAMAGE,
                    line=line,
                    node=_node(index),
                    text="a second session header stands here; what follows is read as the same session",
                )
            return
        self._begun = True
        if header:
            self._branched_from = text_at(header, "branchedFrom") or text_at(header, "parentSession")
            self._chain.model = ModelName(name_at(header, "modelId") or "")
            name = name_at(header, "id")
            if name is not None:
                self._chain.session = SessionId(name)
        else:
            yield Finding(
                clause=DAMAGE,
                line=line,
                node=None,
                text="the session header is missing; the entries are read without it",
            )
        yield from self._chain.begin(line)

    def _message(
        self, line: int, index: int, node: NodeId, message: Mapping[str, object]
    ) -> Iterator[Imported]:
        match message.get("role"):
            case "assistant":
                self._messages.append(index)
                answer = evolve(_answer(node, message), built_on=self._chain.leaf)
                calls = [part.call for part in answer.parts if isinstance(part, ToolCall)]
                self._calls.update(calls)
                self._tally.tool_calls += len(calls)
                if answer.usage is not None and answer.usage.model:
                    self._chain.model = answer.usage.model
                yield from self._chain.assistant(logged(line, answer))
            case "toolResult":
                self._tally.tool_results += 1
                call = name_at(message, "toolCallId")
                if call is None or CallId(call) not in self._calls:
                    yield Finding(
                        clause=DAMAGE,
                        line=line,
                        node=node,
                        text=f"a dangling result: no call {call} stands before it; it is left out of the branch",
                    )
                    return
                self._messages.append(index)
                text, images = _result_text(message)
                status = ResultStatus.ERROR if message.get("isError") is True else ResultStatus.OUTPUT
                part = ToolResult(id=PartId("p0"), call=CallId(call), status=status, text=text)
                yield from self._chain.result(
                    logged(
                        line,
                        Message(id=node, role=Role.TOOL, parts=(part,)),
                        more_tokens=images * COSTS.per_image,
                    )
                )
            case str() as role if role in _USER_ROLES:
                self._messages.append(index)
                yield from self._chain.user(
                    logged(line, Message(id=node, role=Role.USER, parts=_user_parts(message)))
                )
            case role:
                yield Finding(
                    clause=DAMAGE,
                    line=line,
                    node=node,
                    text=f"an invalid message: {_named_role(role)}; it is left out of the branch",
                )

    def _checkpoint(self, line: int, index: int, record: Mapping[str, object]) -> Iterator[Imported]:
        first_kept, damage = self._first_kept(natural_at(record, "firstKeptEntryIndex"), index)
        summary = text_at(record, "summary")
        tokens = natural_at(record, "tokensBefore")
        yield from self._chain.checkpoint(
            LoggedCheckpoint(
                line=line,
                node=_node(index),
                summary=summary or "",
                first_kept=first_kept,
                trigger=None,
                tokens_before=Tokens(tokens) if tokens is not None else None,
                damage=damage if summary is not None else "a checkpoint has no summary",
            )
        )

    def _first_kept(self, first: int | None, index: int) -> tuple[NodeId | None, str | None]:
        """The first message at or behind an index, and what is wrong with the index."""
        if first is None:
            return None, "a checkpoint does not say where the kept messages begin"
        if first >= index:
            return None, f"the first kept index {first} is not before the checkpoint's own, {index}"
        place = bisect_left(self._messages, first)
        return (_node(self._messages[place]) if place < len(self._messages) else None), None


def _node(index: int) -> NodeId:
    return NodeId(f"entry:{index}")


def _named_role(role: object) -> str:
    return f"the role {role[:50]!r} is not known" if isinstance(role, str) else "it has no role"


def _answer(node: NodeId, message: Mapping[str, object]) -> Message:
    parts = tuple(
        _answer_part(PartId(f"p{number}"), block)
        for number, block in enumerate(objects_at(message, "content"))
    )
    return Message(
        id=node,
        role=Role.ASSISTANT,
        parts=parts,
        end=_ENDS.get(str(message.get("stopReason"))),
        usage=_usage(message),
    )


def _answer_part(part: PartId, block: Mapping[str, object]) -> Part:
    match block.get("type"):
        case "text":
            return Text(id=part, text=text_at(block, "text") or "")
        case "thinking":
            return Reasoning(
                id=part,
                text=text_at(block, "thinking") or "",
                replayable=bool(text_at(block, "thinkingSignature")),
            )
        case "toolCall":
            return ToolCall(
                id=part,
                call=CallId(name_at(block, "id") or ""),
                name=name_at(block, "name") or "",
                input=json_text(block.get("arguments")),
            )
        case _:
            return Text(id=part, text=json_text(block))


def _usage(message: Mapping[str, object]) -> Usage | None:
    usage = object_at(message, "usage")
    cached = tokens_at(usage, "cacheRead")
    total = Tokens(tokens_at(usage, "input") + cached + tokens_at(usage, "cacheWrite"))
    if not total:
        return None
    return Usage(
        input=total,
        cached=cached,
        output=tokens_at(usage, "output"),
        model=ModelName(name_at(message, "model") or ""),
        ended_normally=message.get("stopReason") not in ("error", "aborted"),
    )


def _result_text(message: Mapping[str, object]) -> tuple[str, int]:
    """The text of a result, and how many images it has beside."""
    blocks = objects_at(message, "content")
    texts = [text_at(block, "text") or "" for block in blocks if block.get("type") == "text"]
    return "\n".join(texts), sum(block.get("type") == "image" for block in blocks)


def _user_parts(message: Mapping[str, object]) -> tuple[Part, ...]:
    if message.get("role") == "bashExecution":
        command, output = text_at(message, "command") or "", text_at(message, "output") or ""
        return (Text(id=PartId("p0"), text=f"{command}\n{output}"),)
    content = text_at(message, "content")
    if content is not None:
        return (Text(id=PartId("p0"), text=content),)
    parts: list[Part] = []
    for number, block in enumerate(objects_at(message, "content")):
        part = PartId(f"p{number}")
        if block.get("type") == "image":
            parts.append(Image(id=part, name="", media_type=name_at(block, "mimeType") or ""))
        else:
            parts.append(Text(id=part, text=text_at(block, "text") or ""))
    return tuple(parts)
