"""Several processes at one store file: nothing is lost, nobody waits for ever."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from store_builders import (
    MODEL,
    REPLY,
    S1,
    add,
    answer,
    begin,
    call,
    compact,
    do,
    long,
    needs_room,
    new_store,
    on_small_model,
    result,
    text,
    tool,
    user,
    view,
)
from tailmark.budgets import Settings
from tailmark.identifiers import NodeId, PlanId, Revision, SessionId
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
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    FailureReason,
    Planned,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
)
from tailmark_reference.store.connection import LockedError, StoreError
from tailmark_reference.store.store import Store

LOCKED: Final = Failed(reason=FailureReason.LOCKED)


@contextmanager
def two(path: Path) -> Iterator[tuple[Store, Store]]:
    """Two processes at one new store with two turns."""
    first = new_store(path)
    add(first, user("U1"), answer("A1"), user("U2"), answer("A2"))
    second = Store.open(path)
    yield first, second
    first.close()
    second.close()


def test_what_one_writes_the_other_sees(tmp_path: Path) -> None:
    """Views come from the file, whoever wrote it."""
    with two(tmp_path / "store.sqlite") as (first, second):
        add(second, user("U3"))
        add(first, answer("A3"))
        assert first.observe() == second.observe() == first.observe_fresh()
        assert view(first).branch == ("U1", "A1", "U2", "A2", "U3", "A3")


def test_an_append_finds_the_end_of_a_branch_that_moved(tmp_path: Path) -> None:
    """Whatever a process remembers of a branch: what another one did to it since is what counts."""
    path = tmp_path / "store.sqlite"
    with two(path) as (first, second):
        add(first, user("U3"))
        do(second, Retry(session=S1))
        add(second, answer("A3"))
        add(first, user("U4"))
        assert view(first).branch == ("U1", "A1", "U2", "A2", "U3", "A3", "U4")
        add(second, answer("A4", call("open")))
        again = Append(session=S1, message=answer("A5", call("open")))
        assert first.perform(again) == Refused(code=RefusalCode.CALL_ID)
        add(second, tool("T4", result("open")))
        do(second, Edit(session=S1, target=NodeId("U4"), message=user("U5")))
        stale = Append(session=S1, message=user("U6"), follows=NodeId("U4"))
        assert first.perform(stale) == Stale(leaf=NodeId("U5"), revision=view(second).revision)
        add(first, answer("A5"))
        assert view(first).branch[-2:] == ("U5", "A5")
        compact(second)
        add(first, user("U7"))
        seen = view(first)
        assert seen.branch[-3:] == ("A5", "checkpoint:P1", "U7")
        assert [item.node for item in seen.projection] == ["checkpoint:P1", "U5", "A5", "U7"]


def test_a_known_id_is_found_behind_a_remembered_end(tmp_path: Path) -> None:
    """TREE-6, TREE-10: also by a process that appended just before, and whoever wrote the id."""
    with two(tmp_path / "store.sqlite") as (first, second):
        add(first, user("U3"))
        assert second.add_session(SessionId("S2"), MODEL) == Done()
        do(second, Append(session=SessionId("S2"), message=user("other")))
        before = first.observe()
        assert first.perform(Append(session=S1, message=user("U3"))) == Done()
        for message in (answer("U3"), user("other"), answer("A1", text("another"))):
            assert first.perform(Append(session=S1, message=message)) == Refused(code=RefusalCode.KNOWN_ID)
        assert first.observe() == before
        add(first, answer("A3"))


def test_a_compaction_loses_against_another_process(tmp_path: Path) -> None:
    """CMT-10."""
    with two(tmp_path / "store.sqlite") as (first, second):
        plan = begin(first)
        add(second, user("U3"))
        outcome = first.perform(CommitCompaction(plan=plan, reply=REPLY))
        assert outcome == Stale(leaf=NodeId("U3"), revision=view(second).revision)


def test_of_two_compactions_one_commits(tmp_path: Path) -> None:
    """CMT-9, over processes; and a plan is known to the one that began it alone."""
    with two(tmp_path / "store.sqlite") as (first, second):
        plans = begin(first), begin(second)
        assert plans[0] == plans[1]
        third = Store.open(tmp_path / "store.sqlite")
        assert third.perform(CommitCompaction(plan=plans[0], reply=REPLY)) == Refused(code=RefusalCode.PLAN)
        third.close()
        assert isinstance(first.perform(CommitCompaction(plan=plans[0], reply=REPLY)), Committed)
        assert isinstance(second.perform(CommitCompaction(plan=plans[1], reply=REPLY)), Stale)


def test_an_answer_is_its_process_own(tmp_path: Path) -> None:
    """Another process sees nothing run, and what it began stays its own over the other's restart."""
    with two(tmp_path / "store.sqlite") as (first, second):
        do(first, StartAnswer(session=S1))
        assert isinstance(first.perform(BeginCompaction(session=S1, plan=PlanId("P"))), Skipped)
        assert view(second).running is None
        do(second, Restart())
        assert view(first).running is not None
        do(first, Restart())
        assert view(first).running is None
        assert isinstance(first.perform(BeginCompaction(session=S1, plan=PlanId("P"))), Planned)


