"""Scenarios of requests, in a window of 400 tokens as in the scenarios of automatic compactions."""

from tailmark.examples import ABSENT, Becomes
from tailmark.outcomes import Outcome
from tailmark_conformance.scenarios.automatic import WINDOW
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, summary, tool, user, words


def trg_7(play: Play) -> Becomes:
    """The draft of 56 tokens fits."""
    play.start(window=WINDOW)
    play.send(user("U1", words(50)))
    return Becomes(path="$.start.sessions[0].budgets.safe", value=50)


def trg_7a(play: Play) -> Becomes:
    """An answer is no draft."""
    play.append(user("U1"))
    play.send(assistant("A1"))
    return Becomes(path="$.steps[1].outcome", value={"kind": "done", "written": ["A1"]})


def _draft_alone(play: Play) -> None:
    play.start(window=WINDOW)
    play.send(user("U1", words(300)))


def trg_8(play: Play) -> Becomes:
    """The draft of 306 tokens exceeds the safe limit of 300 by itself."""
    _draft_alone(play)
    return Becomes(path="$.steps[0].outcome.draft", value=300)


def trg_8a(play: Play) -> Becomes:
    """The same."""
    _draft_alone(play)
    return Becomes(path="$.steps[0].outcome.part", value="request")


def trg_8b(play: Play) -> Becomes:
    """Two turns and the draft come to 286 tokens, between threshold and safe limit."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(144)), user("U2"), assistant("A2", words(34)))
    play.send(user("U3", words(74)))
    return Becomes(path="$.steps[1].outcome.plan.draft", value=40)


def with_nothing_kept(play: Play) -> Outcome:
    """One turn and a draft that do not fit together, so that nothing can be kept: the plan comes in step 1."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(200)))
    return play.send(user("U2", words(144)))


def trg_8c(play: Play) -> Becomes:
    """The turn of 214 tokens can be summarised as a whole, because the draft follows."""
    with_nothing_kept(play)
    refused = {
        "kind": "too-large",
        "part": "request",
        "projection": 214,
        "draft": 150,
        "overhead": 0,
        "limit": 300,
        "attempt": {"kind": "noop", "reason": "no-advance"},
    }
    return Becomes(path="$.steps[1].outcome", value=refused)


def trg_8d(play: Play) -> Becomes:
    """The summariser has no connection, and the request does not fit without it."""
    play.commit(play.planned(with_nothing_kept(play)), failure())
    return Becomes(path="$.steps[2].outcome", value={"kind": "failed", "reason": "summariser"})


def trg_9(play: Play) -> Becomes:
    """Checkpoint and question are written together, one behind the other."""
    play.commit(play.planned(with_nothing_kept(play)), summary("the turn"))
    return Becomes(path="$.steps[2].change.nodes[1].parent", value="A1")


def trg_14b(play: Play) -> Becomes:
    """The process that ran the tool is gone."""
    play.save(user("U1"), assistant("A1", calls=("c1",)))
    play.restart()
    play.send(user("U2"))
    return Becomes(path="$.steps[2].outcome.abandoned", value=ABSENT)


def trg_14c(play: Play) -> Becomes:
    """The user speaks while the answer is being made."""
    play.append(user("U1"))
    play.start_answer()
    play.send(user("U2", "and be brief"))
    return Becomes(path="$.steps[2].outcome", value={"kind": "refused", "code": "unstable"})


def trg_15(play: Play) -> Becomes:
    """A tool's result does not fit any more."""
    play.start(window=WINDOW)
    play.append(user("U1"))
    play.start_answer()
    play.append(assistant("A1", words(200), calls=("c1",)))
    play.append(tool("T1", "c1", text=words(90)))
    play.next_request()
    return Becomes(path="$.steps[4].change.sessions", value=[])
