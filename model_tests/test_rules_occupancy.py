"""Predicates on occupancy: what is shown wrongly breaks a clause of the chapter."""

import pytest
from attrs import evolve

from tailmark.declarations import Field
from tailmark.examples import Becomes, changed
from tailmark.json_form import structure, unstructure
from tailmark.judge import StepVerdict, judge_trace
from tailmark.traces import Trace
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, user, words
from tailmark_reference.model.subject import ModelSubject


def _trace() -> Trace:
    play = Play(ModelSubject())
    play.save(user("U1"), assistant("A1", words(20)), user("U2"))
    return play.trace


def _broken(trace: Trace) -> set[str]:
    return {one.clause for one in judge_trace(trace) if one.verdict is StepVerdict.VIOLATED}


def _with(figure: str, value: int) -> Trace:
    path = f"$.steps[0].change.sessions[0].occupancy.{figure}"
    return structure(changed(unstructure(_trace()), Becomes(path=path, value=value)), Trace)


@pytest.mark.parametrize("figure", ["tokens", "figure", "covered", "added"])
@pytest.mark.parametrize("value", [0, 7, 10**7])
def test_a_wrong_figure_breaks_a_clause(figure: str, value: int) -> None:
    """OCC: the run as it was is right; another size is not, however small or large."""
    right = _trace()
    assert _broken(right) == set()
    wrong = _with(figure, value)
    assert wrong == right or any(one.startswith("OCC-") for one in _broken(wrong))


def test_hidden_sizes_are_not_judged() -> None:
    """OCC: what is hidden breaks nothing."""
    trace = _with("tokens", 10**7)
    trace = evolve(trace, declaration=evolve(trace.declaration, hidden=(Field.OCCUPANCY,)))
    assert _broken(trace) == set()
