"""Outcomes: what may answer what, in which order, and what an answer promises."""

from collections.abc import Mapping

from tailmark.identifiers import SessionId
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    InflictDamage,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Committed,
    Done,
    FailureReason,
    NoopReason,
    Planned,
    Previewed,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
)
from tailmark.plans import EditFor, Plan, Purpose, RetryFor, SendFor, Trigger
from tailmark.rules.answers import (
    CANCELLED,
    SKIPPED,
    TOO_LARGE,
    WHY,
    applicable,
    decided,
    is_about_the_store,
    name_of,
)
from tailmark.rules.changes import (
    added,
    added_chain,
    any_change,
    is_checkpoint,
    listed,
    session_of,
    shown_outcome,
    was_done,
)
from tailmark.rules.saving import STALE, refused
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated

_UNKNOWN_SESSION = refused(RefusalCode.UNKNOWN_SESSION)
_SPENT = refused(RefusalCode.SPENT)
_BEFORE_PLAN = (_UNKNOWN_SESSION, CANCELLED, STALE, SKIPPED, _SPENT)


def out_1(seen: Seen) -> Result:
    """Every outcome but done, sent and committed leaves durable state and every projection as they were."""
    if was_done(seen):
        return None
    outcome = shown_outcome(seen)
    change = any_change(seen)
    if change is not None:
        return Violated(f"expected {name_of(outcome)} to change nothing; saw that {change}")
    return HOLDS


def out_2(seen: Seen) -> Result:
    """When several answers apply, the first in the order of answers is given; an unknown session comes before everything."""
    if is_about_the_store(seen.outcome):
        return None
    applying = applicable(seen)
    given = name_of(shown_outcome(seen))
    if _UNKNOWN_SESSION in (given, *applying):
        if given == _UNKNOWN_SESSION and _UNKNOWN_SESSION in applying:
            return HOLDS
        if given == _UNKNOWN_SESSION:
            return Violated(f"expected another answer than {given}: the session is known")
        return Violated(f"expected {_UNKNOWN_SESSION} before anything else; saw {given}")
    if applying and given == applying[0]:
        return HOLDS if len(set(applying)) > 1 else None
    if given == refused(RefusalCode.PLAN) and not any(name in _BEFORE_PLAN for name in applying):
        # Whether a plan is forged is CMT-4's to say; where it is, its reply is not read.
        return None
    if len(set(applying)) > 1 or (applying and given in WHY):
        return Violated(f"expected {applying[0]}, the first of {', '.join(applying)}; saw {given}")
    return None


def out_3(seen: Seen) -> Result:
    """Any answer to its commit but more spends a plan: it is never committed afterwards."""
    if not isinstance(seen.operation, CommitCompaction):
        return None
    result = decided(seen, _SPENT)
    if result is not None or is_about_the_store(seen.outcome):
        return result
    applying = applicable(seen)
    if applying and applying[0] == _SPENT:
        return Violated(f"expected {_SPENT}; saw {name_of(shown_outcome(seen))}")
    return None


def _answers(*names: str, codes: tuple[RefusalCode, ...] = ()) -> frozenset[str]:
    refusals = (RefusalCode.UNKNOWN_SESSION, *codes)
    # What the store itself may answer to anything.
    always = ("read-only", f"failed({FailureReason.LOCKED})")
    return frozenset((*names, *always, *(refused(code) for code in refusals)))


def _noops(*reasons: NoopReason) -> tuple[str, ...]:
    return tuple(f"noop({reason})" for reason in reasons)


_SAVING = _answers(
    "done",
    STALE,
    codes=(
        RefusalCode.KNOWN_ID,
        RefusalCode.INVALID_MESSAGE,
        RefusalCode.CALL_ID,
        RefusalCode.NOT_OPEN,
        RefusalCode.NOT_A_USER_MESSAGE,
    ),
)
_REQUESTING = ("sent", "planned", STALE, TOO_LARGE)
_PLANNING = (SKIPPED, *_noops(NoopReason.CHECKPOINT_IS_LEAF, NoopReason.TOO_FEW_TURNS))
_PLANNING_CODES = (RefusalCode.TRIGGER, RefusalCode.KNOWN_ID)

