"""Scenarios of the chapter on the boundary. A turn of short words costs 16 tokens of the model's estimate."""

from tailmark.examples import Becomes
from tailmark.messages import Message
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, tool, user


def _turns(*numbers: int) -> tuple[Message, ...]:
    return tuple(message for number in numbers for message in (user(f"U{number}"), assistant(f"A{number}")))


def bnd_1(play: Play) -> Becomes:
    """The place is before the second question."""
    play.save(*_turns(1, 2))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="A2")


def bnd_2(play: Play) -> Becomes:
    """The user speaks while a tool runs; its result comes later."""
    play.save(user("U1"), assistant("A1", calls=("c1",)), user("U2"), tool("T1", "c1"), assistant("A2"))
    play.turn(3)
    play.begin()
    return Becomes(path="$.steps[3].outcome.plan.first_kept", value="T1")


def bnd_3(play: Play) -> Becomes:
    """One turn fits the budget, two do not."""
    play.start(tail_budget=20)
    play.save(*_turns(1, 2, 3))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="U2")


def bnd_4(play: Play) -> Becomes:
    """Two turns fit the budget, three do not."""
    play.start(tail_budget=40)
    play.save(*_turns(1, 2, 3))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="U3")


def bnd_5(play: Play) -> Becomes:
    """The second of three turns is oversized."""
    play.start(tail_budget=40)
    play.save(*_turns(1), user("U2"), assistant("A2", "a long answer, " * 20), *_turns(3))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="U2")


def bnd_6(play: Play) -> Becomes:
    """First two short turns are kept, then one longer turn."""
    play.start(tail_budget=40)
    play.save(*_turns(1, 2, 3))
    play.begin("P1")
    play.turn(4, text="a longer answer, " * 5)
    play.begin("P2")
    return Becomes(path="$.steps[4].outcome.plan.first_kept", value="U3")


def bnd_7(play: Play) -> Becomes:
    """A second compaction leaves the place before U3."""
    play.save(*_turns(1, 2, 3))
    play.commit(play.begin("P1"), summary("two turns"))
    play.append(user("U4"))
    play.begin("P2")
    return Becomes(path="$.steps[4].outcome.plan.first_kept", value="U2")


def bnd_8(play: Play) -> Becomes:
    """The first of two turns is summarised."""
    play.save(*_turns(1, 2))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="U1")


def bnd_9(play: Play) -> Becomes:
    """The second of two turns stays."""
    play.save(*_turns(1, 2))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value=None)


def bnd_9a(play: Play) -> Becomes:
    """The last of three turns stays."""
    play.save(*_turns(1, 2, 3))
    play.begin()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value="U2")
