"""The words on which verdicts depend: turn, open call, message, stable, running answer, abandoned."""

from collections.abc import Iterator, Sequence

from tailmark.identifiers import CallId, NodeId, SessionId
from tailmark.messages import AnswerEnd, Message, Part, ResultStatus, Role, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    NextRequest,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Done, Noop, NoopReason, Planned, Previewed, RefusalCode, Sent, TooLarge
from tailmark.rules.answers import SKIPPED, applicable, decided
from tailmark.rules.changes import (
    added,
    added_chain,
    altered,
    any_change,
    in_both,
    listed,
    session_of,
    shown_outcome,
)
from tailmark.rules.saving import refused
from tailmark.rules.scene import Mark, OpenAt
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated
from tailmark.views import RunningAnswer


def def_turn(seen: Seen) -> Result:
    """A turn begins with a user message before which no call is open; other user messages belong to the running turn."""
    match seen.operation:
        case Retry(session=session):
            return _retried_turn(seen, session)
        case Edit(session=session, target=target):
            return _edited_turn(seen, session, target)
        case BeginCompaction(session=session) | Preview(session=session):
            return _planned_turns(seen, session)
        case _:
            return None


def _is_steering(mark: Mark) -> bool:
    return mark.message is not None and mark.message.role is Role.USER and not mark.opens_turn


def _retried_turn(seen: Seen, session: SessionId) -> Result:
    if not isinstance(seen.outcome, Sent) or not in_both(seen, session) or applicable(seen):
        return None
    answer: list[Mark] = []
    end = seen.before.end(session)
    for mark in end.walk() if end is not None else ():
        if mark.opens_turn:
            break
        if mark.message is not None:
            answer.append(mark)
    steering = next((mark for mark in answer if _is_steering(mark)), None)
    if steering is None:
        return None
    # Whatever it did, the steering message must have left with the turn that it belongs to.
    if seen.after.is_on_path(steering.id, seen.after.end(session)):
        return Violated(
            f"expected {steering.id} to leave the branch, because it opens no turn; saw it on the branch",
            steering.id,
        )
    return HOLDS


def _edited_turn(seen: Seen, session: SessionId, target: NodeId) -> Result:
    mark = seen.before.mark(target)
    if mark is None or not _is_steering(mark) or refused(RefusalCode.NOT_LAST_TURN) not in applicable(seen):
        return None
    if not seen.before.is_on_path(target, seen.before.end(session)):
        return None
    return decided(seen, refused(RefusalCode.NOT_LAST_TURN))


def _planned_turns(seen: Seen, session: SessionId) -> Result:
    scene = seen.before
    if not scene.knows_session(session):
        return None
    steering = next((mark for mark in scene.tail(session) if _is_steering(mark)), None)
    if steering is None:
        return None
    match seen.outcome:
        case Planned(plan=shown) | Previewed(plan=shown):
            plan = seen.plan(shown)
            kept = scene.mark(plan.first_kept)
            if kept is not None and _is_steering(kept) and plan.first_kept != plan.old_first_kept:
                return Violated(
                    f"expected the place before a message that opens a turn; saw it before {kept.id}, which opens none",
                    kept.id,
                )
            end = scene.end(session)
            if scene.checkpoint(session) is None and end is not None and end.turns < 2:
                return Violated(
                    f"expected noop(too-few-turns), because {steering.id} opens no turn; saw a plan",
                    steering.id,
                )
            return HOLDS
        case Noop(reason=NoopReason.TOO_FEW_TURNS):
            return decided(seen, f"noop({NoopReason.TOO_FEW_TURNS})")
        case _:
            return None


def def_call(seen: Seen) -> Result:
    """The open calls that a session shows are those that follow from its branch, and an approval is pending while its call is open."""
    scene = seen.after
    exercised = False
    shown_sessions = [view.session for view in seen.change.sessions]
    if altered(seen):
        shown_sessions = list(scene.sessions())
    for session in shown_sessions:
        if not scene.knows_session(session):
            continue
        expected = scene.open_calls(session)
        shown = scene.shown_open_calls(session)
        exercised = exercised or bool(expected) or bool(seen.before.open_calls(session))
        if not expected and not shown:
            continue
        wanted = sorted((one.call, one.message, one.approval) for one in expected)
        saw = sorted((one.call, one.message, one.approval_pending) for one in shown)
        if wanted != saw:
            return Violated(
                f"expected the open calls of {session} to be {_calls(wanted)}; saw {_calls(saw)}",
                next((message for _, message, _ in (*wanted, *saw)), None),
            )
    return HOLDS if exercised else None


def _calls(calls: Sequence[tuple[CallId, NodeId, bool]]) -> str:
    return listed(
        tuple(
            f"{call} of {message}{' (approval pending)' if approval else ''}"
            for call, message, approval in calls
        )
    )


def def_message(seen: Seen) -> Result:
    """A message that its role may not say is refused, and no other is."""
    if not isinstance(seen.operation, Append | Save | Settle | Send | Edit):
        return None
    return decided(seen, refused(RefusalCode.INVALID_MESSAGE))


def def_stable(seen: Seen) -> Result:
    """A branch is stable if no call is open at its end and no answer runs on its session; nothing else makes it unstable."""
    match seen.operation:
        case StartAnswer() | Retry() | Edit() | Undo():
            return decided(seen, refused(RefusalCode.UNSTABLE))
        case BeginCompaction() | Preview() | CommitCompaction():
            return decided(seen, SKIPPED)
        case _:
            return None


