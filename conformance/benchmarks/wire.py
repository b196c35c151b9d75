"""How fast the wire is: calls a second beside a bare JSON echo, how long checks over it take, and how soon a fault is told.

Run it with ``uv run python conformance/benchmarks/wire.py``; it needs Node. The echo sends the same lines over the same kind of pipe
to the same adapter, `wire_adapter.mjs`: JSON is written and read on both sides, and nothing is made of it. Both take turns in
short rounds, and the median of the rounds counts.
"""

import contextlib
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final

import cyclopts
from attrs import frozen
from rich.console import Console
from rich.table import Table

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.identifiers import ModelName, NodeId, PartId, SessionId
from tailmark.messages import Message, Role, Text
from tailmark.operations import Append
from tailmark.wire import Observe, Perform
from tailmark_conformance.subjects.calls import Call, request_line, results_of
from tailmark_conformance.subjects.process import AdapterProcess
from tailmark_conformance.subjects.stdio import StdioSubject

HERE: Final = Path(__file__).resolve().parent
ADAPTER: Final = HERE / "wire_adapter.mjs"
ZOO: Final = HERE.parents[1] / "model_tests" / "zoo.py"

BATCH: Final = 50
"""Calls on one line."""

SESSION: Final = SessionId("S1")
TEXT: Final = "The quick brown fox jumps over the lazy dog. " * 3
_SECONDS: Final = 10.0

WAITING: Final = ("does_nothing", "hangs", "hangs_at_start")
"""Kinds of the zoo that say nothing: their faults are told when the time for a call is over."""

CALL_SECONDS: Final = 0.6
"""The time for a call that those are given, as in their tests; a start may take five times as long."""

_TOLD: Final = (b"is broken in run", b"could not be run")
"""What the first line about a fault says."""


@frozen(kw_only=True)
class Figure:
    """One line of a table. ``aim`` is told as it is; ``met`` is ``None`` without one."""

    what: str
    value: str
    aim: str = ""
    met: bool | None = None


def operations(count: int) -> list[Append]:
    """Appends whose requests have about 300 bytes."""
    return [
        Append(
            session=SESSION,
            message=Message(
                id=NodeId(f"{number:024x}"), role=Role.USER, parts=(Text(id=PartId("p1"), text=TEXT),)
            ),
        )
        for number in range(count)
    ]


