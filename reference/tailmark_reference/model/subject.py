"""The model as something that can be judged."""

from typing import Final

from attrs import evolve

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability, Declaration
from tailmark.identifiers import ModelName, SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.views import Observation
from tailmark_reference.model.observe import Observer
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.step import step
from tailmark_reference.model.world import Process, World, empty_world

CAPABILITIES: Final = (
    Capability.VIEW,
    Capability.HISTORY,
    Capability.TREE,
    Capability.COMMIT,
    Capability.CAPACITY,
    Capability.DURABILITY,
)
"""What model and store offer."""


class ModelSubject:
    """A world that operations are performed on, one after another. Its "fresh process" is the same world with nothing running."""

    def __init__(self, rules: Rules = RULES, *, implementation: str = "reference model") -> None:
        self._rules = rules
        self._declaration = Declaration(
            implementation=implementation, capabilities=CAPABILITIES, readings=rules.readings
        )
        self.reset((), Model(name=ModelName("model")), Settings())

    @property
    def declaration(self) -> Declaration:
        """What the model says of itself."""
        return self._declaration

    @property
    def world(self) -> World:
        """The present state."""
        return self._world

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """Start from an empty store with these sessions."""
        self._world = empty_world(sessions, model, settings)
        self._observer = Observer(self._rules)
        self._fresh_observer = Observer(self._rules)

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation."""
        self._world, outcome = step(self._world, operation, self._rules)
        return outcome

    def observe(self) -> Observation:
        """What can be seen now."""
        return self._observer.observe(self._world)

    def observe_fresh(self) -> Observation:
        """What another process would see."""
        return self._fresh_observer.observe(evolve(self._world, process=Process()))

    def close(self) -> None:
        """Nothing is held."""
