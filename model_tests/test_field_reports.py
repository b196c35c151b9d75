"""Faults that people reported in public: each sequence is right on model and store, and caught on a mutant with the fault."""

from pathlib import Path

import pytest

from checkout import ROOT, text_of
from tailmark.catalogue import clauses
from tailmark.judge import StepVerdict
from tailmark.traces import Trace
from tailmark_conformance.mutants.reported.hunting import mutant_of, played
from tailmark_conformance.mutants.reported.page import page
from tailmark_conformance.mutants.reported.report import Report, Unexpressed
from tailmark_conformance.mutants.reported.reports import REPORTS, UNEXPRESSED
from tailmark_reference.model.admits import Follower
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.store.subject import SqliteSubject


def _rejected(trace: Trace) -> list[str]:
    """What the model does not admit."""
    follower = Follower(trace.declaration, trace.sessions, trace.model, trace.settings)
    admissions = (follower.start(trace.start), *(follower.feed(step) for step in trace.steps))
    return [admission.text for admission in admissions if not admission.admitted]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.id)
def test_a_reported_fault_is_caught_and_the_reference_is_free_of_it(report: Report, tmp_path: Path) -> None:
    """No clause is violated on model and store, each named one holds there, and the mutant violates each."""
    store = SqliteSubject(tmp_path)
    for subject in (ModelSubject(), store):
        right = played(report, subject)
        assert not [one for one in right.judgements if one.verdict is StepVerdict.VIOLATED]
        assert set(report.clauses) <= right.clauses(StepVerdict.HOLDS)
        assert not _rejected(right.trace)
    store.close()
    wrong = played(report, mutant_of(report))
    assert report.clauses
    assert set(report.clauses) <= wrong.clauses(StepVerdict.VIOLATED)


def test_each_report_is_there_once() -> None:
    """No id and no thread stands twice."""
    every: list[Report | Unexpressed] = [*REPORTS, *UNEXPRESSED]
    assert len({report.id for report in every}) == len(every)
    assert len({report.link for report in every}) == len(every)


def test_reports_name_clauses_that_there_are() -> None:
    """Every named clause is one of the specification."""
    assert {clause for report in REPORTS for clause in report.clauses} <= {
        clause.id for clause in clauses().values()
    }


def test_nine_in_ten_are_expressed() -> None:
    """At most one in ten is left to the table of those that operations cannot express."""
    assert len(UNEXPRESSED) * 10 <= len(REPORTS) + len(UNEXPRESSED)


def test_the_page_is_up_to_date() -> None:
    """``docs/field-reports.md`` says what the tables say."""
    assert text_of(ROOT / "docs" / "field-reports.md") == page()
