"""Which message becomes the first one that stays: by trigger, budget and draft (BND, TRG).

A place is a position in the tail; the number of its messages is the end. Each question is answered from columns.
"""

from attrs import frozen

from tailmark.budgets import Budgets, Occupancy
from tailmark.declarations import AdvanceReading, OversizedReading, Readings
from tailmark.identifiers import Tokens
from tailmark.plans import EditFor, Purpose, SendFor, Trigger
from tailmark_reference.store.occupancy import Tail
from tailmark_reference.store.sizes import scaled


@frozen(kw_only=True)
class Choice:
    """A tail, what waits behind it, and the budgets that a place must keep."""

    tail: Tail
    trigger: Trigger
    purpose: Purpose | None
    draft: Tokens
    budgets: Budgets
    occupancy: Occupancy
    readings: Readings

    def _scaled(self, tokens: int) -> int:
        return scaled(tokens, self.occupancy, self.readings.measure)

    @property
    def is_summary_too_long(self) -> bool:
        """Whether the summary in force exceeds the summary budget (TRG-10)."""
        return self.tail.present is not None and self._scaled(self.tail.summary) > self.budgets.summary

    @property
    def is_at_checkpoint(self) -> bool:
        """Whether nothing stands behind the checkpoint in force."""
        return self.tail.present is not None and self.tail.end == self.tail.present.seq

    def _is_within_tail_budget(self, position: int) -> bool:
        budget = self.budgets.tail
        return budget is None or self._scaled(self.tail.cost_from(position)) <= budget

    def _is_within_limit(self, position: int) -> bool:
        budgets = self.budgets
        kept = budgets.overhead + self.tail.cost_from(position) + self.draft
        size = budgets.summary + self._scaled(kept)
        if self.trigger is Trigger.AUTOMATIC:
            return size < budgets.threshold
        return size <= budgets.safe

    def place(self) -> int | None:
        """The place; ``None`` where there is none."""
        return self._manual() if self.trigger is Trigger.MANUAL else self._pressed()

    def _manual(self) -> int | None:
        if self.is_at_checkpoint:
            return 0
        openers = self.tail.messages.openers
        if self.tail.present is None:
            if len(openers) < 2:
                return None
            if self._is_within_tail_budget(0):
                return openers[-1]
            candidates = openers[1:]
        else:
            # The present place is one even where it opens no turn.
            candidates = openers if openers[:1] == [0] else [0, *openers]
        chosen = next((place for place in candidates if self._is_within_tail_budget(place)), None)
        if chosen is None:
            return candidates[-1]
        if (
            chosen == 0
            and self.tail.present is not None
            and self.readings.advance is AdvanceReading.TO_LAST_TURN
        ):
            return candidates[-1]
        return chosen

    def _pressed(self) -> int | None:
        preflight = self.trigger is Trigger.PREFLIGHT
        too_long = preflight and self.is_summary_too_long
        if too_long and self._is_within_tail_budget(0) and self._is_within_limit(0):
            return 0
        openers = self.tail.messages.openers
        candidates = openers[1:] if self.tail.present is None else [one for one in openers if one > 0]
        for place in candidates:
            if self._is_within_tail_budget(place) and (not preflight or self._is_within_limit(place)):
                return place
        keeps = self.readings.oversized is OversizedReading.KEEP_IF_FITS
        is_draft = isinstance(self.purpose, SendFor | EditFor)
        if candidates and ((preflight and not is_draft) or (keeps and self._is_within_limit(candidates[-1]))):
            return candidates[-1]
        if self.tail.messages.seqs and (is_draft if preflight else not keeps):
            return len(self.tail.messages.seqs)
        return 0 if too_long else None

    def is_worth_it(self, place: int, divisor: int) -> bool:
        """Whether a compaction that nobody needs frees enough (TRG-5)."""
        freed = self._scaled(self.tail.cost - self.tail.cost_from(place) + self.tail.summary)
        return freed - self.budgets.summary >= self.budgets.safe // divisor
