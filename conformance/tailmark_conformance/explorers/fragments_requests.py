"""Short sequences of requests in a window that fills: preflight, automatic compactions, and what comes between."""

from collections.abc import Iterator
from random import Random

from attrs import evolve

from tailmark.identifiers import NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Reasoning, Role, Text, ToolCall, ToolResult, Usage
from tailmark.operations import (
    Append,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    NextRequest,
    Operation,
    Preview,
    Retry,
    Send,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Done, Sent, begun_plan
from tailmark.plans import EditFor, Plan, SendFor, SummaryAnswer, Trigger
from tailmark_conformance.explorers import contents, requests, strategies
from tailmark_conformance.explorers.forging import FORGED_FIELDS, forge, with_present_state
from tailmark_conformance.explorers.fragments_turns import calm
from tailmark_conformance.explorers.known import Known, chance, pick
from tailmark_conformance.explorers.usages import reported

_WORD = 4
"""Characters of a token of the reference's estimate, so that drafts are about as large as they are meant to be."""


def words(tokens: int) -> str:
    """A text of about that many tokens."""
    return "x" * (_WORD * max(0, tokens))


def _message(known: Known, role: Role, tokens: int) -> Message:
    prefix = "U" if role is Role.USER else "A"
    text = Text(id=PartId("text"), text=words(tokens))
    return Message(id=NodeId(known.name(prefix)), role=role, parts=(text,))


def _answered(known: Known, random: Random, session: SessionId, tokens: int) -> Message:
    """An answer of that size with what its provider reports."""
    message = _message(known, Role.ASSISTANT, tokens)
    if chance(random, 0.1):
        thought = Reasoning(id=PartId("thought"), text=words(3), replayable=chance(random, 0.5))
        message = evolve(message, parts=(thought, *message.parts))
    told = reported(known, random, session) if chance(random, 0.7) else None
    return message if told is None else evolve(message, usage=told.usage, built_on=told.built_on)


def _unit(known: Known, session: SessionId) -> int:
    """A twelfth of the safe limit, in tokens: what a small message costs in this window."""
    return max(1, min(known.scene.budgets(session).safe, 4000) // 12)


def fill(known: Known, random: Random, session: SessionId, share: int) -> Iterator[Operation]:
    """Whole turns until the window is filled to a share of its safe limit, in percent."""
    yield from calm(known, session)
    for _ in range(6):
        budgets = known.scene.budgets(session)
        if budgets.safe > 5000 or known.scene.occupancy(session).tokens * 100 >= budgets.safe * share:
            return
        unit = _unit(known, session)
        yield Append(session=session, message=_message(known, Role.USER, random.randint(1, unit)))
        yield Append(session=session, message=_answered(known, random, session, random.randint(1, 2 * unit)))


def small_window(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A model that a few short turns fill, if the present one is large."""
    if known.scene.budgets(session).safe > 5000 or known.scene.budgets(session).safe < 60:
        window = random.choice((120, 200, 300, 600))
        model = evolve(known.scene.model(session), window=Tokens(window))
        yield SetModel(session=session, model=model)
        yield from finished(known, random, session)


def replies(known: Known, random: Random, plan: Plan) -> Operation:
    """The end of a plan: most often a short summary, at times one that is of no use."""
    match pick(random, {"short": 12, "failed": 2, "long": 2, "same": 1, "cancel": 1, "forged": 1, "none": 1}):
        case "failed":
            return CommitCompaction(plan=plan, reply=contents.unusable_reply(random))
        case "long":
            text = words(plan.budgets.summary + random.randint(-5, 8))
            return CommitCompaction(plan=plan, reply=_summary(text))
        case "same":
            return CommitCompaction(
                plan=plan,
                reply=_summary(words(plan.tokens_before - plan.tokens_after - random.randint(4, 8))),
            )
        case "cancel":
            return CancelCompaction(session=plan.session, plan=plan.id)
        case "forged":
            forged = forge(known, random, plan, random.choice(FORGED_FIELDS))
            return CommitCompaction(plan=forged, reply=strategies.good_reply(known, random, forged))
        case "none":
            return CommitCompaction(plan=plan, reply=contents.FAILURE)
        case _:
            return CommitCompaction(
                plan=plan, reply=_summary(contents.summary_text(known)) if plan.request is not None else None
            )


def _summary(text: str) -> SummaryAnswer:
    return SummaryAnswer(parts=(Text(id=PartId("text"), text=text),))


def finished(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """The plan that the last answer began, if it did, brought to an end."""
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is None or plan.session != session:
        return
    others = [other for other in known.scene.sessions() if other != session]
    if others and isinstance(plan.purpose, SendFor | EditFor) and chance(random, 0.1):
        # The draft's id is known by the time that its plan comes back.
        yield Append(session=random.choice(others), message=plan.purpose.message)
    elif chance(random, 0.12):
        operation = strategies.BUILDERS[random.choice(("append_user", "set_settings", "set_model", "send"))][
            0
        ](known, random, session)
        if operation is not None:
            yield operation
    yield replies(known, random, plan)


def answered(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer to what was just sent, with a tool loop and steering at times, and the automatic compaction behind it."""
    if not isinstance(known.outcome, Sent):
        return
    yield StartAnswer(session=session)
    if not isinstance(known.outcome, Done):
        return
    unit = _unit(known, session)
    if chance(random, 0.25):
        yield Send(session=session, message=requests.draft(known, random, session))
    if chance(random, 0.3):
        yield Append(
            session=session,
            message=contents.assistant_message(known, random, session, calls=1, settled=chance(random, 0.5)),
        )
        calls = known.scene.open_calls(session)
        if calls and chance(random, 0.8):
            yield Append(session=session, message=contents.tool_message(known, random, calls))
        yield NextRequest(session=session)
        if known.scene.running(session) is None:
            return
    yield Append(session=session, message=_answered(known, random, session, random.randint(1, 3 * unit)))
    end = pick(random, {AnswerEnd.FINAL: 8, AnswerEnd.FAILED: 1, AnswerEnd.ABORTED: 1})
    yield EndAnswer(session=session, end=end, reason="overflow" if end is AnswerEnd.FAILED else None)
    yield from finished(known, random, session)


def conversation(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Requests in a row, in a window that fills."""
    yield from calm(known, session)
    yield from small_window(known, random, session)
    for _ in range(random.randint(3, 7)):
        yield Send(session=session, message=requests.draft(known, random, session))
        yield from finished(known, random, session)
        yield from answered(known, random, session)


def overfull_loop(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer whose loop grows up to the safe limit, and beyond it; then the user goes on."""
    yield from calm(known, session)
    yield from small_window(known, random, session)
    yield Append(session=session, message=_message(known, Role.USER, 1))
    yield StartAnswer(session=session)
    if not isinstance(known.outcome, Done):
        return
    left = known.scene.budgets(session).safe - known.scene.occupancy(session).tokens
    yield Append(session=session, message=_message(known, Role.ASSISTANT, left - random.randint(6, 9)))
    yield NextRequest(session=session)
    yield Append(session=session, message=_message(known, Role.ASSISTANT, 8))
    yield NextRequest(session=session)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)


def automatic(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A window filled to its threshold, and answers that end there, twice on one state."""
    yield from small_window(known, random, session)
    yield from fill(known, random, session, random.choice((80, 95, 105)))
    yield from calm(known, session)
    for likely in (0.7, 0.4):
        yield StartAnswer(session=session)
        if chance(random, likely):
            yield Append(session=session, message=_answered(known, random, session, 1))
        yield EndAnswer(session=session, end=AnswerEnd.FINAL)
        plan = begun_plan(known.outcome) if known.outcome is not None else None
        if plan is not None and chance(random, 0.3):
            yield CommitCompaction(plan=plan, reply=contents.FAILURE)
        else:
            yield from finished(known, random, session)
        if chance(random, 0.3):
            yield SetSettings(
                session=session,
                settings=evolve(known.scene.settings(session), automatic=chance(random, 0.5)),
            )
            yield from finished(known, random, session)


def filled_request(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A send, retry or edit in a full window, tried twice when it fails."""
    yield from small_window(known, random, session)
    yield from fill(known, random, session, random.choice((60, 85, 95, 110)))
    for _ in range(2):
        yield _request(known, random, session)
        yield from finished(known, random, session)
        if isinstance(known.outcome, Sent):
            break
    yield from answered(known, random, session)


def _request(known: Known, random: Random, session: SessionId) -> Operation:
    opener = known.scene.last_opener(session)
    match pick(random, {"send": 3, "retry": 3, "edit": 2}):
        case "retry" if opener is not None:
            return Retry(session=session)
        case "edit" if opener is not None:
            return Edit(session=session, target=opener.id, message=requests.draft(known, random, session))
        case _:
            return Send(session=session, message=requests.draft(known, random, session))


def overtaken_request(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """An answer arrives while a request's compaction is summarised, and the plan is brought with the leaf and revision of now."""
    yield from small_window(known, random, session)
    yield from fill(known, random, session, 95)
    opener = known.scene.last_opener(session)
    if opener is None:
        return
    room = known.scene.budgets(session).safe // 2
    if chance(random, 0.7):
        message = _message(known, Role.USER, room)
        yield Edit(session=session, target=opener.id, message=message)
    else:
        yield Retry(session=session)
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is None:
        return
    yield Append(session=session, message=_message(known, Role.ASSISTANT, 1))
    brought = with_present_state(known, plan)
    yield CommitCompaction(plan=brought, reply=strategies.good_reply(known, random, brought))


def smaller_model(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A switch to a model that the conversation nearly fills, or does not fit, and then a request."""
    if known.scene.budgets(session).safe < 200:
        yield SetModel(session=session, model=evolve(known.scene.model(session), window=Tokens(600)))
    yield from fill(known, random, session, 40)
    if chance(random, 0.4):
        operation = strategies.begin(known, random, session)
        if operation is not None:
            yield operation
            yield from finished(known, random, session)
    yield SetModel(session=session, model=requests.smaller_model(known, random, session))
    yield from finished(known, random, session)
    if chance(random, 0.2):
        yield StartAnswer(session=session)
        return
    if chance(random, 0.3):
        operation = strategies.begin(known, random, session)
        if operation is not None:
            yield operation
            yield from finished(known, random, session)
    yield _request(known, random, session)
    yield from finished(known, random, session)
    yield from answered(known, random, session)


def undone_then_asked(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A compaction is taken back; the next requests and answers leave the conversation alone while they can."""
    yield from small_window(known, random, session)
    yield from fill(known, random, session, 60)
    operation = strategies.begin(known, random, session)
    if operation is None:
        return
    yield operation
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is None:
        return
    yield CommitCompaction(plan=plan, reply=strategies.good_reply(known, random, plan))
    yield Undo(session=session)
    if chance(random, 0.5):
        yield Send(session=session, message=requests.draft(known, random, session))
        yield from finished(known, random, session)
    yield StartAnswer(session=session)
    budgets = known.scene.budgets(session)
    missing = budgets.threshold - known.scene.occupancy(session).tokens
    yield Append(
        session=session,
        message=_message(known, Role.ASSISTANT, missing + random.randint(-6, budgets.safe // 16)),
    )
    yield EndAnswer(session=session, end=AnswerEnd.FINAL)
    yield from finished(known, random, session)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)


def long_summary(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A summary that is too long for the next model, and a request there."""
    yield from calm(known, session)
    wide = evolve(known.scene.model(session), window=Tokens(1000), max_output=Tokens(64_000))
    yield SetModel(session=session, model=wide)
    yield from finished(known, random, session)
    for _ in range(2):
        yield Append(session=session, message=_message(known, Role.USER, 1))
        yield Append(session=session, message=_message(known, Role.ASSISTANT, 1))
    operation = strategies.begin(known, random, session)
    if operation is None:
        return
    yield operation
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is None:
        return
    yield CommitCompaction(plan=plan, reply=_summary(words(plan.budgets.summary - 8)))
    used = known.scene.occupancy(session).tokens
    yield SetModel(
        session=session, model=evolve(wide, window=Tokens(used * random.choice((115, 125, 150)) // 100))
    )
    yield from finished(known, random, session)
    # Right behind its checkpoint, by hand: it may be looked at first, because that changes nothing.
    yield Preview(session=session, plan=PlanId(known.name("P")), trigger=Trigger.MANUAL)
    yield _request(known, random, session)
    yield from finished(known, random, session)


def tight_draft(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A draft that fits alone and with nothing else, behind very little: a summary can hardly be smaller."""
    yield from calm(known, session)
    used = known.scene.occupancy(session).tokens
    if used > 5000:
        return  # the draft would be a text of megabytes
    window = max(60, used * 12)
    yield SetModel(session=session, model=evolve(known.scene.model(session), window=Tokens(window)))
    yield from finished(known, random, session)
    yield Append(session=session, message=_message(known, Role.USER, 0))
    yield Append(session=session, message=_message(known, Role.ASSISTANT, 0))
    budgets = known.scene.budgets(session)
    room = budgets.safe - budgets.overhead - random.randint(6, 20)
    yield Send(session=session, message=_message(known, Role.USER, room))
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is None:
        return
    freed = plan.tokens_before - plan.tokens_after
    size = random.choice((freed - 6, freed - 5, freed - 7, freed, plan.budgets.summary - 6))
    yield CommitCompaction(plan=plan, reply=_summary(words(size)))


def cheap_provider(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A provider that counts far less than we do, and a question that nearly fills the window: it fits, and is asked again."""
    yield from calm(known, session)
    yield SetModel(session=session, model=evolve(known.scene.model(session), window=Tokens(400)))
    yield from finished(known, random, session)
    question = _message(known, Role.USER, 1)
    yield Append(session=session, message=question)
    cheap = Usage(input=Tokens(5), model=known.scene.model(session).name)
    answer = evolve(_message(known, Role.ASSISTANT, 80), usage=cheap, built_on=question.id)
    yield Append(session=session, message=answer)
    budgets = known.scene.budgets(session)
    left = budgets.safe - known.scene.occupancy(session).tokens
    yield Append(session=session, message=_message(known, Role.USER, left - random.randint(6, 18)))
    yield Retry(session=session)
    plan = begun_plan(known.outcome) if known.outcome is not None else None
    if plan is not None:
        yield CommitCompaction(plan=plan, reply=_summary(words(plan.budgets.summary - random.randint(6, 20))))


def no_room(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Tools are added until they leave no room; then they go again."""
    yield from small_window(known, random, session)
    yield from fill(known, random, session, random.choice((50, 90, 120)))
    old = known.scene.settings(session)
    safe = known.scene.budgets(session).safe
    yield SetSettings(
        session=session,
        settings=evolve(old, overhead=Tokens(max(0, safe - random.randint(0, max(1, safe // 12))))),
    )
    yield from finished(known, random, session)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)
    yield SetSettings(session=session, settings=old)
    yield from finished(known, random, session)


def dead_calls(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """A process dies while tools run, and the user goes on."""
    yield from calm(known, session)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)
    yield Append(
        session=session,
        message=contents.assistant_message(known, random, session, calls=random.randint(1, 2), settled=False),
    )
    if chance(random, 0.75):
        yield strategies.new_process(known)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)
    yield from answered(known, random, session)


def late_results(known: Known, random: Random, session: SessionId) -> Iterator[Operation]:
    """Results that are put into an answer after its provider has reported its size."""
    yield from calm(known, session)
    yield from small_window(known, random, session)
    yield Append(session=session, message=_message(known, Role.USER, 2))
    message = contents.assistant_message(known, random, session, calls=1, settled=False)
    calls = [part.call for part in message.parts if isinstance(part, ToolCall)]
    said: tuple[ToolResult, ...] = ()
    if calls and chance(random, 0.5):
        # A preliminary result between the call and a text: what takes its place was not sent before the text.
        said = (contents.result(random, calls[0], preliminary=True, part="partial"),)
        own = [part for part in message.parts if not isinstance(part, ToolResult)]
        message = evolve(message, parts=(*own, *said, Text(id=PartId("then"), text="and so on")))
    told = reported(known, random, session)
    if told is not None:
        message = evolve(message, usage=told.usage, built_on=told.built_on)
    yield Append(session=session, message=message)
    operation = strategies.settle(known, random, session)
    if said:
        final = contents.result(random, said[0].call, part="partial")
        operation = Settle(session=session, message=message.id, result=final)
    if operation is not None:
        yield operation
    yield from calm(known, session)
    yield Send(session=session, message=requests.draft(known, random, session))
    yield from finished(known, random, session)
