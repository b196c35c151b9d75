"""Scenarios of the chapter on checkpoints. A turn of short words costs 16 tokens of the model's estimate."""

from tailmark.examples import Becomes
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.requests import with_nothing_kept
from tailmark_conformance.scenarios.words import assistant, summary, user


def _compacted(play: Play, text: str = "the first turn") -> None:
    """Two turns, the first of them summarised."""
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    play.commit(play.begin("P1"), summary(text))


def chk_1(play: Play) -> Becomes:
    """The checkpoint stands behind A2."""
    _compacted(play)
    return Becomes(path="$.steps[2].change.nodes[0].parent", value="U2")


def chk_2(play: Play) -> Becomes:
    """The second turn leaves the tail, and the first is known from the summary."""
    play.start(tail_budget=20)
    _compacted(play)
    play.turn(3)
    play.begin("P2")
    return Becomes(path="$.steps[5].outcome.plan.request.previous_summary", value=None)


def chk_3(play: Play) -> Becomes:
    """The checkpoint covers U1 and A1."""
    _compacted(play)
    return Becomes(path="$.steps[2].change.nodes[0].content.first_excluded", value="A1")


def chk_4(play: Play) -> Becomes:
    """The checkpoint stands between A2 and U3, which are both covered by the next one."""
    play.start(tail_budget=20)
    _compacted(play)
    play.turn(3)
    play.turn(4)
    play.begin("P2")
    return Becomes(path="$.steps[7].outcome.plan.excluded", value=["U2", "A2", "checkpoint:P1", "U3", "A3"])


def chk_5(play: Play) -> Becomes:
    """Behind the second checkpoint stands its summary alone."""
    _compacted(play, "the first turn")
    first = play.view()["projection"][0]
    play.append(user("U3"))
    play.commit(play.begin("P2"), summary("the first turn, briefly"))
    return Becomes(path="$.steps[5].change.sessions[0].projection[1]", value=first)


def chk_6(play: Play) -> Becomes:
    """The place stays before U2."""
    _compacted(play)
    play.append(user("U3"))
    play.begin("P2")
    return Becomes(path="$.steps[4].outcome.plan.refresh", value=False)


def chk_7(play: Play) -> Becomes:
    """The summary is what the summariser said."""
    _compacted(play)
    return Becomes(path="$.steps[2].change.nodes[0].content.summary", value="something else")


def chk_8(play: Play) -> Becomes:
    """The checkpoint keeps nothing, because the question that it was made for follows."""
    play.commit(play.planned(with_nothing_kept(play)), summary("the turn"))
    return Becomes(path="$.steps[2].change.nodes[1].content.role", value="assistant")
