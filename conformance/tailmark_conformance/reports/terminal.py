"""The report of a check for people: a table, the failing clauses as stories, and one closing line."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark.operations import Save
from tailmark.traces import Trace
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.explorers.runs import CRASH, HANG, MODEL, NO_ANSWER, ORACLES, PROTOCOL
from tailmark_conformance.explorers.scripts import BoundCommit
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.story import tell_model, tell_node, tell_operation, tell_outcome
from tailmark_conformance.verdicts import Verdict

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.CRASH: "bold red",
    Verdict.HANG: "bold red",
    Verdict.PROTOCOL_ERROR: "bold red",
    Verdict.UNTESTABLE: "bold red",
    Verdict.FLAKY: "bold red",
    Verdict.DEPARTS: "yellow",
    Verdict.DEVIATES: "yellow",
}
_PSEUDO = {
    MODEL: "The model, a second oracle, follows each step and does not admit this one.",
    CRASH: "An operation is answered with an outcome; bad input is an outcome too, never an exception.",
    HANG: "Every call is answered within the time that --timeout gives.",
    PROTOCOL: "Every request is answered by one line, a JSON-RPC response with its id and a result of the vocabulary (docs/wire.md).",
    ORACLES: "Predicates and model must agree about the reference.",
}


def print_report(report: CheckReport, console: Console) -> None:
    """Everything, the closing line last."""
    for line in _declared(report):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(_table(report))
    for clause in report.clauses:
        if clause.found is not None:
            console.print()
            print_found(clause.found, console, label=clause.verdict.value)
        if clause.deviation is not None:
            told = (
                f"{clause.id} is declared as a deviation: {clause.deviation.reason} ({clause.deviation.link})"
            )
            console.print(Text(told), soft_wrap=True)
    for found in report.disagreements:
        console.print()
        print_found(found, console, label="the oracles disagree")
    for line in _never(report):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text(_closing(report), style="green" if report.conforms else "bold red"), soft_wrap=True)


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


def found_lines(found: Found, *, label: str) -> Iterator[str]:
    """What `print_found` prints, line by line."""
    yield f"── {found.fault.clause}: {label} (run {found.example}) ──"
    yield clause_text(found.fault.clause)
    yield ""
    if found.run.trace is not None:
        yield from story_lines(found.run.trace)
    else:
        yield "The subject could not be emptied."
    yield f"  ✗ {found.fault.text}"
    if found.run.trace is not None:
        yield ""
        yield from (f"  {line}" for line in draw_tree(scene_of(found.run.trace)).splitlines())
    if found.fault.clause in NO_ANSWER and found.run.script.entries:
        # It has no outcome, so the trace ends before it.
        last = found.run.script.entries[-1]
        if not isinstance(last, BoundCommit):
            yield f"  The operation that raised: {tell_operation(last)}"


def story_lines(trace: Trace) -> Iterator[str]:
    """A trace as a story: each operation and its outcome."""
    yield f"  Sessions {', '.join(trace.sessions)} on {tell_model(trace.model)}."
    for number, step in enumerate(trace.steps, start=1):
        yield f"  {number}. {tell_operation(step.operation)}"
        if isinstance(step.operation, Save):
            yield from (f"     · {tell_node(node)}" for node in step.operation.path)
        yield f"     → {tell_outcome(step.outcome)}"


def clause_text(clause: ClauseId) -> str:
    """The clause in its own words."""
    return _PSEUDO[clause] if clause in _PSEUDO else clauses()[clause].text


def _never(report: CheckReport) -> Iterator[str]:
    never = [clause.id for clause in report.clauses if clause.verdict is Verdict.UNTESTABLE]
    if never:
        yield f"Never exercised, which is a failure: {', '.join(never)}. More runs may reach them: --examples."


def _closing(report: CheckReport) -> str:
    word = "conforms" if report.conforms else "does not conform"
    counts: dict[Verdict, int] = {}
    for clause in report.clauses:
        counts[clause.verdict] = counts.get(clause.verdict, 0) + 1
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    stores = f", stores in {report.store_dir}" if report.store_dir is not None else ""
    return (
        f"{report.subject} {word}: {verdicts}"
        f" ({report.examples} runs, {report.steps} steps, profile {report.profile}, seed {report.seed},"
        f" {report.seconds:.1f} s{stores})"
    )