def call(number: int, appends: Sequence[Append]) -> Call:
    """The call of that number: an append, or, as the suite does behind each operation, a look."""
    if number % 2 == 0:
        return Call(number, "perform", Perform(operation=appends[number // 2 % len(appends)]))
    return Call(number, "observe", Observe())


class Wire:
    """The suite's own calls: single ones by `StdioSubject`, batches by what it is made of."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._subject = StdioSubject(command, folder, _SECONDS)
        self._process = AdapterProcess(command, _SECONDS)
        self._appends = operations(BATCH)

    def single(self, count: int) -> None:
        """So many calls, each on a line of its own."""
        subject, appends = self._subject, self._appends
        subject.reset((SESSION,), Model(name=ModelName("m")), Settings())
        for number in range(count // 2):
            subject.perform(appends[number % BATCH])
            subject.observe()

    def batched(self, count: int) -> None:
        """So many calls, `BATCH` of them on a line."""
        process, appends = self._process, self._appends
        for first in range(0, count, BATCH):
            calls = [call(number, appends) for number in range(first, first + BATCH)]
            process.write(request_line(calls))
            results_of(process.read(), calls, ())

    def close(self) -> None:
        """End both processes."""
        self._subject.close()
        self._process.end()


def plain_requests(calls: Sequence[Call]) -> list[dict[str, object]]:
    """The requests of calls as plain JSON values."""
    return [
        {
            "jsonrpc": "2.0",
            "id": one.number,
            "method": one.method,
            "params": json_form.unstructure(one.parameters),
        }
        for one in calls
    ]


encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""The standard library's JSON, made once as it is quickest."""


class Echo:
    """The same lines without the suite: the standard library's JSON on both sides, and nothing is looked at."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = AdapterProcess(command, _SECONDS)
        appends = operations(BATCH)
        self._requests = plain_requests([call(number, appends) for number in range(2 * BATCH)])

    def _echoed(self, plain: object) -> object:
        self._process.write(encode(plain).encode() + b"\n")
        answer: object = json.loads(self._process.read())
        return answer

    def single(self, count: int) -> None:
        """So many calls, each on a line of its own."""
        requests = self._requests
        for number in range(count):
            self._echoed(requests[number % len(requests)])

    def batched(self, count: int) -> None:
        """So many calls, `BATCH` of them on a line."""
        for first in range(0, count, BATCH):
            start = first % len(self._requests)
            self._echoed(self._requests[start : start + BATCH])

    def close(self) -> None:
        """End the process."""
        self._process.end()


def _rate(work: Callable[[int], None], count: int) -> float:
    begin = time.perf_counter()
    work(count)
    return count / (time.perf_counter() - begin)


@contextmanager
def _both(node: str) -> Iterator[tuple[Wire, Echo]]:
    command = (node, str(ADAPTER))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        wire = Wire(command, Path(folder))
        stack.callback(wire.close)
        echo = Echo(command)
        stack.callback(echo.close)
        yield wire, echo


def transport(node: str, *, calls: int, rounds: int) -> Iterator[Figure]:
    """Calls a second, single and in batches, and their ratio to the echo's."""
    calls = max(calls // (2 * BATCH), 1) * 2 * BATCH
    with _both(node) as (wire, echo):
        ways = {
            "single calls": (wire.single, echo.single, 0.5, 8_000),
            f"batches of {BATCH}": (wire.batched, echo.batched, 0.25, None),
        }
        for ours, theirs, _, _ in ways.values():
            # Node compiles what it has run often enough.
            for work in (ours, theirs):
                work(calls)
        for way, (ours, theirs, least_ratio, least_rate) in ways.items():
            pairs = [(_rate(ours, calls), _rate(theirs, calls)) for _ in range(rounds)]
            rate = median(our_rate for our_rate, _ in pairs)
            ratio = median(our_rate / echo_rate for our_rate, echo_rate in pairs)
            yield Figure(
                what=f"{way}, calls a second",
                value=f"{rate:,.0f}",
                aim=f"≥ {least_rate:,}" if least_rate is not None else "",
                met=rate >= least_rate if least_rate is not None else None,
            )
            yield Figure(what=f"{way}, echo", value=f"{median(echo_rate for _, echo_rate in pairs):,.0f}")
            yield Figure(
                what=f"{way}, ratio", value=f"{ratio:.2f}", aim=f"≥ {least_ratio}", met=ratio >= least_ratio
            )


def _check_command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tailmark_conformance", "check", *words)


def whole_check(profile: str, most: float) -> Figure:
    """How long the reference takes over the wire. Raises `RuntimeError` if it does not conform."""
    begin = time.perf_counter()
    served = (sys.executable, "-m", "tailmark_conformance", "serve", "reference")
    done = subprocess.run(  # noqa: S603  # the suite itself
        _check_command("--profile", profile, "--", *served), capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(
            f"check {profile}: exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr}"
        )
    return Figure(
        what=f"check the served reference, {profile}",
        value=f"{seconds:.1f} s",
        aim=f"≤ {most:g} s",
        met=seconds <= most,
    )


def first_failure(kind: str) -> float:
    """Seconds from the start of the command until its output tells of a fault. Raises `RuntimeError` if it never does."""
    options = ("--timeout", f"{CALL_SECONDS}") if kind in WAITING else ()
    command = _check_command("--profile", "smoke", *options, "--", sys.executable, str(ZOO), kind)
    begin = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  # the suite itself
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if any(told in line for told in _TOLD):
                seconds = time.perf_counter() - begin
                # As a terminal does, to the check and to its workers.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGINT)
                running.stdout.read()
                return seconds
    raise RuntimeError(f"{kind}: no fault was told, exit code {running.returncode}")


def kinds() -> tuple[str, ...]:
    """The broken adapters of `model_tests/zoo.py`."""
    broken: tuple[str, ...] = runpy.run_path(str(ZOO))["BROKEN"]
    return broken


def first_failures(names: Sequence[str], most: float = 5.0) -> Iterator[Figure]:
    """How soon a fault of each kind of adapter is told."""
    for kind in names:
        seconds = first_failure(kind)
        how = f", --timeout {CALL_SECONDS:g}" if kind in WAITING else ""
        yield Figure(
            what=f"first failure told: {kind}{how}",
            value=f"{seconds:.1f} s",
            aim=f"≤ {most:g} s",
            met=seconds <= most,
        )


def _table(title: str, figures: Iterator[Figure], console: Console) -> None:
    table = Table(title=title)
    for column in ("what", "value", "aim", "met"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for figure in figures:
        met = "" if figure.met is None else "yes" if figure.met else "no"
        table.add_row(figure.what, figure.value, figure.aim, met)
    console.print(table)


def main(
    *,
    calls: int = 10_000,
    rounds: int = 9,
    profiles: tuple[str, ...] = ("smoke", "standard"),
    kind: tuple[str, ...] | None = None,
) -> None:
    """Measure, and print what was aimed at.

    Parameters
    ----------
    calls
        Calls in one round.
    rounds
        Rounds of each way; the median counts.
    profiles
        The checks that are timed.
    kind
        The broken adapters whose first failure is waited for; all of them unless told otherwise.
    """
    node = shutil.which("node")
    if node is None:
        sys.exit("wire.py: there is no program node: install Node 20 or later")
    console = Console()
    library = "orjson" if find_spec("orjson") is not None else "json"
    _table(
        f"The wire beside a JSON echo (the suite's own JSON: {library})",
        transport(node, calls=calls, rounds=rounds),
        console,
    )
    most = {"smoke": 10.0, "standard": 90.0}
    if profiles:
        _table("Checks over the wire", (whole_check(profile, most[profile]) for profile in profiles), console)
    names = kinds() if kind is None else kind
    if names:
        _table("Broken adapters", first_failures(names), console)


if __name__ == "__main__":
    cyclopts.run(main)
