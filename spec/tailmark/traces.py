"""Traces: what was asked, what was answered, what could be seen then.

A trace is the one form of a live run, an example, a vector, a counterexample and an imported log.
"""

from attrs import frozen

from tailmark.budgets import Model, Settings
from tailmark.declarations import Declaration
from tailmark.identifiers import SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.views import Change


@frozen(kw_only=True)
class Step:
    """One operation, its outcome, and what changed in what can be observed.

    ``fresh`` is how the view of a fresh process on the same durable state differs from this process's,
    answers that run and nothing else aside; ``None`` where nobody looked.
    """

    operation: Operation
    outcome: Outcome
    change: Change
    fresh: Change | None = None


@frozen(kw_only=True)
class Trace:
    """A run from an empty store with ``sessions`` on ``model`` under ``settings``. ``start`` leads from nothing to the first observation."""

    declaration: Declaration
    sessions: tuple[SessionId, ...]
    model: Model
    settings: Settings = Settings()
    start: Change
    steps: tuple[Step, ...]
