"""Class C: repeated compactions, what the first one kept, and the previous summary."""

from attrs import evolve

from tailmark.identifiers import SessionId
from tailmark.outcomes import Outcome, Planned
from tailmark_conformance.mutants.reported.faults import committed, copied, plan_with, request_with
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule
from tailmark_conformance.mutants.reported.sequences import compact, finish, full, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import summary, user, words
from tailmark_reference.model.world import World


def _twice(play: Play) -> None:
    play.start(tail_budget=20)
    turns(play, 3)
    compact(play, "P1")
    turns(play, 2, first=4)
    compact(play, "P2", "everything so far")
    play.append(user("U6"))


_FORGETS = Faulty(
    id="previous-summary-not-given",
    sentence="The summariser does not get the previous summary.",
    says=request_with(lambda request: evolve(request, previous_summary=None)),
)
_CUTS = Faulty(
    id="previous-summary-cut",
    sentence="The previous summary is cut as if it were a long message.",
    says=request_with(
        lambda request: evolve(request, previous_summary=(request.previous_summary or "")[:2] or None)
    ),
)


def _b043(play: Play) -> None:
    turns(play, 3)
    plans = [play.ask(plan) for plan in ("P1", "P2", "P3")]
    for outcome in plans:
        finish(play, outcome, summary("so far"))


_UNGUARDED = Faulty(
    id="every-flight-lands",
    sentence="Of several compactions of one state each one commits.",
    rules=evolve(
        rule("any-leaf").rules,
        same_revision=rule("any-revision").rules.same_revision,
        same_plan=rule("any-plan").rules.same_plan,
    ),
)


def _b045(play: Play) -> None:
    finish(play, full(play), summary(words(60)))


def _b049(play: Play) -> None:
    turns(play, 2)
    compact(play, "P1", "the first turn")
    play.append(user("U3"))
    play.ask("P2")


def _refresh_from_nothing(moment: Moment) -> Outcome | None:
    match moment.outcome:
        case Planned(plan=plan) if plan.refresh:
            return plan_with(lambda same: evolve(same, request=None, previous_summary=None))(moment)
        case _:
            return None


_BLANK_REFRESH = Faulty(
    id="refresh-starts-from-nothing",
    sentence="A compaction with nothing new forgets the previous summary.",
    says=_refresh_from_nothing,
)


def _copies(moment: Moment) -> World | None:
    return copied(moment, SessionId("S")) if committed(moment) else None


COPIES_TAIL = Faulty(
    id="tail-is-copied",
    sentence="Every compaction stores the kept messages anew, behind its checkpoint.",
    leaves=_copies,
)

REPEATED: tuple[Report, ...] = (
    Report(
        id="B037",
        link="earendil-works/pi#2608",
        fault="What the first compaction kept is neither summarised nor kept by the second.",
        clauses=("CHK-2", "CHK-3"),
        script=_twice,
        mutant=rule("previous-tail-is-forgotten"),
    ),
    Report(
        id="B039",
        link="can1357/oh-my-pi!11515",
        fault="Nothing is found to compact behind a checkpoint although its tail could go.",
        clauses=("TRG-4",),
        script=_twice,
        mutant=rule("never-again"),
    ),
    Report(
        id="B041",
        link="dyad-sh/dyad!2515",
        fault="The second summary is made without the first.",
        clauses=("CHK-2",),
        script=_twice,
        mutant=_FORGETS,
    ),
    Report(
        id="B043",
        link="nugget/thane-ai-agent!1170",
        fault="Compactions that run side by side each leave a summary.",
        clauses=("CMT-1",),
        script=_b043,
        mutant=_UNGUARDED,
    ),
    Report(
        id="B045",
        link="adolfousier/opencrabs#1649",
        fault="Summaries grow from one compaction to the next.",
        clauses=("SUM-6",),
        script=_b045,
        mutant=rule("long-summary-commits"),
    ),
    Report(
        id="B047",
        link="moltis-org/moltis!653",
        fault="The first summary found is used instead of the newest.",
        clauses=("PROJ-3",),
        script=_twice,
        mutant=rule("oldest-checkpoint"),
    ),
    Report(
        id="B049",
        link="openclaw/openclaw#120663",
        fault="Where nothing is new, a blank state takes the place of the summary.",
        clauses=("CHK-6",),
        script=_b049,
        mutant=_BLANK_REFRESH,
    ),
    Report(
        id="B051",
        link="NousResearch/hermes-agent#86366",
        fault="The kept messages are stored once more with each compaction.",
        clauses=("TREE-3",),
        script=_twice,
        mutant=COPIES_TAIL,
    ),
    Report(
        id="B053",
        link="Ultimate-Multisite/superdav-ai-agent!2601",
        fault="The previous summary is cut like an ordinary message.",
        clauses=("CHK-2",),
        script=_twice,
        mutant=_CUTS,
    ),
)
