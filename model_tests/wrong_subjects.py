"""Subjects that are wrong on purpose, by names that a target can have."""

from collections.abc import Callable
from itertools import count
from typing import NoReturn

from attrs import evolve

from tailmark.declarations import AdvanceReading, Capability, Declaration, Deviation, Field
from tailmark.identifiers import ClauseId, Revision, SessionId, Tokens
from tailmark.operations import Operation, Undo
from tailmark.outcomes import Outcome
from tailmark.plans import Model
from tailmark.subjects import Subject
from tailmark.views import Observation
from tailmark_reference.model.rules import RULES, allowed_places
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.model.tree import TreeNode

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


def departs() -> ModelSubject:
    """Always keeps as little as it may: what SHOULD be kept is not."""
    return ModelSubject(evolve(RULES, choose_place=_youngest_place))


def _youngest_place(
    tail: tuple[TreeNode, ...], *, first: bool, budget: Tokens | None, reading: AdvanceReading
) -> TreeNode:
    return allowed_places(tail, first=first, budget=budget, reading=reading)[-1]


class _Declaring:
    """A subject that says something else of itself."""

    def __init__(self, subject: Subject, declaration: Declaration) -> None:
        self.declaration = declaration
        self.reset = subject.reset
        self.perform = subject.perform
        self.observe = subject.observe
        self.observe_fresh = subject.observe_fresh
        self.close = subject.close


def deviates() -> _Declaring:
    """Adds two to the revision, and its documentation says so."""
    subject = counts_twice()
    deviation = Deviation(
        clause=ClauseId("CMT-6"), reason="we count in twos", link="https://example.org/twos"
    )
    return _Declaring(subject, evolve(subject.declaration, deviations=(deviation,)))


def offers_a_view() -> _Declaring:
    """Offers one capability, and cannot show what it sends."""
    subject = right()
    return _Declaring(
        subject,
        evolve(subject.declaration, capabilities=(Capability.VIEW,), hidden=(Field.PROJECTION,)),
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
