"""Class A: where the boundary is put, and calls that are parted from their results."""

from attrs import evolve

from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Message, ResultStatus, Role
from tailmark.operations import BeginCompaction, Load
from tailmark.outcomes import Noop, NoopReason, Outcome, Planned
from tailmark.views import SessionView
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule
from tailmark_conformance.mutants.reported.sequences import compact, finish, full, tools_first, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, result, summary, tool, user, words


def _b001(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"))
    play.append(assistant("A2", calls=("c1",)))
    play.append(tool("T1", "c1"))
    play.append(assistant("A3", calls=("c2",)))
    play.append(tool("T2", "c2"))
    play.append(assistant("A4"))
    compact(play)


def _b003(play: Play) -> None:
    tools_first(play, tuple(f"c{number}" for number in range(10)))
    compact(play)


def _b005(play: Play) -> None:
    tools_first(play)
    compact(play)


def _open_call(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"))
    play.append(assistant("A2", calls=("c1",)))


def _b007(play: Play) -> None:
    _open_call(play)
    finish(play, play.ask(), summary("the first turn"))


def _b009(play: Play) -> None:
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1", "c2")))
    play.append(tool("T2", "c2"))
    play.append(tool("T1", "c1"))
    play.append(assistant("A2"))
    play.append(user("U2"))
    play.append(assistant("A3"))
    compact(play)


def _b011(play: Play) -> None:
    play.start(tail_budget=40)
    play.turn(1)
    play.append(user("U2"))
    play.append(assistant("A2", calls=("c1", "c2", "c3", "c4")))
    for call in ("c1", "c2", "c3", "c4"):
        play.append(tool(f"T-{call}", call, text=words(30)))
    play.append(assistant("A3"))
    compact(play)


def _nothing_where_the_tail_is_large(moment: Moment) -> Outcome | None:
    match moment.operation, moment.outcome:
        case BeginCompaction(), Planned(plan=plan) if (
            plan.budgets.tail is not None and plan.tokens_after > plan.budgets.tail
        ):
            return Noop(reason=NoopReason.TOO_FEW_TURNS)
        case _:
            return None


_LARGE_TAIL = Faulty(
    id="large-tail-means-nothing-to-do",
    sentence="Finds nothing to compact where the last turn alone exceeds the tail budget.",
    instead=_nothing_where_the_tail_is_large,
)


def _b013(play: Play) -> None:
    finish(play, full(play, 36, 220), summary("the first turn"))
    play.append(user("U3"))
    play.start_answer()
    play.append(assistant("A3"))
    finish(play, play.end_answer(), summary("two turns"))


def _b015(play: Play) -> None:
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    made_up = result("c1", status=ResultStatus.ABANDONED)
    play.append(Message(id=NodeId("T1"), role=Role.TOOL, parts=(made_up,)))
    play.append(assistant("A2"))
    play.append(user("U2"))
    play.append(assistant("A3"))
    compact(play)


def _b017(play: Play) -> None:
    play.start(tail_budget=40)
    turns(play, 4)
    compact(play)
    play.append(user("U5"))


def _b019(play: Play) -> None:
    turns(play, 2)
    plan = play.begin()
    play.commit(evolve(plan, first_kept=NodeId("nowhere")), summary("the first turn"))


def _b021(play: Play) -> None:
    tools_first(play)
    compact(play)
    play.perform(Load(session=SessionId("S")))


def _opener_gone(view: SessionView, moment: Moment) -> SessionView | None:
    if not isinstance(moment.operation, Load):
        return None
    return evolve(view, branch=tuple(node for node in view.branch if node != "U1"))


_OPENER_LOST = Faulty(
    id="opening-question-lost-at-load",
    sentence="A loaded history lacks the question whose first answer was a tool call.",
    shows=_opener_gone,
)


BOUNDARIES: tuple[Report, ...] = (
    Report(
        id="B001",
        link="openclaw/openclaw#8525",
        fault="The kept tail begins with a result whose call was summarised.",
        clauses=("BND-1",),
        script=_b001,
        mutant=rule("four-messages-stay"),
    ),
    Report(
        id="B003",
        link="langchain-ai/langchain!34609",
        fault="Keeping the last so many messages cuts through parallel results.",
        clauses=("BND-1", "BND-2"),
        script=_b003,
        mutant=rule("four-messages-stay"),
    ),
    Report(
        id="B005",
        link="microsoft/semantic-kernel#12708",
        fault="A reduced history opens with a tool's message.",
        clauses=("BND-1", "BND-2"),
        script=_b005,
        mutant=rule("four-messages-stay"),
    ),
    Report(
        id="B007",
        link="HKUDS/OpenHarness#191",
        fault="A compaction keeps a call whose result never came.",
        clauses=("TRG-14",),
        script=_b007,
        mutant=rule("calls-may-be-open"),
    ),
    Report(
        id="B009",
        link="humanlayer/fold!32",
        fault="A result that came late and out of order stays, and its call goes.",
        clauses=("BND-2",),
        script=_b009,
        mutant=rule("four-messages-stay"),
    ),
    Report(
        id="B011",
        link="earendil-works/pi#7201",
        fault="Trailing results exceed the tail budget, and so nothing is found to compact.",
        clauses=("TRG-2",),
        script=_b011,
        mutant=_LARGE_TAIL,
    ),
    Report(
        id="B013",
        link="NousResearch/hermes-agent#80449",
        fault="One giant turn stays whole, and a compaction that gains nothing begins at every answer.",
        clauses=("TRG-5B",),
        script=_b013,
        mutant=rule("always-worth-it"),
    ),
    Report(
        id="B015",
        link="openclaw/openclaw!16095",
        fault="The result made up for an interrupted call outlives the call.",
        clauses=("BND-2",),
        script=_b015,
        mutant=rule("four-messages-stay"),
    ),
    Report(
        id="B017",
        link="letta-ai/letta#2601",
        fault="Messages behind the cut vanish with those before it.",
        clauses=("PROJ-2", "PROJ-6"),
        script=_b017,
        mutant=rule("tail-behind-the-checkpoint"),
    ),
    Report(
        id="B019",
        link="FDE-GROUP/uncode#509",
        fault="A boundary that is not on the branch counts as its beginning.",
        clauses=("CMT-4",),
        script=_b019,
        mutant=rule("any-place-in-the-plan"),
    ),
    Report(
        id="B021",
        link="microsoft/agent-framework#8441",
        fault="The question is missing from the stored history when its first answer was a call.",
        clauses=("TREE-4", "PROJ-7"),
        script=_b021,
        mutant=_OPENER_LOST,
    ),
    Report(
        id="B023",
        link="SongChiYoung/autogen-contextplus#7",
        fault="A buffer of the last messages opens with a tool's message.",
        clauses=("BND-1", "BND-2"),
        script=_b005,
        mutant=rule("four-messages-stay"),
    ),
)
