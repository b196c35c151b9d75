"""Predicates of the chapter on capacity: the budgets that follow from a model and settings."""

from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from tailmark.budgets import Budgets, Model, SettingName, Settings
from tailmark.declarations import Field
from tailmark.identifiers import SessionId, Tokens
from tailmark.operations import CommitCompaction, SetModel, SetSettings
from tailmark.outcomes import Committed, Done, RefusalCode, Refused
from tailmark.plans import Trigger
from tailmark.rules.answers import SMALLEST_WINDOW, decided, is_about_the_store
from tailmark.rules.changes import any_change, session_of, shown_outcome
from tailmark.rules.compactions import asked_plan, chosen_places, tail_cost
from tailmark.rules.saving import refused
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


@frozen(kw_only=True)
class _Figures:
    """A session's sizes after a step."""

    session: SessionId
    model: Model
    settings: Settings
    budgets: Budgets


# Every predicate of this chapter asks this of one step.
@lru_cache(maxsize=1)
def _figures(seen: Seen) -> tuple[_Figures, ...]:
    """The sizes of the session that a step is about, and of those that changed in them."""
    scene = seen.after
    asked = session_of(seen.operation)
    sessions = {view.session for view in seen.change.sessions}
    if asked is not None:
        sessions.add(asked)
    found = []
    for session in sorted(sessions):
        if not scene.knows_session(session):
            continue
        figures = _Figures(
            session=session,
            model=scene.model(session),
            settings=scene.settings(session),
            budgets=scene.budgets(session),
        )
        if session == asked or not seen.before.knows_session(session) or _differs(seen, figures):
            found.append(figures)
    return tuple(found)


def _differs(seen: Seen, figures: _Figures) -> bool:
    before, session = seen.before, figures.session
    return (before.model(session), before.settings(session), before.budgets(session)) != (
        figures.model,
        figures.settings,
        figures.budgets,
    )


def _all_hold(faults: Iterator[str | None]) -> Result:
    exercised = False
    for fault in faults:
        if fault is not None:
            return Violated(fault)
        exercised = True
    return HOLDS if exercised else None


def cap_1(seen: Seen) -> Result:
    """The safe input limit is the model's context window without the reserve."""
    return _all_hold(
        None
        if one.budgets.window == one.model.window
        and one.budgets.safe == one.budgets.window - one.budgets.reserve
        else f"expected a safe limit of {one.model.window} without the reserve {one.budgets.reserve}, saw {one.budgets.safe}"
        for one in _figures(seen)
    )


def cap_2(seen: Seen) -> Result:
    """Reserve, safe limit and every budget are 1 or more; a window below 16 is refused."""
    operation = seen.operation
    if isinstance(operation, SetModel):
        answer = decided(seen, refused(RefusalCode.SETTINGS))
        if answer is not None:
            return answer
    return _all_hold(
        _cap_2_fault(one.budgets) for one in _figures(seen) if one.model.window >= SMALLEST_WINDOW
    )


def _cap_2_fault(budgets: Budgets) -> str | None:
    if not 0 < budgets.reserve < budgets.window:
        return f"expected a reserve between 0 and the window {budgets.window}, saw {budgets.reserve}"
    if budgets.summary < 1 or budgets.tail == 0:
        return (
            f"expected budgets of 1 or more, saw a summary of {budgets.summary} and a tail of {budgets.tail}"
        )
    return None


def cap_3(seen: Seen) -> Result:
    """All else equal, nothing shrinks when the window grows; reserve and tail budget grow with it up to their caps."""
    exercised = False
    for one in _figures(seen):
        for (model, settings), theirs in seen.memory.budgets.items():
            same = (model.name, model.max_output, settings) == (
                one.model.name,
                one.model.max_output,
                one.settings,
            )
            if not same or model.window == one.model.window or theirs.scaled or one.budgets.scaled:
                continue
            small, large = (theirs, one.budgets) if model.window < one.model.window else (one.budgets, theirs)
            fault = _shrinks(small, large) or _does_not_grow(seen, one.settings, small, large)
            if fault is not None:
                return Violated(fault)
            exercised = True
    return HOLDS if exercised else None


def _shrinks(small: Budgets, large: Budgets) -> str | None:
    pairs = (
        ("reserve", small.reserve, large.reserve),
        ("safe limit", small.safe, large.safe),
        ("threshold", small.threshold, large.threshold),
        ("tail budget", small.tail or 0, large.tail or small.tail or 0),
    )
    for name, before, after in pairs:
        if after < before:
            return (
                f"expected a {name} of {before} or more, as with the window {small.window}, "
                f"saw {after} with the window {large.window}"
            )
    return None


def _does_not_grow(seen: Seen, settings: Settings, small: Budgets, large: Budgets) -> str | None:
    """Whether a figure below its cap stays although the window is a multiple. Rounding may hide less."""
    if large.window < 16 * small.window or settings.overhead > 0:
        return None
    parameters = seen.declaration.parameters
    pairs = (
        ("reserve", settings.reserve, small.reserve, large.reserve, parameters.reserve_cap),
        ("tail budget", settings.tail, small.tail or 0, large.tail or 0, parameters.tail_cap),
    )
    for name, wish, before, after, cap in pairs:
        if wish is None and 0 < before == after < cap:
            return f"expected the {name} to grow with the window up to {cap}, saw {after} with {small.window} and {large.window}"
    return None


def cap_4(seen: Seen) -> Result:
    """A summary budget is at most the reserve and at most what the model puts out."""
    return _all_hold(
        None
        if one.budgets.summary <= min(one.budgets.reserve, one.model.max_output)
        else f"expected a summary budget of at most {min(one.budgets.reserve, one.model.max_output)}, saw {one.budgets.summary}"
        for one in _figures(seen)
    )


