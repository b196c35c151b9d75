"""Predicates of the chapter on triggers: what a request for a compaction is answered."""

from typing import TypeAlias

from tailmark.declarations import AdvanceReading, Field, TailReading
from tailmark.identifiers import SessionId
from tailmark.messages import Role
from tailmark.operations import Append, BeginCompaction, Preview
from tailmark.outcomes import (
    Done,
    Failed,
    FailureReason,
    More,
    Noop,
    NoopReason,
    Planned,
    Previewed,
    ReadOnly,
    RefusalCode,
    Refused,
    Skipped,
    Stale,
)
from tailmark.plans import Plan, Trigger
from tailmark.rules.answers import has_long_summary, is_about_the_store, name_of
from tailmark.rules.changes import any_change, shown_outcome
from tailmark.rules.compactions import (
    Chosen,
    asked_plan,
    candidates,
    changed_running,
    chosen_places,
    new_checkpoints,
    plan_behind,
    tail_cost,
)
from tailmark.rules.scene import Mark, latest_checkpoint
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated, holds_if

_Asks: TypeAlias = BeginCompaction | Preview


def _asks(seen: Seen) -> _Asks | None:
    """A begin or preview on a known session; what is asked of an unknown one is OUT-2's."""
    operation = seen.operation
    if isinstance(operation, BeginCompaction | Preview) and seen.before.knows_session(operation.session):
        return operation
    return None


def _judged(seen: Seen) -> _Asks | None:
    """A manual begin or preview that neither a refusal nor the store keeps from being looked at."""
    asks = _asks(seen)
    if asks is None or asks.trigger is not Trigger.MANUAL or is_about_the_store(seen.outcome):
        return None
    return asks if seen.known_plan(asks.session, asks.plan) is None else None


def manual_on_stable_branch(seen: Seen) -> _Asks | None:
    asks = _judged(seen)
    return asks if asks is not None and seen.before.is_stable(asks.session) else None


def _is_planned(seen: Seen, asks: _Asks) -> bool:
    return isinstance(shown_outcome(seen), Planned if isinstance(asks, BeginCompaction) else Previewed)


def _wanted(asks: _Asks) -> str:
    return "a plan" if isinstance(asks, BeginCompaction) else "a preview"


def _new_behind_checkpoint(branch: Mark) -> bool:
    return branch.message is not None and latest_checkpoint(branch) is not None


def _two_turns(branch: Mark) -> bool:
    return latest_checkpoint(branch) is None and branch.turns >= 2


def trg_1(seen: Seen) -> Result:
    """A manual compaction is answered with a plan however small the branch is: nothing presses, and it is planned all the same."""
    asks = manual_on_stable_branch(seen)
    branch = seen.before.end(asks.session) if asks is not None else None
    if asks is None or branch is None or not (_two_turns(branch) or _new_behind_checkpoint(branch)):
        return None
    budget = seen.before.budgets(asks.session).tail
    if budget is not None:
        tail = seen.before.tail(asks.session)
        if sum(seen.before.estimate(mark.id) for mark in tail) > budget:
            return None
    return holds_if(
        _is_planned(seen, asks),
        f"expected {_wanted(asks)} whatever the size, saw {name_of(seen.outcome)}",
        branch.id,
    )


def trg_1a(seen: Seen) -> Result:
    """A caller may ask for manual compactions only."""
    asks = _asks(seen)
    if asks is None or asks.trigger is Trigger.MANUAL or is_about_the_store(seen.outcome):
        return None
    return holds_if(
        shown_outcome(seen) == Refused(code=RefusalCode.TRIGGER),
        f"expected refused(trigger) for the trigger {asks.trigger}, saw {name_of(seen.outcome)}",
    )


def trg_2(seen: Seen) -> Result:
    """Manual on a stable branch without a checkpoint and with two turns or more: it plans."""
    asks = manual_on_stable_branch(seen)
    branch = seen.before.end(asks.session) if asks is not None else None
    if asks is None or branch is None or not _two_turns(branch):
        return None
    return holds_if(
        _is_planned(seen, asks),
        f"expected {_wanted(asks)} on a branch of {branch.turns} turns, saw {name_of(seen.outcome)}",
        branch.id,
    )


