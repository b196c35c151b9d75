"""The beginning of an adapter: it says what it offers, shows an empty store, and refuses whatever it is asked."""

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.declarations import Capability, Declaration, Field
from tailmark.identifiers import Revision, SessionId, Tokens
from tailmark.operations import Operation
from tailmark.outcomes import Outcome, RefusalCode, Refused
from tailmark.views import Observation, SessionView


class Skeleton:
    """Replace the bodies by calls of your own implementation."""

    declaration = Declaration(
        implementation="skeleton 0.1",
        # What is not named here is neither asked nor judged.
        capabilities=(Capability.VIEW, Capability.HISTORY),
        # What you cannot show is named here; clauses that need it are `not-declared`.
        hidden=(Field.REVISION, Field.FRESH, Field.OCCUPANCY),
    )

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """Start from an empty store."""
        self._sessions = sessions
        self._model = model
        self._settings = settings

    def perform(self, operation: Operation) -> Outcome:  # noqa: ARG002  # yours will look at it
        """One `match operation:` with a case for each class of `tailmark.operations` goes here."""
        return Refused(code=RefusalCode.UNKNOWN_SESSION)

    def observe(self) -> Observation:
        """Every session, and every stored node, on branches and off them."""
        return Observation(
            sessions=tuple(
                SessionView(
                    session=session,
                    leaf=None,
                    revision=Revision(0),
                    branch=(),
                    open_calls=(),
                    running=None,
                    checkpoint=None,
                    projection=(),
                    model=self._model,
                    settings=self._settings,
                    # Without the capability `capacity` only the tail budget is a figure of yours.
                    budgets=Budgets(tail=self._settings.tail),
                    occupancy=Occupancy(tokens=Tokens(0), added=Tokens(0)),
                    metadata={},
                )
                for session in self._sessions
            ),
            nodes=(),
        )

    def observe_fresh(self) -> Observation:
        """The same, read by a process that opens the durable state now."""
        return self.observe()

    def close(self) -> None:
        """Nothing is held."""
