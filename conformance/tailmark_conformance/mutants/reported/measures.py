"""Classes J and K: usage, sizes, thresholds and what a request may hold."""

from collections.abc import Callable

from attrs import evolve

from tailmark.budgets import Settings
from tailmark.identifiers import NodeId, PartId, SessionId, Tokens
from tailmark.messages import Image, Message, Role, Usage, UsageScope
from tailmark.operations import BeginCompaction, SetModel
from tailmark.outcomes import Outcome, RefusalCode, Refused
from tailmark.views import SessionView
from tailmark_conformance.mutants.reported.faults import committed, meddled
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Mutant, Report, Unexpressed, rule
from tailmark_conformance.mutants.reported.sequences import begun, compact, full, turns, usage
from tailmark_conformance.scenarios.automatic import WINDOW
from tailmark_conformance.scenarios.playing import Play, model
from tailmark_conformance.scenarios.words import assistant, summary, tool, user, words
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.world import World


def _counted(*usages: Usage, window: int = 1_000_000) -> Callable[[Play], object]:
    def script(play: Play) -> None:
        play.start(window=window)
        for number, one in enumerate(usages, 1):
            play.append(user(f"U{number}"))
            play.append(assistant(f"A{number}", usage=one, built_on=f"U{number}"))

    return script


def _before_a_checkpoint(play: Play) -> None:
    _counted(usage(360_000), usage(363_000))(play)
    compact(play)
    play.append(user("U3"))


def _image(play: Play) -> None:
    image = Image(id=PartId("image"), name="plot.png", media_type="image/png", data="abcd" * 10_000)
    play.append(Message(id=NodeId("U1"), role=Role.USER, parts=(image,)))


def _script_of_east_asia(play: Play) -> None:
    play.append(user("U1", "\u6f22" * 200))
    play.append(assistant("A1"))


def _results(play: Play) -> None:
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(tool("T1", "c1", text=words(500)))


def _models(play: Play) -> None:
    turns(play, 2)
    play.set_model(200_000, name="fallback")
    play.set_model(8_000, name="small")


def _pressed_by_a_switch(play: Play) -> None:
    play.send(user("U1"))
    play.append(assistant("A1", words(600)))
    play.set_model(WINDOW, name="small")
    play.send(user("U2", words(100)))
    play.send(user("U3", words(10)))


def _limit(play: Play) -> None:
    play.start(window=WINDOW, settings=Settings(automatic=False))
    play.save(user("U1"), assistant("A1", words(250)))
    play.send(user("U2", words(60)))
    play.send(user("U3", words(5)))


def _threshold(play: Play) -> None:
    play.set_settings(Settings(threshold=Tokens(2_000_000)))


def _by_hand(play: Play) -> None:
    play.start(window=WINDOW, settings=Settings(automatic=False))
    play.save(user("U1"), assistant("A1", words(300)), user("U2"), assistant("A2", words(60)))
    compact(play)


def _full_refuses(moment: Moment) -> Outcome | None:
    if not isinstance(moment.operation, BeginCompaction):
        return None
    return Refused(code=RefusalCode.SETTINGS)


def _compacted(play: Play) -> None:
    play.commit(begun(play), summary("the first turn"))


def _other_model(moment: Moment) -> World | None:
    if not committed(moment):
        return None
    return meddled(moment, SetModel(session=SessionId("S"), model=model(200_000, name="summariser")))


def _meter(view: SessionView, moment: Moment) -> SessionView | None:
    if not committed(moment):
        return None
    return evolve(view, occupancy=evolve(view.occupancy, tokens=Tokens(9000), added=Tokens(9000)))


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


_SUM = evolve(usage(962_000), scope=UsageScope.SUM)
_ABORTED = evolve(usage(300), ended_normally=False)
_BLOCKED = Faulty(
    id="a-full-window-blocks", sentence="Refuses compactions by hand in a full window.", instead=_full_refuses
)
_SWITCHED = Faulty(
    id="stays-on-the-summariser",
    sentence="Leaves the session on the model that summarised.",
    leaves=_other_model,
)
_SKIPS = Faulty(
    id="waits-for-a-full-window",
    sentence="Begins no automatic compaction before the whole window is taken.",
    rules=evolve(RULES, automatic_limit=lambda budgets, tokens, *, undone: tokens >= budgets.window),  # noqa: ARG005  # the type of the rule
)
_METER = Faulty(
    id="meter-shows-the-summarising-request",
    sentence="Shows the summarising request as the occupancy.",
    shows=_meter,
)

