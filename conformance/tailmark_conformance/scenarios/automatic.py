"""Scenarios of automatic compactions.

The window has 400 tokens: the safe limit is 300, the threshold 282, the tail budget 75, the summary budget 37. A message of
one text costs 6 tokens more than its text.
"""

from typing import Any

from tailmark.budgets import Settings
from tailmark.examples import Becomes
from tailmark.identifiers import SessionId
from tailmark.json_form import unstructure
from tailmark.messages import AnswerEnd
from tailmark.operations import EndAnswer
from tailmark.outcomes import Outcome
from tailmark.plans import Plan
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, summary, tool, user, words

WINDOW = 400


def pressed(play: Play) -> Plan:
    """Two turns that reach the threshold when the second answer ends, in step 3. The plan excludes the first turn."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(196)), user("U2"))
    play.start_answer()
    play.append(assistant("A2", words(62)))
    return play.planned(play.end_answer())


def _done_with(plan: Plan) -> dict[str, Any]:  # Any: plain JSON values
    return {"kind": "done", "plan": unstructure(plan)}


def _answer_ends_again(play: Play) -> Outcome:
    """Another answer, of which nothing is stored, ends in the second step from here."""
    play.start_answer()
    return play.end_answer()


def trg_5(play: Play) -> Becomes:
    """The answer ends at 284 tokens. In the counterexample it failed."""
    pressed(play)
    return Becomes(path="$.steps[3].operation.end", value="failed")


def trg_5a(play: Play) -> Becomes:
    """The same."""
    pressed(play)
    return Becomes(path="$.steps[3].outcome", value={"kind": "done"})


def trg_5b(play: Play) -> Becomes:
    """The first turn costs 210 tokens, and a summary 37 at most."""
    pressed(play)
    return Becomes(path="$.declaration.parameters", value={"worth_divisor": 1})


def trg_6(play: Play) -> Becomes:
    """The summariser has no connection, and the next answer stores nothing."""
    plan = pressed(play)
    play.commit(plan, failure())
    _answer_ends_again(play)
    return Becomes(path="$.steps[6].outcome", value=_done_with(plan))


def trg_10(play: Play) -> Becomes:
    """What fits a large window does not fit a small one."""
    play.start(window=1000)
    play.save(user("U1"), assistant("A1", words(300)), user("U2"))
    play.set_model(WINDOW)
    play.start_answer()
    return Becomes(path="$.steps[2].outcome", value={"kind": "done"})


def _long_summary(play: Play) -> None:
    """Three steps: a compaction in a window of 1,000, whose summary of 66 tokens is above the budget of the next model."""
    play.start(window=1000)
    play.save(user("U1"), assistant("A1", words(30)), user("U2"), assistant("A2", words(30)))
    play.commit(play.begin(), summary(words(60)))
    play.set_model(WINDOW)


def trg_10a(play: Play) -> Becomes:
    """The checkpoint is the leaf, and its summary is too long for the small window."""
    _long_summary(play)
    play.begin("P2")
    return Becomes(path="$.steps[4].outcome", value={"kind": "noop", "reason": "checkpoint-is-leaf"})


def trg_10b(play: Play) -> Becomes:
    """Summary, one turn and the draft come to 306 tokens; only a shorter summary helps."""
    _long_summary(play)
    play.send(user("U3", words(190)))
    refused = {
        "kind": "too-large",
        "part": "request",
        "projection": 110,
        "draft": 196,
        "overhead": 0,
        "limit": 300,
        "attempt": {"kind": "noop", "reason": "no-advance"},
    }
    return Becomes(path="$.steps[4].outcome", value=refused)


def trg_11(play: Play) -> Becomes:
    """A manual plan goes by the tail budget that the session shows."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.budgets.tail", value=40)


def trg_12(play: Play) -> Becomes:
    """The provider says that the request is too long."""
    plan = pressed(play)
    play.cancel(plan.id)
    play.start_answer()
    play.perform(EndAnswer(session=SessionId("S"), end=AnswerEnd.FAILED, reason="overflow"))
    return Becomes(path="$.steps[6].outcome", value=_done_with(plan))


def trg_15a(play: Play) -> Becomes:
    """A tool's result fills the window up to 288 tokens, and the answer goes on."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1"), user("U2"))
    plan = play.begin()
    play.start_answer()
    play.append(assistant("A2", words(200), calls=("c1",)))
    play.append(tool("T1", "c1", text=words(44)))
    play.next_request()
    return Becomes(path="$.steps[5].outcome", value=_done_with(plan))


def trg_16(play: Play) -> Becomes:
    """The user switches automatic compactions off while the window is full."""
    plan = pressed(play)
    play.set_settings(Settings(automatic=False))
    return Becomes(path="$.steps[4].outcome", value=_done_with(plan))
