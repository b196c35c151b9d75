"""Short sequences that single draws reach too seldom: turns, tool loops, compactions and what interferes with them.

A fragment is a generator: it yields an operation, and when it goes on, what is known holds that operation's
outcome. It looks at the state each time, because other operations may come between.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import TypeAlias

from tailmark.identifiers import SessionId
from tailmark.messages import AnswerEnd, Role
from tailmark.operations import (
    Append,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    Operation,
    Retry,
    StartAnswer,
)
from tailmark_conformance.explorers import appends, contents, saves, strategies
from tailmark_conformance.explorers.fragments_compactions import (
    answer_between,
    answered_plan,
    begin,
    brought_up_to_date,
    cancelled,
    compaction,
    compactions,
    disturbed_compaction,
    forged,
    prepared,
    restarted,
    two_plans,
    undo_too_late,
    undone,
    unusable,
)
from tailmark_conformance.explorers.fragments_requests import (
    automatic,
    cheap_provider,
    conversation,
    dead_calls,
    filled_request,
    late_results,
    long_summary,
    no_room,
    overfull_loop,
    overtaken_request,
    smaller_model,
    tight_draft,
    undone_then_asked,
)
from tailmark_conformance.explorers.fragments_turns import (
    answer,
    calm,
    orphaned,
    oversized_turn,
    tiny_turns,
    tool_loop,
    turn,
    user,
)
from tailmark_conformance.explorers.known import Known, chance, pick

Fragment: TypeAlias = Callable[[Known, Random, SessionId], Iterator[Operation]]


def across_checkpoints(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A retry or an edit that takes an answer with several checkpoints in it off the branch."""
    yield from prepared(known, random, session)
    for _ in range(random.randint(1, 2)):
        yield from compaction(known, random, session)
        # An answer that goes on behind the checkpoint: no turn begins with it.
        yield answer(known, random, session)
    if chance(random, 0.5):
        yield begin(known, random, session)
        plan = answered_plan(known)
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
        yield answer(known, random, session)


def _tried_late(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Messages that left the branch are sent once more."""
    if chance(random, 0.3):
        operation = appends.append_known_id(known, random, session)
        if operation is not None:
            yield operation


def steered_retry(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A retry of a turn in which the user spoke while the answer ran."""
    yield from calm(known, session)
    yield user(known, random, session)
    yield Append(
        session=session, message=contents.assistant_message(known, random, session, calls=1, settled=False)
    )
    yield user(known, random, session)
    open_calls = known.scene.open_calls(session)
    if open_calls:
        yield Append(session=session, message=contents.tool_message(known, random, open_calls))
    yield answer(known, random, session)
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
                yield user(known, random, new)
                yield user(known, random, session)


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
    yield user(known, random, session)
    yield StartAnswer(session=session)
    yield answer(known, random, session)
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
    "restarted": (restarted, 3),
    "brought_up_to_date": (brought_up_to_date, 2),
    "unusable": (unusable, 3),
    "cancelled": (cancelled, 3),
    "across_checkpoints": (across_checkpoints, 4),
    "steered_retry": (steered_retry, 3),
    "forks": (forks, 4),
    "way_back": (way_back, 2),
    "fork_of_running": (fork_of_running, 1),
    "saved": (saved, 3),
    "conversation": (conversation, 8),
    "automatic": (automatic, 6),
    "overfull_loop": (overfull_loop, 3),
    "overtaken_request": (overtaken_request, 2),
    "filled_request": (filled_request, 8),
    "smaller_model": (smaller_model, 5),
    "undone_then_asked": (undone_then_asked, 4),
    "long_summary": (long_summary, 3),
    "tight_draft": (tight_draft, 3),
    "cheap_provider": (cheap_provider, 3),
    "no_room": (no_room, 3),
    "dead_calls": (dead_calls, 4),
    "late_results": (late_results, 4),
}
"""Every fragment by its name, and how often it is chosen beside the others."""
