"""Drives a subject and writes down what happens as a trace."""

from attrs import evolve

from tailmark.budgets import Model, Settings
from tailmark.identifiers import SessionId
from tailmark.operations import Operation
from tailmark.subjects import Subject
from tailmark.traces import Step, Trace
from tailmark.views import Change, Observation, RunningAnswer, difference


class Recorder:
    """Performs operations on a subject from an empty store, and keeps each with its outcome and what changed.

    ``look_fresh`` says whether a fresh process's view is compared after each step; that costs the subject
    another opening of its store.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        sessions: tuple[SessionId, ...],
        model: Model,
        settings: Settings = Settings(),  # noqa: B008  # a frozen value
        look_fresh: bool = True,
    ) -> None:
        self._subject = subject
        self._sessions = sessions
        self._model = model
        self._settings = settings
        self._look_fresh = look_fresh
        subject.reset(sessions, model, settings)
        self._observation = subject.observe()
        self.start = difference(_NOTHING, self._observation)
        self.steps: list[Step] = []

    @property
    def observation(self) -> Observation:
        """What was observed last."""
        return self._observation

    @property
    def trace(self) -> Trace:
        """Everything so far."""
        return Trace(
            declaration=self._subject.declaration,
            sessions=self._sessions,
            model=self._model,
            settings=self._settings,
            start=self.start,
            steps=tuple(self.steps),
        )

    def perform(self, operation: Operation) -> Step:
        """Perform one operation, observe, and keep the step."""
        outcome = self._subject.perform(operation)
        observation = self._subject.observe()
        fresh: Change | None = None
        if self._look_fresh:
            fresh = _difference_aside_from_running(observation, self._subject.observe_fresh())
        step = Step(
            operation=operation,
            outcome=outcome,
            change=difference(self._observation, observation),
            fresh=fresh,
        )
        self._observation = observation
        self.steps.append(step)
        return step


_NOTHING = Observation(sessions=(), nodes=())


def _difference_aside_from_running(here: Observation, fresh: Observation) -> Change:
    running: dict[SessionId, RunningAnswer] = {
        view.session: view.running for view in here.sessions if view.running is not None
    }
    change = difference(here, fresh)
    if not running:
        return change
    # A fresh process runs nothing; that alone is no difference.
    return evolve(
        change,
        sessions=tuple(
            view
            for view in change.sessions
            if view.session not in running
            or evolve(view, running=running[view.session])
            != next(one for one in here.sessions if one.session == view.session)
        ),
    )
