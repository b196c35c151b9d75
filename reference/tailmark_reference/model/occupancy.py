"""How full the window is: the base, what its figure covers, and what is added (OCC).

The usage of the newest answer that can serve as a base says what the provider counted. Whatever of the
projection that figure does not cover is added as an estimate, in the measure of the provider.
"""

from collections.abc import Iterator
from typing import Protocol

from attrs import frozen

from tailmark.budgets import Model, Occupancy
from tailmark.declarations import MeasureReading
from tailmark.identifiers import Tokens
from tailmark.messages import Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, Usage, UsageScope
from tailmark_reference.estimate import part_cost
from tailmark_reference.model.tree import TreeNode, walk


def usage_is_valid(usage: Usage, model: Model) -> bool:
    """Whether a provider's figure can be believed and speaks of one request of this model (OCC-5, OCC-6)."""
    return (
        usage.scope is UsageScope.LAST_REQUEST
        and usage.ended_normally
        and usage.model == model.name
        and usage.input > 0
        and usage.cached <= usage.input
        and usage.reasoning_output <= usage.output
        and usage.input + usage.output <= model.window
    )


def figure_of(message: Message) -> Tokens:
    """What a base says: its input, cached or not, and its output as far as that is sent again (OCC-2, OCC-7, OCC-10)."""
    usage = message.usage
    if usage is None:
        return Tokens(0)
    sent_again = any(isinstance(part, Reasoning) and part.replayable for part in message.parts)
    return Tokens(usage.input + usage.output - (0 if sent_again else usage.reasoning_output))


def is_late(node: TreeNode, position: int) -> bool:
    """Whether the part at a position of a base message is a result that its last request did not carry (OCC-2)."""
    parts = node.message.parts if node.message is not None else ()
    if not isinstance(parts[position], ToolResult):
        return False
    behind = parts[position + 1 :]
    return parts[position].id in node.late or not any(
        isinstance(part, Text | Reasoning | ToolCall) for part in behind
    )


def may_be_base(node: TreeNode, model: Model) -> bool:
    """Whether a message's usage could be used, wherever its request was built (OCC-1, OCC-6)."""
    message = node.message
    return (
        message is not None
        and message.role is Role.ASSISTANT
        and message.usage is not None
        and message.built_on is not None
        and usage_is_valid(message.usage, model)
    )


def built_on(node: TreeNode, latest: TreeNode | None) -> TreeNode | None:
    """The node that a message's request was built on, if that is an ancestor at or behind the latest checkpoint (OCC-1, OCC-3)."""
    named = node.message.built_on if node.message is not None else None
    for above in walk(node.parent):
        if above.id == named:
            return above
        if above is latest:
            break
    return None


def find_base(
    leaf: TreeNode | None, latest: TreeNode | None, model: Model
) -> tuple[TreeNode, TreeNode] | None:
    """The base of a branch and the node that its request was built on. It looks no further than the latest checkpoint."""
    for node in walk(leaf):
        if node is latest:
            break
        if may_be_base(node, model):
            start = built_on(node, latest)
            if start is not None:
                return node, start
    return None


def _late_cost(node: TreeNode, late: "IsLate", cost: "PartCost") -> int:
    parts = node.message.parts if node.message is not None else ()
    return sum(cost(part) for position, part in enumerate(parts) if late(node, position))


def _behind(leaf: TreeNode | None, start: TreeNode) -> Iterator[TreeNode]:
    """The messages behind a node of the branch, from the leaf upwards."""
    for node in walk(leaf):
        if node is start:
            return
        if node.message is not None:
            yield node


def added_to(
    leaf: TreeNode | None, base: TreeNode, start: TreeNode, late: "IsLate", cost: "PartCost"
) -> Tokens:
    """What the projection has that the base's figure does not cover (OCC-2, OCC-16)."""
    others = sum(node.estimate for node in _behind(leaf, start) if node is not base)
    return Tokens(others + _late_cost(base, late, cost))


def scaled(tokens: int, occupancy: Occupancy, reading: MeasureReading) -> Tokens:
    """An estimate in the provider's measure: times the ratio, which is at least 1 (OCC-15)."""
    if reading is MeasureReading.PLAIN or occupancy.covered == 0 or occupancy.figure <= occupancy.covered:
        return Tokens(tokens)
    return Tokens(-(-tokens * occupancy.figure // occupancy.covered))


class IsLate(Protocol):
    """The type of `is_late`."""

    def __call__(self, node: TreeNode, position: int) -> bool:
        """See `is_late`."""
        ...


class PartCost(Protocol):
    """What one part costs in its message."""

    def __call__(self, part: Part, /) -> int:
        """See `tailmark_reference.estimate.part_cost`."""
        ...


class FindBase(Protocol):
    """The type of `find_base`."""

    def __call__(
        self, leaf: TreeNode | None, latest: TreeNode | None, model: Model
    ) -> tuple[TreeNode, TreeNode] | None:
        """See `find_base`."""
        ...


class Scaled(Protocol):
    """The type of `scaled`."""

    def __call__(self, tokens: int, occupancy: Occupancy, reading: MeasureReading) -> Tokens:
        """See `scaled`."""
        ...


class AddedTo(Protocol):
    """The type of `added_to`."""

    def __call__(
        self, leaf: TreeNode | None, base: TreeNode, start: TreeNode, late: IsLate, cost: PartCost
    ) -> Tokens:
        """See `added_to`."""
        ...


@frozen(kw_only=True)
class OccupancyRules:
    """The rules of this chapter. `tailmark_reference.model.rules.Rules` holds one."""

    find_base: FindBase = find_base
    figure_of: "FigureOf" = figure_of
    is_late: IsLate = is_late
    added_to: AddedTo = added_to
    part_cost: PartCost = part_cost
    scaled: Scaled = scaled


class FigureOf(Protocol):
    """The type of `figure_of`."""

    def __call__(self, message: Message, /) -> Tokens:
        """See `figure_of`."""
        ...


def measured(
    rules: OccupancyRules,
    leaf: TreeNode | None,
    latest: TreeNode | None,
    *,
    whole: int,
    model: Model,
    reading: MeasureReading,
) -> Occupancy:
    """The occupancy of a branch. ``whole`` is the estimate of its overhead and projection together, in tokens."""
    found = rules.find_base(leaf, latest, model)
    if found is None or found[0].message is None:
        return Occupancy(tokens=Tokens(whole), added=Tokens(whole))
    base, start = found
    figure = rules.figure_of(found[0].message)
    added = rules.added_to(leaf, base, start, rules.is_late, rules.part_cost)
    shape = Occupancy(
        tokens=Tokens(0), base=base.id, figure=figure, covered=Tokens(max(0, whole - added)), added=added
    )
    tokens = figure + rules.scaled(added, shape, reading)
    return Occupancy(
        tokens=Tokens(tokens), base=base.id, figure=figure, covered=shape.covered, added=shape.added
    )
