"""One conversation of a Claude Code file: which record follows which, and which records make one message.

An API answer is spread over several records that share ``message.id``, and the results of its first calls
may stand between them. All its records become one assistant message, whose node id is the ``uuid`` of the first; what stands
between them is held back and follows it. An answer is over when a record of another answer, a
compaction or the end of the file comes.

Results of parallel calls name the record that made their call as their parent, not each other, so that
the file's own links branch there although the conversation does not. A record therefore follows the last one of its
conversation if its parent is that one, or if only results stand between the two. A result follows the last one wherever its call is
open. Any other parent means that somebody went back.
"""

from collections.abc import Iterator

from attrs import define, field, frozen

from tailmark.identifiers import CallId, NodeId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Part, Role, ToolCall, ToolResult, Usage
from tailmark.plans import Trigger
from tailmark_conformance.recorded.chain import Chain, LoggedCheckpoint, LoggedMessage
from tailmark_conformance.recorded.importing import Imported, Tally
from tailmark_conformance.recorded.records import shorten_part
from tailmark_conformance.recorded.table import NodeTable
from tailmark_reference.estimate import COSTS, part_cost


@define(kw_only=True)
class _Answer:
    """An API answer of which more records may come, and what stands between them."""

    line: int
    node: NodeId
    api_id: str
    parts: list[Part] = field(factory=list)
    tokens: int = COSTS.per_message
    end: AnswerEnd | None = None
    usage: Usage | None = None
    behind: list[LoggedMessage] = field(factory=list)

    def add(self, parts: tuple[Part, ...], end: AnswerEnd | None, usage: Usage | None) -> None:
        self.tokens += sum(map(part_cost, parts))
        self.parts.extend(map(shorten_part, parts))
        self.end = end or self.end
        self.usage = usage or self.usage

    def message(self) -> LoggedMessage:
        return LoggedMessage(
            line=self.line,
            message=Message(
                id=self.node, role=Role.ASSISTANT, parts=tuple(self.parts), end=self.end, usage=self.usage
            ),
            tokens=Tokens(self.tokens),
        )

    def open_calls(self) -> frozenset[CallId]:
        made = {part.call for part in self.parts if isinstance(part, ToolCall)}
        settled = [self.parts, *(logged.message.parts for logged in self.behind)]
        return frozenset(
            made - {part.call for parts in settled for part in parts if isinstance(part, ToolResult)}
        )


@frozen(kw_only=True)
class Boundary:
    """A ``compact_boundary`` record, whose summary comes with a later record."""

    line: int
    node: NodeId
    trigger: Trigger | None
    tokens_before: Tokens | None
    first_kept: NodeId | None
    damage: str | None


