"""Predicates of the chapter on occupancy: the base among a branch's answers, and what its figure does not cover."""

from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from tailmark.budgets import Model, Occupancy
from tailmark.declarations import Field, MeasureReading
from tailmark.identifiers import NodeId, SessionId, Tokens
from tailmark.messages import Message, Reasoning, Role, Text, ToolCall, ToolResult, Usage, UsageScope
from tailmark.rules.compactions import asked_plan, base_of, cost_of, scaled
from tailmark.rules.estimates import least
from tailmark.rules.scene import Mark, Scene, latest_checkpoint
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def valid(usage: Usage, model: Model) -> bool:
    """Whether a figure is possible and speaks of a request of this model that ended normally (OCC-6)."""
    return (
        usage.ended_normally
        and usage.model == model.name
        and usage.input > 0
        and usage.cached <= usage.input
        and usage.reasoning_output <= usage.output
        and usage.input + usage.output <= model.window
    )


@frozen(kw_only=True, eq=False)
class _Told:
    """An answer of the branch with a usage. ``start`` is the node that its request was built on, where that is an ancestor of it."""

    mark: Mark
    message: Message
    usage: Usage
    start: Mark | None
    before_checkpoint: bool

    @property
    def is_sum(self) -> bool:
        return self.usage.scope is UsageScope.SUM

    def is_base(self, model: Model) -> bool:
        """Whether it can be the base."""
        placed = self.start is not None and not self.before_checkpoint
        return placed and not self.is_sum and valid(self.usage, model)


@frozen(kw_only=True, eq=False)
class _Measured:
    """A session after a step: what it shows, and what follows from its branch.

    ``told`` are the answers with a usage, newest first, down to the base and a little further. ``others`` is what the messages cost that the
    base's request did not carry; ``late_least`` is the least that its own late results cost.
    """

    session: SessionId
    scene: Scene
    model: Model
    shown: Occupancy
    told: tuple[_Told, ...]
    base: _Told | None
    uncovered: tuple[Mark, ...]
    whole: int
    late: tuple[ToolResult, ...]

    @property
    def others(self) -> int:
        """What the uncovered messages cost, in tokens of the implementation's own."""
        return cost_of(self.scene, self.uncovered)


def _start_of(mark: Mark, message: Message) -> Mark | None:
    return next((above for above in mark.walk() if above is not mark and above.id == message.built_on), None)


def _told(mark: Mark, latest: Mark | None) -> _Told | None:
    message = mark.message
    if message is None or message.role is not Role.ASSISTANT or message.usage is None:
        return None
    start = _start_of(mark, message) if message.built_on is not None else None
    before = latest is not None and start is not None and not _is_at_or_behind(start, latest)
    return _Told(mark=mark, message=message, usage=message.usage, start=start, before_checkpoint=before)


def _is_at_or_behind(mark: Mark, checkpoint: Mark) -> bool:
    return any(above.id == checkpoint.id for above in mark.walk())


def _late_results(seen: Seen, message: Message) -> tuple[ToolResult, ...]:
    """The results that a base's request did not carry: put there later, or behind all that the model put out."""
    put = seen.memory.late_after(seen.change, seen.before).get(message.id, frozenset())
    late = []
    is_behind_output = True
    for part in reversed(message.parts):
        if isinstance(part, Text | Reasoning | ToolCall):
            is_behind_output = False
        elif isinstance(part, ToolResult) and not part.preliminary and (is_behind_output or part.id in put):
            late.append(part)
    return tuple(late)


# Every predicate of this chapter asks this of one step.
@lru_cache(maxsize=1)
def _measured(seen: Seen) -> tuple[_Measured, ...]:
    """The sessions whose occupancy a step may have changed."""
    sessions = (view.session for view in seen.change.sessions)
    return tuple(_measure(seen, session) for session in sessions if seen.after.knows_session(session))


