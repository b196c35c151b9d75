"""Compactions in the model: begin, preview, the automatic ones, commit and cancel (TRG, CMT)."""

from functools import partial

from attrs import evolve, frozen

from tailmark.identifiers import PlanId, SessionId, Tokens
from tailmark.operations import BeginCompaction, CancelCompaction, CommitCompaction, Preview
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    FailureReason,
    LargePart,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    RefusalCode,
    Refused,
)
from tailmark.plans import EditFor, Plan, SendFor, SummaryAnswer, Trigger
from tailmark_reference.model.planning import Terms, choice_of, determine_plan, occupancy_of, terms_of
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.sending import sent, too_large
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import KnownPlan, PlanState, Session, World
from tailmark_reference.model.writing import (
    bumped,
    is_stable,
    skipped,
    stale,
    write,
)

Next = tuple[World, Outcome]


# Begin ---------------------------------------------------------------------------------------------------


def plan_manually(
    rules: Rules, world: World, session: Session, operation: BeginCompaction | Preview
) -> Plan | Outcome:
    """The plan that somebody asks for, or why there is none (TRG-1 to TRG-4)."""
    if operation.trigger is not Trigger.MANUAL:
        return Refused(code=RefusalCode.TRIGGER)
    if (session.id, operation.plan) in world.process.plans:
        return Refused(code=RefusalCode.KNOWN_ID)
    if not is_stable(rules, world, session):
        return skipped(world, session)
    terms = Terms(
        trigger=operation.trigger,
        model=session.model,
        budgets=rules.budgets(session.model, session.settings),
        instructions=operation.instructions,
    )
    reason = nothing_to_do(rules, session, terms)
    if reason is not None:
        return Noop(reason=reason)
    determined = determine_plan(rules, world, session, operation.plan, terms)
    return determined[0] if determined is not None else Noop(reason=NoopReason.TOO_FEW_TURNS)


def nothing_to_do(rules: Rules, session: Session, terms: Terms) -> NoopReason | None:
    """Why a manual compaction on these terms has nothing to do."""
    leaf = session.leaf
    latest = rules.latest_checkpoint(leaf)
    too_long = False
    if leaf is not None and leaf is latest:
        occupancy = occupancy_of(rules, leaf, terms.model, terms.budgets)
        too_long = choice_of(rules, leaf, terms, occupancy).summary_too_long
    return rules.nothing_to_do(leaf, latest, summary_too_long=too_long)


def begin(rules: Rules, world: World, session: Session, operation: BeginCompaction) -> Next:
    """A manual compaction begins. The user asked, so an undo is forgotten (UNDO-3)."""
    outcome = plan_manually(rules, world, session, operation)
    if not isinstance(outcome, Plan):
        return world, outcome
    world = without_undo(remembered(world, outcome, PlanState.OPEN), session.id)
    return world, Planned(plan=outcome)


def remembered(world: World, plan: Plan, state: PlanState) -> World:
    """The world in which this process knows a plan."""
    plans = {**world.process.plans, (plan.session, plan.id): KnownPlan(plan=plan, state=state)}
    return world.with_process(evolve(world.process, plans=plans))


def without_undo(world: World, session: SessionId) -> World:
    """The world in which no undo of the session is remembered."""
    if session not in world.process.undone:
        return world
    return world.with_process(evolve(world.process, undone=world.process.undone - {session}))


def attempted(world: World, session: Session, plan: Plan) -> World:
    """The world in which a plan that nobody asked for is open, and its state had its attempt (TRG-6)."""
    world = remembered(world, plan, PlanState.OPEN)
    attempts = {**world.process.attempts, session.id: session.key}
    return world.with_process(evolve(world.process, attempts=attempts))


def free_plan_id(rules: Rules, world: World, session: Session, trigger: Trigger) -> PlanId:
    """A name for a plan that nobody named."""
    return rules.plan_id(
        trigger, session.id, session.revision, lambda name: (session.id, name) in world.process.plans
    )


def with_automatic(rules: Rules, world: World, session: Session, done: Done) -> Next:
    """An operation that is done, with the automatic compaction that begins behind it, if one is due (TRG-5, TRG-6, TRG-16)."""
    budgets = rules.budgets(session.model, session.settings)
    if session.leaf is None or budgets.window == 0 or not rules.automatic_is_on(session.settings, budgets):
        return world, done
    undone = rules.respects_undo(world.process, session.id)
    tokens = occupancy_of(rules, session.leaf, session.model, budgets).tokens
    if not is_stable(rules, world, session) or not rules.automatic_limit(budgets, tokens, undone=undone):
        return world, done
    if rules.is_hopeless_attempt(world.process.attempts.get(session.id), session.key):
        return world, done
    terms = Terms(trigger=Trigger.AUTOMATIC, model=session.model, budgets=budgets)
    plan_id = free_plan_id(rules, world, session, Trigger.AUTOMATIC)
    determined = determine_plan(rules, world, session, plan_id, terms)
    if determined is None:
        return world, done
    plan, choice, position = determined
    if not rules.worth_it(choice, position, rules.worth_divisor):
        return world, done
    return attempted(world, session, plan), evolve(done, plan=plan)


