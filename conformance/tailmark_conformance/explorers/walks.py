"""One walk: which operation comes next, from fragments and single draws, with a swarm's choice of both."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import TypeVar

from tailmark.operations import Operation
from tailmark_conformance.explorers.fragments import FRAGMENTS
from tailmark_conformance.explorers.known import Known, chance, pick
from tailmark_conformance.explorers.strategies import BUILDERS, draw

T = TypeVar("T")


class Walk:
    """Draws the operations of one run. Feed each step to ``known`` before the next draw.

    Every second walk does without a random half of all kinds of operations and fragments: what is left
    comes more often, and together in ways that all of them never would. ``first`` names the fragment to
    begin with; nothing comes between its operations.
    """

    def __init__(self, known: Known, random: Random, first: str | None = None) -> None:
        self._known = known
        self._random = random
        kinds = {name: weight for name, (_, weight) in BUILDERS.items()}
        fragments = {name: weight for name, (_, weight) in FRAGMENTS.items()}
        if chance(random, 0.5):
            kinds = _half(random, kinds)
            fragments = _half(random, fragments)
        self._kinds = kinds
        self._fragments = fragments
        self._alone = random.choice((0.1, 0.25, 0.6))
        self._between = random.choice((0.0, 0.05, 0.2))
        self._running: Iterator[Operation] | None = self._fragment(first) if first is not None else None
        self._is_first = first is not None

    def next(self) -> Operation:
        """The next operation."""
        if self._running is None and not chance(self._random, self._alone):
            self._running = self._fragment(pick(self._random, self._fragments))
        if self._running is not None and (self._is_first or not chance(self._random, self._between)):
            operation = next(self._running, None)
            if operation is not None:
                return operation
            self._running = None
            self._is_first = False
        return draw(self._known, self._random, self._kinds)

    def _fragment(self, name: str) -> Iterator[Operation]:
        fragment, _ = FRAGMENTS[name]
        return fragment(self._known, self._random, self._known.session(self._random))


def _half(random: Random, weighted: Mapping[str, int]) -> dict[str, int]:
    kept = {name: weight for name, weight in weighted.items() if chance(random, 0.5)}
    return kept or dict(weighted)
