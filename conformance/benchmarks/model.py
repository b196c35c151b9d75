"""Steps a second of the model: bare, observed, and judged by both oracles. One core, without Hypothesis.

Run ``uv run python conformance/benchmarks/model.py``. The same traces serve every row; the rows take turns,
and each shows its best round.
"""

import time
from collections.abc import Callable
from random import Random

import cyclopts
from rich.console import Console
from rich.table import Table

from tailmark.identifiers import SessionId
from tailmark.judge import Judge
from tailmark.operations import Append
from tailmark.traces import Trace
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.walks import Walk
from tailmark_conformance.recording import Recorder
from tailmark_reference.model.admits import Follower
from tailmark_reference.model.step import step
from tailmark_reference.model.subject import CAPABILITIES, ModelSubject
from tailmark_reference.model.world import empty_world

SESSIONS = (SessionId("S1"), SessionId("S2"))


def _traces(count: int, steps: int) -> list[Trace]:
    traces = []
    for seed in range(count):
        random = Random(seed)
        model, settings = contents.sizes(random, frozenset(CAPABILITIES))
        recorder = Recorder(
            ModelSubject(), sessions=SESSIONS, model=model, settings=settings, look_fresh=False
        )
        known = Known(recorder.start)
        path = Walk(known, random)
        for _ in range(steps):
            known.feed(recorder.perform(path.next()))
        traces.append(recorder.trace)
    return traces


def _bare(trace: Trace) -> None:
    world = empty_world(trace.sessions, trace.model, trace.settings)
    for one in trace.steps:
        world, _ = step(world, one.operation)


def _observed(trace: Trace) -> None:
    recorder = Recorder(
        ModelSubject(),
        sessions=trace.sessions,
        model=trace.model,
        settings=trace.settings,
        look_fresh=False,
    )
    for one in trace.steps:
        recorder.perform(one.operation)


def _by_predicates(trace: Trace) -> None:
    judge = Judge(trace.declaration)
    judge.start(trace.start)
    for one in trace.steps:
        judge.feed(one)


def _by_model(trace: Trace) -> None:
    follower = Follower(trace.declaration, trace.sessions, trace.model, trace.settings)
    follower.start(trace.start)
    for one in trace.steps:
        follower.feed(one)


def _by_both(trace: Trace) -> None:
    recorder = Recorder(
        ModelSubject(),
        sessions=trace.sessions,
        model=trace.model,
        settings=trace.settings,
        look_fresh=False,
    )
    judge = Judge(trace.declaration)
    follower = Follower(trace.declaration, trace.sessions, trace.model, trace.settings)
    judge.start(recorder.start)
    follower.start(recorder.start)
    for one in trace.steps:
        done = recorder.perform(one.operation)
        judge.feed(done)
        follower.feed(done)


ROWS: dict[str, Callable[[Trace], None]] = {
    "step": _bare,
    "step and observe": _observed,
    "judge by predicates": _by_predicates,
    "judge by the model": _by_model,
    "step, observe, judge by both": _by_both,
}


def main(*, traces: int = 60, steps: int = 50, rounds: int = 5) -> None:
    """Measure.

    Parameters
    ----------
    traces
        How many generated traces.
    steps
        Operations in each.
    rounds
        How often each row is measured; its best round counts.
    """
    generated = _traces(traces, steps)
    appends = [
        Trace(
            declaration=trace.declaration,
            sessions=trace.sessions,
            model=trace.model,
            start=trace.start,
            steps=tuple(one for one in trace.steps if isinstance(one.operation, Append)),
        )
        for trace in generated
    ]
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in ROWS.items():
            best[name] = max(best.get(name, 0.0), _rate(work, generated))
        best["step, appends alone"] = max(best.get("step, appends alone", 0.0), _rate(_bare, appends))
    table = Table("what", "steps a second", "of bare steps", title=f"{traces} traces of {steps} steps")
    for name, rate in best.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / best['step']:.2f}")
    Console().print(table)


def _rate(work: Callable[[Trace], None], traces: list[Trace]) -> float:
    begin = time.perf_counter()
    for trace in traces:
        work(trace)
    return sum(len(trace.steps) for trace in traces) / (time.perf_counter() - begin)


if __name__ == "__main__":
    cyclopts.run(main)
