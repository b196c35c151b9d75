"""The report of a check as Markdown, for the summary page of a CI run: the closing line, a table, and the failing stories."""

import re
from collections.abc import Iterator
from typing import Final

from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.reports.words import closing_line, found_lines, reason_of, stale_line
from tailmark_conformance.verdicts import Verdict

_MEANT: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")
_LONGEST: Final = 400
"""The most characters that one cell has."""

_SILENT: Final = {Verdict.PASS, Verdict.NOT_DECLARED}
"""What the table leaves out; the closing line counts them."""


def markdown_bytes(report: CheckReport) -> bytes:
    """The report as GitHub-flavoured Markdown in UTF-8."""
    return ("\n".join(_lines(report)) + "\n").encode("utf-8", "replace")


def _lines(report: CheckReport) -> Iterator[str]:
    yield f"## tailmark: {'conforms' if report.conforms else 'does not conform'}"
    yield ""
    yield _plain(closing_line(report))
    told = [clause for clause in report.clauses if clause.verdict not in _SILENT]
    if told:
        yield ""
        yield "| clause | verdict | why |"
        yield "|---|---|---|"
        yield from (
            f"| {_plain(one.id)} | {one.verdict} | {_plain(reason_of(one)[:_LONGEST])} |" for one in told
        )
    if report.stale:
        yield ""
        yield from (f"- {_plain(stale_line(entry))}" for entry in report.stale)
    for clause in report.wrong:
        yield from _story(clause)
    for found in report.disagreements:
        yield from _fenced("The oracles disagree", found)


def _story(clause: ClauseReport) -> Iterator[str]:
    if clause.found is not None:
        yield from _fenced(f"{clause.id}: {clause.verdict}", clause.found)


def _fenced(title: str, found: Found) -> Iterator[str]:
    lines = [one for line in found_lines(found, label="the smallest run") for one in line.splitlines()]
    # A fence is longer than any that stands in what it holds.
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"<details open><summary>{title}</summary>"
    yield ""
    yield f"{fence}text"
    yield from lines
    yield fence
    yield ""
    yield "</details>"


def _plain(text: str) -> str:
    """Text that means itself wherever it stands, on one line."""
    return _MEANT.sub(r"\\\1", " ".join(text.split()))