def _measure(seen: Seen, session: SessionId) -> _Measured:
    scene = seen.after
    model, end, latest = scene.model(session), scene.end(session), scene.checkpoint(session)
    tail = scene.tail(session)
    whole = scene.settings(session).overhead + cost_of(scene, tail)
    whole += scene.estimate(latest.id) if latest is not None else 0
    told: list[_Told] = []
    base: _Told | None = None
    for mark in end.walk() if end is not None else ():
        one = _told(mark, latest)
        if one is None:
            continue
        told.append(one)
        if one.is_base(model):
            base = one
            break
        if len(told) > 8:
            break  # enough to name the trap; the base may be further up
    if base is None and len(told) > 8 and end is not None:
        base = next(
            (one for mark in end.walk() if (one := _told(mark, latest)) is not None and one.is_base(model)),
            None,
        )
    uncovered: tuple[Mark, ...] = ()
    if base is not None and end is not None and base.start is not None:
        behind = []
        for mark in end.walk():
            if mark is base.start:
                break
            if mark.message is not None and mark is not base.mark:
                behind.append(mark)
        uncovered = tuple(behind)
    return _Measured(
        session=session,
        scene=scene,
        model=model,
        shown=scene.occupancy(session),
        told=tuple(told),
        base=base,
        uncovered=uncovered,
        whole=whole,
        late=_late_results(seen, base.message) if base is not None else (),
    )


def _shown_as_base(one: _Measured) -> _Told | None:
    """The answer that is shown as the base, if it is one of those that were looked at."""
    return next((told for told in one.told if told.mark.id == one.shown.base), None)


def _trap(seen: Seen, is_trap: Callable[[_Measured, _Told], bool], what: str) -> Result:
    """An answer of a kind that is no base is not the base, although it is newer than what is."""
    exercised = False
    for one in _measured(seen):
        for told in one.told:
            if told is one.base or not is_trap(one, told):
                continue
            if one.shown.base == told.mark.id:
                return Violated(f"expected another base than {told.mark.id}, {what}", told.mark.id)
            exercised = True
    return HOLDS if exercised else None


def occ_1(seen: Seen) -> Result:
    """The base is the newest answer of the branch with a valid usage whose request was built at or behind the latest checkpoint."""
    exercised = False
    for one in _measured(seen):
        expected = one.base.mark.id if one.base is not None else None
        shown = one.shown.base
        if shown == expected:
            exercised = exercised or expected is not None
            continue
        trapped = _shown_as_base(one)
        if trapped is not None and trapped is not one.base and not trapped.is_base(one.model):
            continue  # the clause on that kind of figure speaks
        return Violated(f"expected the base {expected} on {one.session}, saw {shown}", expected)
    return HOLDS if exercised else None


def _based(seen: Seen) -> tuple[tuple[_Measured, _Told], ...]:
    """The sessions that show the right base."""
    return tuple(
        (one, one.base)
        for one in _measured(seen)
        if one.base is not None and one.shown.base == one.base.mark.id
    )


def _replays(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and part.replayable for part in message.parts)


def _figure(told: _Told) -> int:
    hidden = 0 if _replays(told.message) else told.usage.reasoning_output
    return told.usage.input + told.usage.output - hidden


