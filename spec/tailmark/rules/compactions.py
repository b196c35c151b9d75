"""What a step shows of a compaction: the place that was chosen, the checkpoint that was written.

A place becomes visible twice: in a plan, and in the checkpoint that a commit writes. Clauses on places judge
both, so that they also serve where plans are hidden. Places are counted: a place is the number of messages of
its branch that stand before it.
"""

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from tailmark.budgets import Budgets
from tailmark.declarations import (
    AdvanceReading,
    Field,
    MeasureReading,
    OversizedReading,
    Readings,
    TailReading,
)
from tailmark.identifiers import CallId, NodeId, PartId, SessionId, Tokens
from tailmark.operations import CommitCompaction
from tailmark.outcomes import Previewed, begun_plan
from tailmark.plans import Checkpoint, EditFor, Plan, Purpose, RetryFor, SendFor, Trigger
from tailmark.rules.changes import added, is_checkpoint
from tailmark.rules.scene import HiddenFieldError, Mark, Scene, checkpoint_of, latest_checkpoint
from tailmark.rules.verdicts import Seen


@frozen(kw_only=True)
class Terms:
    """What a place is chosen by: the budgets, and what waits behind the branch with its estimate, ``None`` and 0 without it."""

    budgets: Budgets
    purpose: Purpose | None = None
    draft: Tokens = Tokens(0)


@frozen(kw_only=True, eq=False, repr=False)
class Chosen:
    """A place that a step shows.

    ``branch`` is the node that the checkpoint follows or would follow. ``previous`` is the latest checkpoint
    up to there. ``place`` and ``present`` are ``None`` if they name no place of the branch; without a previous
    checkpoint the present place is the root, 0. ``written`` is the new checkpoint, ``None`` for a plan.
    ``scene`` is where the branch is read: before the step for a plan, after it for a checkpoint. ``figure`` and ``covered`` are the ratio that its
    costs are measured with. ``terms`` are those of the plan behind it, ``None`` where none can be seen.
    """

    scene: Scene
    branch: Mark
    previous: Mark | None
    first_kept: NodeId | None
    trigger: Trigger
    place: int | None
    present: int | None
    written: Mark | None
    figure: Tokens | None
    covered: Tokens
    terms: Terms | None

    def scaled(self, tokens: int) -> Tokens:
        """An estimate in the measure of the budgets (OCC-15)."""
        return scaled(tokens, self.figure, self.covered)

    @property
    def pressed(self) -> bool:
        """Whether nobody asked for it: it is automatic or makes room for a request."""
        return self.trigger is not Trigger.MANUAL

    @property
    def has_draft(self) -> bool:
        """Whether a draft follows the branch."""
        return self.terms is not None and isinstance(self.terms.purpose, SendFor | EditFor)

    @property
    def node(self) -> NodeId:
        """The node that a verdict on this place speaks of."""
        return self.written.id if self.written is not None else self.branch.id

    @property
    def kept(self) -> Mark | None:
        """The first message behind the place; ``None`` if none stands there or there is no such place."""
        return None if self.place is None else message_at(self.branch, self.place)


def place_of(branch: Mark, first_kept: NodeId | None) -> int | None:
    """How many messages of a branch stand before the place that ``first_kept`` names; ``None`` if it names none of them."""
    if first_kept is None:
        return branch.messages
    for mark in branch.walk():
        if mark.id == first_kept:
            return mark.messages - 1 if mark.message is not None else None
    return None


def message_at(branch: Mark, place: int) -> Mark | None:
    """The first message behind a place of a branch."""
    found: Mark | None = None
    for mark in branch.walk():
        if mark.messages <= place:
            break
        if mark.message is not None:
            found = mark
    return found


def between(branch: Mark, start: int, end: int) -> tuple[Mark, ...]:
    """The messages of a branch between two places, in branch order. It reads up to ``start`` and no further."""
    found = []
    for mark in branch.walk():
        if mark.messages <= start:
            break
        if mark.message is not None and mark.messages <= end:
            found.append(mark)
    return tuple(reversed(found))


def ids(marks: tuple[Mark, ...]) -> tuple[NodeId, ...]:
    """The ids of nodes."""
    return tuple(mark.id for mark in marks)


def present_place(scene: Scene, branch: Mark) -> int | None:
    """How many messages stand before the latest checkpoint's place; 0 without a checkpoint, ``None`` if it names no ancestor."""
    latest = latest_checkpoint(branch)
    return scene.place(latest) if latest is not None else 0


# Many predicates ask this of one step.
@lru_cache(maxsize=1)
def new_checkpoints(seen: Seen) -> tuple[Mark, ...]:
    """The checkpoints that are stored after the step and were not before it."""
    marks = (seen.after.mark(node.content.id) for node in added(seen) if is_checkpoint(node))
    return tuple(mark for mark in marks if mark is not None)


