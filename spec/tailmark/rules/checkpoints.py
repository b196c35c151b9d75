"""Predicates of the chapter on checkpoints: what one takes over, what it covers, what it records."""

from tailmark.declarations import Field, RefreshReading
from tailmark.identifiers import NodeId
from tailmark.messages import Text
from tailmark.operations import Append, CommitCompaction, Save
from tailmark.outcomes import Committed, RefusalCode
from tailmark.plans import Checkpoint, Plan, SummariserReply, SummaryAnswer
from tailmark.projections import Marking
from tailmark.rules.answers import decided
from tailmark.rules.changes import added, is_checkpoint, listed, shown_outcome
from tailmark.rules.compactions import (
    Chosen,
    asked_plan,
    base_of,
    between,
    chosen_places,
    cost_of,
    covered_by,
    latest_summary,
    leads_to,
    names_present_place,
    new_checkpoints,
    summary_too_long,
)
from tailmark.rules.saving import refused
from tailmark.rules.scene import Mark, checkpoint_of, latest_checkpoint
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def _first(seen: Seen) -> Chosen | None:
    """The place that the step shows. A step that writes two checkpoints breaks TREE-3; the first is judged."""
    places = chosen_places(seen)
    return places[0] if places else None


def _first_new(seen: Seen) -> Mark | None:
    written = new_checkpoints(seen)
    return written[0] if written else None


def chk_1(seen: Seen) -> Result:
    """The checkpoint follows the leaf that it was planned on and becomes the leaf."""
    plan = asked_plan(seen)
    if plan is not None and seen.before.knows_session(plan.session):
        base = base_of(seen.before, plan.session, plan.purpose)
        wanted = base.id if base is not None else None
        return holds_if(plan.base == wanted, f"expected {wanted} as base, saw {plan.base}", wanted)
    written = _first_new(seen)
    if written is None:
        if isinstance(seen.operation, CommitCompaction) and isinstance(shown_outcome(seen), Committed):
            return Violated("expected a new checkpoint behind a commit, saw none")
        return None
    parent = written.stored.parent
    moved = leads_to(seen, written.id)
    if not moved:
        return Violated("expected the new checkpoint as the leaf, saw no session with that leaf", written.id)
    brought = seen.operation.plan.purpose if isinstance(seen.operation, CommitCompaction) else None
    bases = [
        base_of(seen.before, session, brought) for session in moved if seen.before.knows_session(session)
    ]
    if all(base is None or base.id != parent for base in bases):
        leaf = bases[0].id if bases and bases[0] is not None else None
        return Violated(f"expected {leaf} as parent of the checkpoint, saw {parent}", written.id)
    outcome = seen.outcome
    if isinstance(outcome, Committed) and outcome.checkpoint != written.id:
        return Violated(
            f"expected the checkpoint {written.id} in the answer, saw {outcome.checkpoint}", written.id
        )
    return HOLDS


def chk_2(seen: Seen) -> Result:
    """The summariser is given the previous summary, unchanged, and exactly the messages between the old place and the new."""
    plan = asked_plan(seen)
    chosen = _first(seen) if plan is not None else None
    if plan is None or chosen is None:
        return None
    summary = latest_summary(chosen)
    if plan.previous_summary != summary:
        return Violated(
            f"expected the previous summary {summary!r}, saw {plan.previous_summary!r}", chosen.node
        )
    request = plan.request
    if request is None:
        # CHK-6 says when a plan goes without a summariser.
        return None if plan.refresh else Violated("expected a summariser's request, saw none", chosen.node)
    if request.previous_summary != summary:
        return Violated(
            f"expected the previous summary {summary!r} in the request, saw {request.previous_summary!r}",
            chosen.node,
        )
    covered = covered_by(chosen)
    if covered is None:
        return None
    return holds_if(
        request.messages == covered,
        f"expected the messages {listed(covered)} in the request, saw {listed(request.messages)}",
        chosen.node,
    )


