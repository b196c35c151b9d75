"""Scenarios of the model's view."""

from attrs import evolve

from tailmark.messages import Message
from tailmark_conformance.scenarios.playing import ABSENT, Becomes, Play
from tailmark_conformance.scenarios.words import assistant, result, summary, user


def _compact(play: Play) -> None:
    """Six steps: two turns, and a compaction that summarises the first. The commit is step 5."""
    play.turn(1)
    play.turn(2)
    play.commit(play.begin(), summary("the summary"))


def proj_1(play: Play) -> Becomes:
    """Everything is sent."""
    play.turn(1)
    return Becomes(path="$.steps[1].change.sessions[0].projection[0]", value=ABSENT)


def proj_2(play: Play) -> Becomes:
    """The summary stands for the first turn."""
    play.turn(1)
    question = play.view()["projection"][0]
    play.turn(2)
    play.commit(play.begin(), summary("the summary"))
    first, *tail = play.view()["projection"]
    return Becomes(path="$.steps[5].change.sessions[0].projection", value=[first, question, *tail])


def proj_3(play: Play) -> Becomes:
    """The second checkpoint is nearer to the leaf."""
    _compact(play)
    play.append(user("U3"))
    play.commit(play.begin("P2"), summary("the second summary"))
    return Becomes(path="$.steps[8].change.sessions[0].checkpoint", value="checkpoint:P1")


def proj_4(play: Play) -> Becomes:
    """A preliminary result is not sent; all else is, as it is stored."""
    play.append(user("U1"))
    play.append(_with_preliminary_result())
    return Becomes(path="$.steps[1].change.sessions[0].projection[1].digest", value="0000000000000000")


def _with_preliminary_result() -> Message:
    message = assistant("A1", calls=("c1",))
    return evolve(message, parts=(*message.parts, result("c1", "half of it", preliminary=True)))


def proj_5(play: Play) -> Becomes:
    """The undone checkpoint is off the branch."""
    _compact(play)
    spoken = play.view()["projection"][0]
    play.undo()
    return Becomes(path="$.steps[6].change.sessions[0].projection[0]", value=spoken)


def proj_6(play: Play) -> Becomes:
    """The checkpoint's parent is A2, and the verbatim part begins with U2."""
    _compact(play)
    spoken = play.view()["projection"][0]
    return Becomes(path="$.steps[5].change.sessions[0].projection", value=[spoken])


def proj_7(play: Play) -> Becomes:
    """A restart shows the same."""
    _compact(play)
    play.restart()
    return Becomes(path="$.steps[6].change.sessions", value=[{**play.view(), "revision": 6}])


def proj_8(play: Play) -> Becomes:
    """No request is made while c1 is open."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.start_answer()
    return Becomes(path="$.steps[2].outcome", value={"kind": "done"})


def proj_9(play: Play) -> Becomes:
    """The summary is marked as context."""
    _compact(play)
    return Becomes(path="$.steps[5].change.sessions[0].projection[0].marking", value="unmarked")


def proj_10(play: Play) -> Becomes:
    """Two user messages follow each other, and nothing stands between them."""
    play.append(user("U1"))
    play.append(user("U2"))
    first, second = play.view()["projection"]
    value = [first, {**first, "node": None, "role": "assistant"}, second]
    return Becomes(path="$.steps[1].change.sessions[0].projection", value=value)


def proj_11(play: Play) -> Becomes:
    """The answer is asked for with the summary in place of the first turn, which is displayed all the same."""
    _compact(play)
    play.append(user("U3"))
    play.start_answer()
    return Becomes(path="$.steps[7].change.sessions[0].projection[1].node", value="U1")
