"""Scenarios of the outcomes."""

from tailmark_conformance.scenarios.playing import Becomes, Play
from tailmark_conformance.scenarios.words import assistant, summary, user


def out_1(play: Play) -> Becomes:
    """The refused message changes nothing."""
    play.append(user("U1"))
    play.append(user("U1", "another question"))
    return Becomes(path="$.steps[1].change.sessions", value=[{**play.view(), "revision": 2}])


def out_2(play: Play) -> Becomes:
    """The branch has moved and an answer runs: stale comes first."""
    play.turn(1)
    play.turn(2)
    plan = play.begin()
    play.append(user("U3"))
    play.start_answer()
    play.commit(plan, summary("the summary"))
    value = {"kind": "skipped", "open_calls": [], "answer_running": True}
    return Becomes(path="$.steps[7].outcome", value=value)


def out_3(play: Play) -> Becomes:
    """The blank summary has spent the plan."""
    play.turn(1)
    play.turn(2)
    plan = play.begin()
    play.commit(plan, summary(" "))
    play.commit(plan, summary("the summary"))
    return Becomes(path="$.steps[6].outcome", value={"kind": "failed", "reason": "blank"})


def out_4(play: Play) -> Becomes:
    """No answer runs, and the operation has one word for that."""
    play.append(user("U1"))
    play.next_request()
    return Becomes(path="$.steps[1].outcome", value={"kind": "noop", "reason": "no-such-plan"})


def out_5(play: Play) -> Becomes:
    """Both messages of the path are written and named."""
    play.save(user("U1"), assistant("A1"))
    return Becomes(path="$.steps[0].outcome.written", value=["A1"])
