"""Which answers an operation must get instead of success, read off the state before it.

An answer is named as people write it: ``refused(unstable)``, ``stale``, ``noop(too-few-turns)``. What
stands here is the contract's "who is refused when, and in which order" (OUT-2); each clause picks the
answer that it is about. Of a plan's contents nothing is worked out here, so ``refused(plan)`` is listed
only for plans that nobody began.
"""

from collections.abc import Mapping
from functools import lru_cache

from tailmark.declarations import Capability, Field
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import (
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    NextRequest,
    Preview,
    Retry,
    Save,
    Send,
    SetModel,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    FailureReason,
    More,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    Previewed,
    ReadOnly,
    RefusalCode,
    Refused,
    Sent,
)
from tailmark.plans import (
    Checkpoint,
    EditFor,
    FinishReason,
    Plan,
    SendFor,
    SummariserReply,
    SummaryFailure,
    Trigger,
)
from tailmark.rules.changes import session_of
from tailmark.rules.compactions import ratio_of, scaled
from tailmark.rules.memory import state_key
from tailmark.rules.saving import (
    STALE,
    Known,
    branch_up,
    faults,
    is_open_end,
    known_message,
    may_be_stored,
    named,
    own_open_calls,
    refused,
    saved_path,
)
from tailmark.rules.scene import Mark, Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated

SKIPPED = "skipped"
TOO_LARGE = "too-large"
CANCELLED = "cancelled"

WHY: Mapping[str, str] = {
    refused(RefusalCode.UNKNOWN_SESSION): "the session is unknown",
    refused(RefusalCode.UNKNOWN_NODE): "the node is not stored",
    refused(RefusalCode.KNOWN_ID): "the id is taken by something else",
    refused(RefusalCode.INVALID_MESSAGE): "the message is not one that may be stored",
    refused(RefusalCode.NOT_OPEN): "a result's call is not open on the branch",
    refused(RefusalCode.CALL_ID): "a call's id is open already, or stands twice in the message",
    refused(RefusalCode.UNSTABLE): "a call is open or an answer runs",
    refused(RefusalCode.NO_ANSWER): "no answer runs",
    refused(RefusalCode.NO_QUESTION): "there is no question to answer",
    refused(RefusalCode.NOT_A_USER_MESSAGE): "the new message is not of the role user",
    refused(RefusalCode.NOT_LAST_TURN): "the target did not open the branch's last turn",
    refused(RefusalCode.NOT_ASSISTANT): "the target is no assistant message",
    refused(RefusalCode.NOT_A_CHECKPOINT): "the leaf is no checkpoint",
    refused(RefusalCode.TRIGGER): "only manual compactions can be asked for",
    refused(RefusalCode.PLAN): "nobody here began this plan",
    refused(RefusalCode.SPENT): "the plan had its answer already",
    STALE: "the branch is not the one that the caller names",
    SKIPPED: "a call is open or an answer runs",
    TOO_LARGE: "the request exceeds the safe limit",
    refused(RefusalCode.SETTINGS): "a figure cannot be or contradicts the others",
    CANCELLED: "the plan was cancelled",
    f"noop({NoopReason.CHECKPOINT_IS_LEAF})": "the leaf is a checkpoint",
    f"noop({NoopReason.TOO_FEW_TURNS})": "there is no checkpoint and fewer than two turns",
    f"noop({NoopReason.NO_SUCH_PLAN})": "no plan of this name waits",
}
"""Why each answer is given, in words."""


def name_of(outcome: Outcome) -> str:
    """An outcome's name, its code or reason included."""
    match outcome:
        case Refused(code=code):
            return refused(code)
        case Noop(reason=reason):
            return f"noop({reason})"
        case Failed(reason=failure):
            return f"failed({failure})"
        case _:
            return outcome.kind


def is_success(seen: Seen) -> bool:
    """Whether the answer says that what was asked for has happened or has begun."""
    match seen.outcome:
        case Done() | Sent() | Committed() | Planned() | Previewed() | More():
            return True
        case Cancelled():
            return isinstance(seen.operation, CancelCompaction)
        case _:
            return False


