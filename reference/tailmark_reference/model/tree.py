"""The tree of the model: a node holds its parent, and what follows from the path above it.

Appending makes one node and copies nothing. What a node remembers (open calls, turns, the latest checkpoint)
is worked out from its parent's memory by the rules, so no walk is longer than the tail.
"""

from collections.abc import Iterator
from functools import cached_property

from attrs import field, frozen

from tailmark.damage import FindingKind
from tailmark.identifiers import NodeId, PartId, Tokens
from tailmark.json_form import digest
from tailmark.messages import Message
from tailmark.plans import Checkpoint, Node
from tailmark.views import OpenCall, StoredNode

OpenCalls = tuple[OpenCall, ...]
"""Calls without a final result, in branch order."""


# Compared by identity, printed without the parent: both would otherwise walk the whole path.
@frozen(kw_only=True, eq=False)
class TreeNode:
    """A stored node on its path.

    ``open_calls`` are those open behind it; ``turns`` and ``messages`` count the turn openers and the messages up to and including it;
    ``checkpoint_above`` is the latest checkpoint strictly above it. ``estimate`` is in tokens: of the
    message as it is projected, or of the checkpoint's summary. ``late`` are the results that were put into the message after it
    was first stored. ``place`` is how many messages stand before a checkpoint's place, -1 if it names no ancestor; 0 for a message. ``finding`` is what is unusual about a checkpoint.
    """

    content: Node
    parent: "TreeNode | None" = field(repr=False)
    estimate: Tokens
    open_calls: OpenCalls
    opens_turn: bool
    turns: int
    messages: int
    checkpoint_above: "TreeNode | None" = field(repr=False)
    projected: Message | None = field(repr=False)
    late: frozenset[PartId] = frozenset()
    place: int = 0
    finding: FindingKind | None = None

    @property
    def id(self) -> NodeId:
        """The node's id."""
        return self.content.id

    @property
    def message(self) -> Message | None:
        """The content, if it is a message."""
        return self.content if isinstance(self.content, Message) else None

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The content, if it is a checkpoint."""
        return self.content if isinstance(self.content, Checkpoint) else None

    @cached_property
    def digest(self) -> str:
        """The digest of what a projection carries of this node."""
        if isinstance(self.content, Checkpoint):
            return digest(self.content.summary)
        return digest(self.projected)

    @cached_property
    def stored(self) -> StoredNode:
        """The node as it is observed."""
        return StoredNode(
            parent=self.parent.id if self.parent is not None else None,
            content=self.content,
            estimate=self.estimate,
        )

    def walk(self) -> Iterator["TreeNode"]:
        """This node and those above it, up to the root."""
        node: TreeNode | None = self
        while node is not None:
            yield node
            node = node.parent


def walk(leaf: TreeNode | None) -> Iterator[TreeNode]:
    """The leaf and the nodes above it; nothing for an empty branch."""
    return leaf.walk() if leaf is not None else iter(())


def messages_up(leaf: TreeNode | None) -> Iterator[TreeNode]:
    """The nodes that are messages, from the leaf upwards."""
    return (node for node in walk(leaf) if isinstance(node.content, Message))


def branch_ids(leaf: TreeNode | None) -> tuple[NodeId, ...]:
    """The ids of the branch, root first. This walks the whole path."""
    return tuple(node.id for node in reversed(tuple(walk(leaf))))
