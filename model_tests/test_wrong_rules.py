"""The suite bites: whatever single rule or condition is replaced by a wrong one, both oracles notice."""

from pathlib import Path

import pytest

from tailmark_conformance.mutants.hunting import hunt
from tailmark_conformance.mutants.wrong_conditions import CONDITIONS, store_without
from tailmark_conformance.mutants.wrong_rule import WrongRule
from tailmark_conformance.mutants.wrong_rules import WRONG_RULES
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.store.subject import SqliteSubject

TRACES = 400
STEPS = 50


@pytest.mark.parametrize("wrong", WRONG_RULES, ids=lambda wrong: wrong.id)
def test_a_wrong_rule_is_caught_by_both_oracles(wrong: WrongRule) -> None:
    """A wrong variant that changes an observation is rejected by the model and violates a predicate."""
    catch = hunt(ModelSubject(wrong.rules), seed=0, traces=TRACES, steps=STEPS)
    assert catch.by_model or catch.crashed, f"the model admits it: {wrong.sentence}"
    assert catch.by_predicate or catch.crashed, f"no predicate is violated: {wrong.sentence}"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_missing_condition_of_the_commit_is_caught(condition: str, tmp_path: Path) -> None:
    """A store whose commit does not ask one of its conditions does not conform."""
    subject = store_without(condition, tmp_path)
    catch = hunt(subject, seed=0, traces=TRACES, steps=STEPS)
    subject.close()
    assert catch.by_model or catch.crashed, f"the model admits a commit without {condition}"
    assert catch.by_predicate or catch.crashed, f"no predicate is violated without {condition}"


def test_the_right_ones_survive(tmp_path: Path) -> None:
    """Model and store as they are violate nothing, so a catch means a fault."""
    store = SqliteSubject(tmp_path)
    for subject in (ModelSubject(), store):
        catch = hunt(subject, seed=0, traces=40, steps=STEPS)
        assert catch.first_step is None
    store.close()