def _kept(budgets: Budgets) -> int:
    """What a compaction without an oversized turn leaves at most."""
    return budgets.overhead + (budgets.tail or 0) + budgets.summary


def cap_5(seen: Seen) -> Result:
    """Overhead, tail and summary stay a margin below the threshold, or the margin is 0 and automatic compactions are off."""
    plan = asked_plan(seen) if Field.PLAN not in seen.declaration.hidden else None
    if plan is not None and plan.trigger is Trigger.AUTOMATIC and plan.budgets.margin == 0:
        return Violated(
            "expected no automatic compaction where the overhead leaves no room, saw one", plan.leaf
        )
    landed = _landing(seen)
    if isinstance(landed, Violated):
        return landed
    return _all_hold(_cap_5_fault(one) for one in _figures(seen)) or landed


def _cap_5_fault(one: _Figures) -> str | None:
    budgets = one.budgets
    if budgets.overhead != one.settings.overhead:
        return f"expected the overhead {one.settings.overhead} in the budgets, saw {budgets.overhead}"
    room = budgets.threshold - _kept(budgets)
    if budgets.margin == 0:
        return None if room < 1 else f"expected a margin, because {room} tokens are left; saw none"
    if room >= budgets.margin:
        return None
    return f"expected at most {budgets.threshold - budgets.margin} for overhead, tail and summary, saw {_kept(budgets)}"


def _landing(seen: Seen) -> Result:
    """An automatic compaction whose tail fits its budget lands below the threshold."""
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or not isinstance(seen.outcome, Committed):
        return None
    plan = operation.plan
    places = chosen_places(seen)
    if plan.trigger is not Trigger.AUTOMATIC or not places or not seen.after.knows_session(plan.session):
        return None
    chosen, budgets = places[0], seen.after.budgets(plan.session)
    if chosen.place is None or budgets != plan.budgets or budgets.tail is None or budgets.margin == 0:
        return None
    if tail_cost(chosen, chosen.place) > budgets.tail:
        return None
    tokens = seen.after.occupancy(plan.session).tokens
    return holds_if(
        tokens < budgets.threshold,
        f"expected to land below the threshold {budgets.threshold}, saw {tokens}",
        chosen.node,
    )


def cap_5a(seen: Seen) -> Result:
    """Where nothing is set and the overhead is at most a third of the safe limit, the margin is a quarter of that limit or more."""
    return _all_hold(
        None
        if 4 * one.budgets.margin >= one.budgets.safe
        else f"expected a margin of a quarter of {one.budgets.safe}, saw {one.budgets.margin}"
        for one in _figures(seen)
        if not _wishes(one.settings) and 3 * one.settings.overhead <= one.budgets.safe
    )


def cap_6(seen: Seen) -> Result:
    """The threshold is 1 or more and at most the safe limit."""
    return _all_hold(
        None
        if 0 < one.budgets.threshold <= one.budgets.safe
        else f"expected a threshold of at most {one.budgets.safe}, saw {one.budgets.threshold}"
        for one in _figures(seen)
    )


def _wishes(settings: Settings) -> dict[SettingName, Tokens]:
    """The absolute figures that are set."""
    figures = {
        SettingName.RESERVE: settings.reserve,
        SettingName.THRESHOLD: settings.threshold,
        SettingName.TAIL: settings.tail,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def cap_7(seen: Seen) -> Result:
    """Settings that contradict each other are refused with the wrong figure; what does not fit after a change of model is named as scaled."""
    operation = seen.operation
    if is_about_the_store(seen.outcome):
        return None
    if isinstance(operation, SetSettings) and seen.before.knows_session(operation.session):
        outcome = shown_outcome(seen)
        if isinstance(outcome, Refused) and outcome.code is RefusalCode.SETTINGS:
            return _refused_rightly(seen, operation, outcome)
        impossible = _impossible(seen.before.model(operation.session), operation.settings)
        if impossible is not None and isinstance(outcome, Done):
            return Violated(f"expected refused(settings) for the {impossible}, saw done")
    return _all_hold(
        _wish_fault(one) for one in _figures(seen) if _wishes(one.settings) or one.budgets.scaled
    )


def _impossible(model: Model, settings: Settings) -> SettingName | None:
    """A figure that no implementation can take."""
    for name, figure in _wishes(settings).items():
        if figure < 1 or (name is SettingName.RESERVE and figure >= model.window):
            return name
        if name is SettingName.THRESHOLD and figure > model.window:
            return name
    return None


def _refused_rightly(seen: Seen, operation: SetSettings, outcome: Refused) -> Result:
    wrong, wishes = outcome.wrong, _wishes(operation.settings)
    if wrong is None or wishes.get(wrong.setting) != wrong.figure:
        told = ", ".join(f"{name} {figure}" for name, figure in wishes.items()) or "nothing"
        saw = "none" if wrong is None else f"{wrong.setting} {wrong.figure}"
        return Violated(f"expected one of the figures that were set ({told}) to be named as wrong, saw {saw}")
    departs = any_change(seen)
    return holds_if(departs is None, f"expected refused settings to change nothing, saw that {departs}")


def _wish_fault(one: _Figures) -> str | None:
    seen = {
        SettingName.RESERVE: one.budgets.reserve,
        SettingName.THRESHOLD: one.budgets.threshold,
        SettingName.TAIL: one.budgets.tail,
    }
    wishes = _wishes(one.settings)
    for name, figure in seen.items():
        if name in one.budgets.scaled:
            if name not in wishes:
                return f"expected only figures that were set to be scaled, saw {name}"
        elif name in wishes and wishes[name] != figure:
            return f"expected the {name} {wishes[name]} that was set, or that it is named as scaled; saw {figure}"
    return None
