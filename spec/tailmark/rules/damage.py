"""Damaged histories: what is named, what is still shown, and that nothing is written."""

from collections.abc import Iterator
from itertools import pairwise

from tailmark.damage import Damage, DamageKind, Finding, FindingKind
from tailmark.identifiers import NodeId, SessionId
from tailmark.operations import CancelCompaction, Fork, InflictDamage, Load
from tailmark.outcomes import Done, Failed, FailureReason, ReadOnly
from tailmark.plans import Checkpoint
from tailmark.rules.answers import name_of
from tailmark.rules.changes import field_change, in_both, listed, session_of, shown_outcome
from tailmark.rules.scene import Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if

_LINKS = (DamageKind.MISSING_PARENT, DamageKind.CYCLE)


def dmg_1(seen: Seen) -> Result:
    """What was damaged on a session's path is named with its node, nothing else is, and it stays named."""
    inflicted = _inflicted(seen)
    applied = False
    for session in seen.after.sessions():
        if not in_both(seen, session):
            continue
        before, after = seen.before.damage(session), seen.after.damage(session)
        if inflicted is None:
            if before != after:
                return Violated(f"expected the damage of {session} to stay as it was named; saw it change")
            applied = applied or bool(before)
            continue
        kind, node = inflicted.damage, inflicted.node
        named = [one for one in after if one not in before]
        if kind is DamageKind.MISSING_LEAF:
            if session == inflicted.session:
                if [one.kind for one in after] != [kind]:
                    return Violated(f"expected {session} to name its missing leaf; saw {_kinds(after)}")
                applied = True
            continue
        for one in named:
            if (one.kind, one.node) != (kind, node):
                return Violated(f"expected {one.node} of {session} not to be named; saw {one.kind}", one.node)
        if node in seen.before.shown_branch(session):
            if not named:
                return Violated(f"expected {session} to name {kind} at {node}; saw {_kinds(after)}", node)
            applied = True
    return HOLDS if applied else None


def dmg_1a(seen: Seen) -> Result:
    """Findings are the checkpoints of the branch whose place opens no turn or moves back; they are no damage."""
    applied = False
    for session in seen.after.sessions():
        if seen.after.damage(session):
            continue
        expected = tuple(_findings(seen.after, session))
        shown = seen.after.findings(session)
        if shown != expected:
            return Violated(
                f"expected findings of {session} at {listed(tuple(one.node for one in expected))};"
                f" saw them at {listed(tuple(one.node for one in shown))}"
            )
        applied = applied or (seen.after.checkpoint(session) is not None and _view_changed(seen, session))
    return HOLDS if applied else None


def dmg_2(seen: Seen) -> Result:
    """A damaged session is read-only and shows the readable part of its branch as if that were all."""
    applied = False
    for session in seen.after.sessions():
        if not seen.after.damage(session):
            continue
        if not seen.after.read_only(session):
            return Violated(f"expected {session} to be read-only; saw it writable")
        shown = seen.after.shown_branch(session)
        expected = _expected_part(seen, session)
        if expected is not None and shown != expected:
            return Violated(f"expected the branch {listed(expected)}; saw {listed(shown)}")
        wrong = _not_joined(seen.after, shown) or _not_projected(seen.after, session)
        if wrong is not None:
            return wrong
        applied = True
    return HOLDS if applied else None


def dmg_3(seen: Seen) -> Result:
    """Whatever could be written to a damaged session, or forked from a damaged path, is answered with read-only."""
    operation = seen.operation
    session = session_of(operation)
    if (
        session is None
        or isinstance(operation, CancelCompaction | Load | InflictDamage)
        or not seen.before.knows_session(session)
    ):
        return None
    outcome = shown_outcome(seen)
    if outcome == Failed(reason=FailureReason.LOCKED):
        return None
    if not seen.before.damage(session) and not _forks_damage(seen):
        return None
    return holds_if(isinstance(outcome, ReadOnly), f"expected read-only; saw {name_of(outcome)}")


def dmg_4(seen: Seen) -> Result:
    """What a damaged session answers, and looking at it, leaves the durable bytes as they were."""
    operation = seen.operation
    session = session_of(operation)
    if (
        session is None
        or isinstance(operation, InflictDamage)
        or not in_both(seen, session)
        or not seen.before.damage(session)
    ):
        return None
    # A digest is there where it became another.
    if seen.change.store is not None:
        return Violated("expected the same bytes in the store; saw another digest")
    fresh = seen.fresh_change
    if fresh is not None and fresh.store is not None:
        return Violated("expected the same bytes for a fresh process; saw another digest")
    return HOLDS


def dmg_5(seen: Seen) -> Result:
    """A session without damage on its path is as it was, and is written to, whatever is damaged elsewhere."""
    inflicted = _inflicted(seen)
    if inflicted is not None:
        return _others_stay(seen, inflicted)
    operation = seen.operation
    session = session_of(operation)
    if (
        session is None
        or not seen.before.knows_session(session)
        or seen.before.damage(session)
        or isinstance(operation, Fork)
        or not any(seen.before.damage(other) for other in seen.before.sessions())
    ):
        return None
    outcome = shown_outcome(seen)
    if isinstance(outcome, ReadOnly):
        return Violated(f"expected {session} to be writable: its own branch is sound; saw read-only")
    return HOLDS


