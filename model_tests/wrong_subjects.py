"""Subjects that are wrong on purpose, by names that a target can have."""

from collections.abc import Callable
from itertools import count
from typing import NoReturn

from attrs import evolve

from tailmark.declarations import Declaration
from tailmark.identifiers import Revision, SessionId
from tailmark.operations import Operation, Undo
from tailmark.outcomes import Outcome
from tailmark.plans import Model
from tailmark.views import Observation
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.subject import ModelSubject

NO_CALLABLE = "a text"

_ASKED = count()


def right() -> ModelSubject:
    """The model as it is."""
    return ModelSubject()


def _two_more(revision: Revision, writes: int) -> Revision:
    return Revision(revision + 2 * min(writes, 1))


def counts_twice() -> ModelSubject:
    """Adds two to the revision (CMT-6)."""
    return ModelSubject(evolve(RULES, revision_after=_two_more))


def forgets_revision() -> ModelSubject:
    """Commits on the same leaf with another revision (CMT-2)."""
    return ModelSubject(evolve(RULES, same_revision=lambda session, plan: True))  # noqa: ARG005  # the type of the rule


def counts_twice_and_forgets() -> ModelSubject:
    """Two faults at once."""
    return ModelSubject(
        evolve(
            RULES,
            revision_after=_two_more,
            same_revision=lambda session, plan: True,  # noqa: ARG005  # the type of the rule
        )
    )


class _Raising:
    """The model, but that it raises before an operation of which ``raises`` says so."""

    def __init__(self, raises: Callable[[Operation], bool]) -> None:
        self._model = ModelSubject()
        self._raises = raises

    @property
    def declaration(self) -> Declaration:
        """The model's."""
        return self._model.declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model) -> None:
        """As the model."""
        self._model.reset(sessions, model)

    def perform(self, operation: Operation) -> Outcome:
        """As the model, or not."""
        if self._raises(operation):
            raise LookupError("not today")
        return self._model.perform(operation)

    def observe(self) -> Observation:
        """As the model."""
        return self._model.observe()

    def observe_fresh(self) -> Observation:
        """As the model."""
        return self._model.observe_fresh()

    def close(self) -> None:
        """Nothing is held."""


def crashes() -> _Raising:
    """Raises on an undo."""
    return _Raising(lambda operation: isinstance(operation, Undo))


def flaky() -> _Raising:
    """Raises at the fifth operation that this process asks of any such subject, and never again."""
    return _Raising(lambda _: next(_ASKED) == 4)


def cannot_be_made() -> NoReturn:
    """Raises before there is a subject."""
    raise RuntimeError("no\nsubject")


def no_subject() -> object:
    """Returns something else."""
    return object()