# Commit --------------------------------------------------------------------------------------------------


def commit(rules: Rules, world: World, session: Session, operation: CommitCompaction) -> Next:
    """A plan comes back with its summary. Every answer but `More` spends it (OUT-3)."""
    plan = operation.plan
    known = world.process.plans.get((session.id, plan.id))
    after, outcome = _try_commit(rules, world, session, operation, known)
    if known is not None and known.state is PlanState.OPEN and rules.spends(outcome):
        after = remembered(after, known.plan, PlanState.SPENT)
    return after, outcome


def _try_commit(
    rules: Rules, world: World, session: Session, operation: CommitCompaction, known: KnownPlan | None
) -> Next:
    plan = operation.plan
    state = known.state if known is not None else None
    if state is PlanState.CANCELLED:
        return world, Cancelled()
    if not rules.same_leaf(session, plan) or not rules.same_revision(session, plan):
        return world, stale(session)
    if not is_stable(rules, world, session):
        return world, skipped(world, session)
    if state is PlanState.SPENT:
        return world, Refused(code=RefusalCode.SPENT)
    if known is None or not _is_right(rules, world, session, operation, known):
        return world, Refused(code=RefusalCode.PLAN)
    if isinstance(plan.purpose, SendFor | EditFor) and plan.purpose.message.id in world.nodes:
        return world, Refused(code=RefusalCode.KNOWN_ID)
    base = world.nodes.get(plan.base)
    assert base is not None
    return _use(rules, world, session, operation, base)


def _is_right(
    rules: Rules, world: World, session: Session, operation: CommitCompaction, known: KnownPlan
) -> bool:
    """Whether a plan is the one that was begun, and is what the state determines (CMT-4)."""
    plan = operation.plan
    if not rules.same_terms(plan, known.plan) or not rules.reply_fits(plan, operation.reply):
        return False
    if plan.trigger is Trigger.MANUAL and nothing_to_do(rules, session, terms_of(plan)) is not None:
        return False
    determined = determine_plan(rules, world, session, plan.id, terms_of(plan))
    return determined is not None and rules.same_plan(plan, determined[0])


@frozen(kw_only=True)
class _Use:
    """A usable summary: its text and its estimate."""

    text: str
    size: Tokens


def _use(rules: Rules, world: World, session: Session, operation: CommitCompaction, base: TreeNode) -> Next:
    plan, reply = operation.plan, operation.reply
    scaled = partial(rules.occupancy.scaled, occupancy=plan.occupancy, reading=rules.readings.measure)
    used = plan.occupancy.tokens + scaled(plan.draft)
    fitted = rules.goes_out(plan.budgets, used)
    summary = rules.read_reply(reply) if reply is not None else plan.previous_summary or ""
    if isinstance(summary, FailureReason):
        return _failed(rules, world, session, plan, base, Failed(reason=summary), fitted=fitted)
    size = rules.estimate_summary(summary)
    fault = rules.summary_fault(plan, size, scaled, fitted=fitted)
    if fault is not None:
        return _failed(rules, world, session, plan, base, Failed(reason=fault), fitted=fitted)
    finish = reply.finish if isinstance(reply, SummaryAnswer) else None
    name = rules.checkpoint_id(plan, world.nodes.__contains__)
    checkpoint = rules.checkpoint_of(plan, name, summary, finish, size)
    world = without_undo(world, session.id)
    at_base = session.at(base, session.revision)
    if plan.purpose is None:
        world, at_base = write(rules, world, at_base, checkpoint)
        return world.with_session(bumped(rules, at_base, 1)), Committed(checkpoint=name)
    return sent(
        rules,
        world,
        session,
        plan.purpose,
        base,
        checkpoint=checkpoint,
        attempt=Committed(checkpoint=name),
    )


def _failed(
    rules: Rules, world: World, session: Session, plan: Plan, base: TreeNode, failed: Failed, *, fitted: bool
) -> Next:
    """What becomes of a plan without a summary: a request goes out without it, if it fits (TRG-8)."""
    if plan.purpose is None:
        return world, failed
    if fitted:
        return sent(rules, world, session, plan.purpose, base, attempt=failed)
    scaled = partial(rules.occupancy.scaled, occupancy=plan.occupancy, reading=rules.readings.measure)
    return world, too_large(
        LargePart.REQUEST, plan.occupancy, plan.budgets, scaled, draft=plan.draft, attempt=failed
    )


def cancel(rules: Rules, world: World, session: Session, operation: CancelCompaction) -> Next:
    """A plan is dropped (CMT-8)."""
    known = world.process.plans.get((session.id, operation.plan))
    if known is None or not rules.cancels(known.state):
        return world, Noop(reason=NoopReason.NO_SUCH_PLAN)
    return remembered(world, known.plan, PlanState.CANCELLED), Cancelled()
