"""Operations on running answers, which the process owns: start, next request, end."""

import sqlite3

from tailmark.messages import AnswerEnd
from tailmark.operations import EndAnswer, NextRequest, StartAnswer
from tailmark.outcomes import Done, Outcome, RefusalCode, Refused
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.history import (
    UNKNOWN_SESSION,
    abandon_open_calls,
    calls_at_end,
    follows_otherwise,
    stale,
)
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import is_open_checkpoint, last_message, session_row
from tailmark_reference.store.requests import Work, above_the_limit

_UNSTABLE = Refused(code=RefusalCode.UNSTABLE)
_NO_ANSWER = Refused(code=RefusalCode.NO_ANSWER)


def start_answer(work: Work, operation: StartAnswer) -> Outcome:
    """An answer begins to run behind the session's leaf. Nothing durable changes."""
    connection, process = work.connection, work.process
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if process.running(session.id) is not None or calls_at_end(connection, session):
        return _UNSTABLE
    if last_message(connection, session) is None or is_open_checkpoint(
        connection, session.leaf, session.leaf_kind
    ):
        return Refused(code=RefusalCode.NO_QUESTION)
    if follows_otherwise(connection, session, operation.follows):
        return stale(session)
    if process.sent.get(session.id) != work.state(session):
        above = above_the_limit(work, session)
        if above is not None:
            return above
    process.start(session)
    return Done()


def next_request(work: Work, operation: NextRequest) -> Outcome:
    """The running answer asks the model again (PROJ-8). Above the safe limit it is over instead (TRG-15)."""
    session = session_row(work.connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if work.process.running(session.id) is None:
        return _NO_ANSWER
    if calls_at_end(work.connection, session):
        return _UNSTABLE
    above = above_the_limit(work, session)
    if above is None:
        return Done()
    work.process.end(session.id)
    return above


def must_abandon(connection: sqlite3.Connection, process: Process, operation: EndAnswer) -> bool:
    """Whether the end of this answer writes: it was cut short and left calls open."""
    session = session_row(connection, operation.session)
    return (
        operation.end is not AnswerEnd.FINAL
        and session is not None
        and process.running(session.id) is not None
        and bool(calls_at_end(connection, session))
    )


def end_answer(
    connection: sqlite3.Connection, process: Process, estimator: Estimator, operation: EndAnswer
) -> Outcome:
    """What the end of an answer writes. That it is over the process notes once this is durable."""
    session = session_row(connection, operation.session)
    if session is None:
        return UNKNOWN_SESSION
    if process.running(session.id) is None:
        return _NO_ANSWER
    if operation.end is AnswerEnd.FINAL:
        return Done()
    return abandon_open_calls(connection, estimator, session)
