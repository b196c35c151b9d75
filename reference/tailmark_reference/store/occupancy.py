"""How full the window is with a branch: the base among its answers, and what that does not cover (OCC)."""

import sqlite3
from bisect import bisect_right

from attrs import frozen

from tailmark.budgets import Budgets, Model, Occupancy
from tailmark.declarations import MeasureReading
from tailmark.identifiers import Tokens
from tailmark.messages import Message, Reasoning, Text, ToolCall, ToolResult, UsageScope
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.bodies import to_message
from tailmark_reference.store.queries import (
    CheckpointRow,
    Messages,
    checkpoint_row,
    is_on_branch,
    late_calls,
    messages_from,
    node_body,
    node_by_id,
)
from tailmark_reference.store.sizes import scaled


@frozen
class Tail:
    """What a branch sends: the checkpoint in force and the messages behind its place.

    ``end`` is the node that the branch ends in.
    """

    end: int | None
    present: CheckpointRow | None
    messages: Messages

    @property
    def summary(self) -> Tokens:
        """What the summary in force costs."""
        return Tokens(0) if self.present is None else self.present.estimate

    @property
    def cost(self) -> Tokens:
        """What the messages cost together."""
        return self.messages.tail_costs[0] if self.messages.tail_costs else Tokens(0)

    def cost_from(self, position: int) -> Tokens:
        """What the messages from a position on cost together."""
        costs = self.messages.tail_costs
        return costs[position] if position < len(costs) else Tokens(0)


def tail_of(connection: sqlite3.Connection, end: int | None, checkpoint: int | None) -> Tail:
    """What the branch that ends in a node sends. ``checkpoint`` is that node's column."""
    present = None if checkpoint is None else checkpoint_row(connection, checkpoint)
    lowest = 0 if present is None else present.lowest
    return Tail(end, present, messages_from(connection, end, lowest))


def _is_valid(message: Message, model: Model) -> bool:
    usage = message.usage
    if usage is None or usage.scope is not UsageScope.LAST_REQUEST or not usage.ended_normally:
        return False
    if usage.model != model.name or usage.input == 0 or usage.input + usage.output > model.window:
        return False
    return usage.cached <= usage.input and usage.reasoning_output <= usage.output


def _figure(message: Message) -> Tokens:
    usage = message.usage
    assert usage is not None
    replays = any(isinstance(part, Reasoning) and part.replayable for part in message.parts)
    return Tokens(usage.input + usage.output - (0 if replays else usage.reasoning_output))


def _late_cost(connection: sqlite3.Connection, estimator: Estimator, node: int, message: Message) -> int:
    """What the results of a message cost that its last request did not carry."""
    late = late_calls(connection, node)
    cost, is_last_output_seen = 0, False
    for part in reversed(message.parts):
        if isinstance(part, Text | Reasoning | ToolCall):
            is_last_output_seen = True
        elif isinstance(part, ToolResult) and (part.call in late or not is_last_output_seen):
            cost += estimator.part(part)
    return cost


@frozen
class _Base:
    node: int
    start: int
    message: Message


def _find_base(connection: sqlite3.Connection, tail: Tail, model: Model) -> _Base | None:
    checkpoint = 0 if tail.present is None else tail.present.seq
    for node in tail.messages.usages:
        if node < checkpoint:
            return None
        message = to_message(node_body(connection, node))
        if not _is_valid(message, model) or message.built_on is None:
            continue
        start = node_by_id(connection, message.built_on)
        if start is None or start.seq < checkpoint or start.seq >= node:
            continue
        if is_on_branch(connection, node, start.seq):
            return _Base(node, start.seq, message)
    return None


def occupancy_of(
    connection: sqlite3.Connection,
    estimator: Estimator,
    tail: Tail,
    model: Model,
    budgets: Budgets,
    measure: MeasureReading,
) -> Occupancy:
    """The occupancy of what a branch sends. Costs the tail, not the history."""
    whole = budgets.overhead + tail.summary + tail.cost
    base = _find_base(connection, tail, model)
    if base is None:
        return Occupancy(tokens=Tokens(whole), added=Tokens(whole))
    seqs = tail.messages.seqs
    own = bisect_right(seqs, base.node) - 1
    behind_start = tail.cost_from(bisect_right(seqs, base.start))
    base_cost = tail.cost_from(own) - tail.cost_from(own + 1)
    added = behind_start - base_cost + _late_cost(connection, estimator, base.node, base.message)
    occupancy = Occupancy(
        tokens=Tokens(0),
        base=base.message.id,
        figure=_figure(base.message),
        covered=Tokens(max(0, whole - added)),
        added=Tokens(added),
    )
    tokens = occupancy.figure + scaled(added, occupancy, measure)
    return Occupancy(
        tokens=Tokens(tokens),
        base=occupancy.base,
        figure=occupancy.figure,
        covered=occupancy.covered,
        added=occupancy.added,
    )
