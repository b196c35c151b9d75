"""All scenarios by their clause, and the examples that come of playing them on the model."""

from collections.abc import Mapping

from tailmark.examples import Example
from tailmark.identifiers import ClauseId
from tailmark.judge import collect
from tailmark_conformance.scenarios import (
    automatic,
    boundary,
    branching,
    capacity,
    checkpoints,
    commit,
    damage,
    definitions,
    estimates,
    occupancy,
    outcomes,
    prefixes,
    projection,
    requests,
    summary,
    tree,
    triggers,
)
from tailmark_conformance.scenarios.playing import Play, Scenario
from tailmark_reference.model.subject import ModelSubject

SCENARIOS: Mapping[ClauseId, Scenario] = collect(
    (
        definitions,
        outcomes,
        tree,
        projection,
        boundary,
        checkpoints,
        triggers,
        automatic,
        requests,
        capacity,
        occupancy,
        estimates,
        commit,
        branching,
        summary,
        prefixes,
        damage,
    )
)
"""Every scenario by its clause, in the order of the chapters."""


def play_example(clause: ClauseId) -> Example:
    """Play a clause's scenario on the model. Raises `KeyError` if the clause has none."""
    play = Play(ModelSubject())
    becomes = SCENARIOS[clause](play)
    return Example(clause=clause, trace=play.trace, becomes=becomes)
