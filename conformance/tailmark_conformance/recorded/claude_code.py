"""Reads Claude Code's session files: a record a line, each naming its parent by ``parentUuid``.

Records that hold no message (progress, hooks, attachments) are part of the parent chain: whatever names
one as its parent follows the message above it. Records with ``isSidechain`` are a subagent's, a conversation of
its own. A ``compact_boundary`` names the record that it follows as ``logicalParentUuid`` and keeps nothing before it
verbatim, unless it names a preserved segment. `claude_thread` says how records become messages.
"""

from collections.abc import Generator, Iterator, Mapping

from tailmark.declarations import Declaration, Readings, TailReading
from tailmark.identifiers import CallId, NodeId, SessionId, Tokens
from tailmark.messages import Message, Role, ToolCall, ToolResult
from tailmark.plans import Trigger
from tailmark_conformance.recorded.chain import logged
from tailmark_conformance.recorded.claude_content import (
    answer_parts,
    end_of,
    joined_text,
    usage_of,
    user_content,
)
from tailmark_conformance.recorded.claude_thread import Boundary, Thread
from tailmark_conformance.recorded.importing import (
    DAMAGE,
    Finding,
    Format,
    Imported,
    Tally,
    declaration_of,
)
from tailmark_conformance.recorded.lineage import Lineage
from tailmark_conformance.recorded.records import name_at, natural_at, object_at, objects_at, text_at
from tailmark_conformance.recorded.table import NodeTable

_TRIGGERS = {"auto": Trigger.AUTOMATIC, "manual": Trigger.MANUAL}


