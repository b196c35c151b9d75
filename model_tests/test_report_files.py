"""JUnit XML and Markdown: readable by other programs, whatever stands in texts."""

import io
import re
from datetime import date
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase
from markdown_it import MarkdownIt

from reports import report_of
from tailmark.identifiers import ClauseId
from tailmark_conformance.baseline import KnownFailure
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.reports.junit import junit_bytes
from tailmark_conformance.reports.markdown import markdown_bytes
from tailmark_conformance.verdicts import Verdict

HOSTILE: Final = st.text(
    alphabet=st.sampled_from("ab \n\t\r\0\x1b\x7f\ud800\ufffe\u2028]]><&\"'|`*_#~$\\[]()!"), max_size=30
)
STALE: Final = KnownFailure(
    clause=ClauseId("CMT-1"), fingerprint="untestable", reason="why", link="where", expires=date(2030, 1, 1)
)


def _cases(report: CheckReport) -> dict[str, TestCase]:
    document = JUnitXml.fromfile(io.BytesIO(junit_bytes(report)))
    return {case.name: case for suite in document for case in suite}


def _rendered(report: CheckReport) -> str:
    html = MarkdownIt("commonmark").enable("table").render(markdown_bytes(report).decode())
    assert isinstance(html, str)
    return html


def _with_verdict(report: CheckReport, verdict: Verdict) -> CheckReport:
    first, *others = report.clauses
    return evolve(report, clauses=(evolve(first, verdict=verdict), *others))


class TestJunit:
    """A test case for each clause."""

    @pytest.mark.parametrize("subject", ["right", "counts_twice", "crashes", "deviates", "departs"])
    def test_counts_are_those_of_the_report(self, subject: str) -> None:
        """What fails fails, what was not judged is skipped."""
        report = report_of(subject)
        document = JUnitXml.fromfile(io.BytesIO(junit_bytes(report)))
        assert document.tests == len(report.clauses)
        assert document.failures + document.errors == len(report.wrong)
        (suite,) = document
        assert suite.name == f"tailmark: wrong_subjects:{subject}"
        assert suite.time == round(report.seconds, 3)

    @pytest.mark.parametrize("verdict", Verdict)
    def test_every_verdict_has_its_form(self, verdict: Verdict) -> None:
        """A failure exactly where the check fails."""
        report = _with_verdict(report_of("right"), verdict)
        results = _cases(report)[report.clauses[0].id].result
        assert any(isinstance(one, Failure | Error) for one in results) == (not verdict.conforms)
        assert (results == []) == (verdict is Verdict.PASS)
        assert all(isinstance(one, Skipped | Failure | Error) for one in results)

    def test_a_failure_tells_its_story(self) -> None:
        """The smallest run, and what was expected."""
        (result,) = _cases(report_of("counts_twice"))["CMT-6"].result
        assert result.message == "expected 1 added to the revision of S1, saw 2"
        assert "1. S1: append user U1: 'hi'" in (result.text or "")

    def test_stale_entries_fail(self) -> None:
        """As a case of their own."""
        cases = _cases(evolve(report_of("right"), stale=(STALE,)))
        (result,) = cases["baseline: CMT-1 untestable"].result
        assert isinstance(result, Failure)

    @given(text=HOSTILE, name=HOSTILE)
    def test_any_text_can_be_read_back(self, text: str, name: str) -> None:
        """What XML cannot say has another sign in its place; nothing else changes."""
        report = report_of("counts_twice")
        wrong = report.wrong[0]
        assert wrong.found is not None
        found = evolve(wrong.found, fault=evolve(wrong.found.fault, text=text))
        clauses = tuple(evolve(one, found=found) if one is wrong else one for one in report.clauses)
        case = _cases(evolve(report, clauses=clauses, subject=name))[wrong.id]
        (result,) = case.result
        writable = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]", "\ufffd", text)
        # Attributes have spaces for line ends.
        assert (result.message or "").split() == (writable or "fail").split()


class TestMarkdown:
    """A page of a CI run."""

    def test_what_conforms_is_short(self) -> None:
        """No table of what is right."""
        report = report_of("right")
        lines = markdown_bytes(report).decode().splitlines()
        assert lines[0] == "## tailmark: conforms"
        assert len(lines) == 3

    def test_every_verdict_but_the_quiet_ones_has_a_row(self) -> None:
        """With its reason."""
        for verdict in set(Verdict) - {Verdict.PASS, Verdict.NOT_DECLARED}:
            report = _with_verdict(report_of("right"), verdict)
            assert f"<td>{report.clauses[0].id}</td>\n<td>{verdict}</td>" in _rendered(report)

    def test_stale_entries_are_listed(self) -> None:
        """With what is to be done."""
        html = _rendered(evolve(report_of("right"), stale=(STALE,)))
        assert "<li>CMT-1 with untestable does not fail any more: take it out" in html
        assert "does not conform" in html

    @given(text=HOSTILE, name=HOSTILE)
    def test_no_text_is_taken_for_markup(self, text: str, name: str) -> None:
        """One row a clause, one block a story, and no element that the report did not make."""
        report = report_of("counts_twice")
        hostile = f"<script>{text}</script> [x](y)"
        clauses = tuple(
            evolve(one, found=evolve(one.found, fault=evolve(one.found.fault, text=hostile)))
            if one.found is not None
            else one
            for one in report.clauses
        )
        html = _rendered(evolve(report, clauses=clauses, subject=f"{name}<b>"))
        assert html.count("<tr>") == 1 + len(report.wrong)
        assert html.count("<pre>") == len(report.wrong)
        assert "<script" not in html
        assert "<b>" not in html
        assert "<a " not in html


def test_the_command_line_writes_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the check fails."""
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "markdown")}
    flags = [word for form, path in files.items() for word in (f"--{form}", str(path))]
    few = ["--examples", "3", "--workers", "1", "--clause", "CMT-6"]
    assert main(["check", "wrong_subjects:counts_twice", *few, *flags]) == Exit.DOES_NOT
    assert all(path.stat().st_size > 0 for path in files.values())
    (case,) = next(iter(JUnitXml.fromfile(str(files["junit"]))))
    assert case.name == "CMT-6"
    capsys.readouterr()
    for form in files:
        assert main(["check", "reference:model", *few, f"--{form}", "/no/such/file"]) == Exit.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        assert f"--{form} /no/such/file: there is no folder /no/such: make it first" in line
