"""Class F: forks, and checkpoints that belong to a branch."""

from attrs import evolve

from tailmark.identifiers import NodeId
from tailmark.messages import Role
from tailmark.operations import Append, Fork
from tailmark.projections import Marking, ProjectionItem
from tailmark.views import SessionView
from tailmark_conformance.mutants.reported.faults import meddled
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Report, rule
from tailmark_conformance.mutants.reported.sequences import checkpoint, compact, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, user
from tailmark_reference.model.world import World


def _b093(play: Play) -> None:
    checkpoint(play)
    play.append(user("U4"))
    play.append(assistant("A4"))
    play.fork("A4", "T")


def _b095(play: Play) -> None:
    play.start(tail_budget=40)
    turns(play, 3)
    compact(play)
    play.fork("A3", "T")


def _newest_of_all(view: SessionView, moment: Moment) -> SessionView | None:
    stored = [node for node in moment.after.in_order() if node.checkpoint is not None]
    if not stored or view.checkpoint == stored[-1].id:
        return None
    newest = ProjectionItem(
        node=stored[-1].id,
        role=Role.USER,
        marking=Marking.CONTEXT,
        digest=stored[-1].id,
        estimate=stored[-1].estimate,
    )
    kept = tuple(item for item in view.projection if item.node != view.checkpoint)
    return evolve(view, checkpoint=stored[-1].id, projection=(newest, *kept))


_ANY_BRANCH = Faulty(
    id="newest-checkpoint-of-all",
    sentence="Takes the newest checkpoint of the store, on whatever branch it stands.",
    shows=_newest_of_all,
)


def _b097(play: Play) -> None:
    checkpoint(play)
    play.append(user("U4"))
    play.append(assistant("A4"))
    play.fork("A4", "T")
    play.append(user("U5"), session="T")
    play.append(assistant("A5"), session="T")
    compact(play, "P2", "everything so far", session="T")


def _b099(play: Play) -> None:
    checkpoint(play)
    turns(play, 1, first=4)
    compact(play, "P2", "everything so far")
    play.append(user("U5"))
    play.append(assistant("A5"))
    play.fork("A5", "T")


def _copies_entries(moment: Moment) -> World | None:
    match moment.operation:
        case Fork(new_session=session):
            copy = user("U1").id
            return meddled(moment, Append(session=session, message=user(NodeId(f"{copy}-copy"))))
        case _:
            return None


_COPIES = Faulty(
    id="a-fork-copies",
    sentence="A fork copies entries into the new session.",
    leaves=_copies_entries,
)


def _b101(play: Play) -> None:
    turns(play, 2)
    play.fork("A2", "T")
    compact(play, "P1", "on the first branch")
    play.append(user("U3"), session="T")
    play.append(assistant("A3"), session="T")
    compact(play, "P2", "on the second branch", session="T")


FORKS: tuple[Report, ...] = (
    Report(
        id="B093",
        link="earendil-works/pi#8989",
        fault="A boundary names something other than a question, and a fork loses it.",
        clauses=("BND-1",),
        script=_b093,
        mutant=rule("at-an-answer"),
    ),
    Report(
        id="B095",
        link="vellum-ai/vellum-assistant!36149",
        fault="A fork at a kept message inherits a checkpoint that was made behind it.",
        clauses=("FORK-2", "PROJ-1"),
        script=_b095,
        mutant=_ANY_BRANCH,
    ),
    Report(
        id="B097",
        link="cortexkit/magic-context#263",
        fault="The parent's checkpoint wins over the fork's own.",
        clauses=("PROJ-3",),
        script=_b097,
        mutant=rule("oldest-checkpoint"),
    ),
    Report(
        id="B099",
        link="earendil-works/pi#3745",
        fault="A fork copies entries, and its checkpoints count twice.",
        clauses=("FORK-3",),
        script=_b099,
        mutant=_COPIES,
    ),
    Report(
        id="B101",
        link="cloudflare/agents!2120",
        fault="The newest checkpoint of the session is chosen, though it stands on another branch.",
        clauses=("PROJ-1", "PROJ-2"),
        script=_b101,
        mutant=_ANY_BRANCH,
    ),
)
