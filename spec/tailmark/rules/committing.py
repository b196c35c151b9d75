"""What a commit must answer, and what it may leave: shared by the clauses on the commit."""

from typing import TypeAlias

from attrs import evolve

from tailmark.declarations import Capability, Field, RefreshReading
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import Reasoning, Text, ToolCall
from tailmark.operations import CommitCompaction
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Failed,
    FailureReason,
    Outcome,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
    TooLarge,
)
from tailmark.plans import (
    EditFor,
    FinishReason,
    Plan,
    SendFor,
    SummariserReply,
    SummaryAnswer,
    SummaryFailure,
    Trigger,
)
from tailmark.rules.answers import is_about_the_store, name_of
from tailmark.rules.changes import any_change, in_both, shown_outcome
from tailmark.rules.compactions import (
    base_of,
    chosen_by,
    covered_by,
    latest_summary,
    names_present_place,
    new_checkpoints,
)
from tailmark.rules.estimates import least
from tailmark.rules.memory import KnownPlan
from tailmark.rules.scene import Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if
from tailmark.views import Change, SessionView

_Wanted: TypeAlias = Outcome | None


def commits(seen: Seen) -> CommitCompaction | None:
    """A commit on a known session that the store took up; what is asked of an unknown one is OUT-2's."""
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or is_about_the_store(seen.outcome):
        return None
    return operation if seen.before.knows_session(operation.plan.session) else None


def known_to(seen: Seen, operation: CommitCompaction) -> KnownPlan | None:
    return seen.known_plan(operation.plan.session, operation.plan.id)


def wrong_state(seen: Seen, plan: Plan, session: SessionId) -> str | None:
    """In what a plan that begins does not say on which state and for whom; ``None`` if in nothing."""
    scene = seen.after if plan.trigger is Trigger.AUTOMATIC else seen.before
    expected: list[tuple[str, object, object]] = [
        ("session", session, plan.session),
        ("leaf", scene.leaf(session), plan.leaf),
    ]
    if scene.shows(Field.REVISION):
        expected.append(("revision", scene.revision(session), plan.revision))
    if scene.shows(Field.MODEL):
        expected.append(("model", scene.model(session), plan.model))
    for name, wanted, saw in expected:
        if wanted != saw:
            return f"expected the {name} {wanted} in the plan, saw {saw}"
    if (plan.purpose is None) is (plan.trigger is Trigger.PREFLIGHT):
        return f"expected a request behind preflight alone, saw {plan.trigger} with {plan.purpose}"
    return None


# What a commit must answer -------------------------------------------------------------------------------


def before_the_plan(seen: Seen, operation: CommitCompaction) -> _Wanted:
    """The answer that comes before the plan's contents are looked at; ``None`` if none of them applies."""
    scene, plan = seen.before, seen.plan(operation.plan)
    known = known_to(seen, operation)
    if known is not None and known.cancelled:
        return Cancelled()
    leaf = scene.leaf(plan.session)
    if leaf != plan.leaf or scene.revision(plan.session) != plan.revision:
        return Stale(leaf=leaf, revision=scene.revision(plan.session))
    if not scene.is_stable(plan.session):
        return _skipped(scene, plan.session)
    if known is not None and known.ended:
        return Refused(code=RefusalCode.SPENT)
    return None


def _skipped(scene: Scene, session: SessionId) -> Skipped:
    return Skipped(
        open_calls=tuple(known.call for known in scene.open_calls(session)),
        answer_running=scene.running(session) is not None,
    )


def _contradiction(seen: Seen, plan: Plan) -> str | None:
    """In what a plan contradicts the state, whatever its trigger and model; ``None`` if in nothing."""
    branch = base_of(seen.before, plan.session, plan.purpose)
    if branch is None:
        return "nothing that its checkpoint could follow"
    chosen = chosen_by(seen, plan, branch)
    if plan.base != branch.id:
        return f"the base {plan.base}"
    if plan.previous_checkpoint != (chosen.previous.id if chosen.previous is not None else None):
        return f"the checkpoint before, {plan.previous_checkpoint}"
    if plan.previous_summary != latest_summary(chosen):
        return "the previous summary"
    if chosen.place is None:
        return f"the place before {plan.first_kept}"
    if chosen.present is None:
        return None  # a damaged checkpoint: its place cannot be told
    if not names_present_place(chosen, plan.old_first_kept):
        return f"the old place before {plan.old_first_kept}"
    if chosen.place < chosen.present:
        return f"a place before the present one, {plan.first_kept}"
    covered = covered_by(chosen)
    if plan.excluded != covered:
        return "the covered messages"
    if plan.refresh != (chosen.previous is not None and chosen.place == chosen.present):
        return "whether it is a refresh"
    return _request_contradiction(seen, plan)