def scaled(tokens: int, figure: int | None, covered: int) -> Tokens:
    """An estimate times a ratio of at least 1, rounded up. Hidden where the ratio is."""
    if figure is None:
        raise HiddenFieldError(Field.OCCUPANCY)
    return Tokens(-(-tokens * figure // covered) if 0 < covered < figure else tokens)


def asked_plan(seen: Seen) -> Plan | None:
    """The plan that a step began or previewed, whoever wanted it. Hidden where plans are."""
    plan = seen.outcome.plan if isinstance(seen.outcome, Previewed) else begun_plan(seen.outcome)
    return seen.plan(plan) if plan is not None else None


def base_of(scene: Scene, session: SessionId, purpose: Purpose | None) -> Mark | None:
    """The node that a compaction's checkpoint follows: the leaf, but in retry and edit (CHK-1)."""
    end = scene.end(session)
    match purpose:
        case None | SendFor():
            return end
        case EditFor(target=target):
            mark = scene.mark(target)
            return mark.above if mark is not None else None
        case RetryFor():
            first: Mark | None = None
            for mark in end.walk() if end is not None else ():
                if mark.opens_turn:
                    return first.above if first is not None else end
                if mark.message is not None:
                    first = mark
            return None


def ratio_of(seen: Seen, figure: Tokens, covered: Tokens) -> tuple[Tokens | None, Tokens]:
    """A ratio as the implementation's reading uses it; a figure of ``None`` where it uses one that it cannot show."""
    if seen.declaration.readings.measure is MeasureReading.PLAIN:
        return Tokens(0), Tokens(0)
    return (figure if Field.OCCUPANCY not in seen.declaration.hidden else None), covered


def _planned(seen: Seen) -> Chosen | None:
    plan = asked_plan(seen)
    if plan is None or not seen.before.knows_session(plan.session):
        return None
    branch = base_of(seen.before, plan.session, plan.purpose)
    return chosen_by(seen, plan, branch) if branch is not None else None


def chosen_by(seen: Seen, plan: Plan, branch: Mark) -> Chosen:
    """The place that a plan for a branch chooses, read before the step."""
    figure, covered = ratio_of(seen, plan.occupancy.figure, plan.occupancy.covered)
    return Chosen(
        scene=seen.before,
        branch=branch,
        previous=latest_checkpoint(branch),
        first_kept=plan.first_kept,
        trigger=plan.trigger,
        place=place_of(branch, plan.first_kept),
        present=present_place(seen.before, branch),
        written=None,
        figure=figure,
        covered=covered,
        terms=_terms_of(plan),
    )


# Many predicates ask this of one step.
@lru_cache(maxsize=1)
def chosen_places(seen: Seen) -> tuple[Chosen, ...]:
    """The places that a step shows: one for a plan, one for each new checkpoint. Hidden where a plan is and plans are."""
    planned = _planned(seen)
    if planned is not None:
        return (planned,)
    found = []
    for written in new_checkpoints(seen):
        content = written.stored.content
        branch = written.above
        if branch is not None and isinstance(content, Checkpoint):
            trigger, ratio = _recorded(seen, content)
            figure, covered = ratio_of(seen, *ratio)
            found.append(
                Chosen(
                    scene=seen.after,
                    branch=branch,
                    previous=latest_checkpoint(branch),
                    first_kept=content.first_kept,
                    trigger=trigger,
                    place=place_of(branch, content.first_kept),
                    present=present_place(seen.after, branch),
                    written=written,
                    figure=figure,
                    covered=covered,
                    terms=_brought(seen),
                )
            )
    return tuple(found)


def _recorded(seen: Seen, checkpoint: Checkpoint) -> tuple[Trigger, tuple[Tokens, Tokens]]:
    """The trigger and the ratio of a new checkpoint: as it records them, or else as the plan behind it says."""
    if seen.after.shows(Field.RECORD):
        return checkpoint.trigger, (checkpoint.figure, checkpoint.covered)
    plan = plan_behind(seen)
    if plan is None:
        raise HiddenFieldError(Field.RECORD)
    return plan.trigger, (plan.occupancy.figure, plan.occupancy.covered)


def _terms_of(plan: Plan) -> Terms:
    return Terms(budgets=plan.budgets, purpose=plan.purpose, draft=plan.draft)


def _brought(seen: Seen) -> Terms | None:
    """The terms of the plan that a commit brings, where plans can be seen."""
    if not isinstance(seen.operation, CommitCompaction) or Field.PLAN in seen.declaration.hidden:
        return None
    plan = plan_behind(seen)
    return _terms_of(plan) if plan is not None else None


def would_choose(
    scene: Scene,
    branch: Mark,
    trigger: Trigger,
    terms: Terms,
    ratio: tuple[Tokens | None, Tokens],
) -> Chosen:
    """What the place of a compaction would be chosen from, before any is chosen. Its own place is the present one."""
    present = present_place(scene, branch)
    return Chosen(
        scene=scene,
        branch=branch,
        previous=latest_checkpoint(branch),
        first_kept=None,
        trigger=trigger,
        place=present,
        present=present,
        written=None,
        figure=ratio[0],
        covered=ratio[1],
        terms=terms,
    )


def plan_behind(seen: Seen) -> Plan | None:
    """The plan behind a place that the step shows: as it was begun, if this process began it. Hidden where plans are."""
    if isinstance(seen.operation, CommitCompaction):
        brought = seen.plan(seen.operation.plan)
        known = seen.known_plan(brought.session, brought.id)
        return known.plan if known is not None else brought
    return asked_plan(seen)


def latest_summary(chosen: Chosen) -> str | None:
    """The summary of the latest checkpoint of the branch."""
    return checkpoint_of(chosen.previous).summary if chosen.previous is not None else None


def covered_by(chosen: Chosen) -> tuple[NodeId, ...] | None:
    """The messages between the present place and the new one; ``None`` if one of the two cannot be told."""
    if chosen.place is None or chosen.present is None:
        return None
    return ids(between(chosen.branch, chosen.present, chosen.place))


def names_present_place(chosen: Chosen, old_first_kept: NodeId | None) -> bool:
    """Whether a plan or checkpoint names the present place. The root and an open place may be named by the message behind them."""
    if chosen.present is None:
        return False
    behind = message_at(chosen.branch, chosen.present)
    if behind is not None and old_first_kept == behind.id:
        return True
    if chosen.previous is None:
        return old_first_kept is None
    return old_first_kept == checkpoint_of(chosen.previous).first_kept


def cost_of(scene: Scene, marks: tuple[Mark, ...]) -> Tokens:
    """What messages cost together, in the implementation's own estimate."""
    return Tokens(sum(scene.estimate(mark.id) for mark in marks))


def tail_cost(chosen: Chosen, place: int) -> Tokens:
    """What the messages behind a place cost, in the measure of the budgets."""
    return chosen.scaled(cost_of(chosen.scene, between(chosen.branch, place, chosen.branch.messages)))


def tail_costs(chosen: Chosen) -> Mapping[int, Tokens]:
    """`tail_cost` of every place at or after the present one, in one pass."""
    total = 0
    costs = {chosen.branch.messages: Tokens(0)}
    for mark in reversed(between(chosen.branch, chosen.present or 0, chosen.branch.messages)):
        total += chosen.scene.estimate(mark.id)
        costs[mark.messages - 1] = chosen.scaled(total)
    return costs


def candidates(chosen: Chosen) -> tuple[int, ...]:
    """The places that a compaction may choose, oldest first.

    They are those before the turn openers at or after the present place, without a previous checkpoint all but
    the first of the branch (BND-8). A manual compaction may stay at the present place of a checkpoint; the others must advance.
    """
    if chosen.present is None:
        return ()
    places = [
        mark.messages - 1
        for mark in between(chosen.branch, chosen.present, chosen.branch.messages)
        if mark.opens_turn and (chosen.previous is not None or mark.turns > 1)
    ]
    others = [place for place in places if place != chosen.present]
    if chosen.pressed:
        return tuple(others)
    if chosen.branch.message is None:
        return (chosen.present,)  # nothing new behind the checkpoint: only a refresh
    if chosen.previous is not None and chosen.present < chosen.branch.messages:
        return (chosen.present, *others)
    return tuple(places)


def request_size(chosen: Chosen, place: int) -> int | None:
    """What a request with the tail behind a place may come to: a whole summary budget, overhead, tail and draft (BND-3, BND-5)."""
    terms = chosen.terms
    if terms is None or terms.budgets.window == 0:
        return None
    tail = cost_of(chosen.scene, between(chosen.branch, place, chosen.branch.messages))
    return terms.budgets.summary + chosen.scaled(terms.budgets.overhead + tail + terms.draft)


def keeps_request(chosen: Chosen, place: int) -> bool:
    """Whether such a request stays below the limit of its trigger: at most the safe limit, for an automatic compaction below the threshold."""
    size = request_size(chosen, place)
    if size is None or chosen.terms is None:
        return True
    budgets = chosen.terms.budgets
    return size < budgets.threshold if chosen.trigger is Trigger.AUTOMATIC else size <= budgets.safe


def fits(chosen: Chosen, place: int, costs: Mapping[int, Tokens], budget: Tokens | None) -> bool:
    """Whether the tail behind a place fits the tail budget; in preflight it gives way to the draft as well (BND-3)."""
    if budget is not None and costs[place] > budget:
        return False
    return chosen.trigger is not Trigger.PREFLIGHT or keeps_request(chosen, place)


def fitting_places(chosen: Chosen, budget: Tokens | None) -> tuple[int, ...]:
    """The candidates whose tail fits."""
    costs = tail_costs(chosen)
    return tuple(place for place in candidates(chosen) if fits(chosen, place, costs, budget))


def summary_too_long(chosen: Chosen) -> bool:
    """Whether the present summary alone exceeds the summary budget (TRG-10)."""
    terms = chosen.terms
    if terms is None or terms.budgets.window == 0 or chosen.previous is None:
        return False
    return chosen.scaled(chosen.scene.estimate(chosen.previous.id)) > terms.budgets.summary


def allowed_places(chosen: Chosen, budget: Tokens | None, readings: Readings) -> tuple[int, ...]:
    """Every place that the clauses of level MUST leave to a compaction of the branch under a tail budget."""
    end = chosen.branch.messages
    if readings.tail is TailReading.KEEPS_NOTHING:
        return (end,)
    fitting = fitting_places(chosen, budget)
    if chosen.pressed:
        return _allowed_to_pressed(chosen, readings, fitting)
    if not fitting:
        return candidates(chosen)[-1:]
    costs = tail_costs(chosen)
    whole_fits = budget is None or costs.get(chosen.present or 0, Tokens(0)) <= budget
    if chosen.previous is None or not whole_fits:
        return fitting
    return candidates(chosen)[-1:] if readings.advance is AdvanceReading.TO_LAST_TURN else fitting[:1]


def _allowed_to_pressed(chosen: Chosen, readings: Readings, fitting: tuple[int, ...]) -> tuple[int, ...]:
    preflight = chosen.trigger is Trigger.PREFLIGHT
    refreshes = (
        (chosen.present,) if preflight and chosen.present is not None and summary_too_long(chosen) else ()
    )
    if fitting:
        return (*refreshes, *fitting)
    kept = kept_last_turn(chosen, readings)
    if kept is not None:
        return (*refreshes, kept)
    opens = chosen.has_draft if preflight else readings.oversized is OversizedReading.OPEN
    if opens and chosen.present is not None and chosen.present < chosen.branch.messages:
        return (*refreshes, chosen.branch.messages)
    return refreshes


def kept_last_turn(chosen: Chosen, readings: Readings) -> int | None:
    """The place before the last turn, where a compaction that nobody asked for keeps that turn although it exceeds the budget (BND-5)."""
    places = candidates(chosen)
    if not places:
        return None
    if chosen.trigger is Trigger.PREFLIGHT and not chosen.has_draft:
        return places[-1]  # the question of a retry stays whole
    keeps = readings.oversized is OversizedReading.KEEP_IF_FITS
    return places[-1] if keeps and keeps_request(chosen, places[-1]) else None


def calls_apart(chosen: Chosen) -> tuple[CallId, ...]:
    """The calls made before a place whose results stand behind it."""
    kept = chosen.kept
    return _settled_behind(kept, _still_open(chosen)) if kept is not None else ()


def could_part_calls(chosen: Chosen) -> bool:
    """Whether some place at or after the present one would stand between a call and its result."""
    if chosen.present is None:
        return False
    still_open = _still_open(chosen)
    return any(
        _settled_behind(mark, still_open)
        for mark in between(chosen.branch, chosen.present, chosen.branch.messages)
    )


def _still_open(chosen: Chosen) -> frozenset[tuple[NodeId, PartId]]:
    return frozenset((known.message, known.part) for known in chosen.branch.open_calls)


def _settled_behind(mark: Mark, still_open: frozenset[tuple[NodeId, PartId]]) -> tuple[CallId, ...]:
    if mark.above is None:
        return ()
    return tuple(
        known.call for known in mark.above.open_calls if (known.message, known.part) not in still_open
    )


def leads_to(seen: Seen, checkpoint: NodeId) -> tuple[SessionId, ...]:
    """The sessions whose leaf is a new checkpoint, or the message of the request that it was made for, right behind it."""
    found = []
    for view in seen.change.sessions:
        leaf = seen.after.node(view.leaf) if view.leaf is not None else None
        if leaf is None:
            continue
        behind = leaf.parent == checkpoint and seen.before.node(leaf.content.id) is None
        if leaf.content.id == checkpoint or behind:
            found.append(view.session)
    return tuple(found)


def changed_running(seen: Seen, session: SessionId) -> bool:
    """Whether an answer began, ended or moved on a session."""
    return seen.before.running(session) != (
        seen.after.running(session) if seen.after.knows_session(session) else None
    )
