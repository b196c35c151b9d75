"""Class E: retry, edit, rewind and undo behind compactions."""

from attrs import evolve

from tailmark.identifiers import NodeId, SessionId
from tailmark.operations import BeginCompaction, Fork, Restart, Retry
from tailmark.outcomes import Noop, NoopReason, Outcome, RefusalCode, Refused
from tailmark.plans import Checkpoint
from tailmark.views import Observation
from tailmark_conformance.mutants.reported.faults import meddled, request_with, with_nodes
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule
from tailmark_conformance.mutants.reported.sequences import checkpoint, compact, turns, usage
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, user
from tailmark_reference.model.world import PlanState, World


def _b075(play: Play) -> None:
    turns(play, 2)
    compact(play)
    play.append(assistant("A3"))
    play.retry()
    play.restart()


def _newest_is_the_leaf(moment: Moment) -> World | None:
    if not isinstance(moment.operation, Restart):
        return None
    session = moment.after.sessions[SessionId("S")]
    *_, newest = moment.after.in_order()
    return moment.after.with_session(session.at(newest, session.revision))


_LAST_LINE = Faulty(
    id="newest-node-is-the-leaf",
    sentence="Resumes at the node that was stored last, although the session had gone back.",
    leaves=_newest_is_the_leaf,
)


def _b077(play: Play) -> None:
    turns(play, 3)
    play.retry()
    play.append(assistant("A3b"))
    compact(play)


def _with_the_reverted(moment: Moment) -> Outcome | None:
    branch: set[NodeId] = set()
    node = moment.before.sessions[SessionId("S")].leaf
    while node is not None:
        branch.add(node.id)
        node = node.parent
    reverted = tuple(node.id for node in moment.before.in_order() if node.id not in branch)
    return request_with(lambda request: evolve(request, messages=(*request.messages, *reverted)))(moment)


_READS_REVERTED = Faulty(
    id="reverted-messages-are-summarised",
    sentence="Gives the summariser messages that a revert took off the branch.",
    says=_with_the_reverted,
)


def _b079(play: Play) -> None:
    turns(play, 2)
    play.ask()
    play.cancel()
    play.fork("A1", "T")


def _reverts_later(moment: Moment) -> World | None:
    cancelled = any(known.state is PlanState.CANCELLED for known in moment.before.process.plans.values())
    if isinstance(moment.operation, Fork) and cancelled:
        return meddled(moment, Retry(session=moment.operation.session))
    return None


_ARMED = Faulty(
    id="cancelled-compaction-leaves-a-revert",
    sentence="Behind a cancelled compaction a new session takes the old one back to an earlier state.",
    leaves=_reverts_later,
)


def _b081(play: Play) -> None:
    turns(play, 4)
    compact(play)
    play.fork("A1", "T")


def _hides_summarised(moment: Moment) -> Outcome | None:
    if not isinstance(moment.operation, Fork):
        return None
    return Refused(code=RefusalCode.UNKNOWN_NODE)


_ARCHIVED = Faulty(
    id="summarised-messages-are-out-of-reach",
    sentence="Does not find summarised messages when somebody goes back to them.",
    instead=_hides_summarised,
)


def _b083(play: Play) -> None:
    checkpoint(play)
    play.undo()


def _b085(play: Play) -> None:
    checkpoint(play)
    turns(play, 1, first=4)
    play.retry()


def _b087(play: Play) -> None:
    turns(play, 2)
    plan = play.begin()
    play.commit(plan, failure())
    play.retry()


def _b089(play: Play) -> None:
    checkpoint(play)
    turns(play, 1, first=4)
    compact(play, "P2", "everything so far")
    play.fork("A4", "T")


def _older_blanked(seen: Observation, moment: Moment) -> Observation | None:  # noqa: ARG001  # the type of the field
    latest = seen.sessions[0].checkpoint
    return with_nodes(
        seen,
        lambda node: (
            evolve(node, content=evolve(node.content, summary="(superseded)"))
            if isinstance(node.content, Checkpoint) and node.content.id != latest
            else node
        ),
    )


_BLANKS = Faulty(
    id="older-checkpoints-are-blanked",
    sentence="A new checkpoint blanks the summaries of the older ones.",
    observes=_older_blanked,
)


def _b091(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"))
    aborted = evolve(usage(100), ended_normally=False)
    play.append(assistant("A2", usage=aborted, built_on="U2"))
    play.retry()
    play.append(assistant("A2b"))
    compact(play)


def _fails_closed(moment: Moment) -> Outcome | None:
    if not isinstance(moment.operation, BeginCompaction):
        return None
    odd = any(
        node.message is not None and node.message.usage is not None and not node.message.usage.ended_normally
        for node in moment.before.in_order()
    )
    return Noop(reason=NoopReason.TOO_FEW_TURNS) if odd else None


_FAILS_CLOSED = Faulty(
    id="odd-usage-blocks-compactions",
    sentence="Never compacts where one usage cannot be read.",
    instead=_fails_closed,
)

REWINDS: tuple[Report, ...] = (
    Report(
        id="B075",
        link="openai/codex#32851",
        fault="What was rolled back is in the context again after a resume.",
        clauses=("PROJ-7",),
        script=_b075,
        mutant=_LAST_LINE,
    ),
    Report(
        id="B077",
        link="anomalyco/opencode#6186",
        fault="A compaction right behind a revert works on the reverted messages.",
        clauses=("CHK-2",),
        script=_b077,
        mutant=_READS_REVERTED,
    ),
    Report(
        id="B079",
        link="anomalyco/opencode#35256",
        fault="A cancelled compaction leaves a revert armed that a later session sets off.",
        clauses=("FORK-4",),
        script=_b079,
        mutant=_ARMED,
    ),
    Report(
        id="B081",
        link="NousResearch/hermes-agent!81231",
        fault="Messages before a compaction are out of reach for going back.",
        clauses=("FORK-1",),
        script=_b081,
        mutant=_ARCHIVED,
    ),
    Report(
        id="B083",
        link="RooCodeInc/Roo-Code#9308",
        fault="Going back to before a compaction leaves the context compacted.",
        clauses=("UNDO-1",),
        script=_b083,
        mutant=rule("undo-goes-nowhere"),
    ),
    Report(
        id="B085",
        link="QwenLM/qwen-code#9320",
        fault="Going back one turn counts from a wrong mark and drops most of the conversation.",
        clauses=("RETRY-1",),
        script=_b085,
        mutant=rule("first-opener"),
    ),
    Report(
        id="B087",
        link="danny-avila/LibreChat!15883",
        fault="The text of a failed summary becomes the checkpoint, and a retry goes from there.",
        clauses=("CMT-14",),
        script=_b087,
        mutant=rule("error-as-summary"),
    ),
    Report(
        id="B089",
        link="can1357/oh-my-pi#4090",
        fault="A new checkpoint blanks the older ones.",
        clauses=("TREE-2",),
        script=_b089,
        mutant=_BLANKS,
    ),
    Report(
        id="B091",
        link="SiriLee/dsh-rewind#4",
        fault="The usage of an aborted answer blocks compactions for good.",
        clauses=("TRG-2",),
        script=_b091,
        mutant=_FAILS_CLOSED,
    ),
)
