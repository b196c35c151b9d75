"""What a replay says to people."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.replaying import Replayed, Result
from tailmark_conformance.reports.words import found_lines

_STYLES = {Result.FIXED: "green", Result.STILL_FAILS: "bold red", Result.ERROR: "bold red"}


def print_replayed(path: Path, replayed: Replayed, console: Console) -> None:
    """One line, and the story as it is now where it still fails."""
    line = f"{replayed.result}: {replayed.capsule.clause} of {path}: {replayed.text}"
    console.print(Text(line, style=_STYLES[replayed.result]), soft_wrap=True)
    for told in _story(replayed):
        console.print(Text(told), soft_wrap=True)


def _story(replayed: Replayed) -> Iterator[str]:
    run = replayed.run
    if replayed.result is not Result.STILL_FAILS or run is None:
        return
    fault = replayed.fault
    if fault is not None:
        found = Found(fault=fault, run=run, example=replayed.capsule.example)
        yield from found_lines(found, label=replayed.result.value)


def closing_line(all_replayed: Sequence[Replayed]) -> str:
    """How many say what."""
    counts = {result: sum(one.result is result for one in all_replayed) for result in Result}
    return ", ".join(f"{count} {result}" for result, count in counts.items() if count)
