"""Predicates of the chapter on requests: what fits is sent, what does not is compacted first or refused."""

from tailmark.declarations import Capability, Field
from tailmark.identifiers import NodeId, SessionId, Tokens
from tailmark.messages import Message, ResultStatus, ToolResult
from tailmark.operations import CommitCompaction, Edit, NextRequest, Retry, Send, StartAnswer
from tailmark.outcomes import (
    Attempt,
    Committed,
    Done,
    Failed,
    FailureReason,
    LargePart,
    More,
    Noop,
    NoopReason,
    Planned,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
    TooLarge,
)
from tailmark.plans import EditFor, Plan, SendFor
from tailmark.rules.answers import TOO_LARGE, applicable, decided, name_of
from tailmark.rules.changes import (
    added,
    any_change,
    in_both,
    is_checkpoint,
    listed,
    results_of,
    session_of,
    shown_outcome,
)
from tailmark.rules.committing import commits, is_as_begun, longest_summary
from tailmark.rules.compactions import chosen_places, ratio_of, scaled
from tailmark.rules.pressure import Pressure, are_owned, asked_request, request_pressure, text_at_most
from tailmark.rules.saving import refused
from tailmark.rules.scene import OpenAt
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if


def trg_7(seen: Seen) -> Result:
    """A request counts as projection, draft and overhead together, and what is sent as it is fits the safe limit."""
    outcome = seen.outcome
    session = session_of(seen.operation)
    if not isinstance(outcome, Sent) or session is None or not in_both(seen, session):
        return None
    if isinstance(outcome.attempt, Committed):
        return None  # TRG-9
    budgets = seen.before.budgets(session)
    if isinstance(seen.operation, CommitCompaction):
        budgets = seen.plan(seen.operation.plan).budgets
    if budgets.window == 0:
        return None
    if isinstance(seen.operation, CommitCompaction):
        size = _size_of(seen, seen.operation.plan)
    else:
        pressure = request_pressure(seen)
        size = max(pressure.tokens if pressure is not None else 0, seen.after.occupancy(session).tokens)
    return holds_if(
        size <= budgets.safe,
        f"expected a request of at most {budgets.safe} to be sent, saw one of {size}",
        outcome.request.built_on,
    )


def trg_7a(seen: Seen) -> Result:
    """A draft is a user's message; what is sent of another role is refused."""
    if not isinstance(seen.operation, Send):
        return None
    return decided(seen, refused(RefusalCode.NOT_A_USER_MESSAGE))


def _size_of(seen: Seen, plan: Plan) -> int:
    """What a request comes to without the compaction that was planned for it."""
    ratio = ratio_of(seen, plan.occupancy.figure, plan.occupancy.covered)
    return plan.occupancy.tokens + scaled(plan.draft, *ratio)


def trg_8(seen: Seen) -> Result:
    """A request that fits is never too large, and the answer that one is names the sizes that show it."""
    outcome = shown_outcome(seen)
    if isinstance(outcome, Sent):
        return HOLDS
    if not isinstance(outcome, TooLarge):
        return None
    session = session_of(seen.operation)
    if session is None or not seen.before.knows_session(session):
        return None
    if outcome.projection + outcome.draft <= outcome.limit:
        return Violated(
            f"expected a request of {outcome.projection + outcome.draft} to be sent, saw it too large for {outcome.limit}"
        )
    wrong = _wrong_sizes(seen, session, outcome)
    return Violated(wrong) if wrong is not None else HOLDS


def _wrong_sizes(seen: Seen, session: SessionId, outcome: TooLarge) -> str | None:
    """Which size of an answer is not what the session, or the plan that is brought, shows."""
    operation = seen.operation
    budgets, occupancy, draft = seen.before.budgets(session), seen.before.occupancy(session), Tokens(0)
    if isinstance(operation, CommitCompaction):
        plan = seen.plan(operation.plan)
        budgets, occupancy, draft = plan.budgets, plan.occupancy, plan.draft
    elif isinstance(operation, Retry | Edit):
        asked = asked_request(seen)
        base = asked.base.id if asked is not None and asked.base is not None else None
        if seen.before.leaf(session) != base:
            # What the branch costs up to another base is not shown.
            return (
                None
                if outcome.limit == budgets.safe
                else f"expected the limit {budgets.safe}, saw {outcome.limit}"
            )
    ratio = ratio_of(seen, occupancy.figure, occupancy.covered)
    expected = [
        ("limit", budgets.safe, outcome.limit),
        ("projection", occupancy.tokens, outcome.projection),
        ("overhead", scaled(budgets.overhead, *ratio), outcome.overhead),
    ]
    if not isinstance(operation, Send | Edit):
        expected.append(("draft", scaled(draft, *ratio), outcome.draft))
    for name, wanted, saw in expected:
        if wanted != saw:
            return f"expected the {name} {wanted}, saw {saw}"
    if isinstance(operation, Send | Edit):
        most = text_at_most(operation.message, seen.declaration.parameters)
        if most is not None and outcome.draft > scaled(most, *ratio):
            return f"expected a draft of at most {scaled(most, *ratio)}, saw {outcome.draft}"
    return None


