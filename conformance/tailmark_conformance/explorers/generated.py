"""Looks for broken clauses with generated runs, on as many processes as the machine has, and shrinks what it finds.

Each run has its own seed, made of the exploration's seed and the run's number. Results are put together by
the runs' numbers, so they do not depend on how many processes there were. Where the runs asked for leave a
clause unreached, rounds of one run for each fragment follow; only whole rounds count, for the same reason.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing import get_context
from random import Random
from typing import Protocol

from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.catalogue import clauses
from tailmark.declarations import Declaration
from tailmark.identifiers import ClauseId, ModelName, SessionId
from tailmark.subjects import Subject
from tailmark_conformance.explorers.fragments import FRAGMENTS
from tailmark_conformance.explorers.guarded import GuardedSubject, SubjectError
from tailmark_conformance.explorers.runs import (
    CRASH,
    HANG,
    ORACLES,
    PROTOCOL,
    Fault,
    FaultKey,
    Run,
    Selection,
    cut,
    replay,
    walk,
)
from tailmark_conformance.explorers.scripts import Script
from tailmark_conformance.explorers.shrinking import MOST_RUNS, Shrinker
from tailmark_conformance.explorers.witnesses import WITNESSES
from tailmark_conformance.subjects.targets import TargetError

_CHUNK = 10

_MOST_WITHOUT_ANSWER = {HANG: 4, CRASH: 30, PROTOCOL: 30}
"""So many runs are spent on a fault that costs a wait or a new process each time."""


class Source(Protocol):
    """Where subjects come from. It can be sent to another process."""

    @property
    def is_reference(self) -> bool:
        """Whether both oracles must agree about it."""
        ...

    @property
    def shrinking_runs(self) -> int:
        """So many runs may be spent on making all faults smaller. A count and no time, so that the result is always the same."""
        ...

    def opened(self) -> AbstractContextManager[Subject]:
        """A subject, closed in the end. Raises `TargetError`."""
        ...


@frozen(kw_only=True)
class Effort:
    """How much is explored: so many runs of so many operations, from one seed, on so many processes.

    ``rounds``: at most so many further rounds, each with a run for each fragment, while a clause was never reached.
    """

    seed: int
    examples: int
    steps: int
    workers: int
    rounds: int = 0


def processes() -> int:
    """How many processes the machine runs at once."""
    return max(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 1)


@frozen(kw_only=True)
class Found:
    """A fault, the run that has it, and the number of the generated run in which it came up first.

    ``repeats`` is false if the same script did not show the fault a second time. ``on_reference``: the reference in the subject's place shows it too.
    """

    fault: Fault
    run: Run
    example: int
    repeats: bool = True
    on_reference: bool = False

    @property
    def key(self) -> FaultKey:
        """What tells it from other faults."""
        return self.fault.clause, self.fault.signature


class Progress(Protocol):
    """Hears how an exploration goes on."""

    def ran(self, runs: int) -> None:
        """So many more runs are over."""
        ...

    def goes_on(self, runs: int) -> None:
        """So many runs more are to come, because a clause was not reached."""
        ...

    def found(self, found: Found) -> None:
        """A fault came up for the first time. It is not shrunk yet, and an earlier run may have it as well."""
        ...

    def shrinking(self, found: Found) -> None:
        """This fault is made smaller now."""
        ...


class Silence:
    """Nobody listens."""

    def ran(self, runs: int) -> None:
        """Nothing."""

    def goes_on(self, runs: int) -> None:
        """Nothing."""

    def found(self, found: Found) -> None:
        """Nothing."""

    def shrinking(self, found: Found) -> None:
        """Nothing."""


@frozen(kw_only=True)
class Exploration:
    """What was seen. ``holds`` says how often a clause was exercised and held; ``witnesses`` in how many runs each was reached.

    ``effort`` is the one made: its ``examples`` count the runs of further rounds too, and none is left.
    ``found`` has one shrunk fault for each key, in the order in which the runs came upon them. ``complete``: no run was left out.
    """

    declaration: Declaration
    effort: Effort
    steps: int
    holds: Counter[ClauseId]
    hidden: frozenset[ClauseId]
    witnesses: Counter[str]
    found: tuple[Found, ...]
    complete: bool = True


class _Tally:
    """Results of runs, put together."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_over = False
        self.steps = 0
        self.holds: Counter[ClauseId] = Counter()
        self.hidden: set[ClauseId] = set()
        self.witnesses: Counter[str] = Counter()
        self.found: dict[FaultKey, Found] = {}

    def add(self, run: Run, example: int) -> None:
        """One more run."""
        self.runs += 1
        self.steps += run.steps
        self.holds.update(run.holds)
        self.hidden |= run.hidden
        self.witnesses.update(run.witnesses)
        for fault in run.faults.values():
            self.keep(Found(fault=fault, run=cut(run, fault), example=example))

    def keep(self, found: Found) -> None:
        """The earliest step wins, then the earliest run."""
        other = self.found.get(found.key)
        if other is None or (found.fault.step, found.example) < (other.fault.step, other.example):
            self.found[found.key] = found

    def merge(self, other: "_Tally") -> None:
        """What another process found."""
        self.runs += other.runs
        self.is_over |= other.is_over
        self.steps += other.steps
        self.holds.update(other.holds)
        self.hidden |= other.hidden
        self.witnesses.update(other.witnesses)
        for found in other.found.values():
            self.keep(found)

    def unreached(self, selection: Selection, declaration: Declaration) -> bool:
        """Whether there is a clause that was neither exercised nor hidden although its capability is declared."""
        if declaration.lacks:
            return False  # it may be out of reach
        seen = set(self.holds) | self.hidden | {clause for clause, _ in self.found}
        return any(
            clause not in seen and clauses()[clause].capability in declaration.capabilities
            for clause in selection.clauses
        )