def _draft(node: str) -> Send:
    """Behind two turns on the small model it fits with a compaction only."""
    return Send(session=S1, message=long(node, 66))


def test_of_two_requests_that_need_room_one_is_sent(tmp_path: Path) -> None:
    """TRG-9, CMT-10, over processes: nothing of the other is durable, and it can ask again."""
    with two(tmp_path / "store.sqlite") as (first, second):
        on_small_model(first)
        revision = view(first).revision
        plans = needs_room(first, _draft("U3")), needs_room(second, _draft("U4"))
        assert plans[0].id == plans[1].id
        assert view(first).revision == revision
        outcome = first.perform(CommitCompaction(plan=plans[0], reply=REPLY))
        assert isinstance(outcome, Sent)
        assert outcome.written == (f"checkpoint:{plans[0].id}", "U3")
        late = second.perform(CommitCompaction(plan=plans[1], reply=REPLY))
        assert late == Stale(leaf=NodeId("U3"), revision=Revision(revision + 1))
        seen = view(second)
        assert seen.branch == ("U1", "A1", "U2", "A2", *outcome.written)
        assert seen.revision == revision + 1
        again = needs_room(second, Send(session=S1, message=user("U4")))
        assert again.previous_checkpoint == outcome.written[0]


def test_a_plan_for_another_draft_of_the_same_name(tmp_path: Path) -> None:
    """CMT-4: both processes know a plan of this name, each for its own draft."""
    with two(tmp_path / "store.sqlite") as (first, second):
        on_small_model(first)
        plans = needs_room(first, _draft("U3")), needs_room(second, _draft("U4"))
        before = first.observe()
        for store, plan in ((first, plans[1]), (second, plans[0])):
            assert store.perform(CommitCompaction(plan=plan, reply=REPLY)) == Refused(code=RefusalCode.PLAN)
        assert first.observe() == before


def test_a_draft_whose_id_another_process_took(tmp_path: Path) -> None:
    """TREE-10: on another session, so that the plan is not stale."""
    with two(tmp_path / "store.sqlite") as (first, second):
        on_small_model(first)
        plan = needs_room(first, _draft("U3"))
        assert second.add_session(SessionId("S2"), MODEL) == Done()
        do(second, Append(session=SessionId("S2"), message=user("U3")))
        before = first.observe()
        outcome = first.perform(CommitCompaction(plan=plan, reply=REPLY))
        assert outcome == Refused(code=RefusalCode.KNOWN_ID)
        assert first.observe() == before


def test_open_calls_are_owned_by_the_process_that_stored_them(tmp_path: Path) -> None:
    """TRG-14: to that one a draft is steering; another one takes its owner for dead."""
    with two(tmp_path / "store.sqlite") as (first, second):
        add(first, user("U3"), answer("A3", call("a"), call("b")))
        assert first.perform(Send(session=S1, message=user("U4"))) == Done(written=(NodeId("U4"),))
        outcome = second.perform(Send(session=S1, message=user("U5")))
        assert isinstance(outcome, Sent)
        assert outcome.abandoned == ("a", "b")
        assert outcome.written == ("U5",)
        assert view(first).open_calls == ()
        assert view(first).branch[-3:] == ("A3", "U4", "U5")


def test_an_attempt_is_remembered_by_its_process_alone(tmp_path: Path) -> None:
    """TRG-6: what one gave up below the safe limit another tries, while the first one sends."""
    with two(tmp_path / "store.sqlite") as (first, second):
        add(first, long("U3", 20), answer("A3"), user("U4"), answer("A4"))
        on_small_model(first)
        draft = Send(session=S1, message=user("U5"))
        plan = needs_room(first, draft)
        assert first.perform(CancelCompaction(session=S1, plan=plan.id)) == Cancelled()
        assert needs_room(second, draft) == plan
        outcome = first.perform(draft)
        assert isinstance(outcome, Sent)
        assert outcome.written == ("U5",)


