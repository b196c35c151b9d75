"""The report of a check as JSON."""

from typing import Any

from tailmark.json_form import dump_plain, unstructure
from tailmark_conformance.baseline import KnownFailure
from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.fingerprints import fingerprint


def report_bytes(report: CheckReport) -> bytes:
    """The report as canonical JSON, a line feed behind it."""
    return dump_plain(plain_report(report)) + b"\n"


def plain_report(report: CheckReport) -> dict[str, Any]:  # Any: plain JSON values
    """The report as plain JSON values."""
    return {
        "conforms": report.conforms,
        "subject": report.subject,
        "profile": report.profile,
        "seed": report.seed,
        "examples": report.examples,
        "steps": report.steps,
        "seconds": round(report.seconds, 3),
        "store_dir": str(report.store_dir) if report.store_dir is not None else None,
        "declaration": unstructure(report.declaration),
        "clauses": [_clause(clause) for clause in report.clauses],
        "disagreements": [_failure(found) for found in report.disagreements],
        "witnesses": dict(report.witnesses),
        "complete": report.complete,
        "stale": [_known(entry) for entry in report.stale],
    }


def _clause(clause: ClauseReport) -> dict[str, Any]:  # Any: plain JSON values
    plain: dict[str, Any] = {
        "id": clause.id,
        "level": clause.level.value,
        "capability": clause.capability.value if clause.capability is not None else None,
        "verdict": clause.verdict.value,
        "exercised": clause.exercised,
    }
    if clause.deviation is not None:
        plain["deviation"] = unstructure(clause.deviation)
    if clause.known is not None:
        plain["known"] = _known(clause.known)
    if clause.found is not None:
        plain["failure"] = _failure(clause.found)
    return plain


def _known(entry: KnownFailure) -> dict[str, str]:
    return {
        "clause": entry.clause,
        "fingerprint": entry.fingerprint,
        "reason": entry.reason,
        "link": entry.link,
        "expires": entry.expires.isoformat(),
    }


def _failure(found: Found) -> dict[str, Any]:  # Any: plain JSON values
    return {
        "text": found.fault.text,
        "step": found.fault.step,
        "node": found.fault.node,
        "example": found.example,
        "fingerprint": fingerprint(found),
        "unanswered": [unstructure(operation) for operation in found.run.unanswered],
        "trace": unstructure(found.run.trace) if found.run.trace is not None else None,
    }
