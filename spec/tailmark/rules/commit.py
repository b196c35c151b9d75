"""Predicates of the chapter on the commit: a compaction becomes durable as a whole, or leaves nothing."""

from tailmark.declarations import Field
from tailmark.identifiers import SessionId
from tailmark.operations import BeginCompaction, CancelCompaction, CommitCompaction, Preview, Restart
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Failed,
    FailureReason,
    More,
    Noop,
    NoopReason,
    Outcome,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
)
from tailmark.plans import Plan, SummaryAnswer, SummaryFailure, Trigger
from tailmark.rules.answers import is_about_the_store, name_of
from tailmark.rules.changes import altered, any_change, in_both, is_checkpoint, session_of, shown_outcome
from tailmark.rules.committing import (
    attempt_of,
    before_the_plan,
    commits,
    committed_checkpoint,
    failure_reasons,
    fewest_of_summary,
    forged,
    fresh_difference,
    is_as_begun,
    known_to,
    left_nothing,
    longest_summary,
    must_answer,
    survives,
    told,
    wrong_state,
)
from tailmark.rules.compactions import asked_plan, leads_to, new_checkpoints
from tailmark.rules.scene import HiddenFieldError, Mark
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def cmt_1(seen: Seen) -> Result:
    """A commit compares leaf and revision with the plan's; it is `stale` if and only if one of the two differs."""
    operation = commits(seen)
    if operation is None:
        return None
    wanted = before_the_plan(seen, operation)
    if isinstance(wanted, Stale):
        return must_answer(seen, wanted, "leaf or revision differ from the plan's")
    if isinstance(shown_outcome(seen), Stale) and not isinstance(wanted, Cancelled):
        return Violated("expected another answer than stale, because leaf and revision are the plan's")
    return None


def cmt_2(seen: Seen) -> Result:
    """The same leaf with another revision is `stale` too."""
    operation = commits(seen)
    if operation is None:
        return None
    wanted = before_the_plan(seen, operation)
    if not isinstance(wanted, Stale) or wanted.leaf != operation.plan.leaf:
        return None
    return must_answer(seen, wanted, f"the revision differs from the plan's {operation.plan.revision}")


def cmt_3(seen: Seen) -> Result:
    """Stability is checked again: on an unstable branch a commit is `skipped` and names what is open."""
    written = new_checkpoints(seen)
    if written and written[0].above is not None and written[0].above.open_calls:
        open_calls = ", ".join(known.call for known in written[0].above.open_calls)
        return Violated(
            f"expected no checkpoint while calls are open, saw one behind {open_calls}", written[0].id
        )
    operation = commits(seen)
    if operation is None:
        return None
    wanted = before_the_plan(seen, operation)
    if isinstance(wanted, Skipped):
        return must_answer(seen, wanted, "the branch is unstable")
    if isinstance(shown_outcome(seen), Skipped) and not isinstance(wanted, Cancelled | Stale):
        return Violated("expected another answer than skipped, because the branch is stable")
    return None


def cmt_4(seen: Seen) -> Result:
    """What the state determines of a plan is worked out again at the commit; a plan that differs in it is `refused(plan)`."""
    operation = commits(seen)
    if operation is None or before_the_plan(seen, operation) is not None:
        return None
    difference = forged(seen, operation)
    if difference is None:
        return None
    return must_answer(seen, Refused(code=RefusalCode.PLAN), f"the plan brings {difference}")


def cmt_4a(seen: Seen) -> Result:
    """A plan says on which state and on whose terms it was begun, under an id of its own."""
    operation = seen.operation
    asks = operation if isinstance(operation, BeginCompaction | Preview) else None
    if is_about_the_store(seen.outcome):
        return None
    if asks is not None and seen.known_plan(asks.session, asks.plan) is not None:
        outcome = shown_outcome(seen)
        if outcome == Refused(code=RefusalCode.TRIGGER):
            return None
        return holds_if(
            outcome == Refused(code=RefusalCode.KNOWN_ID),
            f"expected refused(known-id), because this process began {asks.plan}; saw {name_of(outcome)}",
        )
    plan, session = asked_plan(seen), session_of(operation)
    if plan is None or session is None or not in_both(seen, session):
        return None
    if asks is not None and (plan.id, plan.trigger) != (asks.plan, asks.trigger):
        return Violated(
            f"expected the plan {asks.plan}, {asks.trigger}, saw {plan.id}, {plan.trigger}", plan.leaf
        )
    if seen.known_plan(session, plan.id) is not None:
        return Violated(f"expected an id of its own for the plan, saw {plan.id} again", plan.leaf)
    wrong = wrong_state(seen, plan, session)
    return Violated(wrong, seen.before.leaf(session)) if wrong is not None else HOLDS


