"""Whatever a subject answers and shows, the suite judges it: the subject is wrong then, and never the suite."""

from random import Random
from typing import Any, TypeVar

import pytest
from attrs import evolve
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from changing import changed_plain
from tailmark import json_form
from tailmark.declarations import Declaration, Field
from tailmark.json_form import JsonFormError
from tailmark.judge import PREDICATES
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.views import Observation
from tailmark_conformance.explorers.runs import Run, Selection, walk
from tailmark_conformance.explorers.witnesses import WITNESSES
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.story import tell_operation, tell_outcome
from tailmark_reference.model.subject import ModelSubject
from vocabulary import values

EVERYTHING = Selection(clauses=tuple(PREDICATES))
STEPS = 30

T = TypeVar("T")

# A run is drawn from one number, so there is nothing that could be made smaller.
UNSHRUNK = settings(phases=[Phase.generate])


class _Changing(ModelSubject):
    """The model, but each answer is changed somewhere with the chances given."""

    def __init__(
        self, random: Random, *, outcomes: float, observations: float, hidden: tuple[Field, ...]
    ) -> None:
        super().__init__()
        self._random = random
        self._outcomes = outcomes
        self._observations = observations
        self._hidden = hidden
        self._earlier: list[Outcome] = []

    @property
    @override
    def declaration(self) -> Declaration:
        return evolve(super().declaration, hidden=self._hidden)

    @override
    def perform(self, operation: Operation) -> Outcome:
        outcome = super().perform(operation)
        if self._random.random() < self._outcomes:
            outcome = _changed(self._random, outcome, Outcome)
            if self._earlier and self._random.random() < 0.3:
                outcome = self._random.choice(self._earlier)
        self._earlier.append(outcome)
        return outcome

    @override
    def observe(self) -> Observation:
        observation = super().observe()
        if self._random.random() < self._observations:
            observation = _changed(self._random, observation, Observation)
        return observation


def _changed(random: Random, value: T, target: Any) -> T:  # Any: a union has no narrower type
    """The value with something in it changed, if one of some attempts is of the type."""
    for _ in range(20):
        plain = changed_plain(random, json_form.unstructure(value))
        try:
            return json_form.structure(plain, target)  # type: ignore[no-any-return]  # it is of the type then
        except JsonFormError:
            continue
    return value


def _is_told(run: Run) -> None:
    """What is reported of a run can be told."""
    if run.trace is not None:
        draw_tree(scene_of(run.trace))
        for step in run.trace.steps:
            assert tell_operation(step.operation)
            assert tell_outcome(step.outcome)


@pytest.mark.parametrize("hidden", [(), tuple(Field)], ids=["nothing hidden", "all hidden"])
@pytest.mark.parametrize(("outcomes", "observations"), [(0.3, 0.0), (0.0, 0.1), (1.0, 0.0), (0.5, 0.5)])
@UNSHRUNK
@given(seed=st.integers(0, 2**32))
def test_any_change_is_judged(
    seed: int, outcomes: float, observations: float, hidden: tuple[Field, ...]
) -> None:
    """An answer that was right but for one thing is the subject's fault at most."""
    random = Random(seed)
    subject = _Changing(random, outcomes=outcomes, observations=observations, hidden=hidden)
    _is_told(walk(subject, random, STEPS, EVERYTHING, WITNESSES))


class _Unrelated(ModelSubject):
    """Does what the model does, and answers and shows what it is given, until there is no more."""

    def __init__(self, outcomes: list[Outcome], observations: list[Observation]) -> None:
        super().__init__()
        self._given_outcomes = outcomes
        self._given_observations = observations

    @override
    def perform(self, operation: Operation) -> Outcome:
        outcome = super().perform(operation)
        return self._given_outcomes.pop() if self._given_outcomes else outcome

    @override
    def observe(self) -> Observation:
        return self._given_observations.pop() if self._given_observations else super().observe()


@UNSHRUNK
@given(
    outcomes=st.lists(values(Outcome), max_size=STEPS),
    observations=st.lists(values(Observation), max_size=3),
    seed=st.integers(0, 2**32),
)
def test_any_answer_is_judged(outcomes: list[Outcome], observations: list[Observation], seed: int) -> None:
    """An answer that has nothing to do with what was asked is the subject's fault at most."""
    _is_told(walk(_Unrelated(outcomes, observations), Random(seed), STEPS, EVERYTHING, WITNESSES))