def is_about_the_store(outcome: Outcome) -> bool:
    """Whether the answer speaks of the store itself, which no clause of these chapters can foresee."""
    return isinstance(outcome, ReadOnly) or (
        isinstance(outcome, Failed) and outcome.reason is FailureReason.LOCKED
    )


def decided(seen: Seen, *names: str) -> Result:
    """Whether answers were given where they had to be, and nowhere else.

    Where another answer than success was given although this one applies, nothing is said: the order
    of answers is OUT-2's, and an answer without its reason is that answer's clause's.
    """
    if is_about_the_store(seen.outcome):
        return None
    given = name_of(seen.outcome)
    if Field.OUTCOME in seen.declaration.hidden and not is_success(seen):
        return None
    applying = applicable(seen)
    if given in names:
        if given in applying:
            return HOLDS
        return Violated(f"expected another answer than {given}: it is not so that {WHY[given]}")
    wanted = next((name for name in applying if name in names), None)
    if wanted is not None and is_success(seen):
        return Violated(f"expected {wanted}, because {WHY[wanted]}; saw {given}")
    return None


@lru_cache(maxsize=1)
def applicable(seen: Seen) -> tuple[str, ...]:
    """Every answer other than success whose reason is there, in the order in which the answers come."""
    operation, scene = seen.operation, seen.before
    session = session_of(operation)
    if session is None:
        return ()
    if not scene.knows_session(session):
        return (refused(RefusalCode.UNKNOWN_SESSION),)
    match operation:
        case Append():
            return _append(scene, operation)
        case Save():
            saved = saved_path(seen)
            return saved.answers if saved is not None else ()
        case Settle():
            return _settle(scene, operation)
        case Abandon():
            return _stale(scene, session, operation.follows)
        case StartAnswer():
            nothing = scene.last_message(session) is None or is_open_end(scene.end(session))
            question = named(RefusalCode.NO_QUESTION, nothing)
            too_large = (TOO_LARGE,) if is_too_large(seen, session) and not was_sent(seen, session) else ()
            return (
                *_unstable(scene, session),
                *question,
                *_stale(scene, session, operation.follows),
                *too_large,
            )
        case NextRequest():
            no_answer = named(RefusalCode.NO_ANSWER, scene.running(session) is None)
            unstable = named(RefusalCode.UNSTABLE, bool(scene.open_calls(session)))
            return (*no_answer, *unstable, *((TOO_LARGE,) if is_too_large(seen, session) else ()))
        case EndAnswer():
            return named(RefusalCode.NO_ANSWER, scene.running(session) is None)
        case BeginCompaction() | Preview():
            return _begin(seen, operation)
        case CommitCompaction():
            return _commit(seen, operation)
        case CancelCompaction():
            known = seen.known_plan(session, operation.plan)
            waits = known is not None and not known.ended
            return () if waits else (f"noop({NoopReason.NO_SUCH_PLAN})",)
        case Send():
            return _send(scene, operation)
        case SetModel(model=model):
            return named(RefusalCode.SETTINGS, model.window < SMALLEST_WINDOW or model.max_output < 1)
        case Retry():
            question = named(RefusalCode.NO_QUESTION, scene.last_opener(session) is None)
            return (*_unstable(scene, session), *question, *_stale(scene, session, operation.follows))
        case Edit():
            return _edit(scene, operation)
        case Fork():
            return _fork(scene, operation)
        case Undo():
            end = scene.end(session)
            at_checkpoint = end is not None and end.message is None
            return (
                *_unstable(scene, session),
                *named(RefusalCode.NOT_A_CHECKPOINT, not at_checkpoint),
                *_stale(scene, session, operation.follows),
            )
        case _:
            return ()


SMALLEST_WINDOW = 16
"""In tokens; smaller windows are refused (CAP-2)."""


def is_too_large(seen: Seen, session: SessionId) -> bool:
    """Whether the session's next request exceeds the safe limit, as far as sizes are shown."""
    scene = seen.before
    if Capability.CAPACITY not in seen.declaration.capabilities:
        return False
    return scene.occupancy(session).tokens > scene.budgets(session).safe


