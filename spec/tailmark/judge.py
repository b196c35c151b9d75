"""Judges steps by every clause. It knows no implementation and no model."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import ModuleType
from typing import Any

from attrs import frozen

from tailmark.declarations import Declaration
from tailmark.identifiers import ClauseId, NodeId
from tailmark.operations import InflictDamage
from tailmark.rules import (
    automatic,
    boundary,
    branching,
    capacity,
    checkpoints,
    commit,
    damage,
    definitions,
    estimates,
    occupancy,
    outcomes,
    prefixes,
    projection,
    requests,
    summary,
    tree,
    triggers,
)
from tailmark.rules.memory import Memory
from tailmark.rules.scene import HiddenFieldError, Scene, empty_scene
from tailmark.rules.verdicts import Predicate, Seen, Violated
from tailmark.traces import Step, Trace
from tailmark.views import Change

_CHAPTERS: tuple[ModuleType, ...] = (
    definitions,
    outcomes,
    tree,
    projection,
    boundary,
    checkpoints,
    triggers,
    automatic,
    requests,
    capacity,
    occupancy,
    estimates,
    commit,
    branching,
    summary,
    prefixes,
    damage,
)
_NAME = re.compile(r"[a-z]+_[a-z0-9]+")


def _clause_of(name: str) -> ClauseId:
    return ClauseId(name.upper().replace("_", "-"))


# Any: a chapter of predicates and a chapter of scenarios are collected alike.
def collect(chapters: Iterable[ModuleType]) -> Mapping[ClauseId, Any]:
    """The public functions of chapters, each by the clause that it is named after: ``tree_1`` by ``TREE-1``."""
    return {
        _clause_of(name): member
        for chapter in chapters
        for name, member in vars(chapter).items()
        if _NAME.fullmatch(name) and getattr(member, "__module__", None) == chapter.__name__
    }


PREDICATES: Mapping[ClauseId, Predicate] = collect(_CHAPTERS)
"""Every predicate by its clause, in the order of the chapters."""


DAMAGE_CLAUSES = frozenset(collect((damage,)))
"""The clauses that speak of damaged histories. While one is seen, only these are judged."""


class StepVerdict(StrEnum):
    """What a predicate says of one step to which its clause applies."""

    HOLDS = "holds"
    VIOLATED = "violated"
    HIDDEN = "hidden"
    """The predicate needed something that the implementation cannot show."""


@frozen(kw_only=True)
class Judgement:
    """One predicate's word on one step. ``step`` counts from 0; ``text`` is empty unless violated or hidden."""

    clause: ClauseId
    step: int
    verdict: StepVerdict
    text: str = ""
    node: NodeId | None = None


class Judge:
    """Follows a trace step by step and judges each step by the chosen clauses.

    A violated clause does not end the trace: the observed state is taken over and the next step is judged
    from there.
    """

    def __init__(
        self, declaration: Declaration, predicates: Mapping[ClauseId, Predicate] = PREDICATES
    ) -> None:
        self._declaration = declaration
        self._predicates = tuple(predicates.items())
        self._of_damage = tuple(
            (clause, predicate) for clause, predicate in self._predicates if clause in DAMAGE_CLAUSES
        )
        self._scene = empty_scene(frozenset(declaration.hidden))
        self._memory = Memory()
        self._steps = 0

    @property
    def scene(self) -> Scene:
        """The state observed last."""
        return self._scene

    def start(self, change: Change) -> None:
        """Take over the first observation."""
        self._scene = self._scene.after(change)
        self._memory = Memory(budgets={(view.model, view.settings): view.budgets for view in change.sessions})

    def feed(self, step: Step) -> tuple[Judgement, ...]:
        """Judge one step: a judgement for each clause that applied to it."""
        after = self._scene.after(step.change)
        seen = Seen(
            declaration=self._declaration,
            operation=step.operation,
            outcome=step.outcome,
            before=self._scene,
            after=after,
            change=step.change,
            memory=self._memory,
            fresh_change=step.fresh,
        )
        judgements = []
        # Of a damaged history the other chapters would judge what cannot be seen.
        damaged = isinstance(step.operation, InflictDamage) or any(view.read_only for view in after.views())
        for clause, predicate in self._of_damage if damaged else self._predicates:
            try:
                result = predicate(seen)
            except HiddenFieldError as hidden:
                judgements.append(
                    Judgement(
                        clause=clause, step=self._steps, verdict=StepVerdict.HIDDEN, text=hidden.field.value
                    )
                )
                continue
            # Most clauses say nothing of most steps, so that is asked first.
            if result is None:
                continue
            if isinstance(result, Violated):
                judgements.append(
                    Judgement(
                        clause=clause,
                        step=self._steps,
                        verdict=StepVerdict.VIOLATED,
                        text=result.text,
                        node=result.node,
                    )
                )
            else:
                judgements.append(Judgement(clause=clause, step=self._steps, verdict=StepVerdict.HOLDS))
        self._memory = self._memory.after(step, self._scene, after)
        self._scene = after
        self._steps += 1
        return tuple(judgements)


def judge_trace(trace: Trace) -> tuple[Judgement, ...]:
    """Judge a whole trace."""
    judge = Judge(trace.declaration)
    judge.start(trace.start)
    return tuple(judgement for step in trace.steps for judgement in judge.feed(step))