def _request_contradiction(seen: Seen, plan: Plan) -> str | None:
    request = plan.request
    if request is None:
        verbatim = seen.declaration.readings.refresh is RefreshReading.VERBATIM
        return None if plan.refresh and verbatim else "a missing request"
    if request.previous_summary != plan.previous_summary or request.messages != plan.excluded:
        return "the request"
    if request.instructions != plan.instructions:
        return "the request's instructions"
    return None


def _as_begun(brought: Plan, begun: Plan) -> bool:
    """Whether two plans are the same, instructions aside: those are the plan's own."""
    request = brought.request
    if request is not None:
        request = evolve(request, instructions=begun.request.instructions if begun.request else None)
    return evolve(brought, instructions=begun.instructions, request=request) == begun


def forged(seen: Seen, operation: CommitCompaction) -> str | None:
    """In what a brought plan is not what the state determines; ``None`` if in nothing that is certain."""
    brought, known = seen.plan(operation.plan), known_to(seen, operation)
    if known is None:
        return "a plan that this process did not begin"
    if (brought.request is None) != (operation.reply is None):
        return "a reply without a request" if brought.request is None else "a request without a reply"
    begun = known.plan
    if brought == begun:
        return None
    contradiction = _contradiction(seen, brought)
    if contradiction is not None:
        return contradiction
    if brought.trigger is not begun.trigger:
        return f"the trigger {brought.trigger}"
    if (brought.model, brought.budgets) != (begun.model, begun.budgets):
        return "another model or other budgets than it was begun with"
    if (begun.leaf, begun.revision) != (brought.leaf, brought.revision):
        return "another leaf or revision than it was begun on"
    if _as_begun(brought, begun):
        return None
    return "another place, range, request or size than was begun"


def failure_reasons(reply: SummariserReply | None) -> tuple[FailureReason, ...]:
    """The reasons that may be given for an unusable reply; empty for a usable one."""
    if reply is None:
        return ()
    if isinstance(reply, SummaryFailure):
        return (FailureReason.SUMMARISER,)
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    blank = not "".join(texts).strip()
    if reply.finish is FinishReason.LENGTH:
        return (FailureReason.TRUNCATED,)
    if reply.finish is FinishReason.TOOL_CALL or any(isinstance(part, ToolCall) for part in reply.parts):
        return (FailureReason.NOT_TEXT,)
    if blank and any(isinstance(part, Reasoning) for part in reply.parts):
        # Text parts that are all blank are blank and no text alike.
        return (FailureReason.NOT_TEXT, FailureReason.BLANK) if texts else (FailureReason.NOT_TEXT,)
    return (FailureReason.BLANK,) if blank else ()


def is_as_begun(seen: Seen, operation: CommitCompaction) -> bool:
    """Whether the commit brings the plan of this process unchanged, with a reply where one was asked for, and nothing comes before."""
    known = known_to(seen, operation)
    return (
        known is not None
        and seen.plan(operation.plan) == known.plan
        and (operation.plan.request is None) == (operation.reply is None)
        and before_the_plan(seen, operation) is None
        and not _is_draft_known(seen, operation.plan)
    )


def _is_draft_known(seen: Seen, plan: Plan) -> bool:
    """Whether something was stored under the id of the message that waits: the answer is `refused(known-id)` then."""
    purpose = plan.purpose
    return isinstance(purpose, SendFor | EditFor) and seen.before.node(purpose.message.id) is not None


def longest_summary(seen: Seen) -> int | None:
    """The most that the summary of a commit may cost as it is stored; ``None`` if that cannot be told.

    A text costs at most one token for a byte, and the declared constants (OCC-9). What an implementation that serialises adds to
    a summary (SUM-5) is not known here.
    """
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or not isinstance(operation.reply, SummaryAnswer):
        return None
    if Capability.SERIALISE in seen.declaration.capabilities:
        return None
    texts = [part.text for part in operation.reply.parts if isinstance(part, Text)]
    parameters = seen.declaration.parameters
    return parameters.per_message + parameters.per_part + len("\n\n".join(texts).encode("utf-8", "replace"))


def fewest_of_summary(seen: Seen) -> int | None:
    """The least that the summary of a commit may cost (OCC-9); ``None`` where a tokenizer is declared or no summary came."""
    operation = seen.operation
    if not isinstance(operation, CommitCompaction) or not isinstance(operation.reply, SummaryAnswer):
        return None
    if seen.declaration.parameters.tokenizer:
        return None
    return least("\n\n".join(part.text for part in operation.reply.parts if isinstance(part, Text)))


