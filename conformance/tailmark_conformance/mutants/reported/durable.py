"""Class D: what is sent behind a checkpoint, and what of it is durable."""

from attrs import evolve

from tailmark.budgets import Settings
from tailmark.identifiers import NodeId, SessionId
from tailmark.operations import CommitCompaction, Load, SetSettings
from tailmark.outcomes import Committed, Outcome
from tailmark.views import Observation, SessionView
from tailmark_conformance.mutants.reported.faults import (
    committed,
    meddled,
    tail_lost,
    with_nodes,
    without_nodes,
)
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, Unexpressed, rule
from tailmark_conformance.mutants.reported.sequences import compact, finish, full, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user
from tailmark_reference.model.world import World


def _b055(play: Play) -> None:
    turns(play, 3)
    compact(play)
    turns(play, 1, first=4)
    play.append(user("U5"))


def _later(view: SessionView, moment: Moment) -> SessionView | None:  # noqa: ARG001  # the type of the field
    return tail_lost(view) if view.checkpoint is not None and view.leaf != view.checkpoint else None


_ONCE = Faulty(
    id="tail-is-sent-once",
    sentence="Sends the kept messages right behind the compaction and never again.",
    shows=_later,
)


def _b057(play: Play) -> None:
    play.start(settings=Settings(head="agent"))
    turns(play, 2)
    compact(play)


def _strips_head(moment: Moment) -> World | None:
    if not committed(moment):
        return None
    return meddled(moment, SetSettings(session=SessionId("S"), settings=Settings()))


_HEADLESS = Faulty(
    id="instructions-are-stripped",
    sentence="A compaction drops the instructions of the chosen agent.",
    leaves=_strips_head,
)


def _reopened(play: Play) -> None:
    turns(play, 3)
    compact(play)
    play.restart()
    play.ask("P2")


def _forgets_checkpoint(moment: Moment) -> World | None:
    session = moment.after.sessions[SessionId("S")]
    if not moment.restarted or session.leaf is None or session.leaf.checkpoint is None:
        return None
    return moment.after.with_session(session.at(session.leaf.parent, session.revision))


_FORGETS_AT_RESTART = Faulty(
    id="checkpoint-is-not-stored",
    sentence="A checkpoint that is the leaf is not there any more after a restart.",
    leaves=_forgets_checkpoint,
)


def _without_summary(view: SessionView, moment: Moment) -> SessionView | None:
    return evolve(view, projection=view.projection[1:]) if moment.restarted and view.checkpoint else None


_PLACE_ALONE = Faulty(
    id="summary-is-not-stored",
    sentence="The place of a checkpoint is stored, and its summary is not.",
    shows=_without_summary,
)


def _b065(play: Play) -> None:
    finish(play, full(play), summary(" "))


def _orphaned(seen: Observation, moment: Moment) -> Observation | None:
    if not moment.restarted:
        return None
    return with_nodes(
        seen,
        lambda node: evolve(node, parent=NodeId("nowhere")) if node.content.kind == "checkpoint" else node,
    )


_NO_PARENT = Faulty(
    id="parent-of-the-checkpoint-is-not-stored",
    sentence="After a restart the parent of a checkpoint is a node that was never stored.",
    observes=_orphaned,
)


def _b069(play: Play) -> None:
    turns(play, 5)
    compact(play)


def _claims(moment: Moment) -> Outcome | None:
    if not isinstance(moment.operation, CommitCompaction):
        return None
    return Committed(checkpoint=NodeId("checkpoint:P1"))


_CLAIMS = Faulty(
    id="says-committed",
    sentence="Says that a compaction is committed, and writes nothing.",
    instead=_claims,
)


def _rewritten(seen: Observation, moment: Moment) -> Observation | None:  # noqa: ARG001  # the type of the field
    ids = frozenset(NodeId(name) for name in ("U1", "A1"))
    return without_nodes(seen, ids) if seen.sessions[0].checkpoint is not None else None


_REWRITES = Faulty(
    id="history-is-rewritten",
    sentence="A compaction removes what it summarised from the store.",
    observes=_rewritten,
)


def _b073(play: Play) -> None:
    turns(play, 3)
    compact(play)
    play.append(user("U4"))
    play.append(assistant("A4"))
    play.perform(Load(session=SessionId("S")))


def _short_branch(view: SessionView, moment: Moment) -> SessionView | None:
    if not isinstance(moment.operation, Load):
        return None
    sent = {item.node for item in view.projection}
    return evolve(view, branch=tuple(node for node in view.branch if node in sent))


_SHORT = Faulty(
    id="display-reads-the-projection",
    sentence="A reloaded session displays what is sent instead of the whole chain.",
    shows=_short_branch,
)

DURABLE: tuple[Report, ...] = (
    Report(
        id="B055",
        link="open-webui/open-webui#27037",
        fault="The kept messages are sent on the first turn behind a compaction only.",
        clauses=("PROJ-2", "PROJ-6"),
        script=_b055,
        mutant=_ONCE,
    ),
    Report(
        id="B057",
        link="github/copilot-cli#2895",
        fault="The instructions of the selected agent are gone behind a compaction.",
        clauses=("CMT-17", "CACHE-2"),
        script=_b057,
        mutant=_HEADLESS,
    ),
    Report(
        id="B059",
        link="google/adk-python#3465",
        fault="The store drops the compaction, so that everything is compacted again.",
        clauses=("CMT-12",),
        script=_reopened,
        mutant=_FORGETS_AT_RESTART,
    ),
    Report(
        id="B061",
        link="microsoft/agent-framework#8099",
        fault="What is left out is durable, and the summary that replaces it is not.",
        clauses=("PROJ-7",),
        script=_reopened,
        mutant=_PLACE_ALONE,
    ),
    Report(
        id="B065",
        link="openai/codex#36642",
        fault="A checkpoint with an empty summary replaces the task at hand.",
        clauses=("CMT-15",),
        script=_b065,
        mutant=rule("blank-summary"),
    ),
    Report(
        id="B067",
        link="anthropics/claude-code#46603",
        fault="A checkpoint's parent is never stored, so a resumed walk ends in a gap.",
        clauses=("TREE-2",),
        script=_reopened,
        mutant=_NO_PARENT,
    ),
    Report(
        id="B069",
        link="anthropics/claude-code#89040",
        fault="Success is shown for a compaction whose boundary was never written.",
        clauses=("OUT-5", "CMT-11"),
        script=_b069,
        mutant=_CLAIMS,
    ),
    Report(
        id="B071",
        link="tontinton/maki#814",
        fault="A compaction rewrites the stored session, and the original turns are lost.",
        clauses=("TREE-2", "TREE-3"),
        script=_b069,
        mutant=_REWRITES,
    ),
    Report(
        id="B073",
        link="openclaw/openclaw#76415",
        fault="The visible history is reloaded as the compacted one.",
        clauses=("TREE-4",),
        script=_b073,
        mutant=_SHORT,
    ),
)

DURABLE_NOT: tuple[Unexpressed, ...] = (
    Unexpressed(
        id="B063",
        link="zed-industries/zed!60141",
        fault="A request for a title reads the raw history.",
        why="Only requests of the conversation itself are operations; a title is asked for by the host, outside of them.",
    ),
)
