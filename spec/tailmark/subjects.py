"""What is judged: anything that performs operations and lets itself be observed."""

from typing import Protocol

from tailmark.budgets import Model, Settings
from tailmark.declarations import Declaration
from tailmark.identifiers import SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.views import Observation


class Subject(Protocol):
    """An implementation under test, in this process or behind a wire."""

    @property
    def declaration(self) -> Declaration:
        """What the implementation says of itself. The same for its whole life."""
        ...

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """Forget everything and start from an empty store with these empty sessions, all on ``model`` under ``settings``."""
        ...

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation and answer its outcome. Bad input is an outcome, never an exception."""
        ...

    def observe(self) -> Observation:
        """What this process sees now. Changes nothing."""
        ...

    def observe_fresh(self) -> Observation:
        """What a process sees that opens the same durable state now: nothing runs in it. Changes nothing."""
        ...

    def close(self) -> None:
        """Give back what the subject holds. It is not used afterwards."""
        ...
