"""The report of a check as JUnit XML: a test case for each clause."""

import io
import re
from collections.abc import Iterable
from typing import Final

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.explorers.runs import ORACLES
from tailmark_conformance.reports.words import closing_line, found_lines, reason_of, stale_line
from tailmark_conformance.verdicts import Verdict

_SKIPPED: Final = {
    Verdict.NOT_DECLARED,
    Verdict.NOT_OBSERVED,
    Verdict.DEPARTS,
    Verdict.DEVIATES,
    Verdict.KNOWN_FAILURE,
}
"""What is no failure and no success either."""

_ERRORS: Final = {Verdict.CRASH, Verdict.HANG, Verdict.PROTOCOL_ERROR, Verdict.FLAKY, Verdict.SUITE_ERROR}

# XML 1.0 has no way to write these.
_UNWRITABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_bytes(report: CheckReport) -> bytes:
    """The report as an XML document in UTF-8."""
    suite = TestSuite(_clean(f"tailmark: {report.subject}"))
    suite.add_property("profile", report.profile)
    suite.add_property("seed", str(report.seed))
    suite.add_property("implementation", _clean(report.declaration.implementation))
    for clause in report.clauses:
        suite.add_testcase(_case(clause))
    for found in report.disagreements:
        case = _named(ORACLES)
        case.result = [_told(Error(_clean(found.fault.text)), found_lines(found, label="they disagree"))]
        suite.add_testcase(case)
    for entry in report.stale:
        case = _named(f"baseline: {entry.clause} {entry.fingerprint}")
        case.result = [Failure(_clean(stale_line(entry)), type_="stale")]
        suite.add_testcase(case)
    suite.add_property("summary", _clean(closing_line(report)))
    suite.update_statistics()  # type: ignore[no-untyped-call]  # the library has no types here
    document = JUnitXml("tailmark")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]  # as above
    # The library adds up the times of cases, and these have none.
    suite.time = document.time = round(report.seconds, 3)
    written = io.BytesIO()
    document.write(written)
    return written.getvalue()


def _case(clause: ClauseReport) -> TestCase:
    case = _named(clause.id)
    if clause.verdict is Verdict.PASS:
        return case
    told = _clean(reason_of(clause)) or clause.verdict.value
    if clause.verdict in _SKIPPED:
        case.result = [Skipped(f"{clause.verdict}: {told}")]
        return case
    result = (Error if clause.verdict in _ERRORS else Failure)(told, type_=clause.verdict.value)
    lines = found_lines(clause.found, label=clause.verdict.value) if clause.found is not None else ()
    case.result = [_told(result, lines)]
    return case


def _named(name: str) -> TestCase:
    chapter = name.partition("-")[0]
    return TestCase(_clean(name), classname=f"tailmark.{_clean(chapter)}")


def _told(result: Failure | Error, lines: Iterable[str]) -> Failure | Error:
    result.text = _clean("\n".join(lines))
    return result


def _clean(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
