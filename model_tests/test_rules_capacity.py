"""Predicates on capacity: whatever figure is shown wrongly breaks its clause."""

import pytest
from attrs import evolve

from tailmark.budgets import Settings
from tailmark.declarations import Field
from tailmark.examples import Becomes, changed
from tailmark.identifiers import Tokens
from tailmark.json_form import structure, unstructure
from tailmark.judge import StepVerdict, judge_trace
from tailmark.traces import Trace
from tailmark_conformance.scenarios.playing import Play
from tailmark_reference.model.subject import ModelSubject


def _trace() -> Trace:
    play = Play(ModelSubject())
    play.set_settings(Settings(overhead=Tokens(10)))
    return play.trace


def _broken(trace: Trace) -> set[str]:
    return {one.clause for one in judge_trace(trace) if one.verdict is StepVerdict.VIOLATED}


def _with(figure: str, value: int) -> Trace:
    path = f"$.steps[0].change.sessions[0].budgets.{figure}"
    return structure(changed(unstructure(_trace()), Becomes(path=path, value=value)), Trace)


@pytest.mark.parametrize(
    ("clause", "figure", "value"),
    [
        ("CAP-1", "safe", 1),
        ("CAP-1", "window", 10**7),
        ("CAP-2", "reserve", 0),
        ("CAP-2", "tail", 0),
        ("CAP-4", "summary", 10**7),
        ("CAP-5", "margin", 10**7),
        ("CAP-5", "overhead", 9),
        ("CAP-5A", "margin", 1),
        ("CAP-6", "threshold", 0),
        ("CAP-6", "threshold", 10**7),
    ],
)
def test_a_wrong_figure_breaks_its_clause(clause: str, figure: str, value: int) -> None:
    """CAP-1 to CAP-6: the run as it was is right, and with one other figure it is not."""
    assert _broken(_trace()) == set()
    assert clause in _broken(_with(figure, value))


@pytest.mark.parametrize("hidden", [Field.BUDGETS, Field.SETTINGS, Field.OCCUPANCY])
def test_hidden_figures_are_not_judged(hidden: Field) -> None:
    """CAP-1 to CAP-7: what is hidden breaks nothing."""
    trace = _with("safe", 1)
    trace = evolve(trace, declaration=evolve(trace.declaration, hidden=(hidden,)))
    assert (_broken(trace) == set()) == (hidden is not Field.OCCUPANCY)
