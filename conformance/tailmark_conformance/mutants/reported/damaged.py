"""Classes M and O: damaged histories, and the shape of what is sent."""

from collections.abc import Callable

from attrs import evolve

from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Role
from tailmark.operations import Append, InflictDamage, Load
from tailmark.outcomes import Done, Outcome
from tailmark.projections import Marking, ProjectionItem
from tailmark.views import Observation, SessionView
from tailmark_conformance.mutants.reported.faults import tail_lost, with_nodes
from tailmark_conformance.mutants.reported.faulty import Faulty, Moment
from tailmark_conformance.mutants.reported.report import Mutant, Report
from tailmark_conformance.mutants.reported.sequences import checkpoint, compact, turns
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, tool, user


def _damaged(kind: DamageKind, node: str) -> Callable[[Play], object]:
    def script(play: Play) -> None:
        checkpoint(play)
        play.inflict(kind, node)
        play.perform(Load(session=SessionId("S")))
        play.append(user("U4"))

    return script


def _hurt(moment: Moment) -> bool:
    return any(isinstance(heard, InflictDamage) for heard in moment.heard)


def _unnoticed(view: SessionView, moment: Moment) -> SessionView | None:
    return evolve(view, damage=(), read_only=False) if _hurt(moment) else None


def _repeated(view: SessionView, moment: Moment) -> SessionView | None:
    return evolve(view, branch=(*view.branch, *view.branch)) if _hurt(moment) else None


def _empty(view: SessionView, moment: Moment) -> SessionView | None:
    return evolve(view, branch=(), projection=(), checkpoint=None) if _hurt(moment) else None


def _last_alone(view: SessionView, moment: Moment) -> SessionView | None:
    return evolve(view, branch=view.branch[-1:]) if _hurt(moment) else None


def _repaired(seen: Observation, moment: Moment) -> Observation | None:
    return evolve(seen, store="repaired") if isinstance(moment.operation, Load) else None


def _overwrites(moment: Moment) -> Outcome | None:
    if isinstance(moment.operation, Append) and _hurt(moment):
        return Done(written=(moment.operation.message.id,))
    return None


def _resumed(play: Play) -> None:
    checkpoint(play)
    play.restart()
    play.append(user("U4"))


def _never_saved(seen: Observation, moment: Moment) -> Observation | None:
    if not moment.restarted:
        return None
    return with_nodes(
        seen, lambda node: evolve(node, parent=NodeId("nowhere")) if node.content.id == "U4" else node
    )


def _sent(play: Play) -> None:
    checkpoint(play)
    turns(play, 1, first=4)
    compact(play, "P2", "everything so far")
    play.send(user("U5"))


def _many_results(play: Play) -> None:
    play.send(user("U1"))
    play.start_answer()
    for number in range(1, 4):
        play.append(assistant(f"A{number}", calls=(f"c{number}",)))
        play.append(tool(f"T{number}", f"c{number}"))
        play.next_request()


def _kept_results(play: Play) -> None:
    play.turn(1)
    play.append(user("U2"))
    play.append(assistant("A2", calls=("c1",)))
    play.append(tool("T1", "c1"))
    play.append(assistant("A3"))
    compact(play)


def _tail_again(view: SessionView, moment: Moment) -> SessionView | None:
    again = view.projection[1:2] if view.checkpoint is not None and moment.heard else ()
    return evolve(view, projection=(*view.projection, *again))


def _no_tail(view: SessionView, moment: Moment) -> SessionView | None:
    return tail_lost(view) if view.checkpoint is not None and moment.heard else None


def _continue(view: SessionView, moment: Moment) -> SessionView | None:
    if view.checkpoint is None or not moment.heard:
        return None
    made_up = ProjectionItem(
        node=None,
        role=Role.USER,
        marking=Marking.VERBATIM,
        digest="continue",
        estimate=view.projection[0].estimate,
    )
    return evolve(view, projection=(*view.projection, made_up))


def _results_cut(view: SessionView, mark: str) -> SessionView:
    """The projection with each result shortened; ``mark`` tells one way from another."""
    return evolve(
        view,
        projection=tuple(
            evolve(item, digest=f"{item.digest}-{mark}") if item.role is Role.TOOL else item
            for item in view.projection
        ),
    )


def _aged(view: SessionView, moment: Moment) -> SessionView | None:
    return _results_cut(view, str(len(moment.heard)))


def _pruned(view: SessionView, moment: Moment) -> SessionView | None:  # noqa: ARG001  # the type of the field
    return _results_cut(view, "pruned") if view.checkpoint is not None else None


def _report(
    identifier: str, link: str, fault: str, clause: str, script: Callable[[Play], object], mutant: Mutant
) -> Report:
    return Report(id=identifier, link=link, fault=fault, clauses=(clause,), script=script, mutant=mutant)


