"""Scenarios of the chapter on capacity.

A window of 400 tokens has a reserve of 100, a safe limit of 300, a threshold of 282, a summary budget of 37, a tail budget of
75 and a margin of 75.
"""

from tailmark.budgets import Settings
from tailmark.examples import Becomes
from tailmark.identifiers import Tokens
from tailmark_conformance.scenarios.playing import Play

_DONE = {"kind": "done"}


def _set(play: Play, overhead: int = 0, window: int = 400) -> None:
    """One step: other settings in a small window."""
    play.start(window=window)
    play.set_settings(Settings(overhead=Tokens(overhead), head="tools"))


def cap_1(play: Play) -> Becomes:
    """Tools are added, and the reserve is what it was."""
    _set(play)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.safe", value=400)


def cap_2(play: Play) -> Becomes:
    """A window of 15 tokens."""
    play.set_model(15)
    return Becomes(path="$.steps[0].outcome", value=_DONE)


def cap_3(play: Play) -> Becomes:
    """A model of twice the window."""
    play.start(window=400)
    play.set_model(800)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.tail", value=70)


def cap_4(play: Play) -> Becomes:
    """A model that puts out five tokens."""
    play.start(window=400)
    play.set_model(400, 5)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.summary", value=10)


def cap_5(play: Play) -> Becomes:
    """Instructions and tools take half of the safe limit."""
    _set(play, overhead=150)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.margin", value=200)


def cap_5a(play: Play) -> Becomes:
    """Nothing is set but the head."""
    _set(play)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.margin", value=1)


def cap_6(play: Play) -> Becomes:
    """Another model."""
    play.start(window=400)
    play.set_model(200)
    return Becomes(path="$.steps[0].change.sessions[0].budgets.threshold", value=151)


def cap_7(play: Play) -> Becomes:
    """The reserve is the window."""
    play.start(window=400)
    play.set_settings(Settings(reserve=Tokens(400), threshold=Tokens(200)))
    return Becomes(path="$.steps[0].outcome.wrong.setting", value="threshold")
