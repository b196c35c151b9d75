"""How the usage of an answer is drawn: what a provider would report, and every way in which a figure misleads."""

from random import Random

from attrs import evolve, frozen

from tailmark.identifiers import ModelName, NodeId, SessionId, Tokens
from tailmark.messages import Usage, UsageScope
from tailmark_conformance.explorers.known import Known, chance

TRAPS = (
    "cumulative",
    "ended abnormally",
    "another model",
    "no input",
    "above the window",
    "more cached than input",
    "more reasoning than output",
    "nowhere",
    "nothing built on",
    "an earlier request",
)
"""Figures that are no base, and requests that were built elsewhere."""


@frozen(kw_only=True)
class Reported:
    """An answer's usage and the node that its request was built on."""

    usage: Usage
    built_on: NodeId | None


def reported(known: Known, random: Random, session: SessionId) -> Reported | None:
    """What a provider reports for an answer of the session now, most often the truth; ``None`` on an empty branch."""
    scene = known.scene
    leaf = scene.leaf(session)
    if leaf is None:
        return None
    running = scene.running(session)
    follows = running.follows if running is not None and chance(random, 0.8) else leaf
    size = sum(item.estimate for item in scene.projection(session)) + scene.settings(session).overhead
    ratio = random.choice((50, 80, 100, 100, 130, 200))
    output = random.randint(0, 30)
    usage = Usage(
        input=Tokens(max(1, size * ratio // 100)),
        cached=Tokens(random.choice((0, 1))),
        output=Tokens(output),
        reasoning_output=Tokens(output // 2 if chance(random, 0.2) else 0),
        model=scene.model(session).name,
    )
    true = Reported(usage=usage, built_on=follows)
    return _trapped(known, random, session, true) if chance(random, 0.3) else true


def _trapped(known: Known, random: Random, session: SessionId, true: Reported) -> Reported:
    usage = true.usage
    match random.choice(TRAPS):
        case "cumulative":
            return evolve(true, usage=evolve(usage, scope=UsageScope.SUM, input=Tokens(usage.input * 3)))
        case "ended abnormally":
            return evolve(true, usage=evolve(usage, ended_normally=False))
        case "another model":
            return evolve(true, usage=evolve(usage, model=ModelName("another")))
        case "no input":
            return evolve(true, usage=evolve(usage, input=Tokens(0), cached=Tokens(0)))
        case "above the window":
            window = known.scene.model(session).window
            return evolve(true, usage=evolve(usage, input=Tokens(window + 1)))
        case "more cached than input":
            return evolve(true, usage=evolve(usage, cached=Tokens(usage.input + 1)))
        case "more reasoning than output":
            return evolve(true, usage=evolve(usage, reasoning_output=Tokens(usage.output + 1)))
        case "nowhere":
            return evolve(true, built_on=NodeId("nowhere"))
        case "nothing built on":
            return evolve(true, built_on=None)
        case _:
            return evolve(true, built_on=random.choice(known.nodes))
