"""The model in an implementation that does something wrong around it: hears, answers, shows or keeps something else."""

from collections.abc import Callable

from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.identifiers import SessionId
from tailmark.operations import Operation, Restart
from tailmark.outcomes import Outcome
from tailmark.views import Observation, SessionView
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.model.world import World


@frozen(kw_only=True)
class Moment:
    """An operation on the model, its outcome, the state before and behind it, and all operations so far with this one."""

    operation: Operation
    outcome: Outcome
    before: World
    after: World
    heard: tuple[Operation, ...]

    @property
    def restarted(self) -> bool:
        """Whether a process ended before this moment."""
        return any(isinstance(operation, Restart) for operation in self.heard)


@frozen(kw_only=True)
class Faulty:
    """One fault around the rules. A function that answers ``None`` leaves things as they are.

    ``hears`` takes an operation for another one. ``instead`` gives another outcome, and nothing happens. ``says`` gives
    another outcome for what happened. ``leaves`` gives another state. ``shows`` changes what a session shows, ``observes`` the
    whole observation. Where ``fresh_is_right``, a fresh process shows what is true.
    """

    id: str
    sentence: str
    rules: Rules = RULES
    hears: Callable[[Operation], Operation | None] = lambda operation: None  # noqa: ARG005  # the type of the field
    instead: Callable[[Moment], Outcome | None] = lambda moment: None  # noqa: ARG005  # as above
    says: Callable[[Moment], Outcome | None] = lambda moment: None  # noqa: ARG005  # as above
    leaves: Callable[[Moment], World | None] = lambda moment: None  # noqa: ARG005  # as above
    shows: Callable[[SessionView, Moment], SessionView | None] = lambda view, moment: None  # noqa: ARG005  # as above
    observes: Callable[[Observation, Moment], Observation | None] = lambda seen, moment: None  # noqa: ARG005  # as above
    fresh_is_right: bool = False


class FaultySubject(ModelSubject):
    """A subject with that fault."""

    def __init__(self, fault: Faulty) -> None:
        self._fault = fault
        self._heard: tuple[Operation, ...] = ()
        self._moment: Moment | None = None
        super().__init__(fault.rules, implementation=fault.id)

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:  # type: ignore[explicit-override]  # Python 3.11 has no override
        """As the model."""
        self._heard = ()
        self._moment = None
        super().reset(sessions, model, settings)

    def perform(self, operation: Operation) -> Outcome:  # type: ignore[explicit-override]  # as above
        """As the model, but for the fault."""
        fault = self._fault
        before = self._world
        outcome = super().perform(fault.hears(operation) or operation)
        self._heard = (*self._heard, operation)
        moment = Moment(
            operation=operation, outcome=outcome, before=before, after=self._world, heard=self._heard
        )
        self._moment = moment
        instead = fault.instead(moment)
        if instead is not None:
            self._world = before
            return instead
        left = fault.leaves(moment)
        if left is not None:
            self._world = left
        return fault.says(moment) or outcome

    def observe(self) -> Observation:  # type: ignore[explicit-override]  # as above
        """What this process shows."""
        return self._shown(super().observe())

    def observe_fresh(self) -> Observation:  # type: ignore[explicit-override]  # as above
        """What another process shows."""
        seen = super().observe_fresh()
        return seen if self._fault.fresh_is_right else self._shown(seen)

    def _shown(self, seen: Observation) -> Observation:
        moment = self._moment
        if moment is None:
            return seen
        sessions = tuple(self._fault.shows(view, moment) or view for view in seen.sessions)
        seen = evolve(seen, sessions=sessions)
        return self._fault.observes(seen, moment) or seen
