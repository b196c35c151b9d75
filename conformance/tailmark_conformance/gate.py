"""Judges a report by a baseline: what is known is accepted, what is new fails, and so does what is not true any more."""

from collections.abc import Iterable
from datetime import date

from attrs import evolve

from tailmark.identifiers import ClauseId
from tailmark_conformance.baseline import UNTESTABLE, Baseline, KnownFailure
from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.fingerprints import fingerprint
from tailmark_conformance.verdicts import Verdict

_NEVER_KNOWN = frozenset({Verdict.FLAKY, Verdict.SUITE_ERROR})
"""What comes and goes, and what is not the subject's fault, cannot be accepted."""


def fingerprint_of(clause: ClauseReport) -> str | None:
    """By what a baseline knows this failure again; ``None`` if it is none, or one that no baseline may accept."""
    if clause.verdict.conforms or clause.verdict in _NEVER_KNOWN:
        return None
    return fingerprint(clause.found) if clause.found is not None else UNTESTABLE


def failing_keys(clauses: Iterable[ClauseReport]) -> frozenset[tuple[ClauseId, str]]:
    """The keys of what a baseline may accept, of clauses that were judged without one."""
    return frozenset(
        (clause.id, found) for clause in clauses if (found := fingerprint_of(clause)) is not None
    )


def gated(report: CheckReport, baseline: Baseline, today: date) -> CheckReport:
    """The report, with known failures accepted, unless they expired. Entries that nothing fails with are stale, if every run was made."""
    entries = {entry.key: entry for entry in baseline.known}
    failing = failing_keys(report.clauses)
    stale = tuple(entry for entry in baseline.known if entry.key not in failing) if report.complete else ()
    return evolve(
        report, clauses=tuple(_gated(clause, entries, today) for clause in report.clauses), stale=stale
    )


def _gated(
    clause: ClauseReport, entries: dict[tuple[ClauseId, str], KnownFailure], today: date
) -> ClauseReport:
    found = fingerprint_of(clause)
    entry = entries.get((clause.id, found)) if found is not None else None
    if entry is None:
        return clause
    if entry.expires < today:
        # It fails again, and the report says that it was known.
        return evolve(clause, known=entry)
    return evolve(clause, known=entry, verdict=Verdict.KNOWN_FAILURE)