def was_sent(seen: Seen, session: SessionId) -> bool:
    """Whether the last request of this process that was found to fit is that of this very state."""
    return seen.memory.sent.get(session) == state_key(seen.before, session)


def _send(scene: Scene, operation: Send) -> tuple[str, ...]:
    message = operation.message
    return (
        *named(RefusalCode.KNOWN_ID, scene.node(message.id) is not None),
        *named(RefusalCode.NOT_A_USER_MESSAGE, message.role is not Role.USER),
        *named(RefusalCode.INVALID_MESSAGE, not may_be_stored(message)),
        *_stale(scene, operation.session, operation.follows),
    )


def _is_unstable(scene: Scene, session: SessionId) -> bool:
    # An open call alone decides, so that a hidden running answer matters only where it must.
    return bool(scene.open_calls(session)) or scene.running(session) is not None


def _unstable(scene: Scene, session: SessionId) -> tuple[str, ...]:
    return named(RefusalCode.UNSTABLE, _is_unstable(scene, session))


def _stale(scene: Scene, session: SessionId, follows: NodeId | None) -> tuple[str, ...]:
    if follows is None:
        return ()
    last = scene.last_message(session)
    return () if last is not None and last.id == follows else (STALE,)


# Saving --------------------------------------------------------------------------------------------------


def _append(scene: Scene, operation: Append) -> tuple[str, ...]:
    known = known_message(scene, operation.session, operation)
    if known in (Known.SAME, Known.SETTLES):
        return ()
    return (
        *named(RefusalCode.KNOWN_ID, known is Known.TAKEN),
        *faults(operation.message, scene.open_calls(operation.session)),
        *named(
            RefusalCode.NOT_A_USER_MESSAGE,
            is_open_end(scene.end(operation.session)) and operation.message.role is not Role.USER,
        ),
        *_stale(scene, operation.session, operation.follows),
    )


def _settle(scene: Scene, operation: Settle) -> tuple[str, ...]:
    stored = scene.node(operation.message)
    if stored is None:
        return named(RefusalCode.UNKNOWN_NODE, applies=True)
    result, content = operation.result, stored.content
    waits = result.call in own_open_calls(scene, operation.session, operation.message)
    if not waits or not isinstance(content, Message) or content.role is not Role.ASSISTANT:
        return named(RefusalCode.NOT_OPEN, applies=True)
    replaced = next(
        (
            part.id
            for part in content.parts
            if isinstance(part, ToolResult) and part.preliminary and part.call == result.call
        ),
        None,
    )
    taken = result.id != replaced and any(part.id == result.id for part in content.parts)
    return named(RefusalCode.INVALID_MESSAGE, taken)


# Compactions ---------------------------------------------------------------------------------------------


def _begin(seen: Seen, operation: BeginCompaction | Preview) -> tuple[str, ...]:
    scene, session = seen.before, operation.session
    known = seen.known_plan(session, operation.plan) is not None
    end = scene.end(session)
    noops: tuple[str, ...] = ()
    if end is not None and end.message is None:
        # A summary above its budget may be refreshed there (TRG-10).
        noops = () if has_long_summary(seen, session) else (f"noop({NoopReason.CHECKPOINT_IS_LEAF})",)
    elif scene.checkpoint(session) is None and (end is None or end.turns < 2):
        noops = (f"noop({NoopReason.TOO_FEW_TURNS})",)
    return (
        *named(RefusalCode.TRIGGER, operation.trigger is not Trigger.MANUAL),
        *named(RefusalCode.KNOWN_ID, known),
        *((SKIPPED,) if _is_unstable(scene, session) else ()),
        *noops,
    )


def has_long_summary(seen: Seen, session: SessionId) -> bool:
    """Whether the present summary exceeds the summary budget, as far as sizes are shown (TRG-10)."""
    scene, latest = seen.before, seen.before.checkpoint(session)
    if latest is None or Capability.CAPACITY not in seen.declaration.capabilities:
        return False
    occupancy = scene.occupancy(session)
    figure, covered = ratio_of(seen, occupancy.figure, occupancy.covered)
    return scaled(scene.estimate(latest.id), figure, covered) > scene.budgets(session).summary