_MANY: Final = 40

_WRITER: Final = """
import sys
from pathlib import Path

from store_builders import MODEL, S1, user
from tailmark.budgets import Settings
from tailmark.identifiers import SessionId
from tailmark.operations import Append
from tailmark.outcomes import Done
from tailmark_reference.store.store import Store

name, count = sys.argv[2], int(sys.argv[3])
store = Store.open(Path(sys.argv[1]), wait_seconds=600)
own = SessionId(name)
assert store.add_session(own, MODEL) == Done()
store.add_session(S1, MODEL)
for number in range(count):
    for session, node in ((S1, f"{name}:shared:{number}"), (own, f"{name}:own:{number}")):
        outcome = store.perform(Append(session=session, message=user(node)))
        assert outcome == Done(written=(node,)), outcome
store.close()
"""


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    """Also the making of the file: every message is there once, in its process' order, and every change is counted."""
    path = tmp_path / "store.sqlite"
    running = [
        subprocess.Popen(  # noqa: S603  # this file's own program
            [sys.executable, "-c", _WRITER, str(path), name, str(_MANY)],
            cwd=Path(__file__).parent,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("first", "second")
    ]
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    store = Store.open(path)
    views = {one.session: one for one in store.observe().sessions}
    store.close()
    shared = views[S1]
    assert shared.revision == len(shared.branch) == 2 * _MANY
    for name in ("first", "second"):
        own = views[SessionId(name)]
        assert own.branch == tuple(f"{name}:own:{number}" for number in range(_MANY))
        assert own.revision == _MANY
        kept = tuple(node for node in shared.branch if node.startswith(name))
        assert kept == tuple(f"{name}:shared:{number}" for number in range(_MANY))


@contextmanager
def held(path: Path, *, exclusive: bool = False) -> Iterator[None]:
    """Another process writes, or keeps everybody out."""
    connection = sqlite3.connect(path, isolation_level=None)
    if exclusive:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE session SET model = model")
    yield
    connection.execute("ROLLBACK")
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a checkpoint, a turn behind it and an open call."""
    path = tmp_path / "store.sqlite"
    store = new_store(path)
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    compact(store)
    add(store, user("U3"), answer("A3", call("open")))
    store.close()
    return path


_WRITES: Final[tuple[Operation, ...]] = (
    Append(session=S1, message=user("U9")),
    Save(session=S1, path=(user("U1"),)),
    Settle(session=S1, message=NodeId("A3"), result=result("open")),
    Abandon(session=S1),
    Send(session=S1, message=user("U9")),
    Retry(session=S1),
    Edit(session=S1, target=NodeId("U3"), message=user("U9")),
    Fork(session=S1, target=NodeId("A1"), new_session=SessionId("S2")),
    Undo(session=S1),
    SetModel(session=S1, model=MODEL),
    SetSettings(session=S1, settings=Settings()),
    SetMetadata(session=S1, key="title", value="new"),
)

_READS: Final[tuple[Operation, ...]] = (
    StartAnswer(session=S1),
    NextRequest(session=S1),
    EndAnswer(session=S1, end=AnswerEnd.FINAL),
    BeginCompaction(session=S1, plan=PlanId("P9")),
    Preview(session=S1, plan=PlanId("P9")),
    CancelCompaction(session=S1, plan=PlanId("P9")),
    Load(session=S1),
)


@pytest.mark.parametrize("operation", _WRITES, ids=lambda one: one.kind)
def test_a_held_store_is_told_after_the_wait(path: Path, operation: Operation) -> None:
    """Every writer answers `failed(locked)`, changes nothing, and works as soon as the store is free."""
    store = Store.open(path, wait_seconds=0)
    before = store.observe()
    with held(path):
        assert store.perform(operation) == LOCKED
        assert store.add_session(SessionId("S3"), MODEL) == LOCKED
        assert store.observe() == before
    assert store.perform(operation) != LOCKED
    store.close()


@pytest.mark.parametrize("operation", _READS, ids=lambda one: one.kind)
def test_readers_do_not_wait_for_a_writer(path: Path, operation: Operation) -> None:
    """What writes nothing is answered while another process writes."""
    store = Store.open(path, wait_seconds=0)
    with held(path):
        assert store.perform(operation) != LOCKED
    store.close()


def test_a_store_that_nobody_may_enter(tmp_path: Path) -> None:
    """Opening is one clear line after the wait."""
    path = tmp_path / "store.sqlite"
    new_store(path).close()
    with (
        held(path, exclusive=True),
        pytest.raises(StoreError, match=r"store\.sqlite: another process held the store for 0 seconds$"),
    ):
        Store.open(path, wait_seconds=0)


def test_reads_of_a_store_that_nobody_may_enter(path: Path) -> None:
    """An operation answers `failed(locked)`; a look has no outcome and raises."""
    store = Store.open(path, wait_seconds=0, connection_factory=_reluctant)
    for operation in _READS:
        assert store.perform(operation) == LOCKED
    with pytest.raises(LockedError):
        store.observe()
    store.close()


def _reluctant(uri: str) -> sqlite3.Connection:
    """A connection that is in the way of another process whenever it begins to read."""

    class Reluctant(sqlite3.Connection):
        @override
        def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
            if sql == "BEGIN":
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            # Any of sqlite3's own parameter types; the store's are right or fail here.
            return super().execute(sql, parameters)  # type: ignore[arg-type]  # as said above

    return sqlite3.connect(uri, uri=True, isolation_level=None, factory=Reluctant)


def test_a_commit_that_waited_in_vain_spends_its_plan(tmp_path: Path) -> None:
    """OUT-3: the summary is dropped, a cancelled plan needs no store, and a new plan commits."""
    path = tmp_path / "store.sqlite"
    new_store(path).close()
    store = Store.open(path, wait_seconds=0)
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    plan, dropped = begin(store), begin(store, "P2")
    do_cancel = CancelCompaction(session=S1, plan=dropped.id)
    assert store.perform(do_cancel) == Cancelled()
    with held(path):
        assert store.perform(CommitCompaction(plan=plan, reply=REPLY)) == LOCKED
        assert store.perform(CommitCompaction(plan=dropped, reply=REPLY)) == Cancelled()
    assert store.perform(CommitCompaction(plan=plan, reply=REPLY)) == Refused(code=RefusalCode.SPENT)
    compact(store, "P3")
    store.close()


def test_a_request_that_waited_in_vain_is_not_sent(tmp_path: Path) -> None:
    """TRG-9: neither draft nor checkpoint, its plan is spent, and the draft can be sent again."""
    path = tmp_path / "store.sqlite"
    new_store(path).close()
    store = Store.open(path, wait_seconds=0)
    on_small_model(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    plan = needs_room(store, _draft("U3"))
    before = store.observe()
    with held(path):
        assert store.perform(CommitCompaction(plan=plan, reply=REPLY)) == LOCKED
    assert store.observe() == before
    again = needs_room(store, _draft("U3"))
    assert again.id != plan.id
    do(store, CommitCompaction(plan=again, reply=REPLY))
    assert view(store).leaf == "U3"
    store.close()


def test_an_answer_that_could_not_be_ended_goes_on(path: Path) -> None:
    """Its open calls could not be settled, so it is not over."""
    store = Store.open(path, wait_seconds=0)
    do(store, Abandon(session=S1), StartAnswer(session=S1))
    add(store, answer("A4", call("late")))
    end = EndAnswer(session=S1, end=AnswerEnd.FAILED)
    with held(path):
        assert store.perform(end) == LOCKED
    assert view(store).running is not None
    assert store.perform(end) == Done(abandoned=(call("late").call,))
    assert view(store).running is None
    store.close()


def test_a_waiting_writer_has_its_turn(path: Path) -> None:
    """The store is freed while it waits: here by the connection that finds it held."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    refused = 0

    class Waiting(sqlite3.Connection):
        @override
        def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
            nonlocal refused
            try:
                # Any of sqlite3's own parameter types; the store's are right or fail here.
                return super().execute(sql, parameters)  # type: ignore[arg-type]  # as said above
            except sqlite3.OperationalError:
                refused += 1
                if refused == 2:
                    holder.execute("ROLLBACK")
                raise

    store = Store.open(
        path,
        wait_seconds=600,
        connection_factory=lambda uri: sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=0, factory=Waiting
        ),
    )
    assert store.perform(Append(session=S1, message=user("U9"))) == Done(written=(NodeId("U9"),))
    assert refused == 2
    store.close()
    holder.close()
