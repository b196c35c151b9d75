"""Scenarios of the chapter on occupancy. A message of one text costs 6 tokens more than its text."""

from attrs import evolve

from tailmark.budgets import Settings
from tailmark.examples import Becomes
from tailmark.identifiers import ModelName, PartId, Tokens
from tailmark.messages import Reasoning, Usage, UsageScope
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, result, summary, user, words

USAGE = Usage(input=Tokens(100), output=Tokens(10), model=ModelName("model"))
"""What the provider counted: 110 tokens, more than our estimates of the same."""

_BASE = "$.steps[{}].change.sessions[0].occupancy.base"
_ADDED = "$.steps[{}].change.sessions[0].occupancy.added"
_FIGURE = "$.steps[{}].change.sessions[0].occupancy.figure"


def _answered(play: Play, usage: Usage = USAGE, built_on: str = "U1") -> None:
    """Two steps: a question, and an answer with a usage."""
    play.append(user("U1"))
    play.append(assistant("A1", usage=usage, built_on=built_on))


def _trap(play: Play, usage: Usage = USAGE, built_on: str = "U2") -> Becomes:
    """A second answer, whose usage is no base."""
    _answered(play)
    play.append(user("U2"))
    play.append(assistant("A2", usage=usage, built_on=built_on))
    return Becomes(path=_BASE.format(3), value="A2")


def occ_1(play: Play) -> Becomes:
    """Two answers, each with what its request cost."""
    _answered(play)
    play.append(user("U2"))
    play.append(assistant("A2", usage=USAGE, built_on="U2"))
    return Becomes(path=_BASE.format(3), value="A1")


def occ_2(play: Play) -> Becomes:
    """A question behind the answer."""
    _answered(play)
    play.append(user("U2", words(10)))
    return Becomes(path=_ADDED.format(2), value=0)


def occ_2a(play: Play) -> Becomes:
    """A tool returns 40 tokens, and its result is put into the answer."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",), usage=USAGE, built_on="U1"))
    play.settle("A1", result("c1", words(40)))
    return Becomes(path=_ADDED.format(2), value=0)


def occ_3(play: Play) -> Becomes:
    """The second turn is kept, and its request was built before the checkpoint."""
    play.append(user("U1"))
    play.append(assistant("A1"))
    play.append(user("U2"))
    play.append(assistant("A2", usage=USAGE, built_on="U2"))
    play.commit(play.begin(), summary("the first turn"))
    return Becomes(path=_BASE.format(5), value="A2")


def occ_4(play: Play) -> Becomes:
    """The second answer names a node that is not before it."""
    return _trap(play, built_on="elsewhere")


def occ_5(play: Play) -> Becomes:
    """Three requests of a tool loop, summed up."""
    return _trap(play, evolve(USAGE, scope=UsageScope.SUM, input=Tokens(330)))


def occ_6(play: Play) -> Becomes:
    """The second request broke off."""
    return _trap(play, evolve(USAGE, ended_normally=False))


def occ_7(play: Play) -> Becomes:
    """Ninety of a hundred tokens came from a cache."""
    _answered(play, evolve(USAGE, cached=Tokens(90)))
    return Becomes(path=_FIGURE.format(1), value=20)


def occ_10a(play: Play) -> Becomes:
    """Eight of ten tokens were thoughts that are not sent again."""
    play.append(user("U1"))
    thought = Reasoning(id=PartId("thought"), text="let me see")
    answer = assistant("A1", usage=evolve(USAGE, reasoning_output=Tokens(8)), built_on="U1")
    play.append(evolve(answer, parts=(thought, *answer.parts)))
    return Becomes(path=_FIGURE.format(1), value=110)


def occ_13(play: Play) -> Becomes:
    """Tools of 50 tokens, and a first question."""
    play.start(settings=Settings(overhead=Tokens(50)))
    play.append(user("U1", words(10)))
    return Becomes(path=_ADDED.format(0), value=16)


def occ_14(play: Play) -> Becomes:
    """Two turns are planned, whose provider counted more than we do."""
    play.append(user("U1"))
    play.append(assistant("A1"))
    play.append(user("U2"))
    play.append(assistant("A2", usage=USAGE, built_on="U2"))
    plan = play.begin()
    return Becomes(path="$.steps[4].outcome.plan.tokens_before", value=plan.tokens_before + 1)


def occ_15(play: Play) -> Becomes:
    """The provider counted several times our estimate."""
    _answered(play)
    play.append(user("U2", words(10)))
    return Becomes(path="$.steps[2].change.sessions[0].occupancy.tokens", value=126)


def occ_16(play: Play) -> Becomes:
    """The user speaks while the answer is being made."""
    play.append(user("U1"))
    play.start_answer()
    play.append(user("U2", words(10)))
    play.append(assistant("A1", usage=USAGE, built_on="U1"))
    return Becomes(path=_ADDED.format(3), value=0)
