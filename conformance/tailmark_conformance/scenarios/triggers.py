"""Scenarios of the chapter on triggers."""

from attrs import evolve

from tailmark.examples import Becomes
from tailmark.identifiers import PlanId, Revision, SessionId
from tailmark.json_form import unstructure
from tailmark.operations import BeginCompaction, Preview
from tailmark.plans import Trigger
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user

_TOO_FEW = {"kind": "noop", "reason": "too-few-turns"}


def _two_turns(play: Play) -> None:
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))


def trg_1(play: Play) -> Becomes:
    """Two turns of a few words, far below the budget."""
    play.start(tail_budget=1000)
    _two_turns(play)
    play.begin()
    return Becomes(path="$.steps[1].outcome", value=_TOO_FEW)


def trg_1a(play: Play) -> Becomes:
    """Somebody claims that the threshold is passed."""
    _two_turns(play)
    play.perform(BeginCompaction(session=SessionId("S"), plan=PlanId("P1"), trigger=Trigger.AUTOMATIC))
    return Becomes(path="$.steps[1].outcome", value=_TOO_FEW)


def trg_2(play: Play) -> Becomes:
    """Two turns are enough."""
    _two_turns(play)
    play.begin()
    return Becomes(path="$.steps[1].outcome", value=_TOO_FEW)


def trg_3(play: Play) -> Becomes:
    """One turn is too few."""
    play.turn(1)
    play.ask()
    return Becomes(path="$.steps[2].outcome", value={"kind": "refused", "code": "no-question"})


def trg_4(play: Play) -> Becomes:
    """One more turn behind the checkpoint, and everything fits."""
    _two_turns(play)
    play.commit(play.begin("P1"), summary("the first turn"))
    play.turn(3)
    play.begin("P2")
    return Becomes(path="$.steps[5].outcome.plan.first_kept", value="U3")


def trg_13(play: Play) -> Becomes:
    """A second compaction right behind the first."""
    _two_turns(play)
    play.commit(play.begin("P1"), summary("the first turn"))
    play.ask("P2")
    (view,) = play.recorder.observation.sessions
    changed = evolve(view, revision=Revision(view.revision + 1))
    return Becomes(path="$.steps[3].change.sessions", value=[unstructure(changed)])


def trg_14(play: Play) -> Becomes:
    """A tool still runs."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.ask()
    return Becomes(path="$.steps[2].outcome.open_calls", value=[])


def trg_14a(play: Play) -> Becomes:
    """The user speaks while the answer is being made."""
    play.append(user("U1"))
    play.start_answer()
    play.append(user("U2"))
    return Becomes(path="$.steps[2].outcome", value={"kind": "refused", "code": "unstable"})


def trg_17(play: Play) -> Becomes:
    """The user says what must be kept."""
    _two_turns(play)
    play.begin(instructions="keep the figures")
    return Becomes(path="$.steps[1].outcome.plan.request.instructions", value=None)


def trg_18(play: Play) -> Becomes:
    """A look at what would be summarised."""
    _two_turns(play)
    play.perform(Preview(session=SessionId("S"), plan=PlanId("P1")))
    (view,) = play.recorder.observation.sessions
    changed = evolve(view, metadata={"title": "compacted"})
    return Becomes(path="$.steps[1].change.sessions", value=[unstructure(changed)])
