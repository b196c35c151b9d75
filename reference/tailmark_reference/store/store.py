"""One process at a store file: every operation, as one transaction or as one look at a snapshot."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar, assert_never

from attrs import frozen

from tailmark.budgets import Model
from tailmark.declarations import Readings, TailReading
from tailmark.identifiers import SessionId
from tailmark.messages import Message
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
    SetMetadata,
    SetModel,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Cancelled,
    Done,
    Failed,
    FailureReason,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    Previewed,
    ReadOnly,
    RefusalCode,
    Refused,
)
from tailmark.plans import Checkpoint, Plan
from tailmark.projections import ProjectionItem
from tailmark.views import Observation
from tailmark_reference.estimate import ESTIMATOR, Estimator
from tailmark_reference.store.answers import end_answer, must_abandon, next_request, start_answer
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.commit import COMMIT_CONDITIONS, CommitConditions, CommitFacts, commit
from tailmark_reference.store.compaction import begin
from tailmark_reference.store.connection import (
    WAIT_SECONDS,
    ConnectionFactory,
    Database,
    LockedError,
    UnwritableError,
    connect,
    open_database,
)
from tailmark_reference.store.history import UNKNOWN_SESSION, abandon, append, save, settle
from tailmark_reference.store.observation import observation, projected_content, projection
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import SessionRow, session_row
from tailmark_reference.store.tips import MovedError, Tip, append_behind, may_go_behind, tip_of
from tailmark_reference.store.tree import edit, fork, retry, undo
from tailmark_reference.store.writing import insert_session, set_metadata, set_model

T = TypeVar("T")


@frozen(kw_only=True)
class Settings:
    """How a store is opened, and which of the replaceable parts it works with.

    ``wait_seconds``: how long an operation waits for another process before it answers `failed(locked)`.
    """

    connection_factory: ConnectionFactory = connect
    wait_seconds: float = WAIT_SECONDS
    estimator: Estimator = ESTIMATOR
    readings: Readings = Readings()
    conditions: CommitConditions = COMMIT_CONDITIONS


class Store:
    """A process at a store file. Sessions and nodes are durable; running answers and plans are this object's.

    It is used by one thread. Several processes, or several `Store` objects, may share a file. Text with a
    lone surrogate has no JSON form and raises `tailmark.json_form.JsonFormError` or ``UnicodeEncodeError``
    before anything is written.
    """

    def __init__(self, path: Path, database: Database, settings: Settings) -> None:
        self._path = path
        self._database = database
        self._settings = settings
        self._process = Process()
        # How branches ended when this process last appended to them. No more than a hint.
        self._tips: dict[SessionId, Tip] = {}

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        connection_factory: ConnectionFactory = connect,
        wait_seconds: float = WAIT_SECONDS,
        estimator: Estimator = ESTIMATOR,
        readings: Readings = Readings(),  # noqa: B008  # a frozen value
        conditions: CommitConditions = COMMIT_CONDITIONS,
    ) -> Self:
        """Open the store at ``path``, or make an empty one where no file is.

        Raises `StoreError` with one clear line, and ``ValueError`` for a reading that the store does not have.
        """
        if readings.tail is not TailReading.KEEPS_TURNS:
            raise ValueError(f"the store keeps turns; the reading {readings.tail} is not its own")
        settings = Settings(
            connection_factory=connection_factory,
            wait_seconds=wait_seconds,
            estimator=estimator,
            readings=readings,
            conditions=conditions,
        )
        return cls(path, cls._connected(path, settings), settings)

    @staticmethod
    def _connected(path: Path, settings: Settings) -> Database:
        return open_database(
            path, connection_factory=settings.connection_factory, wait_seconds=settings.wait_seconds
        )

    def close(self) -> None:
        """Give the file back. The store is not used afterwards."""
        self._database.close()

    def add_session(self, session: SessionId, model: Model) -> Outcome:
        """Begin an empty session: `Done`, or `refused(known-id)`."""

        def work(connection: sqlite3.Connection) -> Outcome:
            if session_row(connection, session) is not None:
                return Refused(code=RefusalCode.KNOWN_ID)
            insert_session(connection, session, None, to_body(model))
            return Done()

        try:
            return self._database.write(work)
        except LockedError:
            return Failed(reason=FailureReason.LOCKED)
        except UnwritableError:
            return ReadOnly()

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation and answer its outcome.

        An operation that finds the store held by another process for too long answers `failed(locked)`; one
        that writes to a file that cannot be written answers `read-only`. Raises `StoreError` where the
        disk or the file fails; then nothing changed.
        """
        try:
            return self._perform(operation)
        except LockedError:
            return Failed(reason=FailureReason.LOCKED)
        except UnwritableError:
            return ReadOnly()

    def observe(self) -> Observation:
        """What this process sees now. Its cost grows with the whole store. Raises `StoreError`."""
        return self._database.read(lambda connection: observation(connection, self._process))

    def observe_fresh(self) -> Observation:
        """What another process sees that opens the same file now. Raises `StoreError`."""
        database = self._connected(self._path, self._settings)
        try:
            return database.read(lambda connection: observation(connection, Process()))
        finally:
            database.close()

    def projection(self, session: SessionId) -> tuple[ProjectionItem, ...] | None:
        """What the next request carries, by digest; ``None`` for an unknown session. Raises `StoreError`."""
        return self._looked_at(session, projection)

    def content(self, session: SessionId) -> tuple[Checkpoint | None, tuple[Message, ...]] | None:
        """What the next request carries: the checkpoint in force and the messages that stay verbatim.

        ``None`` for an unknown session. Raises `StoreError`.
        """
        return self._looked_at(session, projected_content)

    def _looked_at(self, session: SessionId, look: Callable[[sqlite3.Connection, SessionRow], T]) -> T | None:
        def work(connection: sqlite3.Connection) -> T | None:
            row = session_row(connection, session)
            return None if row is None else look(connection, row)

        return self._database.read(work)

    def _perform(self, operation: Operation) -> Outcome:
        read, write = self._database.read, self._database.write
        process, estimator = self._process, self._settings.estimator
        match operation:
            case Append():
                return self._append(operation)
            case Save():
                return write(lambda connection: save(connection, estimator, operation))
            case Settle():
                return write(lambda connection: settle(connection, estimator, operation))
            case Abandon():
                return write(lambda connection: abandon(connection, estimator, operation))
            case StartAnswer():
                return read(lambda connection: start_answer(connection, process, operation))
            case NextRequest():
                return read(lambda connection: next_request(connection, process, operation))
            case EndAnswer():
                return self._end_answer(operation)
            case BeginCompaction():
                return self._begin(operation)
            case Preview():
                plan = read(lambda connection: begin(connection, process, self._settings.readings, operation))
                return Previewed(plan=plan) if isinstance(plan, Plan) else plan
            case CommitCompaction():
                return self._commit(operation)
            case CancelCompaction():
                return self._cancel(operation)
            case Retry():
                return write(lambda connection: retry(connection, process, operation))
            case Edit():
                return write(lambda connection: edit(connection, process, estimator, operation))
            case Fork():
                return write(lambda connection: fork(connection, process, operation))
            case Undo():
                return write(lambda connection: undo(connection, process, operation))
            case SetModel() | SetMetadata():
                return self._set(operation)
            case Load():
                return Done() if self._is_known(operation.session) else UNKNOWN_SESSION
            case Restart():
                return self._restart()
            case _:
                assert_never(operation)

    def _append(self, operation: Append) -> Outcome:
        tip = self._tips.pop(operation.session, None)
        if tip is not None and may_go_behind(tip, operation):
            try:
                return self._append_behind(tip, operation)
            except MovedError:
                pass  # the long way finds out how
        seen: Tip | None = None

        def work(connection: sqlite3.Connection) -> Outcome:
            nonlocal seen
            outcome = append(connection, self._settings.estimator, operation)
            session = session_row(connection, operation.session)
            seen = None if session is None else tip_of(session)
            return outcome

        outcome = self._database.write(work)
        # Not before all of it is durable.
        if isinstance(outcome, Done) and seen is not None:
            self._tips[operation.session] = seen
        return outcome

    def _append_behind(self, tip: Tip, operation: Append) -> Outcome:
        seen = tip

        def work(connection: sqlite3.Connection) -> Outcome:
            nonlocal seen
            seen = append_behind(connection, self._settings.estimator, tip, operation.message)
            return Done(written=(operation.message.id,))

        outcome = self._database.write(work)
        self._tips[operation.session] = seen
        return outcome

    def _is_known(self, session: SessionId) -> bool:
        return self._looked_at(session, lambda _, row: row) is not None

    def _end_answer(self, operation: EndAnswer) -> Outcome:
        process, estimator = self._process, self._settings.estimator
        writes = self._database.read(lambda connection: must_abandon(connection, process, operation))
        do = self._database.write if writes else self._database.read
        outcome = do(lambda connection: end_answer(connection, process, estimator, operation))
        if isinstance(outcome, Done):
            process.end(operation.session)
        return outcome

    def _begin(self, operation: BeginCompaction) -> Outcome:
        if self._database.read_only:
            return ReadOnly()
        readings = self._settings.readings
        plan = self._database.read(lambda connection: begin(connection, self._process, readings, operation))
        if not isinstance(plan, Plan):
            return plan
        self._process.begin_plan(plan.session, plan.id)
        return Planned(plan=plan)

    def _commit(self, operation: CommitCompaction) -> Outcome:
        settings, plan = self._settings, operation.plan
        facts = CommitFacts(
            self._database.connection, self._process, settings.readings, plan, operation.reply
        )
        if not settings.conditions.not_cancelled(facts):
            # A plan is dropped for good, so the store need not be asked, nor waited for.
            return Cancelled()
        try:
            outcome = self._database.write(lambda _: commit(settings.conditions, settings.estimator, facts))
        except LockedError:
            outcome = Failed(reason=FailureReason.LOCKED)
        # Every answer spends the plan; that of a session or plan unknown here has none to spend.
        self._process.spend_plan(plan.session, plan.id)
        return outcome

    def _cancel(self, operation: CancelCompaction) -> Outcome:
        if not self._is_known(operation.session):
            return UNKNOWN_SESSION
        if self._process.cancel_plan(operation.session, operation.plan):
            return Cancelled()
        return Noop(reason=NoopReason.NO_SUCH_PLAN)

    def _set(self, operation: SetModel | SetMetadata) -> Outcome:
        def work(connection: sqlite3.Connection) -> Outcome:
            session = session_row(connection, operation.session)
            if session is None:
                return UNKNOWN_SESSION
            if isinstance(operation, SetModel):
                set_model(connection, session, to_body(operation.model))
            else:
                set_metadata(connection, session, operation.key, operation.value)
            return Done()

        return self._database.write(work)

    def _restart(self) -> Outcome:
        """Nothing of the process survives; the connection is made anew, as after its death."""
        self._process = Process()
        self._tips.clear()
        self._database.close()
        self._database = self._connected(self._path, self._settings)
        return Done()
