"""Damaged histories: model and store agree on what is named and what can be read, and nothing is written (DMG)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from damaged import (
    EVERY,
    NODES,
    OTHER,
    POSSIBLE,
    Inflicted,
    S,
    durable_bytes,
    history,
    inflict,
    seen,
    store_in,
    view,
)
from tailmark.budgets import Settings
from tailmark.damage import Damage, DamageKind
from tailmark.identifiers import NodeId, PlanId, SessionId
from tailmark.judge import StepVerdict, judge_trace
from tailmark.messages import AnswerEnd
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    InflictDamage,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Done, Noop, NoopReason, Planned, ReadOnly, RefusalCode, Refused
from tailmark_conformance.scenarios.playing import model
from tailmark_conformance.scenarios.words import assistant, result, summary, user
from tailmark_conformance.subjects.targets import default_store_dir
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.store.subject import SqliteSubject


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where files cost little."""
    with tempfile.TemporaryDirectory(dir=default_store_dir()) as directory:
        yield Path(directory)


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteSubject]:
    """The store, behind the history."""
    with store_in(folder) as subject:
        history(subject)
        yield subject


@pytest.fixture
def twin() -> ModelSubject:
    """The model, behind the history."""
    subject = ModelSubject()
    history(subject)
    return subject


@pytest.mark.parametrize("damage", EVERY)
def test_each_kind_at_each_node(damage: Inflicted, folder: Path, twin: ModelSubject) -> None:
    """Model and store answer, name and show the same, in this process and in a fresh one; and no clause is broken."""
    with store_in(folder) as store:
        play = history(store)
        kind, node = damage
        outcome = play.inflict(kind, node)
        assert outcome == inflict(twin, damage)
        assert (outcome == Done()) is (damage in POSSIBLE)
        assert seen(store) == seen(twin)
        assert store.observe() == store.observe_fresh()
        play.append(user("U9"))
        play.append(user("U8"), session=OTHER)
    broken = [one for one in judge_trace(play.trace) if one.verdict is StepVerdict.VIOLATED]
    assert broken == []


@pytest.mark.parametrize("seed", range(8))
def test_pairs_of_kinds(seed: int, folder: Path) -> None:
    """Two kinds at any two nodes: model and store answer, name and show the same."""
    random = Random(seed)
    for _ in range(12):
        first, second = random.choice(POSSIBLE), random.choice(EVERY)
        twin = _played()
        with store_in(folder) as store:
            play = history(store)
            play.inflict(*first)
            inflict(twin, first)
            assert play.inflict(*second) == inflict(twin, second)
            assert seen(store) == seen(twin), (first, second)
            broken = [one for one in judge_trace(play.trace) if one.verdict is StepVerdict.VIOLATED]
            assert broken == [], (first, second)


def _played() -> ModelSubject:
    subject = ModelSubject()
    history(subject)
    return subject


def test_each_is_named_with_its_node(store: SqliteSubject) -> None:
    """DMG-1: from the leaf upwards, through nodes that cannot be read, up to a link that is lost."""
    for damage in (
        (DamageKind.CYCLE, NODES[1]),
        (DamageKind.DANGLING_RESULT, NodeId("T1")),
        (DamageKind.DUPLICATE_ID, NodeId("A2")),
        (DamageKind.PLACE_NO_ANCESTOR, NodeId("checkpoint:P1")),
        (DamageKind.INVALID_MESSAGE, NodeId("A5")),
    ):
        assert inflict(store, damage) == Done()
    assert view(store).damage == (
        Damage(kind=DamageKind.INVALID_MESSAGE, node=NodeId("A5")),
        Damage(kind=DamageKind.PLACE_NO_ANCESTOR, node=NodeId("checkpoint:P1")),
        Damage(kind=DamageKind.DUPLICATE_ID, node=NodeId("A2")),
        Damage(kind=DamageKind.DANGLING_RESULT, node=NodeId("T1")),
        Damage(kind=DamageKind.CYCLE, node=NodeId("A1")),
    )


def test_damage_that_cannot_be_inflicted_ends_nothing(store: SqliteSubject) -> None:
    """`refused(unknown-node)` for a node that is not stored, not of the sort, or damaged already; answers go on."""
    store.perform(StartAnswer(session=OTHER))
    running = view(store, OTHER).running
    for kind, node in (
        (DamageKind.CYCLE, "nobody"),
        (DamageKind.MISSING_LEAF, "U1"),
        (DamageKind.PLACE_NO_ANCESTOR, "U1"),
        (DamageKind.DANGLING_RESULT, "A1"),
    ):
        assert inflict(store, (kind, NodeId(node))) == Refused(code=RefusalCode.UNKNOWN_NODE)
    unknown = inflict(store, (DamageKind.CYCLE, NodeId("U1")), SessionId("nobody"))
    assert unknown == Refused(code=RefusalCode.UNKNOWN_SESSION)
    assert view(store, OTHER).running == running
    assert inflict(store, (DamageKind.CYCLE, NodeId("W1"))) == Done()
    assert view(store, OTHER).running is None
    again = inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("W1")))
    assert again == Refused(code=RefusalCode.UNKNOWN_NODE)
    assert store.store.perform(
        InflictDamage(session=S, damage=DamageKind.CYCLE, node=NodeId("U1"))
    ) == Refused(code=RefusalCode.UNKNOWN_NODE)


