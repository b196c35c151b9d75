"""Predicates of the chapter on the boundary: where the verbatim tail begins."""

from tailmark.declarations import Field, OversizedReading, TailReading
from tailmark.identifiers import Tokens
from tailmark.plans import Plan, Trigger
from tailmark.rules.compactions import (
    Chosen,
    asked_plan,
    between,
    calls_apart,
    candidates,
    chosen_places,
    cost_of,
    could_part_calls,
    fitting_places,
    keeps_request,
    kept_last_turn,
    place_of,
    plan_behind,
    request_size,
    tail_cost,
    tail_costs,
)
from tailmark.rules.scene import Mark
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def _first(seen: Seen) -> Chosen | None:
    """The place that the step shows. A step that writes two checkpoints breaks TREE-3; the first is judged."""
    places = chosen_places(seen)
    return places[0] if places else None


def _keeps_turns(seen: Seen) -> bool:
    return seen.declaration.readings.tail is TailReading.KEEPS_TURNS


def _named(chosen: Chosen) -> str:
    return f"the place before {chosen.first_kept}" if chosen.first_kept is not None else "the end"


def bnd_1(seen: Seen) -> Result:
    """The place is before a message that opens a turn; under the reading `keeps-nothing` it is the end."""
    chosen = _first(seen)
    if chosen is None:
        return None
    if not _keeps_turns(seen):
        return holds_if(
            chosen.first_kept is None,
            f"expected the end of the branch as the place, saw {_named(chosen)}",
            chosen.node,
        )
    if chosen.first_kept is None:
        return (
            HOLDS
            if _may_be_open(seen, chosen)
            else Violated("expected a place before a turn opener, saw the end of the branch", chosen.node)
        )
    kept = chosen.kept
    if chosen.place is None or kept is None:
        return Violated(
            f"expected a place on the branch, saw {chosen.first_kept}, which is no message of it", chosen.node
        )
    if kept.opens_turn:
        return HOLDS
    if chosen.previous is not None and chosen.place == chosen.present:
        # A loaded store may have such a place; a refresh leaves it where it is.
        return None
    return Violated(
        f"expected a place before a turn opener, saw {chosen.first_kept}, which opens none", chosen.node
    )


def _may_be_open(seen: Seen, chosen: Chosen) -> bool:
    """Whether the end of the branch is a place here: a draft follows, it is declared, or a refresh leaves an open place open."""
    if chosen.previous is not None and chosen.place == chosen.present:
        return True
    if chosen.trigger is Trigger.AUTOMATIC:
        return seen.declaration.readings.oversized is OversizedReading.OPEN
    if chosen.trigger is Trigger.PREFLIGHT:
        # Of an imported log the draft cannot be told.
        return chosen.terms is None or chosen.has_draft
    return False


def bnd_2(seen: Seen) -> Result:
    """The place never stands between a call and its result."""
    chosen = _first(seen)
    if chosen is None or chosen.place is None:
        return None
    apart = calls_apart(chosen)
    if apart:
        return Violated(
            f"expected every call with its result, saw {', '.join(apart)} made before {chosen.first_kept} and settled behind it",
            chosen.node,
        )
    return HOLDS if could_part_calls(chosen) else None


def _budget(seen: Seen, chosen: Chosen) -> tuple[Plan, Tokens] | None:
    """The plan and its tail budget, where turns are kept and the budget is bounded."""
    if not _keeps_turns(seen) or chosen.place is None:
        return None
    plan = plan_behind(seen)
    if plan is None:
        return None
    seen.wants(Field.BUDGETS)
    return (plan, plan.budgets.tail) if plan.budgets.tail is not None else None


def _is_refresh_of_long_summary(chosen: Chosen) -> bool:
    """A compaction that stays where it is because the summary is too long is TRG-10A's and TRG-10B's: by hand, right behind the checkpoint."""
    stays = chosen.previous is not None and chosen.place == chosen.present
    return stays and (chosen.pressed or chosen.branch.message is None)