_UNNOTICED = Faulty(
    id="cycle-goes-unnoticed", sentence="Does not notice that parents go round.", shows=_unnoticed
)
_REPEATED = Faulty(id="chain-is-repeated", sentence="Shows a damaged chain twice.", shows=_repeated)
_EMPTY = Faulty(id="damaged-is-empty", sentence="Shows a damaged session as an empty one.", shows=_empty)
_LAST = Faulty(
    id="last-message-alone", sentence="Shows the last message of a damaged chain alone.", shows=_last_alone
)
_REPAIRS = Faulty(id="reading-repairs", sentence="Writes repairs when it loads.", observes=_repaired)
_OVERWRITES = Faulty(
    id="unreadable-is-overwritten",
    sentence="Takes messages for a session that it cannot read.",
    instead=_overwrites,
)
_TWICE = Faulty(id="tail-is-sent-twice", sentence="Sends kept messages again at the end.", shows=_tail_again)
_NO_TAIL = Faulty(id="no-tail", sentence="Sends nothing that stood before the checkpoint.", shows=_no_tail)
_MARKER = Faulty(
    id="continuation-marker", sentence="Puts a message of its own behind a compaction.", shows=_continue
)
_AGED = Faulty(id="results-age", sentence="Sends the same results shorter with every request.", shows=_aged)
_PRUNED = Faulty(
    id="prunes-what-it-keeps",
    sentence="A compaction also shortens the results that it keeps.",
    shows=_pruned,
)
_PARENT_NEVER_SAVED = Faulty(
    id="follows-what-was-never-saved",
    sentence="The first message of a resumed session follows a node that is not stored.",
    observes=_never_saved,
)

DAMAGED: tuple[Report, ...] = (
    _report(
        "B217",
        "Yeachan-Heo/gajae-code!1193",
        "Parents that go round exhaust the memory.",
        "DMG-1",
        _damaged(DamageKind.CYCLE, "U2"),
        _UNNOTICED,
    ),
    _report(
        "B219",
        "earendil-works/pi#3930",
        "Ids that stand twice repeat the chain.",
        "DMG-2",
        _damaged(DamageKind.DUPLICATE_ID, "U2"),
        _REPEATED,
    ),
    _report(
        "B221",
        "microsoft/vscode#319244",
        "One invalid figure of a checkpoint opens the session empty.",
        "DMG-2",
        _damaged(DamageKind.INVALID_MESSAGE, "checkpoint:P1"),
        _EMPTY,
    ),
    _report(
        "B223",
        "anthropics/claude-code#24304",
        "Where a parent is missing only the last message is shown.",
        "DMG-2",
        _damaged(DamageKind.MISSING_PARENT, "U2"),
        _LAST,
    ),
    _report(
        "B225",
        "anthropics/claude-code#61188",
        "The first message of a resumed session follows a node that was never saved.",
        "TREE-1",
        _resumed,
        _PARENT_NEVER_SAVED,
    ),
    _report(
        "B227",
        "coder/xum!2254",
        "A strict reader of a bad checkpoint loads nothing.",
        "DMG-2",
        _damaged(DamageKind.INVALID_MESSAGE, "checkpoint:P1"),
        _EMPTY,
    ),
    _report(
        "B229",
        "CherryHQ/cherry-studio!17685",
        "Loading writes repairs.",
        "DMG-4",
        _damaged(DamageKind.INVALID_MESSAGE, "U2"),
        _REPAIRS,
    ),
    _report(
        "B231",
        "artokun/comfyui-mcp!1079",
        "What cannot be read counts as empty and is overwritten.",
        "DMG-3",
        _damaged(DamageKind.INVALID_MESSAGE, "U2"),
        _OVERWRITES,
    ),
    _report(
        "B247",
        "openclaw/openclaw#90108",
        "The kept tail is put in again at the end.",
        "PROJ-4",
        _sent,
        _TWICE,
    ),
    _report(
        "B249", "coder/coder!22819", "Behind a compaction no turn is left to send.", "PROJ-2", _sent, _NO_TAIL
    ),
    _report(
        "B251",
        "ducks/claux#39",
        "A made-up message asks to continue, before the user's own.",
        "PROJ-10",
        _sent,
        _MARKER,
    ),
    _report(
        "B253",
        "macanderson/stella#3690",
        "Old results are shortened a little more with every request.",
        "CACHE-1",
        _many_results,
        _AGED,
    ),
    _report(
        "B255",
        "Yeachan-Heo/gajae-code#2334",
        "Pruning and compaction change the prefix twice.",
        "CACHE-2",
        _kept_results,
        _PRUNED,
    ),
)
