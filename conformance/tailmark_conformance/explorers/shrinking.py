"""Makes a failing script as short and plain as it goes while the same clause is broken.

Chunks of operations are left out first, then single ones, then what they bring is made simpler. Each
candidate runs on the emptied subject; a commit takes the plan that its begin answers in that run.
"""

from collections.abc import Callable

from attrs import evolve

from tailmark_conformance.explorers.runs import FaultKey, Run, cut
from tailmark_conformance.explorers.scripts import Script
from tailmark_conformance.explorers.simplifying import simplifications

MOST_RUNS = 1500
"""So many candidates are tried for one fault. A count and no time, so that the result is always the same."""


class Shrinker:
    """Shrinks one fault. ``attempt`` runs a script on the emptied subject and judges it."""

    def __init__(self, key: FaultKey, attempt: Callable[[Script], Run], most_runs: int = MOST_RUNS) -> None:
        self._key = key
        self._attempt = attempt
        self._most = most_runs
        self._left = most_runs
        self._best: Run | None = None

    def shrink(self, script: Script) -> Run | None:
        """The run of the smallest script found that still has the fault; ``None`` if the script itself has it no more."""
        if not self._try(script):
            return None
        before: Script | None = None
        while self._left > 0 and self.best.script != before:
            before = self.best.script
            self._leave_out()
            self._simplify()
        return self.best

    @property
    def runs(self) -> int:
        """How many candidates were tried."""
        return self._most - self._left

    @property
    def best(self) -> Run:
        """The run of the smallest script so far."""
        assert self._best is not None, "the first script was not tried"
        return self._best

    def _try(self, script: Script) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        run = self._attempt(script)
        fault = run.faults.get(self._key)
        if fault is None:
            return False
        self._best = cut(run, fault)
        return True

    def _leave_out(self) -> None:
        size = max(len(self.best.script.entries) // 2, 1)
        while size >= 1:
            end = len(self.best.script.entries)
            while end > 0 and self._left > 0:
                entries = self.best.script.entries
                end = min(end, len(entries))
                start = max(end - size, 0)
                self._try(evolve(self.best.script, entries=entries[:start] + entries[end:]))
                end = start
            size //= 2

    def _simplify(self) -> None:
        position = 0
        while self._left > 0:
            candidates = list(simplifications(self.best.script))
            if position >= len(candidates):
                return
            if not self._try(candidates[position]):
                position += 1
