"""One process at a store file: every operation, as one transaction or as one look at a snapshot."""

import sqlite3
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Self, TypeVar, assert_never

from attrs import evolve

from tailmark.budgets import Model
from tailmark.budgets import Settings as SessionSettings
from tailmark.declarations import Readings, TailReading
from tailmark.identifiers import SessionId
from tailmark.messages import AnswerEnd, Message
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
from tailmark.outcomes import (
    Cancelled,
    Committed,
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
    Sent,
    begun_plan,
)
from tailmark.plans import Checkpoint, Plan
from tailmark.projections import ProjectionItem
from tailmark.views import Observation
from tailmark_reference.estimate import ESTIMATOR, Estimator
from tailmark_reference.store.answers import end_answer, must_abandon, next_request, start_answer
from tailmark_reference.store.audits import Audits
from tailmark_reference.store.automatic import automatic_plan, set_sizes
from tailmark_reference.store.bodies import to_body
from tailmark_reference.store.commit import commit
from tailmark_reference.store.compaction import begin
from tailmark_reference.store.conditions import COMMIT_CONDITIONS, CommitConditions, CommitFacts
from tailmark_reference.store.connection import (
    WAIT_SECONDS,
    ConnectionFactory,
    Database,
    LockedError,
    answered,
    connect,
)
from tailmark_reference.store.evidence import store_digest, untouched
from tailmark_reference.store.export import export
from tailmark_reference.store.history import UNKNOWN_SESSION, abandon, append, save, settle
from tailmark_reference.store.observation import Look, observation, projected_content, projection
from tailmark_reference.store.opening import Settings
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import SessionRow, session_row
from tailmark_reference.store.requests import Notes, Work, edit, retry, send
from tailmark_reference.store.sizes import wrong_model, wrong_settings
from tailmark_reference.store.tips import MovedError, Tip, append_behind, may_go_behind, tip_of
from tailmark_reference.store.tree import fork, undo
from tailmark_reference.store.writing import insert_session, set_metadata

