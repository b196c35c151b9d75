"""The page ``docs/field-reports.md``: reported faults, their clauses and mutants."""

from collections.abc import Iterator

from tailmark_conformance.mutants.reported.report import Report, Unexpressed
from tailmark_conformance.mutants.reported.reports import REPORTS, UNEXPRESSED

_INTRODUCTION = """# Faults that people reported

Each row is a fault of compaction that somebody reported in public, told in our words and reduced to a short sequence of operations. None was
replayed on the implementation in question, and some are mended since. `model_tests/test_field_reports.py` plays each sequence on the
model, on the store and on the mutant: the first two violate nothing, the mutant violates each of the clauses. This page is written by
`conformance/benchmarks/field_reports.py`.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| report | thread | fault | clauses | mutant |\n|---|---|---|---|---|"
    for report in REPORTS:
        yield (
            f"| {report.id} | {_link(report)} | {report.fault} | {', '.join(report.clauses)}"
            f" | {report.mutant.id}: {report.mutant.sentence} |"
        )
    yield "\n## Those that operations cannot express\n"
    yield "| report | thread | fault | why not |\n|---|---|---|---|"
    for unexpressed in UNEXPRESSED:
        yield f"| {unexpressed.id} | {_link(unexpressed)} | {unexpressed.fault} | {unexpressed.why} |"


def _link(report: Report | Unexpressed) -> str:
    if "!" in report.link:
        repository, number = report.link.split("!")
        return f"[{report.link}](https://github.com/{repository}/pull/{number})"
    repository, number = report.link.split("#")
    return f"[{report.link}](https://github.com/{repository}/issues/{number})"
