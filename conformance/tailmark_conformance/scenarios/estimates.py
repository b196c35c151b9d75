"""Scenarios of the chapter on estimates."""

from tailmark.examples import Becomes
from tailmark.identifiers import NodeId, PartId
from tailmark.messages import Image, Message, Reasoning, Role, Text
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, result, tool, user, words

_ESTIMATE = "$.steps[{}].change.nodes[0].estimate"


def occ_8(play: Play) -> Becomes:
    """A result is put into the answer that made its call."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.settle("A1", result("c1", words(20)))
    return Becomes(path=_ESTIMATE.format(2), value=3)


def occ_9(play: Play) -> Becomes:
    """Twelve characters."""
    play.append(user("U1", words(3)))
    return Becomes(path=_ESTIMATE.format(0), value=1)


def occ_10(play: Play) -> Becomes:
    """A thought of 200 characters that the provider does not take back."""
    play.append(user("U1"))
    thought = Reasoning(id=PartId("thought"), text=words(50))
    text = Text(id=PartId("text"), text="yes")
    play.append(Message(id=NodeId("A1"), role=Role.ASSISTANT, parts=(thought, text)))
    return Becomes(path=_ESTIMATE.format(1), value=211)


def occ_11(play: Play) -> Becomes:
    """An image of 4,000 characters in base64."""
    image = Image(id=PartId("image"), name="plot.png", media_type="image/png", data="abcd" * 1000)
    play.append(Message(id=NodeId("U1"), role=Role.USER, parts=(image,)))
    return Becomes(path=_ESTIMATE.format(0), value=4006)


def occ_12(play: Play) -> Becomes:
    """A tool returns 400 characters."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(tool("T1", "c1", text=words(100)))
    return Becomes(path=_ESTIMATE.format(2), value=6)