def told(outcome: Outcome) -> str:
    match outcome:
        case Stale(leaf=leaf, revision=revision):
            return f"stale, with leaf {leaf} and revision {revision}"
        case Skipped(open_calls=calls, answer_running=running):
            return f"skipped, with open calls {', '.join(calls) or 'none'} and {'an' if running else 'no'} answer running"
        case _:
            return name_of(outcome)


def attempt_of(outcome: Outcome) -> Outcome | None:
    """What became of a compaction, whether it was for itself or for a request (TRG-8)."""
    return outcome.attempt if isinstance(outcome, Sent | TooLarge) else outcome


def committed_checkpoint(outcome: Outcome) -> NodeId | None:
    """The checkpoint that an answer says is durable now."""
    attempt = attempt_of(outcome)
    return attempt.checkpoint if isinstance(attempt, Committed) else None


def must_answer(seen: Seen, wanted: Outcome, because: str) -> Result:
    """The answer is the wanted one and no checkpoint was written."""
    outcome = shown_outcome(seen)
    written = new_checkpoints(seen)
    if written:
        return Violated(
            f"expected {told(wanted)}, because {because}; saw a checkpoint written", written[0].id
        )
    if isinstance(wanted, Failed):
        outcome = attempt_of(outcome) or outcome
    return holds_if(outcome == wanted, f"expected {told(wanted)}, because {because}; saw {told(outcome)}")


# What must remain ----------------------------------------------------------------------------------------


def left_nothing(seen: Seen) -> Result:
    """Nothing durable and no projection changed, for this process and, where one looked, for a fresh one.

    A request that fits without its compaction is sent all the same, so only the checkpoint may be asked for then.
    """
    if isinstance(seen.outcome, Sent):
        written = new_checkpoints(seen)
        return (
            Violated("expected nothing of the compaction to remain, saw its checkpoint", written[0].id)
            if written
            else HOLDS
        )
    change = any_change(seen)
    if change is not None:
        return Violated(f"expected nothing of the compaction to remain, saw that {change}")
    fresh = seen.fresh_change if seen.after.shows(Field.FRESH) else None
    departs = fresh_difference(seen.after, fresh) if fresh is not None else None
    return holds_if(
        departs is None, f"expected memory to equal the durable state, saw in a fresh process that {departs}"
    )


def fresh_difference(scene: Scene, change: Change) -> str | None:
    """The first thing in which a fresh process's view departs from a state; ``None`` if there is none.

    What the implementation cannot show is passed over, and so are estimates, which are no durable state.
    """
    if change.nodes_gone:
        return f"{change.nodes_gone[0]} is not stored"
    if change.sessions_gone:
        return f"the session {change.sessions_gone[0]} is not there"
    for node in change.nodes:
        stored = scene.node(node.content.id)
        if stored is None:
            return f"{node.content.id} is stored besides"
        if stored.content != node.content or stored.parent != node.parent:
            return f"{node.content.id} is another"
    for view in change.sessions:
        departs = _view_difference(scene, view)
        if departs is not None:
            return departs
    return None


def _view_difference(scene: Scene, view: SessionView) -> str | None:
    session = view.session
    if not scene.knows_session(session):
        return f"the session {session} is there besides"
    if scene.leaf(session) != view.leaf:
        return f"the leaf of {session} is {view.leaf}"
    if scene.shows(Field.REVISION) and scene.revision(session) != view.revision:
        return f"the revision of {session} is {view.revision}"
    if scene.shows(Field.PROJECTION) and scene.projection(session) != view.projection:
        return f"the projection of {session} is another"
    if scene.shows(Field.MODEL) and scene.model(session) != view.model:
        return f"the model of {session} is another"
    if scene.shows(Field.METADATA) and scene.metadata(session) != view.metadata:
        return f"the metadata of {session} are others"
    return None


def survives(seen: Seen) -> Result:
    """Every checkpoint of a branch is still there behind a restart, and is on the branch."""
    result: Result = None
    for session in seen.before.sessions():
        checkpoint = seen.before.checkpoint(session)
        if checkpoint is None:
            continue
        stored = seen.after.node(checkpoint.id)
        if stored is None or stored.content != checkpoint.stored.content:
            return Violated(
                "expected an acknowledged checkpoint to survive, saw it gone or changed", checkpoint.id
            )
        leaf = seen.after.leaf(session)
        if not seen.after.is_on_path(checkpoint.id, seen.after.end(session)):
            return Violated(
                f"expected the checkpoint on the branch of {session}, saw the leaf {leaf}", checkpoint.id
            )
        if (
            seen.before.shows(Field.REVISION)
            and in_both(seen, session)
            and seen.after.revision(session) < seen.before.revision(session)
        ):
            return Violated(
                f"expected the revision of {session} to survive, saw an earlier one", checkpoint.id
            )
        result = HOLDS
    return result
