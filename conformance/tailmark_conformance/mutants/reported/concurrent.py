"""Class G: what happens during a compaction, and what a commit writes."""

from attrs import evolve

from tailmark.identifiers import Revision, SessionId
from tailmark.messages import AnswerEnd
from tailmark.operations import BeginCompaction, EndAnswer, Operation, SetMetadata
from tailmark.outcomes import Outcome, Skipped
from tailmark.views import SessionView
from tailmark_conformance.mutants.reported.faults import committed, meddled
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule, together
from tailmark_conformance.mutants.reported.sequences import begun, compact, turns
from tailmark_conformance.scenarios.automatic import WINDOW
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user, words
from tailmark_reference.model.world import World

_S = SessionId("S")


def _title(play: Play, value: str = "A title") -> None:
    play.perform(SetMetadata(session=_S, key="title", value=value))


_ANY_STATE = Faulty(
    id="commit-compares-nothing",
    sentence="Commits whatever happened since the compaction began.",
    rules=together("any-leaf", "any-revision", "any-plan"),
)


def _b103(play: Play) -> None:
    plan = begun(play)
    play.retry()
    play.commit(plan, summary("the first turn"))


def _b105(play: Play) -> None:
    plan = begun(play)
    play.append(user("U3"))
    play.commit(plan, summary("the first turn"))


def _b107(play: Play) -> None:
    turns(play, 2)
    compact(play)
    play.append(user("U3"))


def _as_before(view: SessionView, moment: Moment) -> SessionView | None:
    if not committed(moment):
        return None
    was = moment.before.sessions[_S]
    return evolve(view, leaf=was.leaf.id if was.leaf else None, revision=was.revision)


_STALE_MEMORY = Faulty(
    id="memory-stays-behind",
    sentence="Behind a commit the process goes on with the leaf and revision from before.",
    shows=_as_before,
    fresh_is_right=True,
)


def _b109(play: Play) -> None:
    plan = begun(play)
    _title(play)
    play.commit(plan, summary("the first turn"))


def _title_lost(moment: Moment) -> World | None:
    if not committed(moment):
        return None
    return meddled(moment, SetMetadata(session=_S, key="title", value=""))


_LOSES_METADATA = Faulty(
    id="metadata-is-replaced",
    sentence="A commit brings back the metadata from before the compaction.",
    leaves=_title_lost,
)


def _metadata_moves(moment: Moment) -> World | None:
    if not isinstance(moment.operation, SetMetadata):
        return None
    session = moment.after.sessions[_S]
    return moment.after.with_session(session.at(session.leaf, Revision(session.revision + 1)))


_NOTICES_COUNT = Faulty(
    id="notices-count",
    sentence="A hidden notice makes the revision grow.",
    leaves=_metadata_moves,
)


def _revision_is_behind(moment: Moment) -> World | None:
    if not committed(moment):
        return None
    session = moment.after.sessions[_S]
    return moment.after.with_session(session.at(session.leaf, moment.before.sessions[_S].revision))


_SECOND_WRITE_MISSING = Faulty(
    id="second-write-is-missing",
    sentence="A commit stores its checkpoint, and the revision of before stays.",
    leaves=_revision_is_behind,
)


def _b115(play: Play) -> None:
    begun(play)
    play.restart()
    compact(play, "P2")


def _still_running(moment: Moment) -> Outcome | None:
    if isinstance(moment.operation, BeginCompaction) and moment.restarted:
        return Skipped(open_calls=(), answer_running=True)
    return None


_RUNS_FOR_EVER = Faulty(
    id="compaction-outlives-its-process",
    sentence="A compaction that a crash ended counts as running for ever.",
    instead=_still_running,
)


def overflowed(play: Play) -> None:
    """An answer ends as failed where a compaction would be worth it."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(196)), user("U2"))
    play.start_answer()
    play.append(assistant("A2", words(62)))
    play.perform(EndAnswer(session=_S, end=AnswerEnd.FAILED, reason="overflow"))


def _b117(play: Play) -> None:
    overflowed(play)
    compact(play, "P2")


def _takes_failure_for_success(operation: Operation) -> Operation | None:
    if isinstance(operation, EndAnswer):
        return evolve(operation, end=AnswerEnd.FINAL)
    return None


REPAIRS_OVERFLOWS = Faulty(
    id="overflow-is-repaired",
    sentence="Begins a compaction by itself when a provider reports an overflow.",
    hears=_takes_failure_for_success,
)


def _b119(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"), follows="A1")
    play.append(user("U2b"), follows="A1")
    play.restart()


def _b121(play: Play) -> None:
    turns(play, 2)
    _title(play)
    play.append(user("U3"))


def _leaf_moves(moment: Moment) -> World | None:
    session = moment.after.sessions[_S]
    if not isinstance(moment.operation, SetMetadata) or session.leaf is None:
        return None
    return moment.after.with_session(session.at(session.leaf.parent, session.revision))


_RENAME_MOVES = Faulty(
    id="a-rename-moves-the-leaf",
    sentence="A title set by a client that is behind takes the leaf back to where that client is.",
    leaves=_leaf_moves,
)

CONCURRENT: tuple[Report, ...] = (
    Report(
        id="B103",
        link="earendil-works/pi#9178",
        fault="The leaf moved while the summary was made, and the checkpoint goes to the wrong branch.",
        clauses=("CMT-1",),
        script=_b103,
        mutant=_ANY_STATE,
    ),
    Report(
        id="B105",
        link="openai/openai-agents-python#4679",
        fault="A replacement worked out from an old state deletes what was appended meanwhile.",
        clauses=("CMT-1", "CMT-10"),
        script=_b105,
        mutant=_ANY_STATE,
    ),
    Report(
        id="B107",
        link="google/adk-python#5194",
        fault="A compaction in the background leaves the session in memory behind the stored one.",
        clauses=("CMT-11",),
        script=_b107,
        mutant=_STALE_MEMORY,
    ),
    Report(
        id="B109",
        link="openai/codex!14563",
        fault="Metadata written during a compaction is lost with its commit.",
        clauses=("CMT-17",),
        script=_b109,
        mutant=_LOSES_METADATA,
    ),
    Report(
        id="B111",
        link="code-yeongyu/senpi!853",
        fault="Hidden notices make every prepared summary stale.",
        clauses=("TREE-9",),
        script=_b109,
        mutant=_NOTICES_COUNT,
    ),
    Report(
        id="B113",
        link="openclaw/openclaw#113210",
        fault="Checkpoint and accounting are written one after the other, and the second write is missing.",
        clauses=("CMT-5", "CMT-6"),
        script=_b107,
        mutant=_SECOND_WRITE_MISSING,
    ),
    Report(
        id="B115",
        link="anomalyco/opencode!47178",
        fault="A crash leaves a compaction that runs for ever.",
        clauses=("TRG-2",),
        script=_b115,
        mutant=_RUNS_FOR_EVER,
    ),
    Report(
        id="B117",
        link="earendil-works/pi#7086",
        fault="A compaction by hand meets one that an overflow set off by itself.",
        clauses=("TRG-12",),
        script=_b117,
        mutant=REPAIRS_OVERFLOWS,
    ),
    Report(
        id="B119",
        link="QwenLM/qwen-code#7164",
        fault="Two processes go on with one session, and one of them is hidden later.",
        clauses=("TREE-12",),
        script=_b119,
        mutant=rule("follows-anything"),
    ),
    Report(
        id="B121",
        link="earendil-works/pi#9930",
        fault="A title set by a client that is behind becomes the leaf.",
        clauses=("TREE-9",),
        script=_b121,
        mutant=_RENAME_MOVES,
    ),
)
