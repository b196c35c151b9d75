"""A subject whose exceptions are told apart from those of the suite."""

from collections.abc import Callable
from typing import TypeVar, get_args

from tailmark.budgets import Model, Settings
from tailmark.declarations import Declaration
from tailmark.identifiers import SessionId
from tailmark.json_form import JsonFormError, unstructure
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.subjects import Subject
from tailmark.traces import Step
from tailmark.views import Change, Observation
from tailmark_conformance.subjects.failures import SchemaError, WireError

T = TypeVar("T")

_OUTCOMES: tuple[type, ...] = get_args(Outcome)


class SubjectError(Exception):
    """The subject raised where it must answer, gave no answer, or answered what is no value of the vocabulary.

    ``name`` tells kinds of it apart: the exception's type, or the type of the answer. ``cause`` is what a subject in another
    process failed with.
    """

    def __init__(self, text: str, name: str, cause: WireError | None = None) -> None:
        super().__init__(text)
        self.name = name
        self.cause = cause


class GuardedSubject:
    """Passes everything on; an exception of the subject comes out as `SubjectError`."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def declaration(self) -> Declaration:
        """As the subject says."""
        return self._subject.declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """As `Subject.reset`."""
        _guarded("reset", lambda: self._subject.reset(sessions, model, settings))

    def perform(self, operation: Operation) -> Outcome:
        """As `Subject.perform`."""
        outcome = _guarded(operation.kind, lambda: self._subject.perform(operation))
        return _of_type(operation.kind, outcome, _OUTCOMES)

    def observe(self) -> Observation:
        """As `Subject.observe`."""
        return _of_type("observe", _guarded("observe", self._subject.observe), (Observation,))

    def observe_fresh(self) -> Observation:
        """As `Subject.observe_fresh`."""
        where = "observe in a fresh process"
        return _of_type(where, _guarded(where, self._subject.observe_fresh), (Observation,))

    def close(self) -> None:
        """As `Subject.close`."""
        self._subject.close()


def _guarded(where: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except SchemaError:
        # The suite's own line is wrong.
        raise
    except WireError as error:
        raise SubjectError(f"{where}: {error}", type(error).__name__, error) from error
    except Exception as error:
        # Whatever a subject raises is its own fault, never the suite's.
        name = type(error).__name__
        raise SubjectError(f"{where} raised {name}: {error}", name) from error


def _of_type(where: str, value: T, types: tuple[type, ...]) -> T:
    if not isinstance(value, types):
        expected = "an outcome" if types is _OUTCOMES else "an observation"
        name = type(value).__name__
        raise SubjectError(f"{where} answered a value of type {name}, which is not {expected}", name)
    return value


def fault_of(where: str, shown: Step | Change) -> SubjectError | None:
    """What in a step or change is no value of the vocabulary, such as a list where a tuple belongs; ``None`` if nothing."""
    try:
        unstructure(shown)
    except JsonFormError as error:
        problem = error.problems[0]
        place = problem.path.removeprefix("$.")
        return SubjectError(f"{where}: in {place}: {problem.text}", "JsonFormError")
    return None
