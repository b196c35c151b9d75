"""Scenarios of the words on which verdicts depend."""

from tailmark.identifiers import CallId, NodeId, PartId
from tailmark.json_form import unstructure
from tailmark.messages import AnswerEnd, Message, Role, ToolCall
from tailmark_conformance.scenarios.playing import Becomes, Play
from tailmark_conformance.scenarios.words import assistant, tool, user


def def_turn(play: Play) -> Becomes:
    """U2 was typed while c1 was open, so it leaves with the answer."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(user("U2", "and be brief"))
    play.append(tool("T1", "c1"))
    play.append(assistant("A2"))
    play.retry()
    return Becomes(path="$.steps[5].change.sessions[0].leaf", value="U2")


def def_call(play: Play) -> Becomes:
    """Of c1 and c2 the tool message settles c1."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1", "c2")))
    play.append(tool("T1", "c1"))
    return Becomes(path="$.steps[2].change.sessions[0].open_calls", value=[])


def def_message(play: Play) -> Becomes:
    """A user calls no tools."""
    call = ToolCall(id=PartId("call"), call=CallId("c1"), name="look", input="{}")
    play.append(Message(id=NodeId("U1"), role=Role.USER, parts=(call,)))
    return Becomes(path="$.steps[0].outcome", value={"kind": "done"})


def def_stable(play: Play) -> Becomes:
    """A compaction waits until the answer is over."""
    play.turn(1)
    play.turn(2)
    play.start_answer()
    play.ask()
    play.end_answer()
    planned = play.ask()
    return Becomes(path="$.steps[5].outcome", value=unstructure(planned))


def def_answer(play: Play) -> Becomes:
    """The answer goes on over a call and its result, and always follows U1."""
    play.append(user("U1"))
    play.start_answer()
    play.append(assistant("A1", calls=("c1",)))
    play.append(tool("T1", "c1"))
    play.next_request()
    play.append(assistant("A2"))
    play.end_answer()
    return Becomes(path="$.steps[2].change.sessions[0].running.follows", value="A1")


def def_abandon(play: Play) -> Becomes:
    """The answer is aborted while c1 is open."""
    play.append(user("U1"))
    play.start_answer()
    play.append(assistant("A1", calls=("c1",)))
    play.end_answer(AnswerEnd.ABORTED)
    return Becomes(path="$.steps[3].change.nodes[0].content.parts[2].status", value="output")