def _large_part(seen: Seen, pressure: Pressure) -> LargePart:
    """What alone exceeds the safe limit, and else the whole request."""
    budgets = pressure.budgets
    if pressure.scaled(budgets.overhead) >= budgets.safe:
        return LargePart.OVERHEAD
    if pressure.scaled(budgets.overhead + pressure.draft) > budgets.safe:
        return LargePart.DRAFT
    if isinstance(seen.operation, Retry):
        question = seen.before.last_opener(seen.operation.session)
        asked = seen.before.estimate(question.id) if question is not None else 0
        if pressure.scaled(budgets.overhead + asked) > budgets.safe:
            return LargePart.QUESTION
    return LargePart.REQUEST


def trg_8a(seen: Seen) -> Result:
    """What alone exceeds the safe limit is named at once, and nothing is planned for it."""
    outcome = seen.outcome
    if isinstance(outcome, TooLarge) and isinstance(seen.operation, StartAnswer | NextRequest):
        wanted = LargePart.OVERHEAD if outcome.overhead >= outcome.limit else LargePart.REQUEST
        return holds_if(outcome.part is wanted, f"expected {wanted} as the part, saw {outcome.part}")
    pressure = request_pressure(seen)
    if pressure is None:
        return _part_by_its_figures(outcome) if isinstance(outcome, TooLarge) else None
    if not pressure.above_limit:
        return None
    part = _large_part(seen, pressure)
    if isinstance(outcome, Planned):
        return holds_if(part is LargePart.REQUEST, f"expected too-large({part}) at once, saw a plan")
    if not isinstance(outcome, TooLarge):
        return None
    if outcome.part is not part:
        return Violated(f"expected {part} as the part, saw {outcome.part}")
    if part is not LargePart.REQUEST and outcome.attempt is not None:
        return Violated(f"expected no attempt where {part} alone is too large, saw one")
    return HOLDS


def _part_by_its_figures(outcome: TooLarge) -> Result:
    """What the figures of an answer say, where the ratio behind them is not shown. Two that were rounded up may be one too much."""
    together = outcome.overhead + outcome.draft
    overhead = outcome.overhead >= outcome.limit
    draft = outcome.draft > 0 and together > outcome.limit
    if overhead is not (outcome.part is LargePart.OVERHEAD):
        return Violated(f"expected the overhead of {outcome.overhead} to decide, saw {outcome.part}")
    if outcome.part is LargePart.DRAFT and not draft:
        return Violated(f"expected another part than a draft of {outcome.draft}")
    certain = draft and together > outcome.limit + 1 and not overhead
    if certain and outcome.part is not LargePart.DRAFT:
        return Violated(f"expected the draft of {outcome.draft} as the part, saw {outcome.part}")
    return None


def trg_8b(seen: Seen) -> Result:
    """Between threshold and safe limit a request is compacted first exactly where an automatic compaction would run; below it never is."""
    pressure = request_pressure(seen)
    if pressure is None or pressure.above_limit:
        return None
    if isinstance(seen.outcome, Sent):
        if not pressure.presses or not pressure.is_wanted or not pressure.may_gain:
            return None
        return Violated(
            f"expected a compaction first for a request of {pressure.tokens}, from the threshold {pressure.budgets.threshold} on; saw it sent"
        )
    if not isinstance(seen.outcome, Planned):
        return None
    if not pressure.presses:
        return Violated(
            f"expected a request of {pressure.tokens} to be sent, below the threshold {pressure.budgets.threshold}; saw a plan"
        )
    places = chosen_places(seen)
    if not places or places[0].place is None:
        return None
    place = places[0].place
    if not pressure.advances(place):
        return Violated(
            "expected the place to advance for a request that fits, saw another plan", places[0].node
        )
    return holds_if(
        pressure.is_worth_it(place),
        "expected no compaction that frees less than the declared share, for a request that fits; saw one",
        places[0].node,
    )


