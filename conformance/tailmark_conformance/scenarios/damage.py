"""Scenarios of the chapter on damaged histories."""

from tailmark.damage import DamageKind
from tailmark.examples import Becomes
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user


def _two_turns(play: Play) -> None:
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))


def dmg_1(play: Play) -> Becomes:
    """The second question loses its parent."""
    _two_turns(play)
    play.inflict(DamageKind.MISSING_PARENT, "U2")
    return Becomes(path="$.steps[1].change.sessions[0].damage", value=[])


def dmg_1a(play: Play) -> Becomes:
    """A checkpoint made by the rules."""
    _two_turns(play)
    plan = play.begin()
    play.commit(plan, summary("the first turn"))
    checkpoint = play.view()["checkpoint"]
    found = [{"kind": "place-moves-back", "node": checkpoint}]
    return Becomes(path="$.steps[2].change.sessions[0].findings", value=found)


def dmg_2(play: Play) -> Becomes:
    """The second question cannot be read any more."""
    _two_turns(play)
    play.inflict(DamageKind.INVALID_MESSAGE, "U2")
    return Becomes(path="$.steps[1].change.sessions[0].branch", value=["U1", "A1", "A2"])


def dmg_3(play: Play) -> Becomes:
    """The user goes on writing."""
    _two_turns(play)
    play.inflict(DamageKind.INVALID_MESSAGE, "U2")
    play.append(user("U3"))
    return Becomes(path="$.steps[2].outcome", value={"kind": "done", "written": ["U3"]})


def dmg_4(play: Play) -> Becomes:
    """The user goes on writing."""
    _two_turns(play)
    play.inflict(DamageKind.INVALID_MESSAGE, "U2")
    play.append(user("U3"))
    return Becomes(path="$.steps[2].change.store", value="another digest")


def dmg_5(play: Play) -> Becomes:
    """Another session left the branch before the damage."""
    _two_turns(play)
    play.fork("A1", "S2")
    play.inflict(DamageKind.INVALID_MESSAGE, "A2")
    play.append(user("U3"), session="S2")
    return Becomes(path="$.steps[3].outcome", value={"kind": "read-only"})


def dmg_6(play: Play) -> Becomes:
    """The second question becomes its own parent."""
    _two_turns(play)
    play.inflict(DamageKind.CYCLE, "U2")
    return Becomes(path="$.steps[1].change.sessions[0].branch", value=["U2", "A2", "U2", "A2"])


def dmg_7(play: Play) -> Becomes:
    """The first question cannot be read any more."""
    _two_turns(play)
    play.inflict(DamageKind.INVALID_MESSAGE, "U1")
    return Becomes(path="$.steps[1].change.nodes_gone", value=["U1", "A1"])
