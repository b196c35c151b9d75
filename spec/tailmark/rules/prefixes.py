"""Predicates of the chapter on prefixes: what a cache of the provider can serve again."""

from tailmark.declarations import Field
from tailmark.operations import CommitCompaction
from tailmark.outcomes import Committed, Sent
from tailmark.plans import Checkpoint
from tailmark.rules.changes import in_both, session_of
from tailmark.rules.memory import request_made
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def cache_1(seen: Seen) -> Result:
    """Each request extends the one before it, unless something that changes the prefix came between."""
    made = request_made(seen.operation, seen.outcome, seen.after)
    if made is None:
        return None
    session, request = made
    known = seen.memory.requests.get(session)
    if known is None or known.broken or _breaks_now(seen):
        return None
    if known.head != request.head or known.model != request.model:
        return None
    items = request.items[: len(known.items)]
    if items == known.items:
        return HOLDS
    place = next(
        (index for index, (old, new) in enumerate(zip(known.items, items, strict=False)) if old != new),
        len(items),
    )
    return Violated(
        f"expected the request to extend the one before it by its {len(known.items)} items, saw it differ at item {place + 1}",
        known.items[place].node if place < len(known.items) else None,
    )


def _breaks_now(seen: Seen) -> bool:
    """Whether the step itself may change the prefix: a request whose compaction commits, a retry or an edit."""
    outcome = seen.outcome
    leaves = seen.operation.kind in ("retry", "edit") or (
        isinstance(seen.operation, CommitCompaction) and seen.operation.plan.purpose is not None
    )
    return leaves or (isinstance(outcome, Sent) and isinstance(outcome.attempt, Committed))


def cache_1a(seen: Seen) -> Result:
    """A request carries the instructions and tool schemas that are set, before everything else."""
    outcome = seen.outcome
    if not isinstance(outcome, Sent) or not seen.after.shows(Field.SETTINGS):
        return None
    session = session_of(seen.operation)
    if session is None or not seen.after.knows_session(session):
        return None
    head = seen.after.settings(session).head
    return holds_if(
        outcome.request.head == head,
        f"expected the head {head!r} that is set, saw {outcome.request.head!r}",
        outcome.request.built_on,
    )


def cache_2(seen: Seen) -> Result:
    """A compaction changes the prefix once: behind its summary the verbatim tail is what it was, and the head is left alone."""
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or operation.plan.purpose is not None:
        return None
    session = operation.plan.session
    if not isinstance(seen.outcome, Committed) or not in_both(seen, session):
        return None
    if seen.before.settings(session) != seen.after.settings(session):
        return Violated("expected a compaction to leave instructions and tools alone, saw other settings")
    before, after = seen.before.projection(session), seen.after.projection(session)
    kept = after[1:]
    tail = before[len(before) - len(kept) :] if kept else ()
    return holds_if(
        kept == tail,
        "expected the tail behind the new summary as it was sent before, saw other items",
        seen.outcome.checkpoint,
    )


def cache_3(seen: Seen) -> Result:
    """A checkpoint tells what its compaction costs a cache: the size of the request that could be served before it, and of the one behind it."""
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or operation.plan.purpose is not None:
        return None
    session = operation.plan.session
    if not isinstance(seen.outcome, Committed) or not in_both(seen, session):
        return None
    written = seen.after.node(seen.outcome.checkpoint)
    if written is None or not isinstance(written.content, Checkpoint):
        return None
    seen.wants(Field.RECORD)
    seen.wants(Field.SIZES)
    before = sum(item.estimate for item in seen.before.projection(session))
    after = sum(item.estimate for item in seen.after.projection(session))
    told = written.content.tokens_before - before, written.content.tokens_after - after
    # Both with the overhead, or both without it: the head is served from a cache on either side.
    return holds_if(
        told[0] == told[1] and told[0] in (0, operation.plan.budgets.overhead),
        f"expected the sizes {before} and {after} of the requests before and behind it, saw "
        f"{written.content.tokens_before} and {written.content.tokens_after}",
        written.content.id,
    )
