"""Short sequences of messages: turns, tool loops, results that nobody waits for any more."""

from collections.abc import Iterator
from random import Random

from attrs import evolve

from tailmark.identifiers import SessionId
from tailmark.messages import AnswerEnd, Message, Text
from tailmark.operations import (
    Abandon,
    Append,
    EndAnswer,
    NextRequest,
    Operation,
    Settle,
    StartAnswer,
)
from tailmark_conformance.explorers import appends, contents, saves, strategies
from tailmark_conformance.explorers.known import Known, chance, pick


def user(known: Known, random: Random, session: SessionId, words: str | None = None) -> Operation:
    """A user message behind the leaf."""
    return Append(session=session, message=contents.user_message(known, random, words))


def answer(known: Known, random: Random, session: SessionId) -> Operation:
    """An answer without calls behind the leaf."""
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
    yield user(known, random, session)
    running = chance(random, 0.3)
    if running:
        yield StartAnswer(session=session)
    yield answer(known, random, session)
    if running:
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)


def tiny_turns(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Two to four turns of next to no size."""
    yield from calm(known, session)
    for _ in range(random.randint(2, 4)):
        yield user(known, random, session, "go on")
        message = contents.assistant_message(known, random, session, calls=0)
        yield Append(session=session, message=_worded(message, "done"))


def oversized_turn(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A turn far above any tail budget, as the last one or with others behind it."""
    yield from calm(known, session)
    yield user(known, random, session, "go on")
    message = contents.assistant_message(known, random, session, calls=0)
    yield Append(session=session, message=_worded(message, "x" * contents.OVERSIZED))
    if chance(random, 0.5):
        yield from tiny_turns(known, random, session)


def tool_loop(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer with rounds of calls, results early, late and out of order in either style, and steering between."""
    yield from calm(known, session)
    yield user(known, random, session)
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
        yield answer(known, random, session)
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
                yield user(known, random, session)
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
    yield user(known, random, session)
    yield StartAnswer(session=session)
    calls = random.randint(1, 2)
    yield Append(
        session=session,
        message=contents.assistant_message(known, random, session, calls=calls, settled=False),
    )
    if chance(random, 0.7):
        yield strategies.new_process(known)
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
    yield user(known, random, session)
