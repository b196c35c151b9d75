"""The tree of an imported session, as columns of numbers: what the report needs and no texts.

Each node has a row. A row holds running sums from the root to the node, so that the messages and tokens
between two places of a path are a subtraction. A row takes 50 bytes beside its entry in the index.
"""

from array import array
from collections.abc import Iterator

from attrs import frozen

from tailmark.identifiers import CallId, NodeId, Tokens
from tailmark.messages import Message, Role, ToolCall, ToolResult

NO_ROW = -1


@frozen
class MadeCall:
    """A call without a final result on a path, and the message that made it."""

    call: CallId
    node: NodeId


class NodeTable:
    """The nodes of one file. Rows are only added."""

    def __init__(self) -> None:
        self._rows: dict[NodeId, int] = {}
        self._ids: list[NodeId] = []
        self._parents = array("q")
        self._lines = array("q")
        self._messages = array("q")
        self._tokens = array("q")
        self._checkpoints = array("q")
        self._roles = array("b")
        # Rows behind which calls are open. Most have none.
        self._open: dict[int, tuple[MadeCall, ...]] = {}

    def __contains__(self, node: NodeId) -> bool:
        return node in self._rows

    def __len__(self) -> int:
        return len(self._ids)

    def add_message(self, line: int, parent: NodeId | None, message: Message, tokens: Tokens) -> bool:
        """Add a message behind a node of the table. Answers whether it opens a turn."""
        open_before = self.open_calls(parent)
        self._add(message.id, line, parent, _ROLES.index(message.role), messages=1, tokens=tokens)
        open_behind = _settle(open_before, message)
        if open_behind:
            self._open[len(self._ids) - 1] = open_behind
        return message.role is Role.USER and not open_before

    def add_checkpoint(self, line: int, parent: NodeId | None, node: NodeId) -> None:
        """Add a checkpoint behind a node of the table."""
        open_calls = self.open_calls(parent)
        row = self._add(node, line, parent, _CHECKPOINT, messages=0, tokens=0)
        self._checkpoints[row] = row
        if open_calls:
            self._open[row] = open_calls

    def _add(
        self, node: NodeId, line: int, parent: NodeId | None, role: int, *, messages: int, tokens: int
    ) -> int:
        above = self._rows[parent] if parent is not None else NO_ROW
        row = len(self._ids)
        self._rows[node] = row
        self._ids.append(node)
        self._parents.append(above)
        self._lines.append(line)
        self._roles.append(role)
        self._messages.append(messages + (self._messages[above] if above != NO_ROW else 0))
        self._tokens.append(tokens + (self._tokens[above] if above != NO_ROW else 0))
        self._checkpoints.append(self._checkpoints[above] if above != NO_ROW else NO_ROW)
        return row

    def line(self, node: NodeId) -> int:
        """The line that the node came from."""
        return self._lines[self._rows[node]]

    def parent(self, node: NodeId) -> NodeId | None:
        """The node that it follows."""
        above = self._parents[self._rows[node]]
        return self._ids[above] if above != NO_ROW else None

    def is_checkpoint(self, node: NodeId) -> bool:
        """Whether the node is a checkpoint."""
        return self._roles[self._rows[node]] == _CHECKPOINT

    def is_tool(self, node: NodeId) -> bool:
        """Whether the node is a message of the role ``tool``."""
        return self._roles[self._rows[node]] == _ROLES.index(Role.TOOL)

    def open_calls(self, node: NodeId | None) -> tuple[MadeCall, ...]:
        """The calls open behind a node, in branch order."""
        return self._open.get(self._rows[node], ()) if node is not None else ()

    def latest_checkpoint(self, node: NodeId | None) -> NodeId | None:
        """The checkpoint nearest to a node, the node itself included."""
        row = self._checkpoints[self._rows[node]] if node is not None else NO_ROW
        return self._ids[row] if row != NO_ROW else None

    def messages_to(self, node: NodeId | None) -> int:
        """How many messages stand on the path from the root to a node, the node included."""
        return self._messages[self._rows[node]] if node is not None else 0

    def tokens_to(self, node: NodeId | None) -> Tokens:
        """What they cost together."""
        return Tokens(self._tokens[self._rows[node]] if node is not None else 0)

    def ends(self) -> int:
        """How many nodes no other node follows."""
        followed = bytearray(len(self._ids))
        for above in self._parents:
            if above != NO_ROW:
                followed[above] = 1
        return followed.count(0)

    def walk(self, node: NodeId | None) -> Iterator[NodeId]:
        """The node and those above it, up to the root."""
        row = self._rows[node] if node is not None else NO_ROW
        while row != NO_ROW:
            yield self._ids[row]
            row = self._parents[row]

    def is_above(self, node: NodeId, end: NodeId | None) -> bool:
        """Whether a node stands on the path to ``end``, or is it. A parent has a smaller row, so the walk is no longer than needed."""
        wanted = self._rows[node]
        row = self._rows[end] if end is not None else NO_ROW
        while row > wanted:
            row = self._parents[row]
        return row == wanted

    def messages_between(self, above: int, end: NodeId | None) -> tuple[NodeId, ...]:
        """The messages of the path to ``end`` behind its first ``above`` ones, in branch order."""
        found: list[NodeId] = []
        for node in self.walk(end):
            if self.messages_to(node) <= above:
                break
            if not self.is_checkpoint(node):
                found.append(node)
        return tuple(reversed(found))


_ROLES = (Role.USER, Role.ASSISTANT, Role.TOOL)
_CHECKPOINT = len(_ROLES)


def _settle(open_calls: tuple[MadeCall, ...], message: Message) -> tuple[MadeCall, ...]:
    """The calls open behind a message. A result settles the nearest earlier open call of its id."""
    calls = list(open_calls)
    for part in message.parts:
        match part:
            case ToolCall():
                calls.append(MadeCall(part.call, message.id))
            case ToolResult():
                for index in range(len(calls) - 1, -1, -1):
                    if calls[index].call == part.call:
                        del calls[index]
                        break
            case _:
                pass
    return tuple(calls) if calls != list(open_calls) else open_calls
