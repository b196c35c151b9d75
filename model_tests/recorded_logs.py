"""Small logs in the shapes of the recorded formats, made by hand, and what an importer makes of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from tailmark.identifiers import NodeId
from tailmark.messages import Message, ToolResult
from tailmark.operations import Operation
from tailmark.plans import Checkpoint
from tailmark.views import StoredNode
from tailmark_conformance.recorded.importing import (
    AbandonedCall,
    CheckpointFacts,
    Finding,
    Imported,
    ImportedStep,
    Importer,
    TakenOver,
)

Fields = Mapping[str, object]
"""A record as it is written: plain JSON values."""


def lines_of(records: Iterable[Fields]) -> bytes:
    """The bytes of a log."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def write(path: Path, records: Iterable[Fields]) -> Path:
    """Write a log and answer its path."""
    path.write_bytes(lines_of(records))
    return path


# pi -------------------------------------------------------------------------------------------------------

HEADER: Fields = {"type": "session", "id": "s1", "cwd": "/", "modelId": "m1", "provider": "p"}


def pi_user(text: str = "question") -> Fields:
    return {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def pi_answer(*calls: str, text: str = "answer", stop: str | None = None) -> Fields:
    content: list[Fields] = [{"type": "text", "text": text}]
    content += [{"type": "toolCall", "id": call, "name": "read", "arguments": {}} for call in calls]
    reason = stop or ("toolUse" if calls else "stop")
    return {"type": "message", "message": {"role": "assistant", "content": content, "stopReason": reason}}


def pi_result(call: str, text: str = "result") -> Fields:
    content = [{"type": "text", "text": text}]
    return {
        "type": "message",
        "message": {"role": "toolResult", "toolCallId": call, "content": content, "isError": False},
    }


def pi_compaction(first_kept: object, summary: str = "summary") -> Fields:
    return {
        "type": "compaction",
        "summary": summary,
        "firstKeptEntryIndex": first_kept,
        "tokensBefore": 1000,
    }


# Claude Code ----------------------------------------------------------------------------------------------


@define
class ClaudeLog:
    """Writes records that each follow the one before, unless another parent is given. Every method answers the record's uuid."""

    records: list[Fields] = field(factory=list)
    last: str | None = None
    _ids: Iterator[int] = field(factory=lambda: count(1))

    def record(self, kind: str, fields: Fields, *, parent: str | None = "", uuid: str | None = None) -> str:
        uuid = uuid or f"u{next(self._ids)}"
        above = self.last if parent == "" else parent
        self.records.append(
            {
                "parentUuid": above,
                "isSidechain": False,
                "type": kind,
                "uuid": uuid,
                "sessionId": "S",
                **fields,
            }
        )
        self.last = uuid
        return uuid

    def user(self, text: str = "question", *, parent: str | None = "") -> str:
        return self.record("user", {"message": {"role": "user", "content": text}}, parent=parent)

    def progress(self, *, parent: str | None = "") -> str:
        return self.record("progress", {"data": {"type": "hook_progress"}}, parent=parent)

    def block(self, api_id: str, block: Fields, *, parent: str | None = "", **fields: object) -> str:
        message = {
            "id": api_id,
            "role": "assistant",
            "model": "m",
            "content": [block],
            "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 100},
        }
        return self.record("assistant", {"message": message, **fields}, parent=parent)

    def text(self, api_id: str, text: str = "answer", *, parent: str | None = "") -> str:
        return self.block(api_id, {"type": "text", "text": text}, parent=parent)

    def call(self, api_id: str, call: str, *, parent: str | None = "") -> str:
        return self.block(
            api_id, {"type": "tool_use", "id": call, "name": "Read", "input": {}}, parent=parent
        )

    def result(self, *calls: str, parent: str | None = "", said: str | None = None) -> str:
        content: list[Fields] = [
            {"type": "tool_result", "tool_use_id": call, "content": "result"} for call in calls
        ]
        if said is not None:
            content.append({"type": "text", "text": said})
        return self.record("user", {"message": {"role": "user", "content": content}}, parent=parent)

    def boundary(self, *, logical: str | None = "", trigger: str = "auto", **details: object) -> str:
        logical = self.last if logical == "" else logical
        return self.record(
            "system",
            {
                "subtype": "compact_boundary",
                "logicalParentUuid": logical,
                "compactMetadata": {"trigger": trigger, "preTokens": 1000, **details},
            },
            parent=None,
        )

    def summary(self, text: str = "summary", *, parent: str | None = "") -> str:
        return self.record(
            "user",
            {"isCompactSummary": True, "message": {"role": "user", "content": text}},
            parent=parent,
        )


# What comes of it -----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Run:
    """Everything that an importer yielded."""

    imported: tuple[Imported, ...]
    importer: Importer

    @property
    def steps(self) -> tuple[ImportedStep, ...]:
        return tuple(one for one in self.imported if isinstance(one, ImportedStep))

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(step.step.operation for step in self.steps)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.imported if isinstance(one, Finding))

    @property
    def checkpoints(self) -> tuple[CheckpointFacts, ...]:
        return tuple(one for one in self.imported if isinstance(one, CheckpointFacts))

    @property
    def abandoned(self) -> tuple[AbandonedCall, ...]:
        return tuple(one for one in self.imported if isinstance(one, AbandonedCall))

    @property
    def moves(self) -> tuple[NodeId | None, ...]:
        """Where leaves went without an operation, the beginnings of sessions aside."""
        moved = (one for one in self.imported if isinstance(one, TakenOver))
        return tuple(one.change.sessions[0].leaf for one in moved)[self.importer.tally.sessions :]

    @property
    def nodes(self) -> dict[NodeId, StoredNode]:
        return {node.content.id: node for step in self.steps for node in step.step.change.nodes}

    def message(self, node: str) -> Message:
        content = self.nodes[NodeId(node)].content
        assert isinstance(content, Message)
        return content

    def stored_checkpoint(self, node: str) -> Checkpoint:
        content = self.nodes[NodeId(node)].content
        assert isinstance(content, Checkpoint)
        return content

    def branch(self, end: str | None = None) -> tuple[str, ...]:
        """The path from the root to a node, by default to the leaf that was seen last."""
        nodes = self.nodes
        leaf = NodeId(end) if end is not None else self.steps[-1].step.change.sessions[0].leaf
        path: list[str] = []
        while leaf is not None:
            path.append(leaf)
            leaf = nodes[leaf].parent
        return tuple(reversed(path))

    def results(self, node: str) -> tuple[str, ...]:
        return tuple(part.call for part in self.message(node).parts if isinstance(part, ToolResult))


def run(importer: Importer, records: Sequence[Fields]) -> Run:
    """Import records as if they stood on the lines from 1 on. They pass through JSON as a file's do."""
    imported: list[Imported] = []
    for number, record in enumerate(records, 1):
        # Any: plain JSON values.
        fields: dict[str, Any] = json.loads(json.dumps(record))
        imported += importer.feed(number, fields)
    imported += importer.finish()
    return Run(imported=tuple(imported), importer=importer)