def _commit(seen: Seen, operation: CommitCompaction) -> tuple[str, ...]:
    scene, plan = seen.before, seen.plan(operation.plan)
    known = seen.known_plan(plan.session, plan.id)
    moved = scene.leaf(plan.session) != plan.leaf or scene.revision(plan.session) != plan.revision
    return (
        *((CANCELLED,) if known is not None and known.cancelled else ()),
        *((STALE,) if moved else ()),
        *((SKIPPED,) if _is_unstable(scene, plan.session) else ()),
        *named(RefusalCode.SPENT, known is not None and known.ended and not known.cancelled),
        *named(RefusalCode.PLAN, known is None),
        *named(RefusalCode.KNOWN_ID, _is_draft_known(scene, plan)),
        # A request answers for itself what became of its compaction.
        *(_unusable(operation.reply) if operation.reply is not None and plan.purpose is None else ()),
    )


def _is_draft_known(scene: Scene, plan: Plan) -> bool:
    purpose = plan.purpose
    return isinstance(purpose, SendFor | EditFor) and scene.node(purpose.message.id) is not None


def _unusable(reply: SummariserReply) -> tuple[str, ...]:
    if isinstance(reply, SummaryFailure):
        return (f"failed({FailureReason.SUMMARISER})",)
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    calls = any(isinstance(part, ToolCall) for part in reply.parts)
    thought = any(isinstance(part, Reasoning) for part in reply.parts)
    return (
        *((f"failed({FailureReason.TRUNCATED})",) if reply.finish is FinishReason.LENGTH else ()),
        *(
            (f"failed({FailureReason.NOT_TEXT})",)
            if calls or reply.finish is FinishReason.TOOL_CALL or (thought and not texts)
            else ()
        ),
        *((f"failed({FailureReason.BLANK})",) if not "".join(texts).strip() else ()),
    )


# Branching -----------------------------------------------------------------------------------------------


def _edit(scene: Scene, operation: Edit) -> tuple[str, ...]:
    session, message = operation.session, operation.message
    opener = scene.last_opener(session)
    unknown = scene.node(operation.target) is None
    other = not unknown and (opener is None or opener.id != operation.target)
    return (
        *_unstable(scene, session),
        *named(RefusalCode.UNKNOWN_NODE, unknown),
        *named(RefusalCode.NOT_LAST_TURN, other),
        *named(RefusalCode.NOT_A_USER_MESSAGE, message.role is not Role.USER),
        *named(RefusalCode.KNOWN_ID, scene.node(message.id) is not None),
        *named(RefusalCode.INVALID_MESSAGE, not may_be_stored(message)),
        *_stale(scene, session, operation.follows),
    )


def _fork(scene: Scene, operation: Fork) -> tuple[str, ...]:
    taken = named(RefusalCode.KNOWN_ID, scene.knows_session(operation.new_session))
    target = scene.mark(operation.target)
    if target is None:
        return (*taken, *named(RefusalCode.UNKNOWN_NODE, applies=True))
    content = target.stored.content
    other = isinstance(content, Checkpoint) or content.role is not Role.ASSISTANT
    unstable = bool(target.open_calls) or is_being_generated(scene, target)
    return (
        *taken,
        *named(RefusalCode.NOT_ASSISTANT, other),
        *named(RefusalCode.UNSTABLE, unstable),
    )


def may_be_forked(scene: Scene, target: Mark) -> bool:
    """Whether a session may be forked at a node (FORK-1)."""
    message = target.message
    return (
        message is not None
        and message.role is Role.ASSISTANT
        and not target.open_calls
        and not is_being_generated(scene, target)
    )


def is_being_generated(scene: Scene, target: Mark) -> bool:
    """Whether a node belongs to an answer that still runs: it stands behind what the answer follows, on that session's branch."""
    for session in scene.sessions():
        running = scene.running(session)
        if running is None:
            continue
        for mark in branch_up(scene, session):
            if mark.id == running.follows:
                break
            if mark.id == target.id:
                return True
    return False