def cmt_5(seen: Seen) -> Result:
    """Checkpoint, leaf and revision change together or not at all."""
    written = new_checkpoints(seen)
    if not written:
        operation = commits(seen)
        if operation is None or isinstance(seen.outcome, Sent):
            return None  # a request that fits is sent without its compaction
        return _unchanged(seen, operation.plan.session)
    checkpoint = written[0].id
    moved = leads_to(seen, checkpoint)
    if not moved:
        return Violated("expected the new checkpoint as the leaf, saw the leaf stay", checkpoint)
    session = moved[0]
    if not seen.before.knows_session(session):
        return None
    before, after = seen.before.revision(session), seen.after.revision(session)
    return holds_if(
        after == before + 1,
        f"expected the revision {before + 1} with the new checkpoint, saw {after}",
        checkpoint,
    )


def _unchanged(seen: Seen, session: SessionId) -> Result:
    if not in_both(seen, session):
        return None
    leaf = seen.after.leaf(session)
    if leaf != seen.before.leaf(session):
        return Violated(f"expected the leaf to stay where no checkpoint is written, saw it at {leaf}", leaf)
    before, after = seen.before.revision(session), seen.after.revision(session)
    return holds_if(
        before == after, f"expected the revision {before} where no checkpoint is written, saw {after}"
    )


def cmt_6(seen: Seen) -> Result:
    """An operation that changes the branch adds exactly one to the revision; nothing else adds."""
    own = session_of(seen.operation)
    sessions = [view.session for view in seen.change.sessions]
    if own is not None and own not in sessions:
        sessions.append(own)
    result: Result = None
    for session in sessions:
        if not in_both(seen, session):
            continue
        moved = seen.before.leaf(session) != seen.after.leaf(session)
        settled = not moved and _settled_on(seen, session)
        if settled and session != own:
            continue  # that a shared node changes is TREE-5's
        grew = seen.after.revision(session) - seen.before.revision(session)
        wanted = 1 if moved or settled else 0
        if grew != wanted:
            return Violated(
                f"expected {wanted} added to the revision of {session}, saw {grew}", seen.after.leaf(session)
            )
        result = HOLDS
    return result


def _settled_on(seen: Seen, session: SessionId) -> bool:
    """Whether a message of the session's branch changed where it stands."""
    end = seen.before.end(session)
    return any(seen.before.is_on_path(old.content.id, end) for old, _ in altered(seen))


def cmt_7(seen: Seen) -> Result:
    """`stale`: that summary is dropped for good, and what is seen afterwards is the durable state."""
    operation = commits(seen)
    if operation is None:
        return None
    known = known_to(seen, operation)
    written = new_checkpoints(seen)
    if written and known is not None and known.ended and not known.cancelled:
        return Violated(
            "expected a plan that had its answer to stay without one, saw its checkpoint", written[0].id
        )
    outcome = shown_outcome(seen)
    if not isinstance(outcome, Stale):
        return None
    session = operation.plan.session
    if not seen.after.knows_session(session):
        return Violated(f"expected the session {session} as it is stored, saw it gone")
    now = Stale(
        leaf=seen.after.leaf(session),
        revision=seen.after.revision(session) if seen.after.shows(Field.REVISION) else outcome.revision,
    )
    if outcome != now:
        return Violated(f"expected {told(now)}, as the branch is now; saw {told(outcome)}")
    return left_nothing(seen)


def cmt_8(seen: Seen) -> Result:
    """Cancelled before its commit, a plan leaves no trace; a cancel of another plan or a finished one changes nothing."""
    operation = seen.operation
    if isinstance(operation, CancelCompaction):
        return _cancel(seen, operation)
    committing = commits(seen)
    if committing is None:
        return None
    known = known_to(seen, committing)
    if known is None or not known.cancelled:
        return (
            Violated("expected another answer than cancelled, because nobody cancelled this plan")
            if isinstance(shown_outcome(seen), Cancelled)
            else None
        )
    result = must_answer(seen, Cancelled(), "the plan was cancelled")
    return result if isinstance(result, Violated) else left_nothing(seen)


def _cancel(seen: Seen, operation: CancelCompaction) -> Result:
    if not seen.before.knows_session(operation.session) or is_about_the_store(seen.outcome):
        return None
    known = seen.known_plan(operation.session, operation.plan)
    outcome = shown_outcome(seen)
    waits = known is not None and not known.ended
    wanted: Outcome = Cancelled() if waits else Noop(reason=NoopReason.NO_SUCH_PLAN)
    if outcome != wanted:
        why = "waits" if waits else "does not wait"
        return Violated(f"expected {told(wanted)}, because {operation.plan} {why}; saw {told(outcome)}")
    change = any_change(seen)
    return holds_if(change is None, f"expected a cancel to change nothing, saw that {change}")


