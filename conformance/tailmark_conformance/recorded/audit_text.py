"""Prints an audit for people: file by file what it holds, its checkpoints, what was found, and each clause's verdict."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tailmark.identifiers import Tokens
from tailmark_conformance.recorded.audit import (
    MOST_FINDINGS,
    OBSERVABLE,
    AuditReport,
    AuditVerdict,
    ClauseReport,
    FileReport,
)
from tailmark_conformance.recorded.importing import CheckpointFacts, Finding, Format, RequestFacts
from tailmark_conformance.reports.prefix_cost import CompactionSizes, Prices, prefix_cost

SHOWN_FINDINGS = 50
"""So many findings of a file are printed; the JSON report has more."""

_NAMES = {
    Format.PI_1: "pi coding agent, format version 1",
    Format.PI_2: "pi coding agent, format version 2",
    Format.PI_3: "pi coding agent, format version 3",
    Format.CLAUDE_CODE: "Claude Code",
}
_STYLES = {AuditVerdict.HOLDS: "green", AuditVerdict.VIOLATED: "red", AuditVerdict.NOT_OBSERVED: "dim"}


def print_report(report: AuditReport, console: Console) -> None:
    """Print the whole report."""
    for file in report.files:
        _print_file(file, console)
        console.print()
    _line(console, _closing(report), style="bold")


def _print_file(file: FileReport, console: Console) -> None:
    if file.problem is not None:
        _line(console, file.problem, style="red")
    if file.format is None:
        return
    _line(console, f"{file.path}: {_NAMES[file.format]}", style="bold")
    for line in _contents(file):
        _line(console, line, indent=2)
    for checkpoint in file.checkpoints:
        console.print()
        _print_checkpoint(checkpoint, console)
    console.print()
    for finding in file.findings[:SHOWN_FINDINGS]:
        _print_finding(finding, console)
    more = max(0, len(file.findings) - SHOWN_FINDINGS) + file.more_findings
    if more:
        _line(console, f"and {more:,} more; --json FILE writes up to {MOST_FINDINGS:,}", indent=2)
    if not file.findings:
        _line(console, "nothing was found", indent=2, style="green")
    console.print()
    _print_clauses(file.clauses, console)


def _contents(file: FileReport) -> Iterator[str]:
    yield (
        f"{_count(file.messages, 'message')} in {_count(file.turns, 'turn')}, {_count(file.tool_calls, 'tool call')}, "
        f"{_count(file.tool_results, 'result')}, {_count(file.lines, 'line')}"
    )
    if file.branches > 1 or file.sessions > 1:
        yield f"{_count(file.sessions, 'conversation')} with {_count(file.branches, 'end')} of branches"
    if file.branched_from is not None:
        yield f"copied from {file.branched_from}"
    if file.abandoned:
        lines = sorted({call.line for call in file.abandoned})
        yield f"{_count(len(file.abandoned), 'call')} never got a result ({_lines(lines)})"
    if file.requests:
        yield _measures(file.requests)
    if file.open_calls:
        yield f"{_count(file.open_calls, 'call')} open at the end"
    if not file.checkpoints:
        yield "no checkpoint"


def _measures(requests: Sequence[RequestFacts]) -> str:
    """How far our estimates are from what the provider counted, in percent of its count."""
    told = [one for one in requests if one.reported > 0]
    if not told:
        return f"{_count(len(requests), 'request')} with a usage of nothing"
    estimates = sorted(100 * one.estimated // one.reported for one in told)
    text = (
        f"{_count(len(told), 'request')} with a usage: our estimate of the projection is {estimates[0]} % to "
        f"{estimates[-1]} % of it, half of them up to {estimates[len(estimates) // 2]} %"
    )
    measured = sorted(100 * one.measured // one.reported for one in told if one.measured is not None)
    if not measured:
        return text
    return (
        f"{text}; measured by the usage before, {measured[0]} % to {measured[-1]} %, half up to "
        f"{measured[len(measured) // 2]} %"
    )


def _lines(lines: list[int]) -> str:
    named = ", ".join(f"{line}" for line in lines[:5])
    return f"line{'s' if len(lines) > 1 else ''} {named}{', …' if len(lines) > 5 else ''}"


def _print_checkpoint(checkpoint: CheckpointFacts, console: Console) -> None:
    trigger = checkpoint.trigger.value if checkpoint.trigger is not None else "not told by the log"
    kind = "refresh at" if checkpoint.refresh else "checkpoint at"
    _line(console, f"{kind} line {checkpoint.line} ({checkpoint.node})", indent=2, style="bold")
    for key, value in (
        ("trigger", trigger),
        ("place", _place(checkpoint)),
        ("sizes", _sizes(checkpoint)),
        ("kept", _kept(checkpoint)),
        ("cache", _cache(checkpoint)),
        ("open calls", ", ".join(checkpoint.open_calls) or "none"),
    ):
        _line(console, f"{key:<10}  {value}", indent=4)


def _place(checkpoint: CheckpointFacts) -> str:
    if checkpoint.damaged:
        return "damaged, see below"
    before = f"; before it {checkpoint.previous_place}" if checkpoint.previous_place is not None else ""
    if checkpoint.place is None or checkpoint.place_line is None:
        return f"behind the last message: none is kept verbatim{before}"
    return f"line {checkpoint.place_line} ({checkpoint.place}){before}"


def _sizes(checkpoint: CheckpointFacts) -> str:
    estimates = f"estimated {checkpoint.estimated_before:,} before, {checkpoint.estimated_after:,} after"
    if checkpoint.measured_before is not None:
        estimates += f"; by the usage before it {checkpoint.measured_before:,}"
    if checkpoint.tokens_before is None:
        return estimates
    return f"{estimates}; the log says {checkpoint.tokens_before:,} before"


PRICES = Prices(read=Fraction(1, 10), write=Fraction(5, 4), output=Fraction(5))
"""What a cached, a new and a put out token cost, in those of an input token without a cache: usual ratios of providers."""


def _cache(checkpoint: CheckpointFacts) -> str:
    """What a cache of prefixes could serve, in estimates without instructions and tools, which a log does not hold (CACHE-3)."""
    if checkpoint.damaged:
        return "not known"
    cost = prefix_cost(
        CompactionSizes(
            before=checkpoint.estimated_before,
            head=Tokens(0),
            summary=checkpoint.summary_tokens,
            tail=checkpoint.kept_tokens,
        ),
        PRICES,
    )
    pays = "never" if cost.pays_after is None else f"after {_count(cost.pays_after, 'request')}"
    return f"serves {cost.served_before:,} before and {cost.served_after:,} right behind it; it pays {pays}"


def _kept(checkpoint: CheckpointFacts) -> str:
    kept = f"{_count(checkpoint.kept_messages, 'message')}, {_count(checkpoint.kept_tokens, 'token')}"
    excluded = _count(checkpoint.excluded_messages, "message")
    return f"{kept}; {excluded} newly summarised in {_count(checkpoint.summary_tokens, 'token')}"


def _print_finding(finding: Finding, console: Console) -> None:
    where = f"line {finding.line}" if finding.line is not None else "the file"
    node = f" ({finding.node})" if finding.node is not None else ""
    _line(console, f"{finding.clause} at {where}{node}", indent=2, style="red")
    _line(console, finding.text, indent=4)


def _print_clauses(clauses: Iterable[ClauseReport], console: Console) -> None:
    unseen, beyond = [], 0
    for clause in clauses:
        if clause.verdict is not AuditVerdict.NOT_OBSERVED:
            row = f"{clause.clause:<7}  {clause.verdict.value:<8}  {_times(clause)}"
            _line(console, row, indent=2, style=_STYLES[clause.verdict])
        elif clause.clause in OBSERVABLE:
            unseen.append(clause.clause)
        else:
            beyond += 1
    named = f"{', '.join(unseen)}, and " if unseen else ""
    _line(
        console,
        f"not-observed: {named}{_count(beyond, 'clause')} that a log cannot show",
        indent=2,
        style="dim",
    )


def _times(clause: ClauseReport) -> str:
    held = f"held {_count(clause.holds, 'time')}"
    if not clause.violated:
        return held
    violated = f"violated {_count(clause.violated, 'time')}"
    return f"{violated}, {held}" if clause.holds else violated


def _closing(report: AuditReport) -> str:
    findings = sum(len(file.findings) + file.more_findings for file in report.files)
    unread = sum(file.format is None for file in report.files)
    text = f"{_count(findings, 'finding')} in {_count(len(report.files) - unread, 'session')}"
    return f"{text}; {_count(unread, 'file')} could not be read" if unread else text


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _text(text: str, style: str = "") -> Text:
    """Text from a log, without what would steer a terminal."""
    return Text(
        "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text), style=style
    )


def _line(console: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    line = _text(text, style)
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent), expand=False))
    else:
        # Whole lines for files and other programs.
        console.print(Text(" " * indent) + line, soft_wrap=True)