MEASURES: tuple[Report, ...] = (
    _report(
        "B157",
        "can1357/oh-my-pi#8887",
        "Usage from before a compaction looks like an overflow behind it.",
        "OCC-3",
        _before_a_checkpoint,
        "base-before-the-checkpoint",
    ),
    _report(
        "B159",
        "openclaw/openclaw!26529",
        "A total from before a compaction sets off a second one.",
        "OCC-3",
        _before_a_checkpoint,
        "base-before-the-checkpoint",
    ),
    _report(
        "B161",
        "openchamber/openchamber!3628",
        "The meter shows the request that made the summary.",
        "OCC-13",
        _compacted,
        _METER,
    ),
    _report(
        "B163",
        "neoswarm/neosh!115",
        "A total of all requests counts as the last one.",
        "OCC-5",
        _counted(usage(12_000), _SUM),
        "cumulative-base",
    ),
    _report(
        "B165",
        "anthropics/claude-code#82863",
        "A usage above the window sets off a compaction.",
        "OCC-6",
        _counted(usage(300), usage(1_360_000)),
        "impossible-base",
    ),
    _report(
        "B167",
        "hydro-project/infinity!52",
        "Only uncached input is counted.",
        "OCC-7",
        _counted(usage(8_000, cached=7_000)),
        "only-uncached",
    ),
    _report(
        "B169",
        "Kilo-Org/kilocode!13340",
        "The usage of an interrupted answer is taken as whole.",
        "OCC-6",
        _counted(usage(200), _ABORTED),
        "aborted-base",
    ),
    _report(
        "B171",
        "charmbracelet/crush!1787",
        "A check reads a usage from the beginning of the run.",
        "OCC-1",
        _counted(usage(100), usage(200)),
        "oldest-base",
    ),
    _report(
        "B173",
        "markusylisiurunen/tau#452",
        "The bytes of an image count as text.",
        "OCC-11",
        _image,
        "data-counts",
    ),
    _report(
        "B175",
        "justrach/codegraff#260",
        "An image in a new conversation sets off a compaction.",
        "OCC-11",
        _image,
        "data-counts",
    ),
    _report(
        "B177",
        "openclaw/openclaw#103930",
        "Four characters count as a token in every script.",
        "OCC-9",
        _script_of_east_asia,
        "by-four-whatever-the-script",
    ),
    _report(
        "B179",
        "Astro-Han/pawwork!1166",
        "Tool results are sent in full and are not counted so.",
        "OCC-12",
        _results,
        "results-are-free",
    ),
    _report(
        "B181",
        "earendil-works/pi#8651",
        "A fixed reserve is larger than the window.",
        "CAP-2",
        _models,
        "reserve-is-fixed",
    ),
    _report(
        "B183",
        "earendil-works/pi!1556",
        "A reserve for a large model is used on a small one.",
        "CAP-2",
        _models,
        "reserve-is-fixed",
    ),
    _report(
        "B185",
        "zed-industries/zed!59469",
        "The reserve is not taken off the window.",
        "CAP-1",
        _models,
        "safe-is-the-window",
    ),
    _report(
        "B187",
        "cline/cline#13333",
        "A compaction is left out with next to no room left.",
        "TRG-5A",
        full,
        _SKIPS,
    ),
    _report(
        "B189",
        "earendil-works/pi#6426",
        "A switch to a smaller model overflows at the next request.",
        "TRG-7",
        _pressed_by_a_switch,
        "goes-out-whatever",
    ),
    _report(
        "B193",
        "anthropics/claude-code#87523",
        "The session stays on the model that summarised.",
        "CMT-17",
        _compacted,
        _SWITCHED,
    ),
    _report(
        "B197",
        "github/copilot-sdk#2355",
        "A limit that is set is not kept to.",
        "TRG-7",
        _limit,
        "goes-out-up-to-the-window",
    ),
    _report(
        "B199",
        "aaif-goose/goose!11932",
        "A threshold out of range is taken without a word.",
        "CAP-7",
        _threshold,
        "any-settings",
    ),
    _report(
        "B201",
        "anthropics/claude-code#25620",
        "A full window cannot be compacted by hand either.",
        "TRG-2",
        _by_hand,
        _BLOCKED,
    ),
)

MEASURES_NOT: tuple[Unexpressed, ...] = (
    Unexpressed(
        id="B191",
        link="XiaomiMiMo/MiMo-Code#1840",
        fault="A smaller model cannot read the history in one pass.",
        why="The summariser's own request is the host's; its size is not observable.",
    ),
)
