"""Where a compaction's tail begins: the places of manual, automatic and preflight compactions (BND, TRG).

A place is a position in the present tail: the number of its messages that stand before it. 0 is the present
place, the tail's length is the end (``open``).
"""

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

from tailmark.budgets import Budgets
from tailmark.declarations import AdvanceReading, OversizedReading, Readings
from tailmark.identifiers import Tokens
from tailmark.plans import Trigger
from tailmark_reference.model.tree import TreeNode


@frozen(kw_only=True, eq=False)
class Choice:
    """What a place is chosen from.

    ``tail`` are the messages behind the present place, ``first`` says that there is no checkpoint, ``summary`` is the estimate of the
    present summary. ``draft`` is the estimate of what waits behind the branch. ``may_open``: the end may be taken, because a
    draft follows. ``at_checkpoint``: the branch ends in its latest checkpoint. ``scaled`` brings an estimate to the measure of the budgets.
    """

    tail: tuple[TreeNode, ...]
    first: bool
    summary: Tokens
    draft: Tokens
    may_open: bool
    at_checkpoint: bool
    trigger: Trigger
    budgets: Budgets
    scaled: Callable[[int], Tokens]
    readings: Readings

    @property
    def summary_too_long(self) -> bool:
        """Whether the present summary exceeds the summary budget (TRG-10)."""
        limited = self.budgets.window > 0
        return limited and not self.first and self.scaled(self.summary) > self.budgets.summary


Positions: TypeAlias = tuple[int, ...]


def cost(nodes: tuple[TreeNode, ...]) -> Tokens:
    """What nodes cost in a request together, as an estimate."""
    return Tokens(sum(node.estimate for node in nodes))


def tail_fits(choice: Choice, position: int) -> bool:
    """Whether the tail behind a position fits the tail budget (BND-3)."""
    budget = choice.budgets.tail
    return budget is None or choice.scaled(cost(choice.tail[position:])) <= budget


def request_fits(choice: Choice, position: int) -> bool:
    """Whether a request with the tail behind a position fits its limit, given a summary of the whole budget (BND-3, BND-5)."""
    budgets = choice.budgets
    if budgets.window == 0:
        return True  # an implementation without a capacity has no such limit
    tokens = budgets.summary + choice.scaled(budgets.overhead + cost(choice.tail[position:]) + choice.draft)
    return tokens < budgets.threshold if choice.trigger is Trigger.AUTOMATIC else tokens <= budgets.safe


def openers(choice: Choice) -> Positions:
    """The positions before turn openers; without a checkpoint all but the first (BND-1, BND-8)."""
    found = tuple(position for position, node in enumerate(choice.tail) if node.opens_turn)
    return found[1:] if choice.first else found


def manual_candidates(choice: Choice) -> Positions:
    """The positions that a manual compaction may take, oldest first (BND-1, BND-7, BND-8).

    A present place that opens no turn (in a loaded store, or an open one) is a candidate, so that a refresh is possible.
    """
    found = openers(choice)
    return found if choice.first or found[:1] == (0,) else (0, *found)


def manual_position(choice: Choice) -> int | None:
    """The place of a manual compaction (BND-3, BND-4, BND-5, BND-9, TRG-4); ``None`` where there is none."""
    if choice.at_checkpoint:
        return 0
    places = manual_candidates(choice)
    if not places or (choice.first and tail_fits(choice, 0)):
        return places[-1] if places else None
    chosen = next((place for place in places if tail_fits(choice, place)), None)
    if chosen is None:
        # No boundary makes the tail fit: a manual compaction keeps the last turn whole.
        return places[-1]
    if chosen == 0 and choice.readings.advance is AdvanceReading.TO_LAST_TURN:
        return places[-1]
    return chosen


def advancing(choice: Choice) -> Positions:
    """The positions that automatic and preflight compactions may take: openers behind the present place (TRG-5)."""
    return tuple(position for position in openers(choice) if position > 0)


def pressed_position(choice: Choice) -> int | None:
    """The place of an automatic or preflight compaction; ``None`` where none is allowed (BND-3, BND-5, TRG-5, TRG-10)."""
    preflight = choice.trigger is Trigger.PREFLIGHT
    if preflight and choice.summary_too_long and tail_fits(choice, 0) and request_fits(choice, 0):
        return 0
    places = advancing(choice)
    for place in places:
        if tail_fits(choice, place) and (not preflight or request_fits(choice, place)):
            return place
    last = places[-1] if places else None
    keeps = choice.readings.oversized is OversizedReading.KEEP_IF_FITS
    if last is not None and keeps_last_turn(choice, last, keeps=keeps):
        return last
    opens = choice.may_open if preflight else not keeps
    if opens and choice.tail:
        return len(choice.tail)
    return 0 if preflight and choice.summary_too_long else None


def keeps_last_turn(choice: Choice, last: int, *, keeps: bool) -> bool:
    """Whether a last turn above the tail budget is kept whole (BND-5, RETRY-6)."""
    if choice.trigger is Trigger.PREFLIGHT and not choice.may_open:
        return True  # the question of a retry stays whole
    return keeps and request_fits(choice, last)


def manual_places(choice: Choice) -> Positions:
    """Every position that the clauses of level MUST leave to a manual compaction."""
    if choice.at_checkpoint:
        return (0,)
    places = manual_candidates(choice)
    if choice.first and tail_fits(choice, 0):
        return places
    fitting = tuple(place for place in places if tail_fits(choice, place))
    if not fitting:
        return places[-1:]
    if fitting[0] == 0:
        return places[-1:] if choice.readings.advance is AdvanceReading.TO_LAST_TURN else places[:1]
    return fitting


def pressed_places(choice: Choice) -> Positions:
    """Every position that the clauses of level MUST leave to an automatic or preflight compaction."""
    preflight = choice.trigger is Trigger.PREFLIGHT
    own = pressed_position(choice)
    fitting = tuple(
        place
        for place in advancing(choice)
        if tail_fits(choice, place) and (not preflight or request_fits(choice, place))
    )
    if own is None or own in fitting:
        return fitting
    return (own, *fitting) if own == 0 else (own,)


def worth_it(choice: Choice, position: int, divisor: int) -> bool:
    """Whether an automatic compaction to a position frees enough (TRG-5)."""
    excluded = choice.scaled(cost(choice.tail[:position]) + choice.summary)
    return excluded - choice.budgets.summary >= choice.budgets.safe // divisor
