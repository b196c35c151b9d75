"""Classes H and I: failed and unusable summaries, loops, and what is no progress."""

from collections.abc import Callable

from attrs import evolve

from tailmark.identifiers import CallId, PartId
from tailmark.messages import Part, ToolCall
from tailmark.operations import Append, BeginCompaction, CommitCompaction
from tailmark.outcomes import Failed, FailureReason, Noop, NoopReason, Outcome, RefusalCode, Refused
from tailmark.plans import FinishReason, SummariserReply, SummaryAnswer
from tailmark_conformance.mutants.reported.concurrent import REPAIRS_OVERFLOWS, overflowed
from tailmark_conformance.mutants.reported.faults import request_with
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Mutant, Report, rule
from tailmark_conformance.mutants.reported.sequences import answer_ends, begun, compact, finish, full, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, summary, user


def _replied(reply: SummariserReply) -> Callable[[Play], object]:
    def script(play: Play) -> None:
        play.commit(begun(play), reply)
        play.append(user("U3"))

    return script


_CALL: tuple[Part, ...] = (ToolCall(id=PartId("call"), call=CallId("c1"), name="look", input="{}"),)


def _after_failure(moment: Moment) -> bool:
    return any(isinstance(heard, CommitCompaction) for heard in moment.heard[:-1])


def _noop_after_failure(moment: Moment) -> Outcome | None:
    if isinstance(moment.operation, BeginCompaction) and _after_failure(moment):
        return Noop(reason=NoopReason.CHECKPOINT_IS_LEAF)
    return None


def _hangs(moment: Moment) -> Outcome | None:
    if isinstance(moment.operation, Append) and _after_failure(moment):
        return Refused(code=RefusalCode.UNSTABLE)
    return None


def _error_at_the_leaf(moment: Moment) -> Outcome | None:
    if isinstance(moment.outcome, Noop) and isinstance(moment.operation, BeginCompaction):
        return Failed(reason=FailureReason.SUMMARISER)
    return None


def _again(play: Play) -> None:
    play.commit(begun(play), failure())
    compact(play, "P2")


def _cancelled(play: Play) -> None:
    plan = begun(play)
    play.cancel()
    play.commit(plan, summary("the first turn"))


def _at_the_leaf(play: Play) -> None:
    turns(play, 2)
    compact(play)
    compact(play, "P2")


def _twice_automatic(play: Play) -> None:
    finish(play, full(play), failure())
    finish(play, answer_ends(play), failure())


def _latched(play: Play) -> None:
    finish(play, full(play), failure())
    finish(play, play.ask("P2"), failure())
    finish(play, answer_ends(play), failure())


def _no_gain(play: Play) -> None:
    finish(play, full(play, 36, 220), summary("the first turn"))
    play.append(user("U3"))
    play.start_answer()
    play.append(assistant("A3"))
    finish(play, play.end_answer(), summary("two turns"))


def _coverage(play: Play) -> None:
    play.start(tail_budget=20)
    turns(play, 4)
    compact(play)


def _report(
    identifier: str,
    link: str,
    fault: str,
    clause: str,
    script: Callable[[Play], object],
    mutant: Mutant | str,
) -> Report:
    named = rule(mutant) if isinstance(mutant, str) else mutant
    return Report(id=identifier, link=link, fault=fault, clauses=(clause,), script=script, mutant=named)


_DROPS_INPUT = Faulty(
    id="long-requests-drop-input",
    sentence="Leaves the oldest message out of a long request to the summariser.",
    says=request_with(lambda request: evolve(request, messages=request.messages[1:])),
)
_COOLS_DOWN = Faulty(
    id="cools-down",
    sentence="Does nothing behind a failure and says that all is well.",
    instead=_noop_after_failure,
)
_HANGS = Faulty(
    id="hangs-behind-a-failure",
    sentence="Takes no message any more behind a failed compaction.",
    instead=_hangs,
)
_NOOP_FAILS = Faulty(
    id="nothing-to-do-is-an-error",
    sentence="Answers an error where there is nothing to compact.",
    instead=_error_at_the_leaf,
)

FAILURES: tuple[Report, ...] = (
    _report(
        "B123",
        "mindsdb/anton!310",
        "A network error becomes the history.",
        "CMT-14",
        _replied(failure()),
        "error-as-summary",
    ),
    _report(
        "B125",
        "Aider-AI/aider!5689",
        "What a failed compaction in the background returns is installed.",
        "CMT-14",
        _again,
        "error-as-summary",
    ),
    _report(
        "B127",
        "XiaomiMiMo/MiMo-Code!2148",
        "A boundary is written though its summary is empty.",
        "CMT-15",
        _replied(summary("")),
        "blank-summary",
    ),
    _report(
        "B129",
        "blueberrycongee/wuu#142",
        "A summary request that is too long drops input unnoticed.",
        "CHK-2",
        _coverage,
        _DROPS_INPUT,
    ),
    _report(
        "B131",
        "earendil-works/pi#7048",
        "A summary cut off at the output's end is stored.",
        "CMT-15",
        _replied(summary("half of", FinishReason.LENGTH)),
        "truncated-summary",
    ),
    _report(
        "B133",
        "code-yeongyu/senpi#1067",
        "The summariser calls a tool instead of writing.",
        "CMT-15",
        _replied(SummaryAnswer(parts=_CALL)),
        "tool-call-as-summary",
    ),
    _report(
        "B137",
        "earendil-works/pi#8920",
        "A cancelled compaction goes on.",
        "CMT-8",
        _cancelled,
        "cancels-nothing",
    ),
    _report(
        "B139",
        "github/copilot-cli#4138",
        "An empty summary leaves a session that hangs.",
        "OUT-4",
        _replied(summary("")),
        _HANGS,
    ),
    _report(
        "B141",
        "felinics/Memoh!714",
        "Behind a failure a manual compaction says done and does nothing.",
        "TRG-2",
        _again,
        _COOLS_DOWN,
    ),
    _report(
        "B143",
        "can1357/oh-my-pi!3412",
        "A compaction that cannot help is tried again and again.",
        "TRG-6",
        _twice_automatic,
        "tries-again-and-again",
    ),
    _report(
        "B145",
        "docker/docker-agent!2235",
        "An overflow is answered with compaction and another try without end.",
        "TRG-12",
        overflowed,
        REPAIRS_OVERFLOWS,
    ),
    _report(
        "B147",
        "can1357/oh-my-pi#2119",
        "A compaction that frees nothing begins anyway.",
        "TRG-5B",
        _no_gain,
        "always-worth-it",
    ),
    _report(
        "B151",
        "google-gemini/gemini-cli#13058",
        "A failure by hand starts the automatic tries anew.",
        "TRG-6",
        _latched,
        "tries-again-and-again",
    ),
    _report(
        "B153",
        "itayinbarr/little-coder#109",
        "Already compacted comes as an error.",
        "TRG-3",
        _at_the_leaf,
        _NOOP_FAILS,
    ),
)
