"""What was asked in a run, so that it can be asked again of a subject whose answers differ."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs
from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.identifiers import SessionId
from tailmark.operations import CommitCompaction, Operation
from tailmark.outcomes import begun_plan
from tailmark.plans import Plan, SummariserReply
from tailmark.traces import Step
from tailmark_conformance.explorers.known import Known

MOST_FORGED = 3
"""A plan that differs in more fields from every answered one is kept as it stands."""


@frozen(kw_only=True)
class BoundCommit:
    """A commit of whatever plan the begin of that name answers in this run.

    ``answered`` is the plan that it answered when the script was made; ``forged`` are the fields in which
    the brought plan differed from it.
    """

    answered: Plan
    forged: Mapping[str, object]
    reply: SummariserReply | None

    def operation(self, known: Known) -> CommitCompaction | None:
        """The commit in this run; ``None`` if no plan of that name was answered."""
        for begun in known.plans:
            if begun.plan.session == self.answered.session and begun.plan.id == self.answered.id:
                return CommitCompaction(plan=_with_fields(begun.plan, self.forged), reply=self.reply)
        return None


def _with_fields(plan: Plan, fields: Mapping[str, object]) -> Plan:
    # Any field may be forged, so the types of the values are known at run time only.
    return evolve(plan, **fields) if fields else plan  # type: ignore[arg-type]  # as said above


Entry: TypeAlias = Operation | BoundCommit


@frozen(kw_only=True)
class Script:
    """A run's beginning and its operations in order."""

    sessions: tuple[SessionId, ...]
    model: Model
    settings: Settings = Settings()
    entries: tuple[Entry, ...]


def entries_of(steps: Iterable[Step], unanswered: Iterable[Operation] = ()) -> tuple[Entry, ...]:
    """The operations of recorded steps and those behind them that got no answer, each commit bound to the begin that answered its plan."""
    answered: list[Plan] = []
    entries: list[Entry] = []
    for step in steps:
        entries.append(_entry(step.operation, answered))
        plan_begun = begun_plan(step.outcome)
        if plan_begun is not None:
            answered.append(plan_begun)
    entries.extend(_entry(operation, answered) for operation in unanswered)
    return tuple(entries)


def _entry(operation: Operation, answered: list[Plan]) -> Entry:
    match operation:
        case CommitCompaction(plan=plan, reply=reply):
            return _bound(plan, reply, answered)
        case _:
            return operation


def _bound(plan: Plan, reply: SummariserReply | None, answered: list[Plan]) -> Entry:
    nearest: Mapping[str, object] | None = None
    origin: Plan | None = None
    for one in answered:
        forged = {
            name: getattr(plan, name)
            for name in (attribute.name for attribute in attrs.fields(Plan))
            if getattr(plan, name) != getattr(one, name)
        }
        if nearest is None or len(forged) <= len(nearest):
            nearest, origin = forged, one
    if origin is None or nearest is None or len(nearest) > MOST_FORGED:
        return CommitCompaction(plan=plan, reply=reply)
    return BoundCommit(answered=origin, forged=nearest, reply=reply)


def operation_of(entry: Entry, known: Known) -> Operation | None:
    """What to ask now; ``None`` where a commit has no plan in this run."""
    return entry.operation(known) if isinstance(entry, BoundCommit) else entry
