"""Histories to damage, on model and store alike, for the tests of damaged histories."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import evolve

from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, SessionId
from tailmark.operations import InflictDamage
from tailmark.outcomes import Outcome
from tailmark.subjects import Subject
from tailmark.views import Observation, SessionView
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, tool, user
from tailmark_reference.store.subject import SqliteSubject

S: Final = SessionId("S")
OTHER: Final = SessionId("S2")

NODES: Final = tuple(
    map(
        NodeId,
        (
            *("U1", "A1", "T1", "A2", "U2", "A3", "checkpoint:P1", "U3", "A4", "U4", "T2", "A5"),
            *("V1", "W1", "U5", "A6", "checkpoint:P2", "A7"),
        ),
    )
)
"""All nodes of `history`. V1 and W1 are on the branch of `OTHER` alone; A6 and checkpoint:P2 on none."""

Inflicted = tuple[DamageKind, NodeId]
EVERY: Final = tuple((kind, node) for kind in DamageKind for node in NODES)
"""Every kind at every node, whether it can be inflicted there or not."""

_ONLY: Final = {
    DamageKind.MISSING_LEAF: {"A7"},
    DamageKind.PLACE_NO_ANCESTOR: {"checkpoint:P1", "checkpoint:P2"},
    DamageKind.DANGLING_RESULT: {"T1", "T2"},
}

POSSIBLE: Final = tuple((kind, node) for kind, node in EVERY if node in _ONLY.get(kind, NODES))
"""Every kind at every node where it can be inflicted."""


def history(subject: Subject) -> Play:
    """Two branches, two checkpoints, tool calls in both styles of settling, steering, an answer that was left, a call that is open."""
    play = Play(subject)
    play.start(tail_budget=20)
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(tool("T1", "c1"))
    play.append(assistant("A2"))
    play.append(user("U2"))
    play.append(assistant("A3"))
    play.commit(play.begin("P1"), summary("the first turn"))
    play.append(user("U3"))
    play.append(assistant("A4", calls=("c2",)))
    play.append(user("U4"))
    play.append(tool("T2", "c2"))
    play.append(assistant("A5"))
    play.fork("A3", OTHER)
    play.append(user("V1"), session=OTHER)
    play.append(assistant("W1"), session=OTHER)
    play.append(user("U5"))
    play.append(assistant("A6"))
    play.commit(play.begin("P2"), summary("more turns"))
    play.retry()
    play.append(assistant("A7", calls=("c3",)))
    return play


def inflict(subject: Subject, damage: Inflicted, session: SessionId = S) -> Outcome:
    """Damage one node."""
    kind, node = damage
    return subject.perform(InflictDamage(session=session, damage=kind, node=node))


def view(subject: Subject, session: SessionId = S) -> SessionView:
    """What a session shows now."""
    return next(one for one in subject.observe().sessions if one.session == session)


def seen(subject: Subject) -> Observation:
    """What can be seen, the digest aside, which is each subject's own."""
    return evolve(subject.observe(), store=None)


@contextmanager
def store_in(folder: Path) -> Iterator[SqliteSubject]:
    """The store as a subject, closed in the end."""
    subject = SqliteSubject(folder)
    try:
        yield subject
    finally:
        subject.close()


def store_file(folder: Path) -> Path:
    """The one store in the folder."""
    (path,) = folder.glob("*.sqlite")
    return path


def durable_bytes(folder: Path) -> dict[str, bytes]:
    """The bytes of the store and of its log; an empty log is none. The file of shared memory holds nothing durable."""
    files = [file for file in folder.iterdir() if file.is_file() and not file.name.endswith("-shm")]
    return {file.name: content for file in sorted(files) if (content := file.read_bytes())}
