"""Scenarios of the chapter on prefixes."""

from tailmark.budgets import Settings
from tailmark.examples import Becomes
from tailmark.json_form import unstructure
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user


def cache_1(play: Play) -> Becomes:
    """Two questions, one after the other."""
    play.send(user("U1"))
    play.append(assistant("A1"))
    play.send(user("U2"))
    items = play.recorder.observation.sessions[0].projection
    return Becomes(path="$.steps[2].outcome.request.items", value=[unstructure(item) for item in items[1:]])


def cache_1a(play: Play) -> Becomes:
    """Tools are set before the first question."""
    play.start(settings=Settings(head="tools"))
    play.send(user("U1"))
    return Becomes(path="$.steps[0].outcome.request.head", value="other tools")


def cache_2(play: Play) -> Becomes:
    """The second of two turns is kept."""
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    play.commit(play.begin(), summary("the first turn"))
    return Becomes(path="$.steps[2].change.sessions[0].projection[1].digest", value="0" * 16)


def cache_3(play: Play) -> Becomes:
    """The same."""
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    plan = play.begin()
    play.commit(plan, summary("the first turn"))
    return Becomes(path="$.steps[2].change.nodes[0].content.tokens_after", value=plan.tokens_after)