def trg_3(seen: Seen) -> Result:
    """Manual with a checkpoint as leaf, or with fewer than two turns and no checkpoint: a successful `noop`."""
    asks = manual_on_stable_branch(seen)
    if asks is None:
        return None
    branch = seen.before.end(asks.session)
    if branch is not None and branch.message is None:
        if has_long_summary(seen, asks.session):
            return None  # TRG-10A
        reason = NoopReason.CHECKPOINT_IS_LEAF
    elif branch is None or (latest_checkpoint(branch) is None and branch.turns < 2):
        reason = NoopReason.TOO_FEW_TURNS
    else:
        return None
    return holds_if(
        shown_outcome(seen) == Noop(reason=reason),
        f"expected noop({reason}), saw {name_of(seen.outcome)}",
        branch.id if branch is not None else None,
    )


def trg_4(seen: Seen) -> Result:
    """Manual with new messages behind a checkpoint: the place advances where the budget moves it, else a refresh or the last turn."""
    asks = manual_on_stable_branch(seen)
    branch = seen.before.end(asks.session) if asks is not None else None
    if asks is None or branch is None or not _new_behind_checkpoint(branch):
        return None
    if not _is_planned(seen, asks):
        return Violated(
            f"expected {_wanted(asks)} with new messages behind a checkpoint, saw {name_of(seen.outcome)}",
            branch.id,
        )
    plan = asked_plan(seen)
    places = chosen_places(seen)
    if plan is None or not places:
        return None
    return _advance(seen, plan, places[0])


def _advance(seen: Seen, plan: Plan, chosen: Chosen) -> Result:
    readings = seen.declaration.readings
    allowed = candidates(chosen)
    if chosen.place is None or chosen.present is None or not allowed:
        return None
    if readings.tail is TailReading.KEEPS_NOTHING:
        return holds_if(
            chosen.place == chosen.branch.messages,
            f"expected the place at the end, saw it before {chosen.first_kept}",
            chosen.node,
        )
    seen.wants(Field.BUDGETS)
    budget = plan.budgets.tail
    if budget is not None and tail_cost(chosen, chosen.present) > budget:
        if allowed[-1] > chosen.present:
            return holds_if(
                chosen.place > chosen.present,
                f"expected the place to advance from a tail above {budget}, saw it before {chosen.first_kept}",
                chosen.node,
            )
        wanted = chosen.present
    else:
        wanted = allowed[-1] if readings.advance is AdvanceReading.TO_LAST_TURN else chosen.present
    what = "the present place, a refresh" if wanted == chosen.present else "the place before the last turn"
    return holds_if(
        chosen.place == wanted, f"expected {what}, saw the place before {chosen.first_kept}", chosen.node
    )


def trg_13(seen: Seen) -> Result:
    """A `noop` is an identity: nothing durable and no projection changes."""
    if not isinstance(shown_outcome(seen), Noop):
        return None
    departs = any_change(seen)
    return holds_if(departs is None, f"expected nothing to change with a noop, saw that {departs}")


def trg_14(seen: Seen) -> Result:
    """On an unstable branch a compaction is `skipped`: the answer names what is open, and nothing is aborted or written."""
    written = new_checkpoints(seen)
    if written and written[0].above is not None and written[0].above.open_calls:
        open_calls = ", ".join(known.call for known in written[0].above.open_calls)
        return Violated(
            f"expected no checkpoint while calls are open, saw one behind {open_calls}", written[0].id
        )
    asks = _judged(seen)
    if asks is None or seen.before.is_stable(asks.session):
        return None
    session = asks.session
    wanted = Skipped(
        open_calls=tuple(known.call for known in seen.before.open_calls(session)),
        answer_running=seen.before.running(session) is not None,
    )
    if shown_outcome(seen) != wanted:
        return Violated(f"expected {_skipped(wanted)}, saw {_answer(seen)}", seen.before.leaf(session))
    departs = any_change(seen)
    if departs is not None:
        return Violated(f"expected nothing to change, saw that {departs}")
    return holds_if(not changed_running(seen, session), "expected the answer to go on, saw it end")


