"""What a subject may be asked, by its declaration: nothing that it does not offer, and nothing that it lacks."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from attrs import evolve, frozen

from tailmark.declarations import Capability, Declaration, Lack
from tailmark.messages import ApprovalRequest, Message, Role, ToolResult
from tailmark.operations import (
    Append,
    CommitCompaction,
    Edit,
    Fork,
    InflictDamage,
    Operation,
    Retry,
    Save,
    Send,
    SetSettings,
    Settle,
    Undo,
)
from tailmark.outcomes import Done
from tailmark.rules.answers import CANCELLED, SKIPPED, applicable
from tailmark.rules.memory import KnownPlan, Memory
from tailmark.rules.saving import STALE
from tailmark.rules.scene import OpenAt, settle
from tailmark.rules.verdicts import Seen
from tailmark.views import Change
from tailmark_conformance.explorers.known import Known, PlanState

_KINDS: Final[Mapping[str, Lack]] = {
    **{lack.value: lack for lack in Lack},
    "start-answer": Lack.ANSWERS,
    "next-request": Lack.ANSWERS,
    "end-answer": Lack.ANSWERS,
}
"""What a subject must not lack to be asked an operation, by the operation's kind."""


def needs(operation: Operation) -> Capability:
    """The capability that a subject must declare to be asked an operation. What everybody offers belongs to `view`."""
    match operation:
        case Retry() | Edit() | Fork() | Undo():
            return Capability.TREE
        case Send() | SetSettings():
            return Capability.CAPACITY
        case InflictDamage():
            return Capability.DURABILITY
        case _:
            return Capability.VIEW


@frozen
class Offer:
    """What one subject may be asked."""

    declaration: Declaration

    def has(self, operation: Operation, known: Known) -> bool:
        """Whether it may be asked this operation now."""
        if needs(operation) not in self.declaration.capabilities:
            return False
        lacks = self.declaration.lacks
        return not lacks or (
            lacks_nothing(operation, lacks)
            and not (Lack.GIVEN_IDS in lacks and _is_brought_again(operation, known))
            and not (Lack.INTERRUPTIONS in lacks and _interrupts(operation, known))
            and not (Lack.REFUSALS in lacks and self._refuses(operation, known))
        )

    def _refuses(self, operation: Operation, known: Known) -> bool:
        """Whether a caller who looks first would not ask. A `noop` is a success, and a reply that is no summary is the summariser's fault."""
        if isinstance(operation, Send):
            scene, session = known.scene, operation.session
            if scene.knows_session(session) and not scene.is_stable(session):
                # What is sent as steering is skipped where it does not fit.
                return True
        begun = {(one.plan.session, one.plan.id): one for one in known.plans}
        if isinstance(operation, CommitCompaction):
            plan = begun.get((operation.plan.session, operation.plan.id))
            if plan is None or plan.plan != operation.plan:
                return True
            if (operation.reply is None) != (operation.plan.request is None):
                return True
        plans = {
            key: KnownPlan(
                plan=one.plan,
                cancelled=one.state is PlanState.CANCELLED,
                ended=one.state is not PlanState.OPEN,
            )
            for key, one in begun.items()
            if one.state is not PlanState.LOST
        }
        seen = Seen(
            # What is known has something in each place, hidden or not.
            declaration=evolve(self.declaration, hidden=()),
            operation=operation,
            outcome=Done(),
            before=known.scene,
            after=known.scene,
            change=Change(),
            memory=Memory(plans=plans),
            fresh_change=None,
        )
        return any(
            name.startswith("refused") or name in (STALE, SKIPPED, CANCELLED) for name in applicable(seen)
        )


def lacks_nothing(operation: Operation, lacks: Collection[Lack]) -> bool:
    """Whether an operation can be asked of a subject that lacks this, as far as its kind and form tell."""
    if _KINDS.get(operation.kind) in lacks:
        return False
    if Lack.FOLLOWS in lacks and getattr(operation, "follows", None) is not None:
        return False
    return not any(lack in lacks for lack in _forms(operation))


def _messages(operation: Operation) -> tuple[Message, ...]:
    match operation:
        case Append(message=message) | Send(message=message) | Edit(message=message):
            return (message,)
        case Save(path=path):
            return tuple(node for node in path if isinstance(node, Message))
        case _:
            return ()


def _forms(operation: Operation) -> Iterator[Lack]:
    """The forms in which an operation's messages come that a subject may lack."""
    messages = _messages(operation)
    parts = [(message.role, part) for message in messages for part in message.parts]
    if isinstance(operation, Settle):
        parts.append((Role.ASSISTANT, operation.result))
    for role, part in parts:
        if isinstance(part, ApprovalRequest):
            yield Lack.APPROVALS
        if isinstance(part, ToolResult):
            if role is Role.ASSISTANT:
                yield Lack.INLINE_RESULTS
            if part.preliminary:
                yield Lack.PRELIMINARY_RESULTS
    if any(message.role is Role.TOOL and len(message.parts) > 1 for message in messages):
        yield Lack.JOINT_RESULTS


def _is_brought_again(operation: Operation, known: Known) -> bool:
    return any(known.scene.node(message.id) is not None for message in _messages(operation))


def _interrupts(operation: Operation, known: Known) -> bool:
    """Whether a message that is no result would stand behind an open call."""
    open_calls: tuple[OpenAt, ...] = ()
    if isinstance(operation, Append | Send | Edit) and known.scene.knows_session(operation.session):
        # A saved path begins at the root; these come behind the leaf.
        open_calls = known.scene.open_calls(operation.session)
    for message in _messages(operation):
        if open_calls and message.role is not Role.TOOL:
            return True
        open_calls = settle(open_calls, message)
    return False
