"""Short sequences that single draws reach too seldom: turns, tool loops, compactions and what interferes with them.

A fragment is a generator: it yields an operation, and when it goes on, what is known holds that operation's
outcome. It looks at the state each time, because other operations may come between.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import TypeAlias

from attrs import evolve

from tailmark.identifiers import PlanId, SessionId
from tailmark.messages import AnswerEnd, Message, Role, Text
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    NextRequest,
    Operation,
    Restart,
    Retry,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Planned
from tailmark.plans import Plan
from tailmark_conformance.explorers import appends, contents, saves, strategies
from tailmark_conformance.explorers.forging import FORGED_FIELDS, forge
from tailmark_conformance.explorers.known import Known, chance, pick

Fragment: TypeAlias = Callable[[Known, Random, SessionId], Iterator[Operation]]


def _user(known: Known, random: Random, session: SessionId, words: str | None = None) -> Operation:
    return Append(session=session, message=contents.user_message(known, random, words))


def _answer(known: Known, random: Random, session: SessionId) -> Operation:
    return Append(session=session, message=contents.assistant_message(known, random, session, calls=0))


def _worded(message: Message, words: str) -> Message:
    return evolve(
        message,
        parts=tuple(evolve(part, text=words) if isinstance(part, Text) else part for part in message.parts),
    )


def calm(known: Known, session: SessionId) -> Iterator[Operation]:
    """What it takes to make the branch stable."""
    if known.scene.running(session) is not None:
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)
    if known.scene.open_calls(session):
        yield Abandon(session=session)


# Turns -----------------------------------------------------------------------------------------------


def turn(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A whole turn without tools."""
    yield from calm(known, session)
    yield _user(known, random, session)
    running = chance(random, 0.3)
    if running:
        yield StartAnswer(session=session)
    yield _answer(known, random, session)
    if running:
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)