def chk_3(seen: Seen) -> Result:
    """Nothing falls through: what a checkpoint newly covers begins where the checkpoint before it ended, and ends at its own place."""
    chosen = _first(seen)
    covered = covered_by(chosen) if chosen is not None else None
    if chosen is None or covered is None or chosen.place is None or chosen.present is None:
        return None
    if chosen.written is not None:
        seen.wants(Field.RECORD)
        content = checkpoint_of(chosen.written)
        previous, old_first_kept = content.previous, content.old_first_kept
        bounds = (content.first_excluded, content.last_excluded)
        complete = bounds == ((covered[0], covered[-1]) if covered else (None, None))
        shown = "none" if bounds == (None, None) else f"{bounds[0]} to {bounds[1]}"
    else:
        plan = asked_plan(seen)
        if plan is None:
            return None
        previous, old_first_kept = plan.previous_checkpoint, plan.old_first_kept
        complete = plan.excluded == covered
        shown = listed(plan.excluded)
    latest = chosen.previous.id if chosen.previous is not None else None
    if previous != latest:
        return Violated(f"expected {latest} as the checkpoint before, saw {previous}", chosen.node)
    if not names_present_place(chosen, old_first_kept):
        return Violated(
            f"expected the covered messages to begin at the present place, saw them begin at {old_first_kept}",
            chosen.node,
        )
    if chosen.place < chosen.present:
        return Violated(
            f"expected every message covered once, saw {chosen.present - chosen.place} that are covered and kept",
            chosen.node,
        )
    return holds_if(complete, f"expected {listed(covered)} to be covered, saw {shown}", chosen.node)


def chk_4(seen: Seen) -> Result:
    """A checkpoint is no boundary and no message: it is never named as one."""
    chosen = _first(seen)
    if chosen is None or chosen.previous is None:
        return None
    named: list[NodeId | None] = [chosen.first_kept]
    if chosen.written is not None and seen.after.shows(Field.RECORD):
        content = checkpoint_of(chosen.written)
        named += [content.old_first_kept, content.first_excluded, content.last_excluded]
    elif chosen.written is None:
        plan = asked_plan(seen)
        if plan is not None:
            named += [plan.old_first_kept, *plan.excluded, *(plan.request.messages if plan.request else ())]
    for name in named:
        if name is not None and is_checkpoint(chosen.scene.node(name)):
            return Violated(f"expected messages only, saw the checkpoint {name} among them", name)
    return HOLDS


def chk_5(seen: Seen) -> Result:
    """However many checkpoints the branch has, the projection carries one summary."""
    result: Result = None
    for view in seen.change.sessions:
        latest = seen.after.checkpoint(view.session)
        if latest is None or latest.above is None or latest_checkpoint(latest.above) is None:
            continue
        summaries = [
            item.node
            for item in seen.after.projection(view.session)
            if item.marking is not Marking.VERBATIM
            or (item.node is not None and is_checkpoint(seen.after.node(item.node)))
        ]
        if len(summaries) != 1:
            return Violated(
                f"expected one summary in the projection of {view.session}, saw {len(summaries)}", latest.id
            )
        result = HOLDS
    return result


def chk_6(seen: Seen) -> Result:
    """A refresh moves no place and reads nothing new: the summary is the previous one, taken over or rewritten."""
    chosen = _first(seen)
    if chosen is None or chosen.place is None or chosen.present is None:
        return None
    if chosen.written is not None:
        seen.wants(Field.RECORD)
    if chosen.previous is None:
        plan = asked_plan(seen) if chosen.written is None else None
        refreshes = checkpoint_of(chosen.written).refresh if chosen.written else bool(plan and plan.refresh)
        return (
            Violated("expected no refresh without a checkpoint, saw one", chosen.node) if refreshes else None
        )
    verbatim = seen.declaration.readings.refresh is RefreshReading.VERBATIM
    if chosen.written is not None:
        content = checkpoint_of(chosen.written)
        flagged = content.refresh
        reads = content.first_excluded is not None or content.last_excluded is not None
        taken_over = content.summary == latest_summary(chosen)
    else:
        plan = asked_plan(seen)
        if plan is None:
            return None
        flagged = plan.refresh
        reads = bool(plan.excluded) or (plan.request is not None and bool(plan.request.messages))
        taken_over = plan.request is None
    if chosen.place != chosen.present:
        return (
            Violated("expected no refresh where the place moves, saw one", chosen.node) if flagged else None
        )
    if not flagged:
        return Violated("expected a refresh where the place stays, saw none", chosen.node)
    if reads:
        return Violated("expected a refresh to read nothing new, saw messages covered by it", chosen.node)
    if chosen.first_kept is None and chosen.place < chosen.branch.messages:
        return Violated("expected the message at the place to be named, saw none", chosen.node)
    rewrites = summary_too_long(chosen)
    if verbatim and not taken_over and not rewrites:
        return Violated(
            "expected the previous summary to be taken over, saw another or a request", chosen.node
        )
    if (rewrites or not verbatim) and chosen.written is None and taken_over:
        return Violated("expected a request that rewrites the previous summary, saw none", chosen.node)
    return HOLDS


def _texts(reply: SummaryAnswer) -> tuple[str, ...]:
    return tuple(part.text.strip() for part in reply.parts if isinstance(part, Text) and part.text.strip())