def trg_8c(seen: Seen) -> Result:
    """Above the safe limit whatever is permitted is tried; where no place is allowed the request is too large, and the answer says that."""
    pressure, outcome = request_pressure(seen), seen.outcome
    if pressure is None:
        # What the branch costs up to the base is not shown, but the answer says that it is too large.
        if isinstance(outcome, TooLarge) and isinstance(seen.operation, Retry | Edit):
            return _no_advance(outcome.attempt) if outcome.part is LargePart.REQUEST else None
        return None
    if not pressure.above_limit or _large_part(seen, pressure) is not LargePart.REQUEST:
        return None
    if isinstance(outcome, Planned):
        return holds_if(bool(pressure.places), "expected no plan, because no place is allowed; saw one")
    if not isinstance(outcome, TooLarge):
        return None
    if pressure.places:
        return Violated("expected a compaction first, because a place is allowed; saw the request refused")
    return _no_advance(outcome.attempt)


def _no_advance(attempt: Attempt | None) -> Result:
    told = name_of(attempt) if attempt is not None else "none"
    wanted = Noop(reason=NoopReason.NO_ADVANCE)
    return holds_if(attempt == wanted, f"expected noop(no-advance) as the attempt, saw {told}")


def _request_plan(seen: Seen) -> Plan | None:
    """The plan of a request that a commit brings as it was begun, where nothing stands against it."""
    operation = commits(seen)
    if operation is None or operation.plan.purpose is None or not is_as_begun(seen, operation):
        return None
    plan = seen.plan(operation.plan)
    return None if applicable(seen) or plan.budgets.window == 0 else plan


def trg_8d(seen: Seen) -> Result:
    """The commit of a request's compaction answers for the request: it is sent, or too large, with what became of the attempt."""
    plan = _request_plan(seen)
    if plan is None:
        return None
    outcome, size = shown_outcome(seen), _size_of(seen, plan)
    if isinstance(outcome, More):
        return None
    if not isinstance(outcome, Sent | TooLarge):
        return Violated(f"expected sent or too-large, saw {name_of(outcome)}")
    if isinstance(outcome, Sent) and isinstance(outcome.attempt, Committed):
        return HOLDS
    if not isinstance(outcome.attempt, Failed):
        return Violated("expected the failure of the attempt to be named, saw none")
    fits = size <= plan.budgets.safe
    if fits and outcome.attempt.reason is FailureReason.STILL_TOO_LARGE:
        return Violated(
            "expected a request that fitted to count as fitting behind a checkpoint that makes it smaller, saw failed(still-too-large)"
        )
    if isinstance(outcome, TooLarge) and outcome.part is not LargePart.REQUEST:
        return Violated(f"expected the whole request as the part, saw {outcome.part}")
    return holds_if(
        fits is isinstance(outcome, Sent),
        f"expected a request of {size} to be {'sent' if fits else 'too large'} without its compaction, saw {name_of(outcome)}",
    )


def trg_9(seen: Seen) -> Result:
    """A request becomes durable as one: its checkpoint, its message behind that, and the leaf, or nothing of it."""
    outcome = seen.outcome
    session = session_of(seen.operation)
    if outcome == Failed(reason=FailureReason.STILL_TOO_LARGE):
        return Violated(
            "expected another failure of a compaction that was made for no request, saw still-too-large"
        )
    if not isinstance(outcome, Sent):
        failed = outcome.attempt if isinstance(outcome, TooLarge) else None
        return _wrongly_still_too_large(seen) if isinstance(failed, Failed) else None
    if session is None or not in_both(seen, session):
        return None
    checkpoints = tuple(node.content.id for node in added(seen) if is_checkpoint(node))
    said = (outcome.attempt.checkpoint,) if isinstance(outcome.attempt, Committed) else ()
    if checkpoints != said:
        return Violated(f"expected the checkpoint {listed(said)} with the request, saw {listed(checkpoints)}")
    draft = _draft(seen)
    leaf = seen.after.leaf(session)
    if draft is not None:
        stored = seen.after.node(draft.id)
        if stored is None or stored.content != draft:
            return Violated(f"expected {draft.id} to be stored as it was given, saw otherwise", draft.id)
        if leaf != draft.id:
            return Violated(f"expected {draft.id} as the leaf, saw {leaf}", leaf)
        behind = said[0] if said else seen.before.leaf(session)
        # What an edit without a checkpoint follows is EDIT-1's.
        if (said or isinstance(seen.operation, Send)) and not outcome.abandoned and stored.parent != behind:
            return Violated(f"expected {draft.id} behind {behind}, saw it behind {stored.parent}", draft.id)
        messages = tuple(one.content.id for one in added(seen) if not is_checkpoint(one))
        if not outcome.abandoned and messages != (draft.id,):
            return Violated(f"expected {draft.id} alone to be written, saw {listed(messages)}", draft.id)
    elif said and leaf != said[0]:
        return Violated(f"expected the checkpoint {said[0]} as the leaf, saw {leaf}", leaf)
    return _landed(seen, said[0]) if said else HOLDS