def cmt_9(seen: Seen) -> Result:
    """Of several compactions planned on one state at most one commits."""
    operation = commits(seen)
    known = known_to(seen, operation) if operation is not None else None
    if operation is None or known is None:
        return None
    plan = seen.plan(known.plan)
    rivals = [
        other.plan
        for other in seen.plans.values()
        if other.ended and not other.cancelled and _is_rival(other.plan, plan)
    ]
    if not rivals or not _was_compacted(seen.before.end(plan.session), plan):
        return None
    written = new_checkpoints(seen)
    if written:
        return Violated(
            f"expected one checkpoint for the state that {plan.id} and {rivals[0].id} read, saw a second",
            written[0].id,
        )
    return HOLDS


def _is_rival(other: Plan, plan: Plan) -> bool:
    return other.id != plan.id and (other.session, other.leaf, other.revision) == (
        plan.session,
        plan.leaf,
        plan.revision,
    )


def _was_compacted(end: Mark | None, plan: Plan) -> bool:
    """Whether a checkpoint of the branch follows the leaf that the plan read. It came after the plan, whose leaf it is behind."""
    if end is None:
        return False
    for mark in end.walk():
        if mark.id == plan.leaf:
            return False
        if mark.message is None and mark.stored.parent == plan.leaf:
            return True
    return False


def cmt_10(seen: Seen) -> Result:
    """A message appended during a compaction is never lost: the compaction loses."""
    operation = commits(seen)
    if operation is None:
        return None
    brought = seen.plan(operation.plan)
    known = known_to(seen, operation)
    plan = known.plan if known is not None else brought
    session = plan.session
    end = seen.before.end(session)
    if end is None or end.id == plan.leaf or not seen.after.knows_session(session):
        return None
    appended = []
    for mark in end.walk():
        if mark.id == plan.leaf:
            break
        if mark.message is not None:
            appended.append(mark.id)
    else:
        return None
    if not appended:
        return None
    written = new_checkpoints(seen)
    if written:
        return Violated(
            f"expected the compaction to give way to {appended[-1]}, saw its checkpoint written",
            written[0].id,
        )
    lost = [node for node in appended if not seen.after.is_on_path(node, seen.after.end(session))]
    return holds_if(not lost, f"expected {appended[-1]} to stay on the branch, saw it lost", appended[-1])


def cmt_11(seen: Seen) -> Result:
    """After a commit what this process shows equals the durable state, and so does what a fresh process shows."""
    operation = commits(seen)
    if operation is None:
        return None
    outcome = shown_outcome(seen)
    session = operation.plan.session
    checkpoint = committed_checkpoint(outcome)
    if checkpoint is None or not seen.after.knows_session(session):
        return None
    leaf = seen.after.leaf(session)
    wanted = outcome.written[-1] if isinstance(outcome, Sent) and outcome.written else checkpoint
    if leaf != wanted:
        return Violated(f"expected {wanted} as the leaf, saw {leaf}", leaf)
    fresh = seen.fresh
    if fresh is None:
        return None
    departs = fresh_difference(seen.after, fresh)
    return holds_if(
        departs is None,
        f"expected a fresh process to see the same, saw there that {departs}",
        checkpoint,
    )


def cmt_12(seen: Seen) -> Result:
    """An acknowledged commit survives the end of the process; one that was not acknowledged is wholly there or wholly absent."""
    if isinstance(seen.operation, Restart):
        return survives(seen)
    operation = commits(seen)
    if operation is None:
        return None
    fresh = seen.fresh
    session = operation.plan.session
    if fresh is None or not seen.after.knows_session(session):
        return None
    written = new_checkpoints(seen)
    view = next((view for view in fresh.sessions if view.session == session), None)
    if committed_checkpoint(shown_outcome(seen)) is not None and written:
        checkpoint = written[0].id
        leaf = seen.after.leaf(session)
        if checkpoint in fresh.nodes_gone or session in fresh.sessions_gone:
            return Violated("expected the acknowledged checkpoint to be durable, saw it missing", checkpoint)
        if view is not None and view.leaf != leaf:
            return Violated(
                f"expected the acknowledged checkpoint as the durable leaf, saw {view.leaf}", checkpoint
            )
        if (
            view is not None
            and seen.after.shows(Field.REVISION)
            and view.revision != seen.after.revision(session)
        ):
            return Violated("expected the acknowledged revision to be durable, saw another", checkpoint)
        return HOLDS
    half = [
        node.content.id
        for node in fresh.nodes
        if is_checkpoint(node) and seen.after.node(node.content.id) is None
    ]
    if half and (view is None or view.leaf not in half):
        return Violated(
            "expected the checkpoint wholly there or wholly absent, saw it without its leaf", half[0]
        )
    return None


