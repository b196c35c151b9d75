"""Pieces that many reported sequences begin with. Nothing here minds another answer, so that a mutant can go on."""

from tailmark.identifiers import ModelName, Tokens
from tailmark.messages import AnswerEnd, Usage
from tailmark.outcomes import Outcome, begun_plan
from tailmark.plans import Plan, SummariserReply
from tailmark_conformance.scenarios.automatic import WINDOW
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, tool, user, words


def turns(play: Play, count: int, first: int = 1) -> None:
    """So many turns of short words."""
    for number in range(first, first + count):
        play.turn(number)


def finish(play: Play, outcome: Outcome, reply: SummariserReply | None) -> None:
    """Bring a reply to the plan that began with an answer, if one did."""
    plan = begun_plan(outcome)
    if plan is not None:
        play.commit(plan, reply)


def compact(play: Play, plan: str = "P1", text: str = "so far", session: str = "S") -> None:
    """A manual compaction from begin to commit."""
    outcome = play.ask(plan, session=session)
    begun = begun_plan(outcome)
    if begun is not None:
        play.commit(begun, summary(text) if begun.request is not None else None)


def begun(play: Play, plan: str = "P1") -> Plan:
    """Two turns, and a compaction that has begun."""
    turns(play, 2)
    return play.begin(plan)


def checkpoint(play: Play) -> None:
    """Three turns behind a checkpoint that keeps the last of them."""
    turns(play, 3)
    compact(play)


def tools_first(play: Play, calls: tuple[str, ...] = ("c1",)) -> None:
    """A turn with calls whose results come one by one, and a turn without."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=calls))
    for call in calls:
        play.append(tool(f"T-{call}", call))
    play.append(assistant("A2"))
    play.append(user("U2"))
    play.append(assistant("A3"))


def full(play: Play, first: int = 196, second: int = 62) -> Outcome:
    """Two turns of so many tokens in a window of 400; the answer is that of the second answer's end."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(first)), user("U2"))
    play.start_answer()
    play.append(assistant("A2", words(second)))
    return play.end_answer()


def answer_ends(play: Play, end: AnswerEnd = AnswerEnd.FINAL) -> Outcome:
    """An answer of which nothing is stored begins and ends."""
    play.start_answer()
    return play.end_answer(end)


def usage(input_tokens: int, output: int = 10, cached: int = 0) -> Usage:
    """What a provider counted."""
    return Usage(
        input=Tokens(input_tokens), output=Tokens(output), cached=Tokens(cached), model=ModelName("model")
    )