def dmg_6(seen: Seen) -> Result:
    """No node is shown twice on a branch, and none is named twice for the same damage."""
    applied = False
    for session in seen.after.sessions():
        damage = seen.after.damage(session)
        if not damage:
            continue
        branch = seen.after.shown_branch(session)
        if len(set(branch)) < len(branch):
            return Violated(f"expected each node of {session} once; saw {listed(branch)}")
        if len(set(damage)) < len(damage):
            return Violated(f"expected each damage of {session} once; saw {_kinds(damage)}")
        applied = applied or any(one.kind is DamageKind.CYCLE for one in damage)
    return HOLDS if applied else None


def dmg_7(seen: Seen) -> Result:
    """The nodes of the readable part are all there, with the ids, contents and parents that they had."""
    applied = False
    for session in seen.after.sessions():
        if not seen.after.damage(session):
            continue
        for position, node in enumerate(seen.after.shown_branch(session)):
            stored, old = seen.after.node(node), seen.before.node(node)
            if stored is None:
                return Violated(f"expected {node} of the readable part with its content; saw nothing", node)
            if old is not None and old.content != stored.content:
                return Violated(f"expected {node} as it was before the damage; saw other content", node)
            if old is not None and position and old.parent != stored.parent:
                return Violated(f"expected {node} behind {old.parent}; saw it behind {stored.parent}", node)
            applied = True
    return HOLDS if applied else None


# What the predicates share ---------------------------------------------------------------------------------


def _inflicted(seen: Seen) -> InflictDamage | None:
    """The damage that this step did."""
    if isinstance(seen.operation, InflictDamage) and isinstance(seen.outcome, Done):
        return seen.operation
    return None


def _kinds(damage: tuple[Damage, ...]) -> str:
    return ", ".join(f"{one.kind} at {one.node}" for one in damage) or "none"


def _view_changed(seen: Seen, session: SessionId) -> bool:
    return any(view.session == session for view in seen.change.sessions)


def _findings(scene: Scene, session: SessionId) -> Iterator[Finding]:
    before = 0
    for mark in scene.path(scene.leaf(session)):
        content = mark.stored.content
        if not isinstance(content, Checkpoint):
            continue
        place = scene.place(mark)
        if place is None:
            # Without a readable place it is damage, or a checkpoint of an implementation that shows none.
            continue
        if place < before:
            yield Finding(kind=FindingKind.PLACE_MOVES_BACK, node=mark.id)
        elif content.first_kept is not None:
            kept = scene.mark(content.first_kept)
            if kept is None or not kept.opens_turn:
                yield Finding(kind=FindingKind.PLACE_OPENS_NO_TURN, node=mark.id)
        before = place


def _expected_part(seen: Seen, session: SessionId) -> tuple[NodeId, ...] | None:
    """The readable part, as far as it follows from the one before the step; ``None`` where it does not."""
    if not seen.before.knows_session(session):
        return None
    before = seen.before.shown_branch(session)
    inflicted = _inflicted(seen)
    if inflicted is None:
        return before
    if inflicted.damage is DamageKind.MISSING_LEAF:
        return () if inflicted.session == session else before
    if inflicted.node not in before:
        return before
    position = before.index(inflicted.node)
    if inflicted.damage in _LINKS:
        return before[position:]
    if position + 1 < len(before):
        return before[position + 1 :]
    if position == 0 and seen.before.damage(session):
        # What is readable further up does not show.
        return None
    return before[:-1]


def _not_joined(scene: Scene, branch: tuple[NodeId, ...]) -> Violated | None:
    for above, below in pairwise(branch):
        stored = scene.node(below)
        if stored is not None and stored.parent != above:
            return Violated(f"expected {below} to be joined to {above}; saw it behind {stored.parent}", below)
    return None


def _not_projected(scene: Scene, session: SessionId) -> Violated | None:
    branch = scene.shown_branch(session)
    contents = [stored.content for node in branch if (stored := scene.node(node)) is not None]
    latest = next((content for content in reversed(contents) if isinstance(content, Checkpoint)), None)
    shown = scene.shown_checkpoint(session)
    if shown != (latest.id if latest is not None else None):
        return Violated(f"expected the checkpoint of the readable part; saw {shown}")
    messages = [content.id for content in contents if not isinstance(content, Checkpoint)]
    kept = messages
    expected: tuple[NodeId, ...] = ()
    if latest is not None:
        expected = (latest.id,)
        position = branch.index(latest.id)
        if latest.first_kept is None:
            kept = [node for node in messages if branch.index(node) > position]
        elif latest.first_kept in messages:
            kept = messages[messages.index(latest.first_kept) :]
    expected += tuple(kept)
    projected = tuple(item.node for item in scene.projection(session))
    if projected == expected:
        return None
    return Violated(f"expected the projection {listed(expected)}; saw {listed(tuple(map(str, projected)))}")


def _forks_damage(seen: Seen) -> bool:
    """Whether a fork leads to a node above which the path is seen to be broken."""
    operation = seen.operation
    if not isinstance(operation, Fork) or seen.before.knows_session(operation.new_session):
        return False
    target = seen.before.mark(operation.target)
    return target is not None and any(mark.broken for mark in target.walk())


def _others_stay(seen: Seen, inflicted: InflictDamage) -> Result:
    applied = False
    for session in seen.before.sessions():
        touched = (
            session == inflicted.session
            if inflicted.damage is DamageKind.MISSING_LEAF
            else inflicted.node in seen.before.shown_branch(session)
        )
        if touched or seen.before.damage(session) or not in_both(seen, session):
            continue
        if seen.after.damage(session) or seen.after.read_only(session):
            return Violated(f"expected {session} to stay sound: {inflicted.node} is not on its branch")
        change = field_change(seen.before, seen.after, session)
        if change is not None:
            return Violated(f"expected {session} to stay as it was; saw that {change}")
        applied = True
    return HOLDS if applied else None