_LISTED: Mapping[type[Operation], frozenset[str]] = {
    Append: _SAVING,
    Save: _SAVING,
    Settle: _answers(
        "done", codes=(RefusalCode.UNKNOWN_NODE, RefusalCode.NOT_OPEN, RefusalCode.INVALID_MESSAGE)
    ),
    Abandon: _answers("done", STALE),
    StartAnswer: _answers("done", STALE, TOO_LARGE, codes=(RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION)),
    NextRequest: _answers("done", TOO_LARGE, codes=(RefusalCode.NO_ANSWER, RefusalCode.UNSTABLE)),
    EndAnswer: _answers("done", codes=(RefusalCode.NO_ANSWER,)),
    BeginCompaction: _answers("planned", *_PLANNING, codes=_PLANNING_CODES),
    Preview: _answers("previewed", *_PLANNING, codes=_PLANNING_CODES),
    CommitCompaction: _answers(
        "committed",
        "sent",
        TOO_LARGE,
        "more",
        CANCELLED,
        STALE,
        SKIPPED,
        *(f"failed({reason})" for reason in FailureReason),
        codes=(RefusalCode.SPENT, RefusalCode.PLAN, RefusalCode.KNOWN_ID),
    ),
    CancelCompaction: _answers(CANCELLED, *_noops(NoopReason.NO_SUCH_PLAN)),
    Send: _answers(
        "done",
        *_REQUESTING,
        SKIPPED,
        codes=(RefusalCode.KNOWN_ID, RefusalCode.NOT_A_USER_MESSAGE, RefusalCode.INVALID_MESSAGE),
    ),
    Retry: _answers(*_REQUESTING, codes=(RefusalCode.UNSTABLE, RefusalCode.NO_QUESTION)),
    Edit: _answers(
        *_REQUESTING,
        codes=(
            RefusalCode.UNSTABLE,
            RefusalCode.UNKNOWN_NODE,
            RefusalCode.NOT_LAST_TURN,
            RefusalCode.NOT_A_USER_MESSAGE,
            RefusalCode.KNOWN_ID,
            RefusalCode.INVALID_MESSAGE,
        ),
    ),
    Fork: _answers(
        "done",
        codes=(
            RefusalCode.KNOWN_ID,
            RefusalCode.UNKNOWN_NODE,
            RefusalCode.NOT_ASSISTANT,
            RefusalCode.UNSTABLE,
        ),
    ),
    Undo: _answers("done", STALE, codes=(RefusalCode.UNSTABLE, RefusalCode.NOT_A_CHECKPOINT)),
    SetModel: _answers("done", codes=(RefusalCode.SETTINGS,)),
    SetSettings: _answers("done", codes=(RefusalCode.SETTINGS,)),
    SetMetadata: _answers("done"),
    Load: _answers("done"),
    Restart: frozenset({"done"}),
    InflictDamage: _answers("done", codes=(RefusalCode.UNKNOWN_NODE,)),
}


def out_4(seen: Seen) -> Result:
    """Each operation answers only with the outcomes, codes and reasons that are listed for it."""
    given = name_of(shown_outcome(seen))
    if given in _LISTED[type(seen.operation)]:
        return HOLDS
    return Violated(f"expected an answer that is listed for {seen.operation.kind}; saw {given}")


def out_5(seen: Seen) -> Result:
    """What an answer names is what happened: the nodes written, the checkpoint, the present state, what is open."""
    session = session_of(seen.operation)
    if session is None or not seen.before.knows_session(session):
        return None
    outcome = shown_outcome(seen)
    match outcome:
        case Done() | Sent():
            return _true_done(seen, session, outcome)
        case Committed(checkpoint=checkpoint):
            stored = [node.content.id for node in added(seen) if is_checkpoint(node)]
            if stored != [checkpoint]:
                return Violated(
                    f"expected the new checkpoint {listed(tuple(stored))}; saw {checkpoint} named"
                )
            return HOLDS
        case Stale(leaf=leaf, revision=revision):
            present = (seen.before.leaf(session), seen.before.revision(session))
            if (leaf, revision) != present:
                return Violated(
                    f"expected leaf {present[0]} and revision {present[1]}; saw {leaf} and {revision} named"
                )
            return HOLDS
        case Skipped(open_calls=open_calls, answer_running=runs):
            calls = tuple(known.call for known in seen.before.open_calls(session))
            running = seen.before.running(session) is not None
            if open_calls != calls or runs is not running:
                return Violated(
                    f"expected the open calls {listed(calls)} and {_run(running)}; saw {listed(open_calls)} and {_run(runs)}"
                )
            return HOLDS
        case Planned(plan=shown) | Previewed(plan=shown):
            plan = seen.plan(shown)
            asked = seen.operation
            if isinstance(asked, Send | Retry | Edit):
                return _for_the_request(plan, asked)
            if not isinstance(asked, BeginCompaction | Preview):
                return None
            if (plan.session, plan.id) != (asked.session, asked.plan):
                return Violated(
                    f"expected plan {asked.plan} of {asked.session}; saw {plan.id} of {plan.session}"
                )
            return HOLDS
        case Refused(way=str(way)) if not isinstance(seen.operation, Undo):
            return Violated(f"expected no way to be named; saw {way}")
        case _:
            return None


def _for_the_request(plan: Plan, asked: Send | Retry | Edit) -> Result:
    wanted: Purpose = RetryFor()
    if isinstance(asked, Send):
        wanted = SendFor(message=asked.message)
    elif isinstance(asked, Edit):
        wanted = EditFor(target=asked.target, message=asked.message)
    right = plan.session == asked.session and plan.trigger is Trigger.PREFLIGHT and plan.purpose == wanted
    return HOLDS if right else Violated("expected the plan to be for the request that was made; saw another")


def _run(running: bool) -> str:
    return "a running answer" if running else "no running answer"


def _true_done(seen: Seen, session: SessionId, outcome: Done | Sent) -> Result:
    stored = tuple(node.content.id for node in added(seen))
    chain = added_chain(seen, seen.after.leaf(session))
    # Nodes that are not behind the leaf have no order of their own.
    right = outcome.written == chain if len(chain) == len(stored) else set(outcome.written) == set(stored)
    if not right or len(outcome.written) != len(stored):
        return Violated(f"expected {listed(chain or stored)} named as written; saw {listed(outcome.written)}")
    purpose = seen.operation.plan.purpose if isinstance(seen.operation, CommitCompaction) else None
    may_leave = isinstance(seen.operation, Retry | Edit) or isinstance(purpose, RetryFor | EditFor)
    if outcome.left and not may_leave:
        return Violated(f"expected no message to be named as left; saw {listed(outcome.left)}")
    if outcome.abandoned and not isinstance(seen.operation, Abandon | EndAnswer | Send):
        return Violated(f"expected no call to be named as abandoned; saw {listed(outcome.abandoned)}")
    return HOLDS if stored else None
