"""What a step shows of a compaction: the place that was chosen, the checkpoint that was written.

A place becomes visible twice: in a plan, and in the checkpoint that a commit writes. Clauses on places judge
both, so that they also serve where plans are hidden. Places are counted: a place is the number of messages of
its branch that stand before it.
"""

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from tailmark.declarations import AdvanceReading, Readings, TailReading
from tailmark.identifiers import CallId, NodeId, PartId, SessionId, Tokens
from tailmark.operations import BeginCompaction, CommitCompaction, Preview
from tailmark.outcomes import Planned, Previewed
from tailmark.plans import Checkpoint, Plan, Trigger
from tailmark.rules.changes import added, is_checkpoint
from tailmark.rules.scene import Mark, Scene, checkpoint_of, latest_checkpoint
from tailmark.rules.verdicts import Seen


@frozen(kw_only=True, eq=False, repr=False)
class Chosen:
    """A place that a step shows.

    ``branch`` is the node that the checkpoint follows or would follow. ``previous`` is the latest checkpoint
    up to there. ``place`` and ``present`` are ``None`` if they name no place of the branch; without a previous
    checkpoint the present place is the root, 0. ``written`` is the new checkpoint, ``None`` for a plan.
    ``scene`` is where the branch is read: before the step for a plan, after it for a checkpoint.
    """

    scene: Scene
    branch: Mark
    previous: Mark | None
    first_kept: NodeId | None
    trigger: Trigger
    place: int | None
    present: int | None
    written: Mark | None

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


def asked_plan(seen: Seen) -> Plan | None:
    """The plan that a begin or a preview answered. Hidden where plans are."""
    match seen.operation, seen.outcome:
        case BeginCompaction() | Preview(), Planned(plan=plan) | Previewed(plan=plan):
            return seen.plan(plan)
        case _:
            return None


def _planned(seen: Seen) -> Chosen | None:
    operation = seen.operation
    if not isinstance(operation, BeginCompaction | Preview):
        return None
    plan = asked_plan(seen)
    branch = seen.before.end(operation.session)
    if plan is None or branch is None:
        return None
    return Chosen(
        scene=seen.before,
        branch=branch,
        previous=latest_checkpoint(branch),
        first_kept=plan.first_kept,
        trigger=plan.trigger,
        place=place_of(branch, plan.first_kept),
        present=present_place(seen.before, branch),
        written=None,
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
            found.append(
                Chosen(
                    scene=seen.after,
                    branch=branch,
                    previous=latest_checkpoint(branch),
                    first_kept=content.first_kept,
                    trigger=content.trigger,
                    place=place_of(branch, content.first_kept),
                    present=present_place(seen.after, branch),
                    written=written,
                )
            )
    return tuple(found)


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
    """What the messages behind a place cost."""
    return cost_of(chosen.scene, between(chosen.branch, place, chosen.branch.messages))


def tail_costs(chosen: Chosen) -> Mapping[int, Tokens]:
    """`tail_cost` of every place at or after the present one, in one pass."""
    total = 0
    costs = {chosen.branch.messages: Tokens(0)}
    for mark in reversed(between(chosen.branch, chosen.present or 0, chosen.branch.messages)):
        total += chosen.scene.estimate(mark.id)
        costs[mark.messages - 1] = Tokens(total)
    return costs


def candidates(chosen: Chosen) -> tuple[int, ...]:
    """The places that a manual compaction may choose, oldest first.

    They are those before the turn openers at or after the present place, without a previous checkpoint all but
    the first of the branch (BND-8), and the present place of a checkpoint in any case.
    """
    if chosen.present is None:
        return ()
    places = [
        mark.messages - 1
        for mark in between(chosen.branch, chosen.present, chosen.branch.messages)
        if mark.opens_turn and (chosen.previous is not None or mark.turns > 1)
    ]
    if chosen.previous is not None and chosen.present < chosen.branch.messages:
        places = [chosen.present, *(place for place in places if place != chosen.present)]
    return tuple(places)


def allowed_places(chosen: Chosen, budget: Tokens | None, readings: Readings) -> tuple[int, ...]:
    """Every place that the clauses of level MUST leave to a manual compaction of the branch under a tail budget."""
    if readings.tail is TailReading.KEEPS_NOTHING:
        return (chosen.branch.messages,)
    places = candidates(chosen)
    if budget is None:
        fitting = places
        whole_fits = True
    else:
        costs = tail_costs(chosen)
        fitting = tuple(place for place in places if costs[place] <= budget)
        whole_fits = costs.get(chosen.present or 0, Tokens(0)) <= budget
    if not fitting:
        return places[-1:]
    if chosen.previous is None or not whole_fits:
        return fitting
    return places[-1:] if readings.advance is AdvanceReading.TO_LAST_TURN else places[:1]


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


def changed_running(seen: Seen, session: SessionId) -> bool:
    """Whether an answer began, ended or moved on a session."""
    return seen.before.running(session) != (
        seen.after.running(session) if seen.after.knows_session(session) else None
    )