def _operations(store: SqliteSubject) -> tuple[Operation, ...]:
    """Everything that could write, on the session S."""
    outcome = store.perform(BeginCompaction(session=OTHER, plan=PlanId("P7")))
    assert isinstance(outcome, Planned)
    return (
        Append(session=S, message=user("U9")),
        Append(session=S, message=user("U1")),
        Save(session=S, path=()),
        Settle(session=S, message=NodeId("A7"), result=result("c3")),
        Abandon(session=S),
        StartAnswer(session=S),
        NextRequest(session=S),
        EndAnswer(session=S, end=AnswerEnd.FAILED),
        BeginCompaction(session=S, plan=PlanId("P8")),
        Preview(session=S, plan=PlanId("P8")),
        CommitCompaction(plan=evolve(outcome.plan, session=S), reply=summary("what was said")),
        Send(session=S, message=user("U9")),
        Retry(session=S),
        Edit(session=S, target=NodeId("U5"), message=user("U9")),
        Fork(session=S, target=NodeId("A3"), new_session=SessionId("S3")),
        Undo(session=S),
        SetModel(session=S, model=model(1000)),
        SetSettings(session=S, settings=Settings()),
        SetMetadata(session=S, key="title", value="new"),
    )


@pytest.mark.parametrize(
    "damage",
    [
        (DamageKind.MISSING_PARENT, "U3"),
        (DamageKind.CYCLE, "U3"),
        (DamageKind.DUPLICATE_ID, "U3"),
        (DamageKind.INVALID_MESSAGE, "U3"),
        (DamageKind.MISSING_LEAF, "A7"),
        (DamageKind.PLACE_NO_ANCESTOR, "checkpoint:P1"),
        (DamageKind.DANGLING_RESULT, "T2"),
    ],
)
def test_nothing_is_written(damage: tuple[DamageKind, str], store: SqliteSubject, folder: Path) -> None:
    """DMG-3, DMG-4: every operation is read-only, and the bytes are the same, whoever opens, looks and closes."""
    kind, node = damage
    assert inflict(store, (kind, NodeId(node))) == Done()
    operations = _operations(store)
    store.observe()
    before = durable_bytes(folder)
    for operation in operations:
        assert store.perform(operation) == ReadOnly(), operation
        assert durable_bytes(folder) == before
    assert store.perform(Load(session=S)) == Done()
    cancelled = store.perform(CancelCompaction(session=S, plan=PlanId("P8")))
    assert cancelled == Noop(reason=NoopReason.NO_SUCH_PLAN)
    digest = store.observe().store
    assert digest is not None
    store.observe_fresh()
    assert store.perform(Restart()) == Done()
    assert store.observe().store == digest
    assert durable_bytes(folder) == before


def test_a_fork_asks_its_target(store: SqliteSubject) -> None:
    """DMG-3: a target below damage is read-only, whoever asks; what comes before that in the order of answers stays before it."""
    inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("A4")))

    def fork(target: str, name: str) -> object:
        return store.perform(Fork(session=OTHER, target=NodeId(target), new_session=SessionId(name)))

    assert fork("A5", "S3") == ReadOnly()
    assert fork("A4", "S3") == ReadOnly()
    assert fork("A5", "S") == Refused(code=RefusalCode.KNOWN_ID)
    assert fork("nobody", "S3") == Refused(code=RefusalCode.UNKNOWN_NODE)
    assert fork("A2", "S3") == Done()
    assert store.perform(Append(session=SessionId("S3"), message=user("U9"))) == Done(written=(NodeId("U9"),))


def test_other_branches_go_on(store: SqliteSubject, twin: ModelSubject) -> None:
    """DMG-5: damage where the branches have parted leaves the other one as it was, and writable."""
    damage = (DamageKind.INVALID_MESSAGE, NodeId("U3"))
    before = view(store, OTHER)
    inflict(store, damage)
    inflict(twin, damage)
    assert view(store, OTHER) == before
    for operation in (
        Append(session=OTHER, message=user("V2")),
        Append(session=OTHER, message=assistant("W2")),
        BeginCompaction(session=OTHER, plan=PlanId("P9")),
        SetMetadata(session=OTHER, key="title", value="goes on"),
        Retry(session=OTHER),
        Restart(),
        Append(session=OTHER, message=assistant("W3")),
    ):
        assert store.perform(operation) == twin.perform(operation)
        assert seen(store) == seen(twin)


def test_a_projection_of_a_damaged_session_is_of_its_readable_part(store: SqliteSubject) -> None:
    """DMG-2: so is the content that a request would be made from."""
    inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("U3")))
    store.perform(Load(session=S))
    shown = view(store)
    assert shown.branch[0] == "A4"
    assert store.store.projection(S) == shown.projection
    content = store.store.content(S)
    assert content is not None
    assert content[0] is None
    assert [message.id for message in content[1]] == [item.node for item in shown.projection]


def test_an_open_place_above_the_part(folder: Path) -> None:
    """DMG-2: a checkpoint with nothing above it is followed by all messages of the part."""
    twin = ModelSubject()
    with store_in(folder) as store:
        for subject in (store, twin):
            history(subject)
            inflict(subject, (DamageKind.MISSING_PARENT, NodeId("checkpoint:P1")))
        assert seen(store) == seen(twin)
        shown = view(store)
        assert shown.checkpoint == shown.branch[0] == "checkpoint:P1"
        assert [item.node for item in shown.projection] == list(shown.branch)


def test_a_damaged_store_is_closed_without_tidying_up(store: SqliteSubject, folder: Path) -> None:
    """DMG-4: what another session wrote stays in the log when a process that saw damage ends."""
    inflict(store, (DamageKind.INVALID_MESSAGE, NodeId("U3")))
    assert store.perform(Append(session=OTHER, message=user("V2"))) == Done(written=(NodeId("V2"),))
    assert view(store).read_only
    before = durable_bytes(folder)
    assert any(name.endswith("-wal") for name in before)
    store.observe_fresh()
    assert store.perform(Restart()) == Done()
    assert durable_bytes(folder) == before
    assert view(store, OTHER).leaf == "V2"