def cmt_13(seen: Seen) -> Result:
    """Undisturbed, a plan commits: metadata, reads, other sessions and a change of model do not make it stale."""
    operation = commits(seen)
    if operation is None or not is_as_begun(seen, operation) or failure_reasons(operation.reply):
        return None
    outcome = shown_outcome(seen)
    if isinstance(outcome, More):
        return None  # a further pass; the plan still waits
    attempt = attempt_of(outcome)
    if isinstance(attempt, Failed) and attempt.reason in _SIZES:
        return None  # whether the summary was too long is CMT-16's and SUM-6's
    return holds_if(
        isinstance(attempt, Committed) and bool(new_checkpoints(seen)),
        f"expected committed, because nothing happened to the branch since the plan; saw {told(outcome)}",
        operation.plan.leaf,
    )


_SIZES = (FailureReason.ABOVE_BUDGET, FailureReason.NOT_SMALLER, FailureReason.STILL_TOO_LARGE)
"""The failures of a summary that is usable, but too long for what it is for."""


def cmt_14(seen: Seen) -> Result:
    """A failed summariser leaves nothing."""
    operation = commits(seen)
    if operation is None or not isinstance(operation.reply, SummaryFailure):
        return None
    if not is_as_begun(seen, operation):
        return None
    result = must_answer(seen, Failed(reason=FailureReason.SUMMARISER), "the summariser failed")
    return result if isinstance(result, Violated) else left_nothing(seen)


def cmt_15(seen: Seen) -> Result:
    """An answer that is no summary is `failed` and leaves nothing: blank, cut off, reasoning or a tool call instead of text."""
    operation = commits(seen)
    if operation is None or not isinstance(operation.reply, SummaryAnswer):
        return None
    reasons = failure_reasons(operation.reply)
    if not is_as_begun(seen, operation):
        return None
    outcome = shown_outcome(seen)
    if not reasons:
        # That a usable answer commits is CMT-13's.
        return None
    attempt = attempt_of(outcome)
    wanted = attempt if isinstance(attempt, Failed) and attempt.reason in reasons else None
    result = must_answer(seen, wanted or Failed(reason=reasons[0]), "the answer is no summary")
    return result if isinstance(result, Violated) else left_nothing(seen)


def cmt_16(seen: Seen) -> Result:
    """A compaction that nobody asked for makes the next request smaller, or fails."""
    operation = commits(seen)
    if operation is None or not is_as_begun(seen, operation):
        return None
    plan = seen.plan(operation.plan)
    if plan.budgets.window == 0:
        return None
    seen.wants(Field.SIZES)
    attempt = attempt_of(shown_outcome(seen))
    if attempt == Failed(reason=FailureReason.NOT_SMALLER):
        if plan.trigger is Trigger.MANUAL:
            return Violated("expected a manual compaction to commit whatever it saves, saw it fail")
        most = longest_summary(seen)
        if most is not None and most + plan.tokens_after < plan.tokens_before:
            return Violated(
                f"expected the compaction to commit, because its summary costs at most {most}; saw it called not smaller"
            )
        return left_nothing(seen)
    if attempt == Failed(reason=FailureReason.STILL_TOO_LARGE):
        fewest = fewest_of_summary(seen)
        return holds_if(
            fewest is None or fewest + plan.tokens_after < plan.tokens_before,
            "expected failed(not-smaller), because that is asked first; saw failed(still-too-large)",
        )
    written = new_checkpoints(seen)
    if not written or plan.trigger is Trigger.MANUAL:
        return None
    size = seen.after.estimate(written[0].id) + plan.tokens_after
    return holds_if(
        size < plan.tokens_before,
        f"expected a request smaller than {plan.tokens_before} behind the checkpoint, saw {size}",
        written[0].id,
    )


def cmt_17(seen: Seen) -> Result:
    """A compaction changes no setting of any session."""
    operation = seen.operation
    if not isinstance(operation, BeginCompaction | Preview | CommitCompaction | CancelCompaction):
        return None
    scene = seen.before
    if not scene.shows(Field.MODEL) and not scene.shows(Field.METADATA):
        raise HiddenFieldError(Field.MODEL)
    for view in seen.change.sessions:
        session = view.session
        if not in_both(seen, session):
            continue
        if scene.shows(Field.MODEL) and scene.model(session) != seen.after.model(session):
            return Violated(f"expected a compaction to leave the model of {session} alone, saw another")
        if scene.shows(Field.SETTINGS) and scene.settings(session) != seen.after.settings(session):
            return Violated(f"expected a compaction to leave the settings of {session} alone, saw others")
        if scene.shows(Field.METADATA) and scene.metadata(session) != seen.after.metadata(session):
            return Violated(f"expected a compaction to leave the metadata of {session} alone, saw others")
    return HOLDS
