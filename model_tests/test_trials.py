"""Usage that is far from our estimate proves nothing: conversations go on, and compact no more often than their turns make them."""

import pytest

from tailmark.declarations import MeasureReading
from tailmark_conformance.explorers.trials import Trial, tried

RATIOS = (50, 70, 100, 130, 150, 200)
MOST = {1: 2, 2: 4, 5: 8, 10: 15, 15: 20, 20: 30}
"""The most compactions in 60 answers, by the size of a turn in percent of the window."""


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("turn", MOST)
def test_compactions_are_bounded(turn: int, ratio: int) -> None:
    """OCC-15: calibrated, a conversation compacts only as often as its turns fill what a compaction frees."""
    counts = tried(Trial(turn=turn, ratio=ratio))
    assert counts.answers == 60
    assert counts.refused == counts.failed == 0
    assert counts.compactions <= MOST[turn]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("turn", [*MOST, 30, 40])
@pytest.mark.parametrize("measure", MeasureReading)
@pytest.mark.parametrize("up", [True, False])
def test_nothing_above_the_window_is_sent(turn: int, ratio: int, measure: MeasureReading, up: bool) -> None:
    """TRG-8: whatever the provider counts and the summariser does, a request fits or its draft comes back."""
    trial = Trial(turn=turn, ratio=ratio, measure=measure, summariser_is_up=up)
    counts = tried(trial)
    assert counts.failed == 0
    assert counts.answers + counts.refused == trial.answers
    assert (counts.compactions == 0) or up
    if up:
        assert counts.refused == 0


@pytest.mark.parametrize("ratio", [130, 150, 200])
@pytest.mark.parametrize("turn", MOST)
def test_calibrating_never_compacts_more(turn: int, ratio: int) -> None:
    """Where the provider counts more than we do, the reading `plain` compacts as often or more often."""
    calibrated = tried(Trial(turn=turn, ratio=ratio))
    plain = tried(Trial(turn=turn, ratio=ratio, measure=MeasureReading.PLAIN))
    assert calibrated.compactions <= plain.compactions
