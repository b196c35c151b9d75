"""The report of a check for people: a table, the failing clauses as stories, and one closing line."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailmark_conformance.examination import CheckReport
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.reports.words import closing_line, found_lines, reason_of, stale_line
from tailmark_conformance.verdicts import Verdict

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.CRASH: "bold red",
    Verdict.HANG: "bold red",
    Verdict.PROTOCOL_ERROR: "bold red",
    Verdict.UNTESTABLE: "bold red",
    Verdict.FLAKY: "bold red",
    Verdict.SUITE_ERROR: "bold red",
    Verdict.KNOWN_FAILURE: "yellow",
    Verdict.DEPARTS: "yellow",
    Verdict.DEVIATES: "yellow",
}


def print_report(
    report: CheckReport, console: Console, *, capsules: Sequence[Path] = (), command: str = ""
) -> None:
    """Everything, the closing line last. ``capsules`` were written; ``command`` is how the target is named to replay them."""
    for line in _declared(report):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(_table(report))
    for clause in report.clauses:
        if clause.found is not None:
            console.print()
            print_found(clause.found, console, label=clause.verdict.value)
        if clause.known is not None or clause.deviation is not None or clause.verdict is Verdict.SUITE_ERROR:
            console.print(Text(f"{clause.id}: {reason_of(clause)}"), soft_wrap=True)
    for found in report.disagreements:
        console.print()
        print_found(found, console, label="the oracles disagree")
    for line in _never(report):
        console.print(Text(line), soft_wrap=True)
    for entry in report.stale:
        console.print(Text(stale_line(entry), style="bold red"), soft_wrap=True)
    console.print()
    if capsules:
        path = capsules[0] if len(capsules) == 1 else capsules[0].parent
        again = f"To run it again: tailmark replay {shlex.quote(str(path))} {command}"
        console.print(Text(again), soft_wrap=True)
    style = "green" if report.conforms else "bold red"
    console.print(Text(closing_line(report), style=style), soft_wrap=True)


def _declared(report: CheckReport) -> Iterator[str]:
    declaration = report.declaration
    readings = declaration.readings
    yield f"{report.subject}: {declaration.implementation}"
    yield f"readings: refresh {readings.refresh}, advance {readings.advance}, tail {readings.tail}"
    if declaration.hidden:
        yield f"cannot show: {', '.join(declaration.hidden)}"
    if declaration.lacks:
        yield f"does not have: {', '.join(declaration.lacks)}"


def _table(report: CheckReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("clause")
    table.add_column("level")
    table.add_column("verdict")
    table.add_column("exercised", justify="right")
    for clause in report.clauses:
        table.add_row(
            clause.id,
            clause.level.value,
            Text(clause.verdict.value, style=_STYLES.get(clause.verdict, "")),
            str(clause.exercised),
        )
    return table


def print_found(found: Found, console: Console, *, label: str) -> None:
    """A fault: the clause, its text, the story of its trace, expected and seen, and the tree."""
    for line in found_lines(found, label=label):
        console.print(Text(line), soft_wrap=True)


def _never(report: CheckReport) -> Iterator[str]:
    never = [clause.id for clause in report.clauses if clause.verdict is Verdict.UNTESTABLE]
    if never:
        yield f"Never exercised, which is a failure: {', '.join(never)}. More runs may reach them: --examples."
