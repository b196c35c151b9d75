"""What a predicate says of one step, and what it is given."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from tailmark.declarations import Declaration, Field
from tailmark.identifiers import NodeId, PlanId, SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.plans import Plan
from tailmark.rules.memory import KnownPlan, Memory
from tailmark.rules.scene import HiddenFieldError, Scene
from tailmark.views import Change


@frozen
class Holds:
    """The clause applied, could have been broken here, and was not."""


@frozen
class Violated:
    """The clause was broken. ``text`` says what was expected and what was seen; ``node`` where, if it is about a node."""

    text: str
    node: NodeId | None = None


HOLDS = Holds()
Result: TypeAlias = Holds | Violated | None
"""``None``: the clause does not apply to this step, or could not have been broken by it."""


@frozen(kw_only=True, eq=False, repr=False)
class Seen:
    """One step as a predicate sees it: the states before and after, what was asked and answered, and what earlier steps began.

    ``memory`` is what the steps before this one showed.
    """

    declaration: Declaration
    operation: Operation
    outcome: Outcome
    before: Scene
    after: Scene
    change: Change
    memory: Memory
    fresh_change: Change | None

    @property
    def fresh(self) -> Change | None:
        """How a fresh process's view differs; ``None`` where nobody looked. Hidden where it cannot be shown."""
        self.wants(Field.FRESH)
        return self.fresh_change

    def wants(self, field: Field) -> None:
        """Say that a predicate is about to read a field. Raises `HiddenFieldError` where the implementation cannot show it."""
        if field in self.declaration.hidden:
            raise HiddenFieldError(field)

    def plan(self, plan: Plan) -> Plan:
        """A plan whose contents a predicate wants to read. Hidden where the implementation shows none."""
        self.wants(Field.PLAN)
        return plan

    @property
    def plans(self) -> Mapping[tuple[SessionId, PlanId], KnownPlan]:
        """The plans of this process on their sessions, before the step; a restart forgets them."""
        return self.memory.plans

    def known_plan(self, session: SessionId, plan: PlanId) -> KnownPlan | None:
        """What is known of a plan of this process."""
        return self.plans.get((session, plan))


Predicate: TypeAlias = Callable[[Seen], Result]


def holds_if(condition: bool, text: str, node: NodeId | None = None) -> Result:
    """`HOLDS`, or `Violated` with the text."""
    return HOLDS if condition else Violated(text, node)