def bnd_3(seen: Seen) -> Result:
    """The tail fits the tail budget whenever an allowed place makes it fit."""
    chosen = _first(seen)
    bounded = _budget(seen, chosen) if chosen is not None else None
    if chosen is None or bounded is None or chosen.place is None or chosen.present is None:
        return None
    _, budget = bounded
    if _is_refresh_of_long_summary(chosen) or not fitting_places(chosen, budget):
        return None
    if not chosen.pressed and tail_cost(chosen, chosen.present) <= budget:
        return None
    cost = tail_cost(chosen, chosen.place)
    if cost > budget:
        return Violated(
            f"expected a tail of at most {budget}, saw {cost} behind {_named(chosen)}", chosen.node
        )
    if chosen.trigger is Trigger.PREFLIGHT and not keeps_request(chosen, chosen.place):
        size = request_size(chosen, chosen.place)
        return Violated(
            f"expected the tail to give way to the draft, saw a request of up to {size} behind {_named(chosen)}",
            chosen.node,
        )
    return HOLDS


def bnd_4(seen: Seen) -> Result:
    """Of the places that make the tail fit it is the oldest."""
    chosen = _first(seen)
    if chosen is None or chosen.place is None:
        return None
    plan = plan_behind(seen) if _keeps_turns(seen) else None
    if plan is None:
        return None
    seen.wants(Field.BUDGETS)
    budget = plan.budgets.tail
    fitting = fitting_places(chosen, budget)
    if len(fitting) < 2 or chosen.place not in fitting:
        return None
    if not chosen.pressed and chosen.previous is None and (budget is None or tail_cost(chosen, 0) <= budget):
        return None  # BND-9 and BND-9A go before
    if not chosen.pressed and chosen.previous is not None and fitting[0] == chosen.present:
        return None  # TRG-4 says what happens where the budget does not move the place
    return holds_if(
        chosen.place == fitting[0],
        f"expected the oldest place whose tail fits {budget}, saw {_named(chosen)}, {chosen.place - fitting[0]} messages later",
        chosen.node,
    )


def _turns_from(chosen: Chosen, place: int) -> tuple[tuple[Mark, ...], ...]:
    """The messages behind a place turn by turn; the first run may be a part of a turn."""
    turns: list[list[Mark]] = []
    for mark in between(chosen.branch, place, chosen.branch.messages):
        if mark.opens_turn or not turns:
            turns.append([])
        turns[-1].append(mark)
    return tuple(tuple(turn) for turn in turns)


def bnd_5(seen: Seen) -> Result:
    """A turn that alone exceeds the budget is not kept for an older message's sake; as the last turn it is kept whole."""
    chosen = _first(seen)
    bounded = _budget(seen, chosen) if chosen is not None else None
    if chosen is None or bounded is None or chosen.place is None or chosen.present is None:
        return None
    _, budget = bounded
    turns = _turns_from(chosen, chosen.present)
    oversized = [
        index for index, turn in enumerate(turns) if chosen.scaled(cost_of(chosen.scene, turn)) > budget
    ]
    if not oversized or _is_refresh_of_long_summary(chosen):
        return None
    last = oversized[-1]
    if last < len(turns) - 1:
        after = turns[last + 1][0]
        return holds_if(
            chosen.place >= after.messages - 1,
            f"expected the turn of {turns[last][0].id}, above {budget} alone, not to be kept, saw {_named(chosen)}",
            chosen.node,
        )
    if chosen.pressed:
        return _last_turn_under_pressure(seen, chosen, budget)
    if len(turns) == 1 and chosen.previous is None:
        return None  # the branch has one turn, and TRG-3 says what is answered
    opener = turns[last][0]
    return holds_if(
        chosen.place == opener.messages - 1,
        f"expected the last turn whole, from {opener.id}, saw {_named(chosen)}",
        chosen.node,
    )


def _last_turn_under_pressure(seen: Seen, chosen: Chosen, budget: Tokens) -> Result:
    """The last turn exceeds the budget, and nobody asked: it is kept whole where that fits, else an automatic compaction does not run and a preflight keeps nothing."""
    if fitting_places(chosen, budget) or (chosen.trigger is Trigger.PREFLIGHT and not chosen.has_draft):
        return None  # RETRY-6 speaks of retries
    kept = kept_last_turn(chosen, seen.declaration.readings)
    if kept is not None:
        return holds_if(
            chosen.place == kept, f"expected the last turn whole, saw {_named(chosen)}", chosen.node
        )
    if chosen.trigger is Trigger.AUTOMATIC and not _may_be_open(seen, chosen):
        return Violated(
            "expected no automatic compaction, because the last turn can neither be kept nor dropped, saw one",
            chosen.node,
        )
    return holds_if(
        chosen.place == chosen.branch.messages,
        f"expected nothing to be kept, because the last turn does not fit, saw {_named(chosen)}",
        chosen.node,
    )


