"""Short sequences of compactions, and of what comes between a begin and its commit."""

from collections.abc import Iterator, Mapping
from random import Random

from tailmark.identifiers import PlanId, SessionId
from tailmark.messages import AnswerEnd
from tailmark.operations import (
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    EndAnswer,
    Load,
    Operation,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import begun_plan
from tailmark.plans import Plan
from tailmark_conformance.explorers import contents, strategies
from tailmark_conformance.explorers.forging import FORGED_FIELDS, forge, with_present_state
from tailmark_conformance.explorers.fragments_turns import answer, calm, turn, user
from tailmark_conformance.explorers.known import Known, chance, pick


def begin(known: Known, random: Random, session: SessionId) -> Operation:
    """A compaction begins, now and then with instructions."""
    return BeginCompaction(
        session=session,
        plan=PlanId(known.name("P")),
        instructions="keep the numbers" if chance(random, 0.2) else None,
    )


def answered_plan(known: Known) -> Plan | None:
    """The plan that was just answered."""
    return begun_plan(known.outcome) if known.outcome is not None else None


def prepared(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Enough turns for a compaction to plan something."""
    yield from calm(known, session)
    end = known.scene.end(session)
    turns = end.turns if end is not None else 0
    while turns < 2 or known.leaf_is_checkpoint(session):
        yield user(known, random, session)
        yield answer(known, random, session)
        turns += 1


def compaction(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A compaction that nothing disturbs."""
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is not None:
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def restarted(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A restart or a load right behind a commit, and the conversation goes on."""
    yield from compaction(known, random, session)
    yield strategies.new_process(known) if chance(random, 0.7) else Load(session=session)
    yield user(known, random, session)


def compactions(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """One compaction after another with a turn between: the place advances or it is a refresh."""
    for _ in range(random.randint(2, 3)):
        yield from compaction(known, random, session)
        yield from turn(known, random, session)


INTERFERENCE: Mapping[str, int] = {
    "append_user": 2,
    "append_assistant": 2,
    "append_results": 1,
    "append_tool": 1,
    "save": 1,
    "settle": 2,
    "retry": 2,
    "edit": 2,
    "fork": 1,
    "set_metadata": 1,
    "set_model": 1,
    "load": 1,
    "restart": 1,
    "start_answer": 2,
    "cancel": 2,
    "undo": 1,
    "preview": 1,
    "begin": 1,
    "commit_unusable": 1,
}
"""What happens between the begin and the commit of a compaction, by builder."""


def disturbed_compaction(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A compaction with something between its begin and its commit, and the commit once more."""
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is None:
        return
    for _ in range(random.randint(1, 2)):
        other = [one for one in known.scene.sessions() if one != session]
        where = random.choice(other) if other and chance(random, 0.2) else session
        builder, _ = strategies.BUILDERS[pick(random, dict(INTERFERENCE))]
        operation = builder(known, random, where)
        if operation is not None:
            yield operation
    reply = strategies.good_reply(known, random, plan)
    yield CommitCompaction(plan=plan, reply=reply)
    if chance(random, 0.4):
        yield CommitCompaction(plan=plan, reply=reply)


def answer_between(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer starts between begin and commit: neither leaf nor revision differs, and yet it is skipped."""
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is None:
        return
    yield StartAnswer(session=session)
    yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    if chance(random, 0.5):
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def two_plans(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Several plans on one state, committed in either order; after an undo the leaf is the same and the revision is not."""
    yield from prepared(known, random, session)
    plans: list[Plan] = []
    for _ in range(2):
        yield begin(known, random, session)
        plan = answered_plan(known)
        if plan is not None:
            plans.append(plan)
    random.shuffle(plans)
    for number, plan in enumerate(plans):
        if number and chance(random, 0.6):
            yield Undo(session=session)
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def undone(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A checkpoint is taken back, and the branch is compacted again."""
    yield from compaction(known, random, session)
    yield Undo(session=session)
    if chance(random, 0.5):
        yield from turn(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is not None:
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def undo_too_late(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An undo when something stands behind the checkpoint already, and the way out: a fork."""
    yield from compaction(known, random, session)
    yield from turn(known, random, session)
    yield from calm(known, session)
    yield Undo(session=session)


def forged(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A plan with one field changed, then as it was."""
    if chance(random, 0.5):
        yield from compaction(known, random, session)
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is None:
        return
    other = forge(known, random, plan, random.choice(FORGED_FIELDS))
    yield CommitCompaction(plan=other, reply=strategies.good_reply(known, random, other))
    yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def brought_up_to_date(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A plan that is overtaken, brought with the leaf and revision of now: what else it says is still of then."""
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is None:
        return
    calls = random.randint(0, 2)
    yield Append(
        session=session,
        message=contents.assistant_message(known, random, session, calls=calls, settled=False),
    )
    brought = with_present_state(known, plan)
    yield CommitCompaction(plan=brought, reply=strategies.good_reply(known, random, brought))


def unusable(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Replies that cannot be used, each followed by a good one for the same plan, which is spent by then."""
    for failure in (False, True):
        yield from prepared(known, random, session)
        yield begin(known, random, session)
        plan = answered_plan(known)
        if plan is None:
            return
        reply = contents.FAILURE if failure else contents.unusable_reply(random)
        yield CommitCompaction(plan=plan, reply=None if chance(random, 0.2) else reply)
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def cancelled(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A cancel before the commit or after it."""
    yield from prepared(known, random, session)
    yield begin(known, random, session)
    plan = answered_plan(known)
    if plan is None:
        return
    cancel = CancelCompaction(session=session, plan=plan.id)
    commit = CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    if chance(random, 0.6):
        yield cancel
        if chance(random, 0.4):
            yield user(known, random, session)
        yield commit
    else:
        yield commit
        yield cancel