def _chunk(source: Source, selection: Selection, effort: Effort, examples: range) -> _Tally:
    tally = _Tally()
    names = tuple(FRAGMENTS)
    with source.opened() as subject:
        for example in examples:
            random = Random(f"{effort.seed}:{example}")
            # However few runs there are, each fragment has its turn.
            first = names[example % len(names)]
            run = walk(subject, random, effort.steps, selection, WITNESSES, first)
            tally.add(run, example)
            if any(clause == HANG for clause, _ in run.faults):
                # Each further one would cost as long again.
                tally.is_over = True
                break
    return tally


def _ignore_interrupts() -> None:
    # The parent hears Ctrl-C and lets the chunks at work end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _chunks(source: Source, selection: Selection, effort: Effort, examples: range) -> Iterator[_Tally]:
    # The first run goes alone: what is wrong in every run is told when it is over.
    rest = [examples[start : start + _CHUNK] for start in range(1, len(examples), _CHUNK)]
    chunks = [examples[:1], *rest]
    workers = min(effort.workers, len(chunks))
    if workers == 1:
        for chunk in chunks:
            yield _chunk(source, selection, effort, chunk)
        return
    # A forked process would inherit the threads of a progress bar.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
    try:
        futures: list[Future[_Tally]] = [
            pool.submit(_chunk, source, selection, effort, chunk) for chunk in chunks
        ]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise TargetError("the process of the subject died") from None
    finally:
        pool.shutdown(cancel_futures=True)


def explore(
    source: Source, selection: Selection, effort: Effort, progress: Progress | None = None
) -> Exploration:
    """Explore, then shrink each fault. Raises `TargetError` if the subject cannot be run."""
    listener = progress if progress is not None else Silence()
    declaration = _declaration(source)
    tally = _Tally()
    examples = range(effort.examples)
    for left in range(effort.rounds, -1, -1):
        for chunk in _chunks(source, selection, effort, examples):
            for found in chunk.found.values():
                if found.key not in tally.found and _counts(source, found.key):
                    listener.found(found)
            tally.merge(chunk)
            listener.ran(chunk.runs)
            if tally.is_over:
                break
        if tally.is_over or not left or not tally.unreached(selection, declaration):
            break
        examples = range(examples.stop, examples.stop + len(FRAGMENTS))
        listener.goes_on(len(examples))
    return Exploration(
        declaration=declaration,
        effort=evolve(effort, examples=examples.stop, rounds=0),
        steps=tally.steps,
        holds=tally.holds,
        hidden=frozenset(tally.hidden),
        witnesses=tally.witnesses,
        found=tuple(_shrunk(source, selection, tally.found, listener)),
        complete=not tally.is_over,
    )


def _counts(source: Source, key: FaultKey) -> bool:
    # Of another implementation the model's verdict stands by itself.
    return key[0] != ORACLES or source.is_reference


def _declaration(source: Source) -> Declaration:
    with source.opened() as subject:
        try:
            GuardedSubject(subject).reset((SessionId("S1"),), Model(name=ModelName("model-1")), Settings())
        except SubjectError as error:
            raise TargetError(f"the subject cannot be emptied: {error}") from error
        return subject.declaration


def _shrunk(
    source: Source, selection: Selection, all_found: dict[FaultKey, Found], listener: Progress
) -> list[Found]:
    """Each fault with the smallest run. What one fault's shrinking shows of another is used for that one too."""
    pool = {key: found for key, found in all_found.items() if _counts(source, key)}
    if not pool:
        return []
    shrunk: dict[FaultKey, Found] = {}
    left = source.shrinking_runs
    with source.opened() as subject:

        def attempt(script: Script) -> Run:
            run = replay(subject, script, selection)
            for key, fault in run.faults.items():
                waiting = pool.get(key)
                if waiting is not None and key not in shrunk and fault.step < waiting.fault.step:
                    pool[key] = Found(fault=fault, run=cut(run, fault), example=waiting.example)
            return run

        for key in sorted(pool, key=lambda one: (pool[one].example, pool[one].fault.step, one)):
            found = pool[key]
            listener.shrinking(found)
            # Each has one at least: a fault that does not come again is flaky.
            most = max(1, min(MOST_RUNS, left, _MOST_WITHOUT_ANSWER.get(key[0], MOST_RUNS)))
            shrinker = Shrinker(key, attempt, most)
            smallest = shrinker.shrink(found.run.script)
            left -= shrinker.runs
            if smallest is None:
                shrunk[key] = evolve(found, repeats=False)
                continue
            # What came by chance may have come by chance twice.
            again = attempt(smallest.script)
            shrunk[key] = Found(
                fault=smallest.faults[key],
                run=smallest,
                example=found.example,
                repeats=key in again.faults,
            )
    return list(shrunk.values())