T = TypeVar("T")


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
        self._audits = Audits()
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
        return cls(path, settings.opened(path), settings)

    def close(self) -> None:
        """Give the file back. The store is not used afterwards."""
        with untouched(self._path) if self._audits.found_damage() else nullcontext():
            self._database.close()
        self._audits.close()

    def add_session(
        self,
        session: SessionId,
        model: Model,
        settings: SessionSettings = SessionSettings(),  # noqa: B008  # a frozen value
    ) -> Outcome:
        """Begin an empty session: `Done`, `refused(known-id)`, or `refused(settings)` for figures that cannot be."""
        wrong = wrong_model(model) or wrong_settings(model, settings)
        if wrong is not None:
            return Refused(code=RefusalCode.SETTINGS, wrong=wrong)

        def work(connection: sqlite3.Connection) -> Outcome:
            if session_row(connection, session) is not None:
                return Refused(code=RefusalCode.KNOWN_ID)
            insert_session(connection, session, None, to_body(model), to_body(settings))
            return Done()

        return answered(lambda: self._database.write(work))

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation and answer its outcome.

        An operation that finds the store held by another process for too long answers `failed(locked)`; one
        that writes to a file that cannot be written answers `read-only`. Raises `StoreError` where the
        disk or the file fails; then nothing changed.
        """
        return answered(lambda: self._perform(operation))

    def observe(self) -> Observation:
        """What this process sees now. Its cost grows with the whole store. Raises `StoreError`."""
        return self._seen_in(self._database, self._process, self._audits)

    def observe_fresh(self) -> Observation:
        """What another process sees that opens the same file now. Raises `StoreError`."""
        database, audits = self._settings.opened(self._path), Audits()
        try:
            return self._seen_in(database, Process(), audits)
        finally:
            database.close()
            audits.close()

    def _seen_in(self, database: Database, process: Process, audits: Audits) -> Observation:
        look = Look(process, audits, self._settings.estimator, self._settings.readings, database.read_only)
        seen = database.read(lambda connection: observation(connection, look))
        if not any(view.read_only for view in seen.sessions):
            return seen
        return evolve(seen, store=store_digest(self._path))

    def export(self, session: SessionId, path: Path) -> Outcome:
        """Write the readable part of a session to a new store, ids kept (DMG-7): `Done`, or `refused(unknown-session)`.

        Raises `StoreError`.
        """

        def look(connection: sqlite3.Connection, row: SessionRow) -> Outcome:
            export(connection, row, path)
            return Done()

        return self._looked_at(session, look) or UNKNOWN_SESSION

    def projection(self, session: SessionId) -> tuple[ProjectionItem, ...] | None:
        """What the next request carries, by digest; ``None`` for an unknown session. Raises `StoreError`."""
        return self._looked_at(session, projection, readable=True)

    def content(self, session: SessionId) -> tuple[Checkpoint | None, tuple[Message, ...]] | None:
        """What the next request carries: the checkpoint in force and the messages that stay verbatim.

        ``None`` for an unknown session. Raises `StoreError`.
        """
        return self._looked_at(session, projected_content, readable=True)

    def _looked_at(
        self,
        session: SessionId,
        look: Callable[[sqlite3.Connection, SessionRow], T],
        *,
        readable: bool = False,
    ) -> T | None:
        def work(connection: sqlite3.Connection) -> T | None:
            row = session_row(connection, session)
            if row is None:
                return None
            damaged = self._audits.known(session) if readable else None
            return look(connection, row) if damaged is None else look(*damaged.of_part(connection))

        return self._database.read(work)

    def _perform(self, operation: Operation) -> Outcome:
        read, write = self._database.read, self._database.write
        process, estimator = self._process, self._settings.estimator
        if self._is_refused(operation):
            return ReadOnly()
        match operation:
            case Append():
                return self._append(operation)
            case Save():
                return self._save(operation)
            case Settle():
                return write(lambda connection: settle(connection, estimator, operation))
            case Abandon():
                return write(lambda connection: abandon(connection, estimator, operation))
            case StartAnswer():
                return read(lambda connection: start_answer(self._work(connection, Notes()), operation))
            case NextRequest():
                return read(lambda connection: next_request(self._work(connection, Notes()), operation))
            case EndAnswer():
                return self._end_answer(operation)
            case BeginCompaction():
                return self._begin(operation)
            case Preview():
                plan = self._drawn(operation)
                return Previewed(plan=plan) if isinstance(plan, Plan) else plan
            case CommitCompaction():
                return self._commit(operation)
            case CancelCompaction():
                return self._cancel(operation)
            case Send():
                return self._request(lambda work: send(work, operation))
            case Retry():
                return self._request(lambda work: retry(work, operation))
            case Edit():
                return self._request(lambda work: edit(work, operation))
            case Fork():
                outcome = write(lambda connection: fork(connection, process, operation))
                if isinstance(outcome, Done):
                    self._audits.trust(operation.new_session)
                return outcome
            case Undo():
                outcome = write(lambda connection: undo(connection, process, operation))
                if isinstance(outcome, Done):
                    process.undone.add(operation.session)
                return outcome
            case SetModel() | SetSettings():
                return self._set_sizes(operation)
            case SetMetadata():
                return self._set_metadata(operation)
            case Load():
                return self._load(operation)
            case Restart():
                return self._restart()
            case InflictDamage():
                # A store does not damage itself; whoever tests it does so from outside.
                return (
                    Refused(code=RefusalCode.UNKNOWN_NODE)
                    if self._is_known(operation.session)
                    else UNKNOWN_SESSION
                )
            case _:
                assert_never(operation)

    def _is_refused(self, operation: Operation) -> bool:
        """Whether damage forbids it. The first operation on a session waits for its audit (DMG-1, DMG-3)."""
        if self._audits.is_allowed(operation):
            return False
        return self._database.read(lambda connection: self._audits.refuse(connection, operation))

    def _load(self, operation: Load) -> Outcome:
        self._audits.forget(operation.session)

        def look(connection: sqlite3.Connection, row: SessionRow) -> Outcome:
            self._audits.of(connection, row)
            return Done()

        return self._looked_at(operation.session, look) or UNKNOWN_SESSION

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
        if isinstance(outcome, Done) and outcome.written:
            self._process.own((operation.message,))
        if isinstance(outcome, Done) and seen is not None:
            self._tips[operation.session] = seen
        return outcome

    def _save(self, operation: Save) -> Outcome:
        outcome = self._database.write(
            lambda connection: save(connection, self._settings.estimator, operation)
        )
        if isinstance(outcome, Done):
            written = frozenset(outcome.written)
            self._process.own(
                node for node in operation.path if isinstance(node, Message) and node.id in written
            )
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
        notes = Notes()
        plan: Plan | None = None

        def work(connection: sqlite3.Connection) -> Outcome:
            nonlocal plan
            ended = end_answer(connection, process, estimator, operation)
            if isinstance(ended, Done) and operation.end is AnswerEnd.FINAL:
                plan = automatic_plan(self._work(connection, notes), operation.session, without_answer=True)
            return ended

        outcome = do(work)
        if not isinstance(outcome, Done):
            return outcome
        process.end(operation.session)
        return self._with_plan(outcome, plan, notes)

    def _with_plan(self, done: Done, plan: Plan | None, notes: Notes) -> Done:
        """An operation that is done, with the automatic compaction that begins behind it."""
        self._note(notes, plan)
        return done if plan is None else evolve(done, plan=plan)

    def _note(self, notes: Notes, plan: Plan | None) -> None:
        if plan is not None:
            self._process.begin_plan(plan)
        if notes.attempt is not None:
            session, state = notes.attempt
            self._process.attempts[session] = state
        if notes.sent is not None:
            session, state = notes.sent
            self._process.sent[session] = state

    def _work(self, connection: sqlite3.Connection, notes: Notes) -> Work:
        settings = self._settings
        return Work(connection, self._process, settings.estimator, settings.readings, notes)

    def _request(self, work: Callable[[Work], Outcome]) -> Outcome:
        """A request as one transaction; what the process remembers of it follows once it is durable."""
        notes = Notes()
        outcome = self._database.write(lambda connection: work(self._work(connection, notes)))
        self._note(notes, begun_plan(outcome))
        return outcome

    def _drawn(self, operation: BeginCompaction | Preview) -> Plan | Outcome:
        work = self._settings
        return self._database.read(
            lambda connection: begin(connection, self._process, work.estimator, work.readings, operation)
        )

    def _begin(self, operation: BeginCompaction) -> Outcome:
        if self._database.read_only:
            return ReadOnly()
        plan = self._drawn(operation)
        if not isinstance(plan, Plan):
            return plan
        self._process.begin_plan(plan)
        # The user asked, so an undo is forgotten (UNDO-3).
        self._process.undone.discard(plan.session)
        return Planned(plan=plan)

    def _commit(self, operation: CommitCompaction) -> Outcome:
        settings, plan = self._settings, operation.plan
        facts = CommitFacts(
            self._database.connection,
            self._process,
            settings.estimator,
            settings.readings,
            plan,
            operation.reply,
        )
        if not settings.conditions.not_cancelled(facts):
            # A plan is dropped for good, so the store need not be asked, nor waited for.
            return Cancelled()
        notes = Notes()
        try:
            outcome = self._database.write(
                lambda connection: commit(settings.conditions, self._work(connection, notes), facts)
            )
        except LockedError:
            outcome = Failed(reason=FailureReason.LOCKED)
        else:
            self._note(notes, None)
        attempt = outcome.attempt if isinstance(outcome, Sent) else outcome
        if isinstance(attempt, Committed):
            self._process.undone.discard(plan.session)
        # Every answer spends the plan; that of a session or plan unknown here has none to spend.
        self._process.spend_plan(plan.session, plan.id)
        return outcome

    def _cancel(self, operation: CancelCompaction) -> Outcome:
        if not self._is_known(operation.session):
            return UNKNOWN_SESSION
        if self._process.cancel_plan(operation.session, operation.plan):
            return Cancelled()
        return Noop(reason=NoopReason.NO_SUCH_PLAN)

    def _set_sizes(self, operation: SetModel | SetSettings) -> Outcome:
        notes = Notes()
        plan: Plan | None = None

        def work(connection: sqlite3.Connection) -> Outcome:
            nonlocal plan
            outcome, plan = set_sizes(self._work(connection, notes), operation)
            return outcome

        outcome = self._database.write(work)
        return self._with_plan(outcome, plan, notes) if isinstance(outcome, Done) else outcome

    def _set_metadata(self, operation: SetMetadata) -> Outcome:
        def work(connection: sqlite3.Connection) -> Outcome:
            session = session_row(connection, operation.session)
            if session is None:
                return UNKNOWN_SESSION
            set_metadata(connection, session, operation.key, operation.value)
            return Done()

        return self._database.write(work)

    def _restart(self) -> Outcome:
        """Nothing of the process survives; the connection is made anew, as after its death."""
        self._process = Process()
        self._tips.clear()
        self.close()
        self._database = self._settings.opened(self._path)
        return Done()
