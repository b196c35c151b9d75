"""Class B: compactions over open calls and running answers."""

from attrs import evolve

from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import AnswerEnd
from tailmark.operations import Append
from tailmark.outcomes import Skipped
from tailmark_conformance.mutants.reported.faults import meddled
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule
from tailmark_conformance.mutants.reported.sequences import compact, finish, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, result, summary, tool, user
from tailmark_reference.model.world import World


def _open_call(play: Play, *calls: str) -> None:
    play.turn(1)
    play.append(user("U2"))
    play.append(assistant("A2", calls=calls or ("c1",)))


def _b025(play: Play) -> None:
    _open_call(play)
    finish(play, play.ask(), summary("the first turn"))
    play.append(tool("T1", "c1"))
    play.append(user("U3", "rather not"))


def _b027(play: Play) -> None:
    _open_call(play)
    play.settle("A2", result("c1", "pending", preliminary=True))
    finish(play, play.ask(), summary("the first turn"))
    play.settle("A2", result("c1", "finished"))


def _b029(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"))
    play.start_answer()
    play.append(assistant("A2", calls=("c1",)))
    finish(play, play.ask(), summary("the first turn"))
    play.append(tool("T1", "c1"))
    play.next_request()
    play.append(assistant("A3"))
    play.end_answer(AnswerEnd.FINAL)


_EITHER = evolve(rule("calls-may-be-open").rules, is_stable=lambda session, *, answer_runs: True)  # noqa: ARG005  # the type of the rule
_NEVER_UNSTABLE = Faulty(
    id="compacts-whatever-is-open",
    sentence="Compacts although calls are open and an answer runs.",
    rules=_EITHER,
)


def _b031(play: Play) -> None:
    turns(play, 2)
    compact(play, "P1")
    compact(play, "P2")


def _b033(play: Play) -> None:
    turns(play, 2)
    play.append(user("U3"))
    play.start_answer()
    compact(play)


def _b035(play: Play) -> None:
    _open_call(play, "c1", "c2")
    for plan in ("P1", "P2", "P3"):
        compact(play, plan)


def _duplicates(moment: Moment) -> World | None:
    if not isinstance(moment.outcome, Skipped):
        return None
    copy = NodeId(f"copy-{len(moment.heard)}")
    return meddled(moment, Append(session=SessionId("S"), message=user(copy)))


_RETRIES_WRITE = Faulty(
    id="skipped-attempts-write",
    sentence="Every compaction that is skipped leaves a copy of a message on the branch.",
    leaves=_duplicates,
)

UNSTABLE: tuple[Report, ...] = (
    Report(
        id="B025",
        link="RooCodeInc/Roo-Code!10927",
        fault="A compaction between a call and its answer swallows what the user said with the answer.",
        clauses=("TRG-14",),
        script=_b025,
        mutant=rule("calls-may-be-open"),
    ),
    Report(
        id="B027",
        link="google/adk-python#5602",
        fault="A preliminary result of a long-running tool counts as its answer.",
        clauses=("TRG-14",),
        script=_b027,
        mutant=rule("preliminary-settles"),
    ),
    Report(
        id="B029",
        link="openai/openai-agents-python#2317",
        fault="A compaction runs between a call and the delivery of its result.",
        clauses=("TRG-14",),
        script=_b029,
        mutant=_NEVER_UNSTABLE,
    ),
    Report(
        id="B031",
        link="anomalyco/opencode#27594",
        fault="A second compaction right behind the first stores another mark.",
        clauses=("TRG-3",),
        script=_b031,
        mutant=rule("compacts-behind-a-checkpoint"),
    ),
    Report(
        id="B033",
        link="coder/xum#520",
        fault="A compaction begins while an answer streams.",
        clauses=("TRG-14",),
        script=_b033,
        mutant=rule("answer-may-run"),
    ),
    Report(
        id="B035",
        link="openclaw/openclaw#93320",
        fault="Each attempt to compact over open calls writes to the history.",
        clauses=("OUT-1",),
        script=_b035,
        mutant=_RETRIES_WRITE,
    ),
)
