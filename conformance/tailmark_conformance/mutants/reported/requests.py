"""Reports of the classes H to K that speak of requests and of what a failed or oversized compaction leaves."""

from attrs import evolve

from tailmark.identifiers import Tokens
from tailmark.operations import NextRequest, Send
from tailmark.outcomes import Done, Failed, LargePart, Outcome, Sent, TooLarge
from tailmark.views import SessionView
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, together
from tailmark_conformance.mutants.reported.sequences import finish, full, usage
from tailmark_conformance.scenarios.automatic import WINDOW
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.requests import trg_15
from tailmark_conformance.scenarios.words import assistant, failure, summary, user, words
from tailmark_reference.model.capacity import budgets


def _b135(play: Play) -> None:
    for number in (1, 2):
        play.append(user(f"U{number}"))
        play.append(assistant(f"A{number}", usage=usage(170_000), built_on=f"U{number}"))
    finish(play, play.ask(), failure())


def _zeroed(view: SessionView, moment: Moment) -> SessionView | None:
    if not isinstance(moment.outcome, Failed):
        return None
    none = evolve(
        view.occupancy, tokens=Tokens(0), base=None, figure=Tokens(0), covered=Tokens(0), added=Tokens(0)
    )
    return evolve(view, occupancy=none)


def _b149(play: Play) -> None:
    finish(play, full(play), summary(words(300)))


def _b155(play: Play) -> None:
    play.start(window=WINDOW)
    play.append(user("U1"))
    play.append(assistant("A1", words(200)))
    play.send(user("U2", words(74)))


def _aborts(moment: Moment) -> Outcome | None:
    if not (isinstance(moment.operation, Send) and isinstance(moment.outcome, Sent)):
        return None
    session = moment.after.sessions[moment.operation.session]
    *before, draft = moment.outcome.request.items
    return TooLarge(
        part=LargePart.REQUEST,
        projection=Tokens(sum(item.estimate for item in before)),
        draft=draft.estimate,
        overhead=session.settings.overhead,
        limit=budgets(session.model, session.settings).safe,
    )


def _goes_on(moment: Moment) -> Outcome | None:
    if isinstance(moment.operation, NextRequest) and isinstance(moment.outcome, TooLarge):
        return Done()
    return None


REQUESTS: tuple[Report, ...] = (
    Report(
        id="B135",
        link="openclaw/openclaw!120264",
        fault="A failed compaction sets the usage to nothing, and the threshold is never met again.",
        clauses=("OCC-1",),
        script=_b135,
        mutant=Faulty(
            id="failure-zeroes-usage",
            sentence="Shows an empty window behind a failed compaction.",
            shows=_zeroed,
        ),
    ),
    Report(
        id="B149",
        link="google-gemini/gemini-cli!7047",
        fault="A result larger than what it replaces is kept.",
        clauses=("SUM-6",),
        script=_b149,
        mutant=Faulty(
            id="any-size-commits",
            sentence="Commits a summary of any size.",
            rules=together("larger-summary-commits", "long-summary-commits"),
        ),
    ),
    Report(
        id="B155",
        link="Martian-Engineering/lossless-claw#763",
        fault="A request is given up because there was nothing to compact for it, though it fits.",
        clauses=("TRG-8",),
        script=_b155,
        mutant=Faulty(
            id="nothing-to-compact-aborts",
            sentence="Gives up a request that fits where there is nothing to compact.",
            instead=_aborts,
        ),
    ),
    Report(
        id="B195",
        link="synthetic-sciences/openscience#478",
        fault="A further request that is too large leaves a run that stands still without a word.",
        clauses=("TRG-15",),
        script=trg_15,
        mutant=Faulty(
            id="large-request-without-a-word",
            sentence="Goes on with an answer whose next request is too large.",
            instead=_goes_on,
        ),
    ),
)