def _draft(seen: Seen) -> Message | None:
    """The message of a request that was sent: the one of the operation, or of the plan that a commit brings."""
    operation = seen.operation
    if isinstance(operation, Send | Edit):
        return operation.message
    purpose = operation.plan.purpose if isinstance(operation, CommitCompaction) else None
    return purpose.message if isinstance(purpose, SendFor | EditFor) else None


def _landed(seen: Seen, checkpoint: NodeId) -> Result:
    """A request that did not fit fits behind its checkpoint."""
    if not isinstance(seen.operation, CommitCompaction):
        return Violated("expected a checkpoint with a commit only, saw one", checkpoint)
    plan = seen.plan(seen.operation.plan)
    if plan.budgets.window == 0 or _size_of(seen, plan) <= plan.budgets.safe:
        return HOLDS
    size = _landing(seen, plan, seen.after.estimate(checkpoint))
    return holds_if(
        size <= plan.budgets.safe,
        f"expected a request of at most {plan.budgets.safe} behind the checkpoint, saw {size}",
        checkpoint,
    )


def _landing(seen: Seen, plan: Plan, summary: int) -> int:
    """What a request comes to behind a checkpoint whose summary costs so much."""
    seen.wants(Field.SIZES)
    ratio = ratio_of(seen, plan.occupancy.figure, plan.occupancy.covered)
    return scaled(plan.budgets.overhead + summary + plan.tokens_after + plan.draft, *ratio)


def _wrongly_still_too_large(seen: Seen) -> Result:
    outcome, plan = seen.outcome, _request_plan(seen)
    if plan is None or not isinstance(outcome, TooLarge):
        return None
    if outcome.attempt != Failed(reason=FailureReason.STILL_TOO_LARGE):
        return None
    most = longest_summary(seen)
    if most is None:
        return None
    return holds_if(
        _landing(seen, plan, most) > plan.budgets.safe,
        "expected the request to be sent behind its checkpoint, saw it called still too large",
    )


# While something runs ------------------------------------------------------------------------------------


def _unstable_send(seen: Seen) -> tuple[Send, tuple[OpenAt, ...]] | None:
    """A send on an unstable branch that neither a refusal nor a stale name keeps from being looked at."""
    operation = seen.operation
    if not isinstance(operation, Send) or not seen.before.knows_session(operation.session):
        return None
    if seen.before.is_stable(operation.session) or applicable(seen):
        return None
    return operation, seen.before.open_calls(operation.session)


def _fits_at_most(seen: Seen, session: SessionId, message: Message, besides: int = 0) -> bool:
    """Whether a message surely fits, whatever its texts cost."""
    budgets, occupancy = seen.before.budgets(session), seen.before.occupancy(session)
    most = text_at_most(message, seen.declaration.parameters)
    if most is None or Capability.CAPACITY not in seen.declaration.capabilities:
        return False
    ratio = ratio_of(seen, occupancy.figure, occupancy.covered)
    return occupancy.tokens + scaled(most + besides, *ratio) <= budgets.safe


def _is_skipped(seen: Seen, session: SessionId, calls: tuple[OpenAt, ...]) -> bool:
    wanted = Skipped(
        open_calls=tuple(known.call for known in calls),
        answer_running=seen.before.running(session) is not None,
    )
    return shown_outcome(seen) == wanted


