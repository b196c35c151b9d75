"""Requests with preflight: send, retry and edit, and the further requests of a running answer (TRG-7 to TRG-10, TRG-14, TRG-15)."""

from functools import partial

from tailmark.budgets import Budgets, Occupancy
from tailmark.identifiers import Tokens
from tailmark.messages import Role
from tailmark.operations import Edit, Retry, Send
from tailmark.outcomes import Done, LargePart, Noop, NoopReason, Outcome, Planned, RefusalCode, Refused, Sent
from tailmark.plans import EditFor, Plan, Purpose, RetryFor, SendFor, Trigger
from tailmark_reference.model.compaction import attempted, free_plan_id
from tailmark_reference.model.planning import Terms, base_for, determine_plan, occupancy_of
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.sending import request_of, sent, sent_from, too_large
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import Session, World
from tailmark_reference.model.writing import (
    abandon_open_calls,
    bumped,
    follows,
    is_stable,
    on_branch,
    open_calls_of,
    runs,
    skipped,
    stale,
    write,
)

Next = tuple[World, Outcome]


# Which requests are allowed ------------------------------------------------------------------------------


def send(rules: Rules, world: World, session: Session, operation: Send) -> Next:
    """A draft is to be asked: as a request of its own, or as steering of what runs (TRG-8, TRG-14)."""
    message = operation.message
    if message.id in world.nodes:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    if message.role is not Role.USER:
        return world, Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    fault = rules.message_fault(message, open_calls_of(session))
    if fault is not None:
        return world, Refused(code=fault)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    if is_stable(rules, world, session):
        return _preflight(rules, world, session, SendFor(message=message))
    if runs(world, session) or any(rules.owns(world.process, call) for call in open_calls_of(session)):
        return _steer(rules, world, session, operation)
    return _send_behind_dead_calls(rules, world, session, operation)


def _fits_with(rules: Rules, session: Session, draft: Tokens) -> bool:
    budgets = rules.budgets(session.model, session.settings)
    occupancy = occupancy_of(rules, session.leaf, session.model, budgets)
    scaled = rules.occupancy.scaled(draft, occupancy, rules.readings.measure)
    return rules.goes_out(budgets, occupancy.tokens + scaled)


def _steer(rules: Rules, world: World, session: Session, operation: Send) -> Next:
    """A message that comes while an answer is being made belongs to it, and makes no request of its own."""
    if not _fits_with(rules, session, rules.estimate(operation.message)):
        return world, skipped(world, session)
    world, session = write(rules, world, session, operation.message)
    return world.with_session(bumped(rules, session, 1)), Done(written=(operation.message.id,))


def _send_behind_dead_calls(rules: Rules, world: World, session: Session, operation: Send) -> Next:
    """Calls whose process is gone are abandoned in the same change, and the answer says so (TRG-14)."""
    revision = session.revision
    changed, done = abandon_open_calls(rules, world, session)
    now = changed.sessions[session.id]
    if not _fits_with(rules, now, rules.estimate(operation.message)):
        return world, skipped(world, session)
    changed, now = write(rules, changed, now.at(now.leaf, revision), operation.message)
    now = bumped(rules, now, 1)
    return sent_from(
        changed,
        now,
        Sent(request=request_of(rules, now), written=(operation.message.id,), abandoned=done.abandoned),
    )


def retry(rules: Rules, world: World, session: Session, operation: Retry) -> Next:
    """The last question is to be answered anew (RETRY)."""
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    opener = rules.last_opener(session.leaf)
    if session.leaf is None or opener is None:
        return world, Refused(code=RefusalCode.NO_QUESTION)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    return _preflight(rules, world, session, RetryFor(), question=opener)


def edit(rules: Rules, world: World, session: Session, operation: Edit) -> Next:
    """The last question is to be replaced (EDIT)."""
    if not is_stable(rules, world, session):
        return world, Refused(code=RefusalCode.UNSTABLE)
    target = world.nodes.get(operation.target)
    if target is None:
        return world, Refused(code=RefusalCode.UNKNOWN_NODE)
    opener = rules.last_opener(session.leaf)
    if opener is None or opener.id != target.id or not on_branch(session, target):
        return world, Refused(code=RefusalCode.NOT_LAST_TURN)
    message = operation.message
    if message.role is not Role.USER:
        return world, Refused(code=RefusalCode.NOT_A_USER_MESSAGE)
    if message.id in world.nodes:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    fault = rules.message_fault(message, open_calls_of(session))
    if fault is not None:
        return world, Refused(code=fault)
    if not follows(rules, session, operation.follows):
        return world, stale(session)
    return _preflight(rules, world, session, EditFor(target=target.id, message=message))


