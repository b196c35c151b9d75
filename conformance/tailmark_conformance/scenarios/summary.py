"""Scenarios of the chapter on the summary."""

from tailmark.examples import Becomes
from tailmark_conformance.scenarios.automatic import pressed
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import summary


def sum_6(play: Play) -> Becomes:
    """The summary budget is 37 tokens."""
    play.commit(pressed(play), summary("the first turn"))
    return Becomes(path="$.steps[4].change.nodes[0].estimate", value=38)