def trg_14b(seen: Seen) -> Result:
    """Open calls whose process is gone are abandoned by a send, in the same change, and the answer names them."""
    asked = _unstable_send(seen)
    if asked is None:
        named_wrongly = isinstance(seen.outcome, Sent) and bool(seen.outcome.abandoned)
        return Violated("expected no call to be named as abandoned, saw one") if named_wrongly else None
    operation, calls = asked
    session, message = operation.session, operation.message
    if seen.before.running(session) is not None or are_owned(seen, tuple(known.message for known in calls)):
        return None
    outcome = shown_outcome(seen)
    if isinstance(outcome, Skipped):
        if not _is_skipped(seen, session, calls):
            return Violated("expected what is open to be named, saw another answer")
        parameters = seen.declaration.parameters
        results = len(calls) * (parameters.per_message + parameters.per_part)
        return holds_if(
            not _fits_at_most(seen, session, message, results),
            "expected the request to be sent, because it fits; saw it skipped",
        )
    if not isinstance(outcome, Sent):
        return Violated(
            f"expected {listed(tuple(known.call for known in calls))} to be abandoned and the request to be sent, saw {name_of(outcome)}"
        )
    named = tuple(known.call for known in calls)
    if outcome.abandoned != named:
        return Violated(f"expected {listed(named)} to be named as abandoned, saw {listed(outcome.abandoned)}")
    still_open = seen.after.open_calls(session)
    if still_open:
        return Violated(f"expected no call to be open, saw {still_open[0].call}", still_open[0].message)
    settled = [one for call in calls for one in _abandoned(seen, call)]
    return holds_if(
        len(settled) >= len(calls), "expected a result `abandoned` for each call, saw another", message.id
    )


def _abandoned(seen: Seen, call: OpenAt) -> tuple[ToolResult, ...]:
    """The `abandoned` results of a call that the step stored."""
    stored = [node.content for node in seen.change.nodes if isinstance(node.content, Message)]
    return tuple(
        result
        for content in stored
        for result in results_of(content)
        if result.call == call.call and result.status is ResultStatus.ABANDONED and not result.preliminary
    )


def trg_14c(seen: Seen) -> Result:
    """What is sent while an answer runs, or on a call that this process still owns, is steering: it makes no request of its own."""
    operation = seen.operation
    asked = _unstable_send(seen)
    if asked is None:
        if isinstance(operation, Send) and isinstance(shown_outcome(seen), Skipped | Done):
            stable = seen.before.knows_session(operation.session) and not applicable(seen)
            return (
                Violated(f"expected a request on a stable branch, saw {name_of(seen.outcome)}")
                if stable
                else None
            )
        return None
    operation, calls = asked
    session, message = operation.session, operation.message
    if seen.before.running(session) is None and not are_owned(seen, tuple(known.message for known in calls)):
        return None
    outcome = shown_outcome(seen)
    budgets = seen.before.budgets(session)
    match outcome:
        case Done():
            if outcome.written != (message.id,) or seen.after.leaf(session) != message.id:
                return Violated(f"expected {message.id} to be appended, saw otherwise", message.id)
            if seen.before.running(session) != seen.after.running(session):
                return Violated("expected the answer to go on, saw it end or move", message.id)
            fits = budgets.window == 0 or seen.after.occupancy(session).tokens <= budgets.safe
            return holds_if(
                fits, "expected steering that does not fit to be skipped, saw it appended", message.id
            )
        case Skipped():
            if not _is_skipped(seen, session, calls):
                return Violated("expected what is open to be named, saw another answer")
            return holds_if(
                budgets.window > 0 and not _fits_at_most(seen, session, message),
                "expected the steering message to be appended, because it fits; saw it skipped",
            )
        case Stale() | Refused(code=RefusalCode.UNKNOWN_SESSION):
            return None
        case _:
            return Violated(f"expected the message as steering, saw {name_of(outcome)}", message.id)


def trg_15(seen: Seen) -> Result:
    """A further request above the safe limit is too large and ends the answer, so that the branch is stable."""
    operation = seen.operation
    if not isinstance(operation, NextRequest) or not seen.before.knows_session(operation.session):
        return None
    result = decided(seen, TOO_LARGE)
    if not isinstance(shown_outcome(seen), TooLarge) or isinstance(result, Violated):
        return result
    change = any_change(seen)
    if change is not None:
        return Violated(f"expected nothing durable to change, saw that {change}")
    session = operation.session
    return holds_if(
        seen.after.knows_session(session) and seen.after.running(session) is None,
        "expected the answer to be over, saw it run on",
    )