# Preflight -----------------------------------------------------------------------------------------------


def _preflight(
    rules: Rules, world: World, session: Session, purpose: Purpose, question: TreeNode | None = None
) -> Next:
    """A request that is allowed: it goes out, needs a compaction first, or is too large (TRG-8)."""
    base = base_for(rules, world, session, purpose)
    budgets = rules.budgets(session.model, session.settings)
    draft = Tokens(0) if isinstance(purpose, RetryFor) else rules.estimate(purpose.message)
    occupancy = occupancy_of(rules, base, session.model, budgets)
    scaled = partial(rules.occupancy.scaled, occupancy=occupancy, reading=rules.readings.measure)
    used = occupancy.tokens + scaled(draft)
    if not rules.goes_out(budgets, used):
        asked = question.estimate if question is not None else Tokens(0)
        part = rules.too_large(budgets, scaled, draft=draft, question=asked)
        if part is not None:
            return world, too_large(part, occupancy, budgets, scaled, draft=draft)
    plan = _wanted_plan(rules, world, session, purpose, draft, budgets, used)
    if plan is not None:
        return attempted(world, session, plan), Planned(plan=plan)
    if rules.goes_out(budgets, used):
        return sent(rules, world, session, purpose, base)
    noop = Noop(reason=NoopReason.NO_ADVANCE)
    return world, too_large(LargePart.REQUEST, occupancy, budgets, scaled, draft=draft, attempt=noop)


def _wanted_plan(
    rules: Rules,
    world: World,
    session: Session,
    purpose: Purpose,
    draft: Tokens,
    budgets: Budgets,
    used: int,
) -> Plan | None:
    """The compaction that a request needs, or wants: below the safe limit only where an automatic one would run (TRG-8)."""
    if not rules.presses(budgets, used):
        return None
    fits = rules.goes_out(budgets, used)
    if fits and not _may_be_tried(rules, world, session, budgets):
        return None
    terms = Terms(
        trigger=Trigger.PREFLIGHT, model=session.model, budgets=budgets, purpose=purpose, draft=draft
    )
    plan_id = free_plan_id(rules, world, session, Trigger.PREFLIGHT)
    determined = determine_plan(rules, world, session, plan_id, terms)
    if determined is None:
        return None
    plan, choice, position = determined
    if not fits:
        return plan
    advances = 0 < position < len(choice.tail)
    return plan if advances and rules.worth_it(choice, position, rules.worth_divisor) else None


def _may_be_tried(rules: Rules, world: World, session: Session, budgets: Budgets) -> bool:
    process = world.process
    return (
        rules.automatic_is_on(session.settings, budgets)
        and not rules.respects_undo(process, session.id)
        and not rules.is_hopeless_attempt(process.attempts.get(session.id), session.key)
    )


# Requests of a running answer ----------------------------------------------------------------------------


def above_the_limit(rules: Rules, session: Session) -> Outcome | None:
    """`TooLarge` if the session's next request exceeds the safe limit (TRG-10, TRG-15)."""
    budgets = rules.budgets(session.model, session.settings)
    occupancy: Occupancy = occupancy_of(rules, session.leaf, session.model, budgets)
    if rules.goes_out(budgets, occupancy.tokens):
        return None
    scaled = partial(rules.occupancy.scaled, occupancy=occupancy, reading=rules.readings.measure)
    part = LargePart.OVERHEAD if scaled(budgets.overhead) >= budgets.safe else LargePart.REQUEST
    return too_large(part, occupancy, budgets, scaled)


def was_sent(world: World, session: Session) -> bool:
    """Whether the request of this very state was found to fit by the send, retry or edit before it."""
    return world.process.sent.get(session.id) == session.key
