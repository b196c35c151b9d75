"""Witnesses about compactions and what comes between their begin and their commit."""

from attrs import evolve

from tailmark.operations import (
    CancelCompaction,
    CommitCompaction,
)
from tailmark.outcomes import (
    Committed,
    Noop,
    RefusalCode,
    Refused,
    Skipped,
    Stale,
)
from tailmark.plans import Checkpoint, Plan
from tailmark_conformance.explorers.forging import FORGED_FIELDS
from tailmark_conformance.explorers.witnesses.moments import Moment, Witness


def first_checkpoint(moment: Moment) -> bool:
    """The first checkpoint of a branch."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.previous_checkpoint is None


def advancing_checkpoint(moment: Moment) -> bool:
    """A later checkpoint whose place advances."""
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return isinstance(moment.outcome, Committed) and plan.previous_checkpoint is not None and not plan.refresh


def refresh(moment: Moment) -> bool:
    """A refresh is committed."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.refresh


def third_checkpoint(moment: Moment) -> bool:
    """Three checkpoints or more on one branch."""
    assert isinstance(moment.operation, CommitCompaction)
    return (
        isinstance(moment.outcome, Committed)
        and sum(
            isinstance(mark.stored.content, Checkpoint)
            for mark in moment.after.path(moment.after.leaf(moment.operation.plan.session))
        )
        > 2
    )


def instructed(moment: Moment) -> bool:
    """A compaction with the user's instructions commits."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Committed) and moment.operation.plan.instructions is not None


def compacted_after_undo(moment: Moment) -> bool:
    """A checkpoint is committed on a base that had another one, taken back since."""
    assert isinstance(moment.operation, CommitCompaction)
    if not isinstance(moment.outcome, Committed):
        return False
    base = moment.operation.plan.base
    return any(node.parent == base and isinstance(node.content, Checkpoint) for node in moment.before.nodes())


def stale_by_leaf(moment: Moment) -> bool:
    """The leaf moved between begin and commit."""
    return isinstance(moment.outcome, Stale) and _honest(moment) and not _same_leaf(moment)


def stale_by_revision(moment: Moment) -> bool:
    """The same leaf with another revision."""
    return isinstance(moment.outcome, Stale) and _honest(moment) and _same_leaf(moment)


def _honest(moment: Moment) -> bool:
    assert isinstance(moment.operation, CommitCompaction)
    return moment.begun(moment.operation.plan) == moment.operation.plan


def _same_leaf(moment: Moment) -> bool:
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return moment.before.leaf(plan.session) == plan.leaf


def stale_over_other_answers(moment: Moment) -> bool:
    """The plan is stale, and the branch is unstable or the plan had its answer as well."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Stale) and not moment.before.is_stable(moment.operation.plan.session)


def stale_of_two(moment: Moment) -> bool:
    """Of two plans on one state the other has won."""
    if not isinstance(moment.outcome, Stale) or not _honest(moment):
        return False
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    children = [
        node.content.id
        for node in moment.before.nodes()
        if node.parent == plan.base and isinstance(node.content, Checkpoint)
    ]
    return bool(children) and any(
        one.id != plan.id
        and evolve(one, id=plan.id, instructions=None, request=None)
        == evolve(plan, instructions=None, request=None)
        for one in moment.plans
    )


def answer_between(moment: Moment) -> bool:
    """An answer runs at the commit, and leaf and revision are the plan's."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Skipped) and _honest(moment)


def forgotten_plan(moment: Moment) -> bool:
    """A restart stands between begin and commit, and nothing else."""
    assert isinstance(moment.operation, CommitCompaction)
    return isinstance(moment.outcome, Refused) and moment.outcome.code is RefusalCode.PLAN and _honest(moment)


def undisturbed(moment: Moment) -> bool:
    """The model of the session is not the plan's any more, and yet it commits."""
    assert isinstance(moment.operation, CommitCompaction)
    plan = moment.operation.plan
    return isinstance(moment.outcome, Committed) and moment.before.model(plan.session) != plan.model


def cancelled_too_late(moment: Moment) -> bool:
    """A cancel names a plan that is committed."""
    assert isinstance(moment.operation, CancelCompaction)
    operation = moment.operation
    return isinstance(moment.outcome, Noop) and any(
        one.id == operation.plan and one.session == operation.session for one in moment.plans
    )


def forged(field: str) -> Witness:
    def witness(moment: Moment) -> bool:
        assert isinstance(moment.operation, CommitCompaction)
        plan = moment.operation.plan
        if isinstance(moment.outcome, Committed):
            return False
        # A plan with a forged id or session has no begin of its own.
        return any(_differ_in(one, plan, field) for one in moment.plans)

    return witness


def _differ_in(begun: Plan, plan: Plan, field: str) -> bool:
    return all((getattr(begun, name) != getattr(plan, name)) == (name == field) for name in FORGED_FIELDS)


def reply(missing: bool) -> Witness:
    def witness(moment: Moment) -> bool:
        assert isinstance(moment.operation, CommitCompaction)
        return (
            isinstance(moment.outcome, Refused)
            and moment.outcome.code is RefusalCode.PLAN
            and (moment.operation.reply is None) == missing
            and (moment.operation.plan.request is None) != missing
            and _honest(moment)
        )

    return witness