def def_answer(seen: Seen) -> Result:
    """A running answer lasts from its start to its end or a restart, follows one node, and leaves everything durable alone."""
    operation = seen.operation
    asked = session_of(operation)
    if isinstance(operation, Restart):
        sessions: tuple[SessionId, ...] = seen.after.sessions()
    else:
        sessions = tuple(view.session for view in seen.change.sessions)
        if asked is not None and asked not in sessions:
            sessions = (*sessions, asked)
    exercised = False
    for session in sessions:
        if not seen.after.knows_session(session):
            continue
        was = seen.before.running(session) if seen.before.knows_session(session) else None
        shown = seen.after.running(session)
        expected = _running_after(seen, session, was)
        exercised = exercised or was is not None or expected is not None
        if shown != expected:
            return Violated(
                f"expected {_said(expected)} on {session}; saw {_said(shown)}",
                shown.follows if shown is not None else None,
            )
    match operation:
        case StartAnswer():
            answer = decided(seen, refused(RefusalCode.NO_QUESTION))
        case NextRequest() | EndAnswer():
            answer = decided(seen, refused(RefusalCode.NO_ANSWER))
        case _:
            return HOLDS if exercised else None
    if answer is not None or not isinstance(seen.outcome, Done):
        return answer
    abandons = isinstance(operation, EndAnswer) and operation.end is not AnswerEnd.FINAL
    if not abandons and (change := any_change(seen)):
        return Violated(f"expected nothing durable to change; saw that {change}")
    return HOLDS


def _running_after(seen: Seen, session: SessionId, was: RunningAnswer | None) -> RunningAnswer | None:
    match seen.operation:
        case Restart():
            return None
        case StartAnswer(session=started) if started == session and isinstance(seen.outcome, Done):
            leaf = seen.before.leaf(session)
            return RunningAnswer(follows=leaf) if leaf is not None else None
        case EndAnswer(session=ended) if ended == session and isinstance(seen.outcome, Done):
            return None
        case NextRequest(session=asked) if asked == session and isinstance(seen.outcome, TooLarge):
            return None  # TRG-15: the answer is over
        case _:
            return was


def _said(running: RunningAnswer | None) -> str:
    return "no running answer" if running is None else f"a running answer behind {running.follows}"


def def_abandon(seen: Seen) -> Result:
    """Abandoning gives each open call of the branch one abandoned result, in one change; a final end abandons nothing."""
    operation = seen.operation
    if not isinstance(operation, Abandon | EndAnswer) or not isinstance(seen.outcome, Done):
        return None
    session = operation.session
    if not in_both(seen, session):
        return None
    open_calls = seen.before.open_calls(session)
    if isinstance(operation, EndAnswer) and operation.end is AnswerEnd.FINAL:
        if not open_calls:
            return None
        change = any_change(seen)
        return (
            HOLDS if change is None else Violated(f"expected the open calls to stay open; saw that {change}")
        )
    if not open_calls:
        if isinstance(operation, EndAnswer):
            return None
        change = any_change(seen)
        return (
            HOLDS if change is None else Violated(f"expected no change without open calls; saw that {change}")
        )
    return _abandoned(seen, session, open_calls)


def _abandoned(seen: Seen, session: SessionId, open_calls: tuple[OpenAt, ...]) -> Result:
    still_open = seen.after.open_calls(session)
    if still_open:
        return Violated(
            f"expected every open call to be abandoned; saw {still_open[0].call} still open",
            still_open[0].message,
        )
    results: list[str] = []
    for node, new_parts in _new_parts(seen):
        for part in new_parts:
            if (
                not isinstance(part, ToolResult)
                or part.preliminary
                or part.status is not ResultStatus.ABANDONED
            ):
                return Violated(
                    f"expected abandoned results alone; saw {part.kind} {part.id} in {node}", node
                )
            results.append(part.call)
    calls = [known.call for known in open_calls]
    if sorted(results) != sorted(calls):
        return Violated(
            f"expected one abandoned result each for {listed(tuple(calls))}; saw {listed(tuple(results))}",
            open_calls[0].message,
        )
    chain = added_chain(seen, seen.after.leaf(session))
    new_leaf = chain[-1] if chain else seen.before.leaf(session)
    if len(chain) != len(added(seen)) or seen.after.leaf(session) != new_leaf:
        return Violated(f"expected the leaf {new_leaf}; saw {seen.after.leaf(session)}", new_leaf)
    outcome = shown_outcome(seen)
    if isinstance(outcome, Done) and list(outcome.abandoned) != calls:
        return Violated(
            f"expected the answer to name {listed(tuple(calls))}; saw {listed(outcome.abandoned)}"
        )
    return HOLDS


def _new_parts(seen: Seen) -> Iterator[tuple[NodeId, tuple[Part, ...]]]:
    for old, new in altered(seen):
        if isinstance(old.content, Message) and isinstance(new.content, Message):
            before = old.content.parts
            yield new.content.id, tuple(part for part in new.content.parts if part not in before)
    for node in added(seen):
        if isinstance(node.content, Message):
            yield node.content.id, node.content.parts