def _by_count(seen: Seen, chosen: Chosen) -> set[int]:
    """The places at which this step would keep as many turns, or messages, as an earlier plan of this process kept."""
    tail = between(chosen.branch, chosen.present or 0, chosen.branch.messages)
    openers = tuple(mark.messages - 1 for mark in tail if mark.opens_turn)
    places = set()
    for known in seen.plans.values():
        leaf = chosen.scene.mark(known.plan.leaf)
        if leaf is None:
            continue
        place = place_of(leaf, known.plan.first_kept)
        if place is None:
            continue
        kept = between(leaf, place, leaf.messages)
        turns = sum(mark.opens_turn for mark in kept)
        if 0 < turns <= len(openers):
            places.add(openers[-turns])
        within = tuple(opener for opener in openers if chosen.branch.messages - opener <= len(kept))
        if within:
            places.add(within[0])
    return places


def bnd_6(seen: Seen) -> Result:
    """Costs decide the place: a number of turns or messages that was kept before is not kept where it no longer fits."""
    plan = asked_plan(seen)
    chosen = _first(seen) if plan is not None and seen.plans else None
    bounded = _budget(seen, chosen) if chosen is not None and not chosen.pressed else None
    if chosen is None or bounded is None or chosen.place is None:
        return None
    _, budget = bounded
    allowed = candidates(chosen)
    costs = tail_costs(chosen)
    tempting = {place for place in _by_count(seen, chosen) if place in allowed and costs[place] > budget}
    if not tempting or not fitting_places(chosen, budget):
        return None
    if chosen.place in tempting:
        return Violated(
            f"expected the costs to decide, saw as many turns or messages kept as an earlier plan kept, though they cost "
            f"{tail_cost(chosen, chosen.place)} of {budget}",
            chosen.node,
        )
    return HOLDS if tail_cost(chosen, chosen.place) <= budget else None


def bnd_7(seen: Seen) -> Result:
    """The place is at or after the place of the checkpoint before it."""
    chosen = _first(seen)
    if chosen is None or chosen.previous is None or chosen.place is None or not chosen.present:
        return None
    return holds_if(
        chosen.place >= chosen.present,
        f"expected a place at or after that of {chosen.previous.id}, saw {_named(chosen)}, "
        f"{chosen.present - chosen.place} messages before it",
        chosen.node,
    )


def bnd_8(seen: Seen) -> Result:
    """The first checkpoint of a branch summarises at least one whole turn."""
    chosen = _first(seen)
    if chosen is None or chosen.previous is not None or chosen.place is None:
        return None
    if chosen.pressed and chosen.first_kept is None:
        return (
            HOLDS
            if chosen.place > 0
            else Violated("expected something to be summarised, saw nothing", chosen.node)
        )
    kept = chosen.kept
    if kept is None:
        whole = chosen.branch.turns
    else:
        before = kept.above.turns if kept.above is not None else 0
        # Where the place stands within a turn, the turn before it is not whole.
        whole = before if kept.opens_turn else before - 1
    return holds_if(whole >= 1, f"expected a whole turn to be summarised, saw {_named(chosen)}", chosen.node)


def _first_manual(seen: Seen) -> Chosen | None:
    chosen = _first(seen) if _keeps_turns(seen) else None
    if chosen is None or chosen.previous is not None or chosen.trigger is not Trigger.MANUAL:
        return None
    return chosen


def bnd_9(seen: Seen) -> Result:
    """Manual, no checkpoint, two turns: the first is summarised, the second stays whole."""
    chosen = _first_manual(seen)
    if chosen is None or chosen.branch.turns != 2:
        return None
    kept = chosen.kept
    return holds_if(
        kept is not None and kept.opens_turn and kept.turns == 2,
        f"expected the second turn whole and nothing else, saw {_named(chosen)}",
        chosen.node,
    )


def bnd_9a(seen: Seen) -> Result:
    """Manual, no checkpoint, more than two turns that fit the tail budget together: the last turn is kept."""
    chosen = _first_manual(seen)
    if chosen is None or chosen.branch.turns < 3:
        return None
    plan = plan_behind(seen)
    if plan is None:
        return None
    seen.wants(Field.BUDGETS)
    budget = plan.budgets.tail
    if budget is not None and tail_cost(chosen, 0) > budget:
        return None
    kept = chosen.kept
    return holds_if(
        kept is not None and kept.opens_turn and kept.turns == chosen.branch.turns,
        f"expected the last turn and nothing else, saw {_named(chosen)}",
        chosen.node,
    )