def occ_2(seen: Seen) -> Result:
    """The base's figure is its input and its output as far as it is sent again; the rest of the projection is added as an estimate."""
    exercised = False
    for one, base in _based(seen):
        shown = one.shown
        figure = _figure(base)
        plain = base.usage.cached == 0 and base.usage.reasoning_output == 0
        if plain and shown.figure != figure:
            return Violated(
                f"expected the figure {figure} of {base.mark.id}, saw {shown.figure}", base.mark.id
            )
        if shown.covered + shown.added != one.whole:
            return Violated(
                f"expected {one.whole} covered or added, overhead and projection; saw {shown.covered} and {shown.added}",
                base.mark.id,
            )
        own = one.scene.estimate(base.mark.id)
        if not one.others <= shown.added <= one.others + own:
            if any(_stands_between(mark, base) for mark in one.uncovered):
                continue  # OCC-16 speaks of what was typed meanwhile
            return Violated(
                f"expected {one.others} added for {len(one.uncovered)} messages, and at most the base itself; saw {shown.added}",
                base.mark.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_2a(seen: Seen) -> Result:
    """Results that were put into the base's message behind its request are added."""
    exercised = False
    for one, base in _based(seen):
        fewest = sum(least(result.text) for result in one.late)
        if fewest == 0 or any(_stands_between(mark, base) for mark in one.uncovered):
            continue
        if one.shown.added < one.others + fewest and not seen.declaration.parameters.tokenizer:
            return Violated(
                f"expected {one.others + fewest} or more added, the late results of {base.mark.id} among it; saw {one.shown.added}",
                base.mark.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_3(seen: Seen) -> Result:
    """Usage of a request that was built before the latest checkpoint is no base, even if its message is in the tail."""
    return _trap(
        seen, lambda _, told: told.before_checkpoint, "whose request was built before the latest checkpoint"
    )


def occ_4(seen: Seen) -> Result:
    """Usage of a request that was built off the branch, and of a message off it, is no base."""
    for one in _measured(seen):
        shown = one.shown.base
        if shown is not None and not one.scene.is_on_path(shown, one.scene.end(one.session)):
            return Violated(f"expected a base on the branch of {one.session}, saw {shown}", shown)
    return _trap(seen, lambda _, told: told.start is None, "whose request was not built on this branch")


def occ_5(seen: Seen) -> Result:
    """Usage summed over several requests is no base."""
    return _trap(seen, lambda _, told: told.is_sum, "whose usage is a sum")


def occ_6(seen: Seen) -> Result:
    """Usage that is impossible, of a request that did not end normally, or of another model is no base."""
    return _trap(
        seen,
        lambda one, told: not valid(told.usage, one.model),
        "whose usage is not valid for the session's model",
    )


def occ_7(seen: Seen) -> Result:
    """Cached input counts as any other."""
    exercised = False
    for one, base in _based(seen):
        if base.usage.cached == 0:
            continue
        if one.shown.figure < base.usage.input:
            return Violated(
                f"expected a figure of {base.usage.input} or more, the cached input among it; saw {one.shown.figure}",
                base.mark.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_10a(seen: Seen) -> Result:
    """Reasoning in a base's output counts if and only if it is sent again."""
    exercised = False
    for one, base in _based(seen):
        if base.usage.reasoning_output == 0:
            continue
        figure = _figure(base)
        if one.shown.figure != figure:
            return Violated(
                f"expected the figure {figure}, its reasoning {'sent' if _replays(base.message) else 'not sent'} again; saw {one.shown.figure}",
                base.mark.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_13(seen: Seen) -> Result:
    """Without a base the estimate is of everything, the overhead included; a base contains it."""
    exercised = False
    for one in _measured(seen):
        shown = one.shown
        if one.base is not None or shown.base is not None:
            continue
        if shown.added != one.whole or shown.figure or shown.covered:
            return Violated(
                f"expected {one.whole} added on {one.session}, overhead and projection; saw {shown.added}"
            )
        exercised = exercised or one.whole > 0
    return HOLDS if exercised else None


def occ_14(seen: Seen) -> Result:
    """The sizes before and after a compaction are both estimates of the whole projection."""
    plan = asked_plan(seen)
    if plan is None or not seen.before.knows_session(plan.session):
        return None
    seen.wants(Field.SIZES)
    branch = base_of(seen.before, plan.session, plan.purpose)
    if branch is None:
        return None
    latest = latest_checkpoint(branch)
    place = seen.before.place(latest) if latest is not None else 0
    if place is None:
        return None
    tail = tuple(mark for mark in branch.walk() if mark.message is not None and mark.messages > place)
    before = cost_of(seen.before, tail) + (seen.before.estimate(latest.id) if latest is not None else 0)
    with_overhead = before + plan.budgets.overhead
    return holds_if(
        plan.tokens_before in (before, with_overhead),
        f"expected the estimate {before} of the projection as the size before, with or without the overhead; saw {plan.tokens_before}",
        branch.id,
    )


def occ_15(seen: Seen) -> Result:
    """What is added to a base is in its measure: times the ratio of figure and estimate, which is at least 1; plainly where that is declared."""
    exercised = False
    plain = seen.declaration.readings.measure is MeasureReading.PLAIN
    for one in _measured(seen):
        shown = one.shown
        covered = Tokens(0) if plain else shown.covered
        expected = shown.figure + scaled(shown.added, shown.figure, covered)
        if shown.tokens != expected:
            return Violated(
                f"expected {expected} tokens, {shown.figure} and {shown.added} in its measure; saw {shown.tokens}",
                shown.base,
            )
        exercised = exercised or (shown.added > 0 and shown.figure > 0)
    return HOLDS if exercised else None


def _stands_between(mark: Mark, base: _Told) -> bool:
    """Whether a message stands behind what the base's request was built on, and before the base."""
    return mark.messages < base.mark.messages


def occ_16(seen: Seen) -> Result:
    """A message that was stored while the base's answer ran is added, although it stands before it."""
    exercised = False
    for one, base in _based(seen):
        between = [mark.id for mark in one.uncovered if _stands_between(mark, base)]
        if not between:
            continue
        if one.shown.added < one.others:
            return Violated(
                f"expected {one.others} or more added, {_named(between)} among it; saw {one.shown.added}",
                between[-1],
            )
        exercised = True
    return HOLDS if exercised else None


def _named(nodes: list[NodeId]) -> str:
    return ", ".join(nodes)