def _carries(summary: str, texts: tuple[str, ...]) -> bool:
    """Whether the texts stand in the summary, in order. An implementation may add sections that are missing."""
    position = 0
    for text in texts:
        position = summary.find(text, position)
        if position < 0:
            return False
        position += len(text)
    return True


def _record_fault(
    checkpoint: Checkpoint, plan: Plan, reply: SummariserReply | None, *, whole: bool
) -> str | None:
    """What is not recorded as it was planned. Where not the ``whole`` record is shown, place and summary are judged alone."""
    excluded = plan.excluded
    expected: dict[str, tuple[object, object]] = {
        "place": (plan.first_kept, checkpoint.first_kept),
        "old place": (plan.old_first_kept, checkpoint.old_first_kept),
        "checkpoint before": (plan.previous_checkpoint, checkpoint.previous),
        "first covered message": (excluded[0] if excluded else None, checkpoint.first_excluded),
        "last covered message": (excluded[-1] if excluded else None, checkpoint.last_excluded),
        "trigger": (plan.trigger, checkpoint.trigger),
        "model": (plan.model.name, checkpoint.model),
        "refresh": (plan.refresh, checkpoint.refresh),
        "instructions": (plan.instructions, checkpoint.instructions),
        "size before": (plan.tokens_before, checkpoint.tokens_before),
        "ratio": (
            (plan.occupancy.figure, plan.occupancy.covered),
            (checkpoint.figure, checkpoint.covered),
        ),
        "finish reason": (reply.finish if isinstance(reply, SummaryAnswer) else None, checkpoint.finish),
    }
    for name, (wanted, saw) in expected.items():
        if wanted != saw and (whole or name == "place"):
            return f"expected the {name} {wanted} of the plan, saw {saw}"
    if isinstance(reply, SummaryAnswer):
        if not _carries(checkpoint.summary, _texts(reply)):
            return "expected the text of the summariser's answer as the summary, saw another"
    elif checkpoint.summary != (plan.previous_summary or ""):
        return "expected the previous summary to be taken over, saw another"
    return None


def chk_7(seen: Seen) -> Result:
    """A checkpoint records what it was made from, and its sizes are of the whole projection before and after."""
    asked = asked_plan(seen)
    if asked is not None:
        seen.wants(Field.SIZES)
        return _sizes(asked, _first(seen))
    operation = seen.operation
    written = _first_new(seen) if isinstance(operation, CommitCompaction) else None
    if written is None or not isinstance(operation, CommitCompaction):
        return None
    plan = seen.plan(operation.plan)
    content = checkpoint_of(written)
    whole = seen.after.shows(Field.RECORD)
    fault = _record_fault(content, plan, operation.reply, whole=whole)
    if fault is not None:
        return Violated(fault, written.id)
    if not whole:
        return HOLDS
    seen.wants(Field.SIZES)
    size = plan.tokens_after + seen.after.estimate(written.id)
    return holds_if(
        content.tokens_after == size,
        f"expected the size after {size}, tail and summary, saw {content.tokens_after}",
        written.id,
    )


def _sizes(plan: Plan, chosen: Chosen | None) -> Result:
    """What a plan frees is the previous summary and the covered messages. This compares, whatever a request costs besides."""
    if chosen is None or chosen.place is None or chosen.present is None or chosen.place < chosen.present:
        return None
    freed: int = cost_of(chosen.scene, between(chosen.branch, chosen.present, chosen.place))
    if chosen.previous is not None:
        freed += chosen.scene.estimate(chosen.previous.id)
    saw = plan.tokens_before - plan.tokens_after
    return holds_if(
        saw == freed,
        f"expected sizes before and after that differ by {freed}, the previous summary and the covered messages, saw {saw}",
        chosen.node,
    )


def chk_8(seen: Seen) -> Result:
    """Behind a checkpoint that keeps nothing stands a checkpoint or a user message that opens a turn."""
    result: Result = None
    for node in added(seen):
        above = seen.after.node(node.parent) if node.parent is not None else None
        if above is None or not isinstance(above.content, Checkpoint) or above.content.first_kept is not None:
            continue
        mark = seen.after.mark(node.content.id)
        if mark is not None and mark.message is not None and not mark.opens_turn:
            return Violated(
                f"expected a user message or a checkpoint behind {above.content.id}, saw {mark.id}", mark.id
            )
        result = HOLDS
    operation = seen.operation
    if isinstance(operation, Append | Save) and seen.before.knows_session(operation.session):
        return decided(seen, refused(RefusalCode.NOT_A_USER_MESSAGE)) or result
    return result
