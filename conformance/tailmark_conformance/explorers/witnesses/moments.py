"""What a witness sees: one step with the states around it and the plans begun so far."""

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

from tailmark.identifiers import SessionId
from tailmark.messages import Message
from tailmark.operations import (
    CommitCompaction,
    Operation,
    Restart,
)
from tailmark.outcomes import (
    Done,
    Outcome,
)
from tailmark.plans import Plan
from tailmark.rules.scene import Scene
from tailmark.traces import Step


@frozen(kw_only=True)
class Moment:
    """One step with what was known before it."""

    before: Scene
    step: Step
    after: Scene
    plans: tuple[Plan, ...]

    @property
    def operation(self) -> Operation:
        """What was asked."""
        return self.step.operation

    @property
    def outcome(self) -> Outcome:
        """What was answered."""
        return self.step.outcome

    def begun(self, plan: Plan) -> Plan | None:
        """The plan of that name and session as it was answered."""
        return next((one for one in self.plans if one.id == plan.id and one.session == plan.session), None)


Witness: TypeAlias = Callable[[Moment], bool]
Kinds: TypeAlias = type[Operation] | tuple[type[Operation], ...]


def session_of(operation: Operation) -> SessionId | None:
    match operation:
        case Restart():
            return None
        case CommitCompaction(plan=plan):
            return plan.session
        case _:
            return operation.session


def written(moment: Moment) -> tuple[Message, ...]:
    """The messages that an append or a save has written."""
    if not isinstance(moment.outcome, Done):
        return ()
    nodes = (moment.after.node(node) for node in moment.outcome.written)
    return tuple(node.content for node in nodes if node is not None and isinstance(node.content, Message))