def tiny_turns(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Two to four turns of next to no size."""
    yield from calm(known, session)
    for _ in range(random.randint(2, 4)):
        yield _user(known, random, session, "go on")
        message = contents.assistant_message(known, random, session, calls=0)
        yield Append(session=session, message=_worded(message, "done"))


def oversized_turn(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A turn far above any tail budget, as the last one or with others behind it."""
    yield from calm(known, session)
    yield _user(known, random, session, "go on")
    message = contents.assistant_message(known, random, session, calls=0)
    yield Append(session=session, message=_worded(message, "x" * contents.OVERSIZED))
    if chance(random, 0.5):
        yield from tiny_turns(known, random, session)


def tool_loop(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer with rounds of calls, results early, late and out of order in either style, and steering between."""
    yield from calm(known, session)
    yield _user(known, random, session)
    running = chance(random, 0.6)
    if running:
        yield StartAnswer(session=session)
    for _ in range(random.randint(1, 2)):
        calls = random.randint(1, 3)
        yield Append(
            session=session,
            message=contents.assistant_message(
                known, random, session, calls=calls, settled=chance(random, 0.2)
            ),
        )
        yield from _results(known, random, session)
        if running and chance(random, 0.7):
            yield NextRequest(session=session)
    end = pick(random, {AnswerEnd.FINAL: 4, AnswerEnd.FAILED: 1, AnswerEnd.ABORTED: 1})
    if end is AnswerEnd.FINAL:
        yield _answer(known, random, session)
    if running:
        yield EndAnswer(session=session, end=end)


def _results(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    for _ in range(6):
        open_calls = list(known.scene.open_calls(session))
        if not open_calls or chance(random, 0.08):
            return
        style = pick(
            random,
            {"settle": 5, "tool": 4, "append": 2, "steering": 2, "preliminary": 2, "save": 1, "assistant": 1},
        )
        one = random.choice(open_calls)
        match style:
            case "settle":
                result = contents.result(random, one.call)
                yield Settle(session=session, message=one.message, result=result)
            case "tool":
                chosen = contents.some(random, open_calls)
                yield Append(session=session, message=contents.tool_message(known, random, chosen))
            case "append":
                operation = appends.append_results(known, random, session)
                if operation is not None:
                    yield operation
            case "steering":
                yield _user(known, random, session)
            case "preliminary":
                result = contents.result(random, one.call, preliminary=True, part=f"partial-{one.call}")
                yield Settle(session=session, message=one.message, result=result)
            case "assistant":
                # A later message of the same answer: the results of the earlier calls come late.
                yield Append(
                    session=session, message=contents.assistant_message(known, random, session, calls=1)
                )
            case _:
                operation = saves.save(known, random, session)
                if operation is not None:
                    yield operation


def orphaned(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Calls that nobody answers: the process dies, what is asked meanwhile is refused, then they are abandoned."""
    yield from calm(known, session)
    yield _user(known, random, session)
    yield StartAnswer(session=session)
    calls = random.randint(1, 2)
    yield Append(
        session=session,
        message=contents.assistant_message(known, random, session, calls=calls, settled=False),
    )
    if chance(random, 0.7):
        yield Restart()
    for asked in (strategies.begin, strategies.retry, strategies.edit, strategies.start_answer):
        operation = asked(known, random, session) if chance(random, 0.4) else None
        if operation is not None:
            yield operation
    old = known.scene.open_calls(session)
    yield Abandon(session=session)
    if old and chance(random, 0.5):
        # Too late: the call is over.
        late = contents.result(random, old[0].call, part="late")
        yield Settle(session=session, message=old[0].message, result=late)
    yield _user(known, random, session)


# Compactions -----------------------------------------------------------------------------------------


def _begin(known: Known, random: Random, session: SessionId) -> Operation:
    return BeginCompaction(
        session=session,
        plan=PlanId(known.name("P")),
        instructions="keep the numbers" if chance(random, 0.2) else None,
    )


def _plan(known: Known) -> Plan | None:
    return known.outcome.plan if isinstance(known.outcome, Planned) else None


def _prepared(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Enough turns for a compaction to plan something."""
    yield from calm(known, session)
    end = known.scene.end(session)
    turns = end.turns if end is not None else 0
    while turns < 2 or known.leaf_is_checkpoint(session):
        yield _user(known, random, session)
        yield _answer(known, random, session)
        turns += 1


def compaction(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A compaction that nothing disturbs."""
    yield from _prepared(known, random, session)
    yield _begin(known, random, session)
    plan = _plan(known)
    if plan is not None:
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


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
    yield from _prepared(known, random, session)
    yield _begin(known, random, session)
    plan = _plan(known)
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
    yield from _prepared(known, random, session)
    yield _begin(known, random, session)
    plan = _plan(known)
    if plan is None:
        return
    yield StartAnswer(session=session)
    yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    if chance(random, 0.5):
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def two_plans(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Several plans on one state, committed in either order; after an undo the leaf is the same and the revision is not."""
    yield from _prepared(known, random, session)
    plans: list[Plan] = []
    for _ in range(2):
        yield _begin(known, random, session)
        plan = _plan(known)
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
    yield _begin(known, random, session)
    plan = _plan(known)
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
    yield from _prepared(known, random, session)
    yield _begin(known, random, session)
    plan = _plan(known)
    if plan is None:
        return
    other = forge(known, random, plan, random.choice(FORGED_FIELDS))
    yield CommitCompaction(plan=other, reply=strategies.good_reply(known, random, other))
    yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def unusable(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Replies that cannot be used, each followed by a good one for the same plan, which is spent by then."""
    for failure in (False, True):
        yield from _prepared(known, random, session)
        yield _begin(known, random, session)
        plan = _plan(known)
        if plan is None:
            return
        reply = contents.FAILURE if failure else contents.unusable_reply(random)
        yield CommitCompaction(plan=plan, reply=None if chance(random, 0.2) else reply)
        yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))


def cancelled(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A cancel before the commit or after it."""
    yield from _prepared(known, random, session)
    yield _begin(known, random, session)
    plan = _plan(known)
    if plan is None:
        return
    cancel = CancelCompaction(session=session, plan=plan.id)
    commit = CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    if chance(random, 0.6):
        yield cancel
        if chance(random, 0.4):
            yield _user(known, random, session)
        yield commit
    else:
        yield commit
        yield cancel


# Branching -------------------------------------------------------------------------------------------


def across_checkpoints(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A retry or an edit that takes an answer with several checkpoints in it off the branch."""
    yield from _prepared(known, random, session)
    for _ in range(random.randint(1, 2)):
        yield from compaction(known, random, session)
        # An answer that goes on behind the checkpoint: no turn begins with it.
        yield _answer(known, random, session)
    if chance(random, 0.5):
        yield _begin(known, random, session)
        plan = _plan(known)
        if plan is not None:
            yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    yield from _leave(known, random, session)
    yield from _tried_late(known, random, session)


def _leave(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    opener = known.scene.last_opener(session)
    if opener is None or chance(random, 0.5):
        yield Retry(session=session)
    else:
        yield Edit(session=session, target=opener.id, message=contents.user_message(known, random))
    if chance(random, 0.7):
        yield _answer(known, random, session)


def _tried_late(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Messages that left the branch are sent once more."""
    if chance(random, 0.3):
        operation = appends.append_known_id(known, random, session)
        if operation is not None:
            yield operation


def steered_retry(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A retry of a turn in which the user spoke while the answer ran."""
    yield from calm(known, session)
    yield _user(known, random, session)
    yield Append(
        session=session, message=contents.assistant_message(known, random, session, calls=1, settled=False)
    )
    yield _user(known, random, session)
    open_calls = known.scene.open_calls(session)
    if open_calls:
        yield Append(session=session, message=contents.tool_message(known, random, open_calls))
    yield _answer(known, random, session)
    yield from _leave(known, random, session)


def forks(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Forks on both sides of a checkpoint, and life on them."""
    yield from compaction(known, random, session)
    yield from turn(known, random, session)
    answers = [message.id for message in known.messages(session) if message.role is Role.ASSISTANT]
    for target in random.sample(answers, min(2, len(answers))):
        if len(known.scene.sessions()) > 4:
            return
        new = SessionId(known.name("F"))
        yield Fork(session=session, target=target, new_session=new)
        if not known.scene.knows_session(new):
            continue
        match pick(random, {"turn": 3, "compaction": 2, "retry": 2, "both": 1}):
            case "turn":
                yield from turn(known, random, new)
            case "compaction":
                yield from compaction(known, random, new)
            case "retry":
                yield Retry(session=new)
            case _:
                yield _user(known, random, new)
                yield _user(known, random, session)


def way_back(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A retry, and a fork from the answer that left the branch."""
    yield from turn(known, random, session)
    last = known.scene.last_message(session)
    yield Retry(session=session)
    if last is not None and len(known.scene.sessions()) < 5:
        yield Fork(session=session, target=last.id, new_session=SessionId(known.name("F")))


def fork_of_running(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A fork at the answer that is being generated, refused, and once more when it is over."""
    yield from calm(known, session)
    yield _user(known, random, session)
    yield StartAnswer(session=session)
    yield _answer(known, random, session)
    last = known.scene.last_message(session)
    if last is None or len(known.scene.sessions()) > 4:
        return
    other = random.choice(known.scene.sessions())
    yield Fork(session=other, target=last.id, new_session=SessionId(known.name("F")))
    yield EndAnswer(session=session, end=AnswerEnd.FINAL)
    yield Fork(session=other, target=last.id, new_session=SessionId(known.name("F")))


def saved(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """The same path saved again and again, a little longer each time."""
    for _ in range(random.randint(1, 3)):
        operation = saves.save(known, random, session)
        if operation is not None:
            yield operation
    yield Load(session=session)


FRAGMENTS: Mapping[str, tuple[Fragment, int]] = {
    "turn": (turn, 12),
    "tiny_turns": (tiny_turns, 4),
    "oversized_turn": (oversized_turn, 4),
    "tool_loop": (tool_loop, 10),
    "orphaned": (orphaned, 3),
    "compaction": (compaction, 6),
    "compactions": (compactions, 4),
    "disturbed_compaction": (disturbed_compaction, 8),
    "answer_between": (answer_between, 2),
    "two_plans": (two_plans, 4),
    "undone": (undone, 4),
    "undo_too_late": (undo_too_late, 2),
    "forged": (forged, 6),
    "unusable": (unusable, 3),
    "cancelled": (cancelled, 3),
    "across_checkpoints": (across_checkpoints, 4),
    "steered_retry": (steered_retry, 3),
    "forks": (forks, 4),
    "way_back": (way_back, 2),
    "fork_of_running": (fork_of_running, 1),
    "saved": (saved, 3),
}
"""Every fragment by its name, and how often it is chosen beside the others."""