def _skipped(outcome: Skipped) -> str:
    open_calls = ", ".join(outcome.open_calls) or "none"
    running = "an answer running" if outcome.answer_running else "no answer running"
    return f"skipped with open calls {open_calls} and {running}"


def _answer(seen: Seen) -> str:
    return _skipped(seen.outcome) if isinstance(seen.outcome, Skipped) else name_of(seen.outcome)


def trg_14a(seen: Seen) -> Result:
    """A user message that comes while an answer runs is appended, and the answer goes on."""
    operation = seen.operation
    if not isinstance(operation, Append) or operation.message.role is not Role.USER:
        return None
    session = operation.session
    if not seen.before.knows_session(session) or seen.before.running(session) is None:
        return None
    match shown_outcome(seen):
        case Done():
            return holds_if(
                not changed_running(seen, session),
                "expected the answer to go on, saw it end",
                operation.message.id,
            )
        case Stale() | ReadOnly() | Failed(reason=FailureReason.LOCKED):
            return None
        case Refused(code=code) if code is not RefusalCode.UNSTABLE:
            return None  # the chapter on durable history judges what may be stored
        case _:
            return Violated(
                f"expected the message as steering, saw {name_of(seen.outcome)}", operation.message.id
            )


def _same_words(one: str | None, other: str | None) -> bool:
    return (one or None) == (other or None)


def trg_17(seen: Seen) -> Result:
    """Instructions of a manual compaction reach the summariser as the user's own words."""
    if isinstance(seen.outcome, More):
        plan = plan_behind(seen)
        if plan is None or plan.instructions is None:
            return None
        return holds_if(
            _same_words(seen.outcome.request.instructions, plan.instructions),
            f"expected the instructions {plan.instructions!r} in each pass, saw {seen.outcome.request.instructions!r}",
        )
    asks = _asks(seen)
    plan = asked_plan(seen) if asks is not None else None
    if asks is None or plan is None:
        return None
    carried = [plan.instructions, *([plan.request.instructions] if plan.request is not None else [])]
    for saw in carried:
        if not _same_words(saw, asks.instructions):
            return Violated(f"expected the instructions {asks.instructions!r}, saw {saw!r}", plan.base)
    return HOLDS if asks.instructions else None


def trg_18(seen: Seen) -> Result:
    """A preview shows the plan and its sizes as a begin would; nothing is written, and nothing runs or ends."""
    asks = _asks(seen)
    if isinstance(asks, BeginCompaction) and isinstance(shown_outcome(seen), Previewed):
        return Violated("expected a begin to answer a plan, saw a preview")
    if not isinstance(asks, Preview):
        return None
    outcome = shown_outcome(seen)
    if isinstance(outcome, Planned):
        return Violated("expected a preview, saw a plan that was begun")
    departs = any_change(seen)
    if departs is not None:
        return Violated(f"expected a preview to change nothing, saw that {departs}")
    if seen.before.shows(Field.RUNNING) and changed_running(seen, asks.session):
        return Violated("expected a preview to change nothing, saw an answer begin or end")
    if not isinstance(outcome, Previewed):
        return None
    begun = _begun_on_this_state(seen, outcome.plan, asks.session)
    if begun is None:
        return HOLDS
    return holds_if(
        _determined(begun) == _determined(outcome.plan),
        f"expected the plan that {begun.id} was on this state, saw another place, range, request or size",
        outcome.plan.base,
    )


def _begun_on_this_state(seen: Seen, previewed: Plan, session: SessionId) -> Plan | None:
    """A plan of this process that read the same state on the same terms. The same size before shows that no cost changed since."""
    for known in seen.plans.values():
        plan = known.plan
        if plan.session == session and _terms(plan) == _terms(previewed):
            return plan
    return None


def _terms(plan: Plan) -> tuple[object, ...]:
    return (plan.leaf, plan.revision, plan.trigger, plan.model, plan.instructions, plan.tokens_before)


def _determined(plan: Plan) -> tuple[object, ...]:
    return (
        plan.base,
        plan.first_kept,
        plan.old_first_kept,
        plan.previous_checkpoint,
        plan.previous_summary,
        plan.excluded,
        plan.refresh,
        plan.request,
        plan.tokens_after,
    )
