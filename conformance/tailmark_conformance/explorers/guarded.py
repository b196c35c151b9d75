"""A subject whose exceptions are told apart from those of the suite."""

from collections.abc import Callable
from typing import TypeVar

from tailmark.declarations import Declaration
from tailmark.identifiers import SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.plans import Model
from tailmark.subjects import Subject
from tailmark.views import Observation

T = TypeVar("T")


class SubjectError(Exception):
    """The subject raised where it must answer. ``name`` is the exception's type."""

    def __init__(self, where: str, cause: Exception) -> None:
        super().__init__(f"{where} raised {type(cause).__name__}: {cause}")
        self.name = type(cause).__name__


class GuardedSubject:
    """Passes everything on; an exception of the subject comes out as `SubjectError`."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def declaration(self) -> Declaration:
        """As the subject says."""
        return self._subject.declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model) -> None:
        """As `Subject.reset`."""
        _guarded("reset", lambda: self._subject.reset(sessions, model))

    def perform(self, operation: Operation) -> Outcome:
        """As `Subject.perform`."""
        return _guarded(operation.kind, lambda: self._subject.perform(operation))

    def observe(self) -> Observation:
        """As `Subject.observe`."""
        return _guarded("observe", self._subject.observe)

    def observe_fresh(self) -> Observation:
        """As `Subject.observe_fresh`."""
        return _guarded("observe in a fresh process", self._subject.observe_fresh)

    def close(self) -> None:
        """As `Subject.close`."""
        self._subject.close()


def _guarded(where: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except Exception as error:
        # Whatever a subject raises is its own fault, never the suite's.
        raise SubjectError(where, error) from error