class Thread:
    """One conversation. Every method takes records in the order of the file and yields what they mean."""

    def __init__(self, session: SessionId, table: NodeTable, tally: Tally) -> None:
        self._table = table
        self._chain = Chain(session, table, tally)
        self._answer: _Answer | None = None
        self._boundary: Boundary | None = None
        # Checkpoints that are not part of the tree because they are damaged, and the node to take instead.
        self._instead: dict[NodeId, NodeId | None] = {}

    @property
    def end(self) -> NodeId | None:
        """The node that the next record follows if it goes on."""
        return next(self._behind(), (None, False))[0]

    def open_calls(self) -> int:
        """How many calls are open at the end."""
        return len(self._chain.open_calls)

    def begin(self, line: int) -> Iterator[Imported]:
        """The conversation as it is before its first record."""
        yield from self._chain.begin(line)

    def answer(
        self,
        line: int,
        node: NodeId,
        parent: NodeId | None,
        api_id: str,
        parts: tuple[Part, ...],
        end: AnswerEnd | None,
        usage: Usage | None,
    ) -> Iterator[Imported]:
        """A record of a model's answer, a new one or more of the present one."""
        answer = self._present(api_id)
        if answer is None:
            yield from self._go_to(line, parent, goes_on=self._follows(parent), closing=True)
            answer = self._answer = _Answer(line=line, node=node, api_id=api_id)
        answer.add(parts, end, usage)
        if usage is not None and usage.model:
            self._chain.model = usage.model

    def node_of_answer(self, api_id: str) -> NodeId | None:
        """The node of the present answer if this is its API id."""
        answer = self._present(api_id)
        return answer.node if answer is not None else None

    def parts_of_answer(self, api_id: str) -> int:
        """How many parts the present answer has so far; 0 if this is another's API id."""
        answer = self._present(api_id)
        return len(answer.parts) if answer is not None else 0

    def said(self, logged: LoggedMessage, parent: NodeId | None) -> Iterator[Imported]:
        """A user's message, or a message of tool results."""
        message = logged.message
        goes_on = self._follows(parent) or (
            message.role is Role.TOOL and any(self._is_open(part) for part in message.parts)
        )
        yield from self._go_to(logged.line, parent, goes_on=goes_on, closing=False)
        if self._answer is not None:
            self._answer.behind.append(logged)
        else:
            yield from self._pass_on(logged)

    def compaction(self, boundary: Boundary, parent: NodeId | None) -> Iterator[Imported]:
        """A compaction begins a new root; ``parent`` is the node that it says it logically follows."""
        yield from self._go_to(boundary.line, parent, goes_on=self._follows(parent), closing=True)
        self._boundary = boundary

    def summary(self, line: int, node: NodeId, parent: NodeId | None, text: str) -> Iterator[Imported]:
        """The summary of the compaction before it; without one it stands for the compaction itself."""
        boundary = self._boundary
        if boundary is None:
            boundary = Boundary(
                line=line, node=node, trigger=None, tokens_before=None, first_kept=None, damage=None
            )
            yield from self.compaction(boundary, parent)
        yield from self._commit(boundary, text)

    def finish(self) -> Iterator[Imported]:
        """The file is over."""
        yield from self._close()
        yield from self._chain.finish()

    def _present(self, api_id: str) -> _Answer | None:
        if self._boundary is not None or self._answer is None or self._answer.api_id != api_id:
            return None
        return self._answer

    def _is_open(self, part: Part) -> bool:
        if not isinstance(part, ToolResult):
            return False
        in_answer = self._answer is not None and part.call in self._answer.open_calls()
        return in_answer or part.call in self._chain.open_calls

    def _go_to(self, line: int, parent: NodeId | None, *, goes_on: bool, closing: bool) -> Iterator[Imported]:
        """End the present answer if the next record is not part of it, and go back if it follows another node."""
        if closing or not goes_on or self._boundary is not None:
            yield from self._close()
        if not goes_on:
            yield from self._chain.move(line, self._instead.get(parent, parent) if parent else None)

    def _close(self) -> Iterator[Imported]:
        answer, self._answer = self._answer, None
        if answer is not None:
            yield from self._chain.assistant(answer.message())
            for logged in answer.behind:
                yield from self._pass_on(logged)
        if self._boundary is not None:
            yield from self._commit(self._boundary, None)

    def _pass_on(self, logged: LoggedMessage) -> Iterator[Imported]:
        if logged.message.role is Role.TOOL:
            yield from self._chain.result(logged)
        else:
            yield from self._chain.user(logged)

    def _commit(self, boundary: Boundary, summary: str | None) -> Iterator[Imported]:
        self._boundary = None
        damage = boundary.damage
        if summary is None:
            damage = damage or "no summary follows a checkpoint"
        yield from self._chain.checkpoint(
            LoggedCheckpoint(
                line=boundary.line,
                node=boundary.node,
                summary=summary or "",
                first_kept=boundary.first_kept,
                trigger=boundary.trigger,
                tokens_before=boundary.tokens_before,
                damage=damage,
            )
        )
        if boundary.node not in self._table:
            self._instead[boundary.node] = self._chain.leaf

    # Which record follows which ---------------------------------------------------------------------

    def _behind(self) -> Iterator[tuple[NodeId, bool]]:
        """The nodes of the conversation from its end to its root, and whether each holds results alone."""
        if self._boundary is not None:
            yield self._boundary.node, False
        if self._answer is not None:
            for logged in reversed(self._answer.behind):
                yield logged.message.id, logged.message.role is Role.TOOL
            yield self._answer.node, False
        for node in self._chain.path():
            yield node, node in self._table and self._table.is_tool(node)

    def _follows(self, parent: NodeId | None) -> bool:
        parent = self._instead.get(parent, parent) if parent is not None else None
        if self._keeps_segment_behind(parent):
            return True
        for node, is_result in self._behind():
            if node == parent:
                return True
            if not is_result:
                return False
        return parent is None

    def _keeps_segment_behind(self, parent: NodeId | None) -> bool:
        """Behind a checkpoint that keeps messages, the next record may name the last of them as its parent."""
        leaf = self._chain.leaf
        if self._answer is not None or self._boundary is not None or leaf is None or leaf not in self._table:
            return False
        return self._chain.keeps_messages(leaf) and self._table.parent(leaf) == parent
