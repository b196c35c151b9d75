"""Scenarios of the chapter on the commit."""

from attrs import evolve

from tailmark.examples import Becomes
from tailmark.identifiers import NodeId, SessionId
from tailmark.json_form import unstructure
from tailmark.operations import SetMetadata
from tailmark.plans import Plan
from tailmark_conformance.scenarios.automatic import pressed
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, summary, user

_DONE = summary("the first turn")


def _begun(play: Play) -> Plan:
    """Two turns, and a compaction of them has begun."""
    play.save(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    return play.begin("P1")


def cmt_1(play: Play) -> Becomes:
    """The user goes on during the compaction."""
    plan = _begun(play)
    play.append(user("U3"))
    play.commit(plan, _DONE)
    return Becomes(path="$.steps[3].outcome", value={"kind": "refused", "code": "plan"})


def cmt_2(play: Play) -> Becomes:
    """Another compaction commits and is undone: the leaf is A2 again, two revisions later."""
    plan = _begun(play)
    play.commit(play.begin("P2"), _DONE)
    play.undo()
    play.commit(plan, _DONE)
    return Becomes(
        path="$.steps[5].outcome", value={"kind": "skipped", "open_calls": [], "answer_running": False}
    )


def cmt_3(play: Play) -> Becomes:
    """An answer starts during the compaction."""
    plan = _begun(play)
    play.start_answer()
    play.commit(plan, _DONE)
    return Becomes(path="$.steps[3].outcome", value={"kind": "refused", "code": "spent"})


def cmt_4(play: Play) -> Becomes:
    """The plan comes back with another old place."""
    plan = _begun(play)
    play.commit(evolve(plan, old_first_kept=NodeId("A1")), _DONE)
    return Becomes(path="$.steps[2].outcome", value={"kind": "failed", "reason": "blank"})


def cmt_4a(play: Play) -> Becomes:
    """The plan was begun on the first revision."""
    _begun(play)
    return Becomes(path="$.steps[1].outcome.plan.revision", value=2)


def cmt_5(play: Play) -> Becomes:
    """The checkpoint becomes the leaf."""
    play.commit(_begun(play), _DONE)
    return Becomes(path="$.steps[2].change.sessions[0].leaf", value="A2")


def cmt_6(play: Play) -> Becomes:
    """Two messages in one save."""
    play.save(user("U1"), assistant("A1"))
    return Becomes(path="$.steps[0].change.sessions[0].revision", value=2)


def cmt_7(play: Play) -> Becomes:
    """The user goes on during the compaction."""
    plan = _begun(play)
    play.append(user("U3"))
    play.commit(plan, _DONE)
    (view,) = play.recorder.observation.sessions
    changed = evolve(view, metadata={"title": "compacted"})
    return Becomes(path="$.steps[3].change.sessions", value=[unstructure(changed)])


def cmt_8(play: Play) -> Becomes:
    """The user cancels, and the summary comes all the same."""
    plan = _begun(play)
    play.cancel("P1")
    play.commit(plan, _DONE)
    return Becomes(path="$.steps[3].outcome", value={"kind": "refused", "code": "spent"})


def cmt_9(play: Play) -> Becomes:
    """Two compactions begin, the first one commits."""
    first = _begun(play)
    second = play.begin("P2")
    play.commit(first, _DONE)
    play.commit(second, _DONE)
    (written,) = play.trace.steps[3].change.nodes
    besides = evolve(
        written, parent=written.content.id, content=evolve(written.content, id=NodeId("checkpoint:P2"))
    )
    return Becomes(path="$.steps[4].change.nodes", value=[unstructure(besides)])


def cmt_10(play: Play) -> Becomes:
    """The user goes on during the compaction."""
    plan = _begun(play)
    play.append(user("U3"))
    play.commit(plan, _DONE)
    (view,) = play.recorder.observation.sessions
    changed = evolve(view, leaf=NodeId("A2"))
    return Becomes(path="$.steps[3].change.sessions", value=[unstructure(changed)])


def cmt_11(play: Play) -> Becomes:
    """A fresh process looks right behind the commit."""
    play.commit(_begun(play), _DONE)
    return Becomes(path="$.steps[2].fresh.nodes_gone", value=["checkpoint:P1"])


def cmt_12(play: Play) -> Becomes:
    """The process ends behind the commit."""
    play.commit(_begun(play), _DONE)
    play.restart()
    (view,) = play.recorder.observation.sessions
    changed = evolve(view, leaf=NodeId("A2"))
    return Becomes(path="$.steps[3].change.sessions", value=[unstructure(changed)])


def cmt_13(play: Play) -> Becomes:
    """The session gets a title during the compaction."""
    plan = _begun(play)
    play.perform(SetMetadata(session=SessionId("S"), key="title", value="A conversation"))
    play.commit(plan, _DONE)
    return Becomes(path="$.steps[3].outcome", value={"kind": "stale", "leaf": "A2", "revision": 1})


def cmt_14(play: Play) -> Becomes:
    """The summariser has no connection."""
    play.commit(_begun(play), failure())
    return Becomes(path="$.steps[2].outcome.reason", value="blank")


def cmt_15(play: Play) -> Becomes:
    """The summariser answers white space."""
    play.commit(_begun(play), summary("  \n"))
    return Becomes(path="$.steps[2].outcome.reason", value="truncated")


def cmt_16(play: Play) -> Becomes:
    """An automatic compaction brings 284 tokens down to 84."""
    play.commit(pressed(play), _DONE)
    return Becomes(path="$.steps[4].change.nodes[0].estimate", value=210)


def cmt_17(play: Play) -> Becomes:
    """The session stays on its model."""
    play.commit(_begun(play), _DONE)
    return Becomes(path="$.steps[2].change.sessions[0].model", value={"name": "another"})
