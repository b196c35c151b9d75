"""Subjects that are wrong on purpose, by names that a target can have."""

from collections.abc import Callable
from itertools import count
from typing import Any, NoReturn

from attrs import evolve
from typing_extensions import override

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability, Declaration, Deviation, Field
from tailmark.identifiers import ClauseId, Revision, SessionId
from tailmark.operations import Fork, Operation, Restart, Undo
from tailmark.outcomes import NoopReason, Outcome, RefusalCode, Refused
from tailmark.views import Observation
from tailmark_conformance.subjects.declaring import Declaring
from tailmark_reference.model.places import Choice, manual_places
from tailmark_reference.model.rules import RULES
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
    return ModelSubject(evolve(RULES, manual_position=_youngest_place))


def _youngest_place(choice: Choice) -> int | None:
    places = manual_places(choice)
    return places[-1] if places else None


def deviates() -> Declaring:
    """Adds two to the revision, and its documentation says so."""
    subject = counts_twice()
    deviation = Deviation(
        clause=ClauseId("CMT-6"), reason="we count in twos", link="https://example.org/twos"
    )
    return Declaring(subject, evolve(subject.declaration, deviations=(deviation,)))


def offers_a_view() -> Declaring:
    """Offers one capability, and cannot show what it sends."""
    subject = right()
    return Declaring(
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

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """As the model."""
        self._model.reset(sessions, model, settings)

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


class _AnswersNothing(ModelSubject):
    # Typed as a caller sees it who runs no type checker.
    @override
    def perform(self, operation: Operation) -> Outcome:
        outcome = super().perform(operation)
        return None if isinstance(operation, Undo) else outcome  # type: ignore[return-value]  # the fault


class _ObservesNothing(ModelSubject):
    @override
    def observe(self) -> Observation:
        return 3  # type: ignore[return-value]  # the fault


class _ShowsNoProjection(ModelSubject):
    @override
    def observe(self) -> Observation:
        seen = super().observe()
        hidden: Any = None  # Any: the fault is its type
        return evolve(seen, sessions=tuple(evolve(view, projection=hidden) for view in seen.sessions))


def answers_nothing() -> ModelSubject:
    """An undo answers None."""
    return _AnswersNothing()


def observes_nothing() -> ModelSubject:
    """What it shows is no observation."""
    return _ObservesNothing()


def shows_no_projection() -> ModelSubject:
    """A field of its views is of another type."""
    return _ShowsNoProjection()


class _ForgetsAtRestart(ModelSubject):
    @override
    def perform(self, operation: Operation) -> Outcome:
        outcome = super().perform(operation)
        if isinstance(operation, Restart):
            for session in self.world.sessions.values():
                if session.leaf is not None and session.leaf.checkpoint is not None:
                    self._world = self.world.with_session(session.at(session.leaf.parent, session.revision))
        return outcome


def forgets_at_restart() -> ModelSubject:
    """A checkpoint that is the leaf is not there any more after a restart (CMT-12)."""
    return _ForgetsAtRestart()


class _ViewAlone(ModelSubject):
    @property
    @override
    def declaration(self) -> Declaration:
        return evolve(super().declaration, capabilities=(Capability.VIEW,))

    @override
    def perform(self, operation: Operation) -> Outcome:
        if isinstance(operation, Fork):
            return Refused(code=RefusalCode.UNSTABLE)
        return super().perform(operation)


def _nothing_is_too_long(
    leaf: TreeNode | None,
    checkpoint: TreeNode | None,
    *,
    summary_too_long: bool,  # noqa: ARG001  # the type of the rule
) -> NoopReason | None:
    return RULES.nothing_to_do(leaf, checkpoint, summary_too_long=False)


def view_alone() -> ModelSubject:
    """Offers the view alone, and says so: it cannot fork, and no size tells it to refresh a summary."""
    return _ViewAlone(evolve(RULES, nothing_to_do=_nothing_is_too_long))