class ClaudeCodeImporter:
    """Reads one file. See `Importer`."""

    def __init__(self) -> None:
        self._table = NodeTable()
        self._tally = Tally()
        self._lineage = Lineage()
        self._main: Thread | None = None
        # The threads of subagents, by the rows of their records.
        self._side: dict[int, Thread] = {}
        self._threads: list[Thread] = []
        # Calls that were ever made: a result for another one is dangling.
        self._calls: set[CallId] = set()

    @property
    def format(self) -> Format:
        return Format.CLAUDE_CODE

    @property
    def declaration(self) -> Declaration:
        return declaration_of("Claude Code", Readings(tail=TailReading.KEEPS_NOTHING))

    @property
    def tally(self) -> Tally:
        return self._tally

    @property
    def branched_from(self) -> str | None:
        return None

    def open_calls(self) -> int:
        return sum(thread.open_calls() for thread in self._threads)

    def lost_line(self, line: int) -> None:
        self._lineage.lose(line)

    def feed(self, line: int, record: Mapping[str, object]) -> Iterator[Imported]:
        uuid = name_at(record, "uuid")
        if uuid is None:
            self._tally.other_records += 1
            if "message" in record and "parentUuid" in record:
                yield Finding(
                    clause=DAMAGE,
                    line=line,
                    node=None,
                    text="an invalid message: it has no uuid; it is left out",
                )
            return
        if uuid in self._lineage or NodeId(uuid) in self._table:
            yield Finding(
                clause=DAMAGE,
                line=line,
                node=NodeId(uuid),
                text="a duplicate id: an earlier record has this uuid; this one is left out",
            )
            return
        is_boundary = record.get("type") == "system" and record.get("subtype") == "compact_boundary"
        parent = name_at(record, "parentUuid")
        link = "parent"
        if is_boundary and name_at(record, "logicalParentUuid") is not None:
            parent, link = name_at(record, "logicalParentUuid"), "logical parent"
        row = self._lineage.add(uuid, parent=parent, link=link, line=line)
        above = self._lineage.row(parent) if parent != uuid else None
        thread = yield from self._thread(line, row, above, record)
        follows = self._follows(thread, parent, above, is_boundary=is_boundary)
        yield from self._record(line, row, NodeId(uuid), thread, follows, record, is_boundary=is_boundary)

    def finish(self) -> Iterator[Imported]:
        for thread in self._threads:
            yield from thread.finish()
        yield from self._lineage.findings()
        self._tally.branches = self._table.ends()

    def _follows(
        self, thread: Thread, parent: str | None, above: int | None, *, is_boundary: bool
    ) -> NodeId | None:
        """The node that a record follows."""
        if above is not None and self._thread_at(above) is thread:
            return self._lineage.node(above)
        if (parent is not None and above is None) or (is_boundary and parent is None):
            # Its parent is missing, or a compaction does not say what it follows: it goes on where the thread ends.
            return thread.end
        return None

    def _thread_at(self, row: int) -> Thread | None:
        return self._side.get(row, self._main)

    def _thread(
        self, line: int, row: int, above: int | None, record: Mapping[str, object]
    ) -> Generator[Imported, None, Thread]:
        """The conversation that a record belongs to, begun if it is new."""
        if record.get("isSidechain") is True:
            thread = self._side.get(above) if above is not None else None
            name = f"sidechain:{name_at(record, 'uuid')}"
        else:
            thread = self._main
            name = name_at(record, "sessionId") or "session"
        if thread is None:
            thread = Thread(SessionId(name), self._table, self._tally)
            self._threads.append(thread)
            yield from thread.begin(line)
        if record.get("isSidechain") is True:
            self._side[row] = thread
        else:
            self._main = thread
        return thread

    def _record(
        self,
        line: int,
        row: int,
        node: NodeId,
        thread: Thread,
        follows: NodeId | None,
        record: Mapping[str, object],
        *,
        is_boundary: bool,
    ) -> Iterator[Imported]:
        message = object_at(record, "message")
        self._lineage.stand(row, follows)
        match record.get("type"):
            case "assistant" if message:
                yield from self._answer(line, row, node, thread, follows, record)
            case "user" if message and record.get("isCompactSummary") is True:
                text = text_at(message, "content")
                summary = text if text is not None else joined_text(objects_at(message, "content"))
                yield from thread.summary(line, node, follows, summary)
                self._lineage.stand(row, thread.end)
            case "user" if message:
                yield from self._user(line, row, node, thread, follows, message)
            case "user" | "assistant":
                yield Finding(
                    clause=DAMAGE,
                    line=line,
                    node=node,
                    text="an invalid message: the record holds none; it is left out",
                )
            case "system" if is_boundary:
                yield from thread.compaction(self._boundary(line, node, record), follows)
                self._lineage.stand(row, node)
            case _:
                self._tally.other_records += 1

    def _answer(
        self,
        line: int,
        row: int,
        node: NodeId,
        thread: Thread,
        follows: NodeId | None,
        record: Mapping[str, object],
    ) -> Iterator[Imported]:
        message = object_at(record, "message")
        api_id = name_at(message, "id") or node
        parts = answer_parts(message, thread.parts_of_answer(api_id))
        calls = [part.call for part in parts if isinstance(part, ToolCall)]
        self._calls.update(calls)
        self._tally.tool_calls += len(calls)
        self._tally.tool_results += sum(isinstance(part, ToolResult) for part in parts)
        self._lineage.stand(row, thread.node_of_answer(api_id) or node)
        yield from thread.answer(line, node, follows, api_id, parts, end_of(record), usage_of(message))

    def _user(
        self,
        line: int,
        row: int,
        node: NodeId,
        thread: Thread,
        follows: NodeId | None,
        message: Mapping[str, object],
    ) -> Iterator[Imported]:
        content = user_content(message)
        self._tally.tool_results += len(content.results)
        results = tuple(part for part in content.results if part.call in self._calls)
        for part in content.results:
            if part not in results:
                yield Finding(
                    clause=DAMAGE,
                    line=line,
                    node=node,
                    text=f"a dangling result: no call {part.call} stands before it; it is left out of the branch",
                )
        if results:
            self._lineage.stand(row, node)
            yield from thread.said(
                logged(
                    line,
                    Message(id=node, role=Role.TOOL, parts=results),
                    more_tokens=content.more_tokens,
                ),
                follows,
            )
            follows, node = node, NodeId(f"{node}:said")
        if content.said or not content.results:
            self._lineage.stand(row, node)
            yield from thread.said(
                logged(line, Message(id=node, role=Role.USER, parts=content.said)), follows
            )

    def _boundary(self, line: int, node: NodeId, record: Mapping[str, object]) -> Boundary:
        details = object_at(record, "compactMetadata")
        tokens = natural_at(details, "preTokens")
        head = name_at(object_at(details, "preservedSegment"), "headUuid")
        row = self._lineage.row(head)
        first_kept = self._lineage.node(row) if row is not None else None
        damage = None
        if head is not None and first_kept is None:
            damage = f"the first kept record {head} does not exist"
        return Boundary(
            line=line,
            node=node,
            trigger=_TRIGGERS.get(str(details.get("trigger"))),
            tokens_before=Tokens(tokens) if tokens is not None else None,
            first_kept=first_kept,
            damage=damage,
        )
