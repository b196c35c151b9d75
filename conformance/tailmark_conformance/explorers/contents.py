"""How contents are drawn: texts, messages, results, models and a summariser's replies."""

from collections.abc import Sequence, Set
from random import Random

from attrs import evolve

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, SessionId, Tokens
from tailmark.messages import (
    Annotation,
    AnswerEnd,
    ApprovalRequest,
    Collection,
    EpubLocation,
    File,
    Image,
    Message,
    Part,
    PdfPage,
    Reasoning,
    Reference,
    ResultStatus,
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.plans import FinishReason, SummariserReply, SummaryAnswer, SummaryFailure
from tailmark.rules.scene import OpenAt
from tailmark_conformance.explorers.known import Known, chance, pick
from tailmark_conformance.explorers.usages import reported

OVERSIZED = 2400
"""Characters of a text that alone is far above every budget of `MODELS` but the largest."""

BUDGETS: tuple[int | None, ...] = (None, 1, 25, 60, 150, 100_000)
"""Tail budgets in tokens: unbounded, next to nothing, one or two small turns, a few, everything."""


def text(random: Random) -> str:
    """A text: most often short, at times far above a tail budget, at times not ASCII."""
    match pick(random, {"tiny": 6, "short": 8, "middle": 3, "oversized": 1, "foreign": 1}):
        case "tiny":
            return random.choice(("no", "yes", "go on", ""))
        case "short":
            return "word " * random.randint(2, 12)
        case "middle":
            return "sentence " * random.randint(15, 40)
        case "oversized":
            return "x" * (OVERSIZED + random.randint(0, 400))
        case _:
            return random.choice(("Grüße aus Zürich", "摘要在这里" * 9, "👩\u200d🔬 ok", "a\u0000b\r\nc"))


WINDOWS: tuple[int, ...] = (16, 40, 100, 200, 300, 500, 1000, 4000, 1_000_000)
"""Context windows in tokens: the smallest, those that a few short turns fill, and one that nothing fills."""


def model(random: Random) -> Model:
    """A model with one of the `WINDOWS`, most often a large one."""
    window = 1_000_000 if chance(random, 0.4) else random.choice(WINDOWS)
    output = random.choice((1, 8, 30, 64_000))
    return Model(
        name=ModelName(f"model-{random.randint(1, 3)}"),
        window=Tokens(window),
        max_output=Tokens(64_000 if chance(random, 0.6) else output),
    )


def settings(random: Random) -> Settings:
    """Settings: most often the defaults, at times an absolute figure that may contradict the model, or a head that costs something."""
    tail = random.choice(BUDGETS)
    overhead = random.choice((0, 0, 0, 5, 20, 100, 900)) if chance(random, 0.3) else 0
    return Settings(
        automatic=not chance(random, 0.1),
        overhead=Tokens(overhead),
        head=random.choice(("", "", "tools", "other tools")),
        reserve=Tokens(random.choice((1, 10, 60))) if chance(random, 0.1) else None,
        threshold=Tokens(random.choice((20, 80, 150))) if chance(random, 0.1) else None,
        tail=Tokens(tail) if tail is not None and chance(random, 0.4) else None,
    )


def sizes(random: Random, offers: Set[Capability]) -> tuple[Model, Settings]:
    """What a run begins with: figures that do not contradict each other. A subject without a capacity gets a large model."""
    if Capability.CAPACITY not in offers:
        budget = random.choice(BUDGETS)
        tail = Tokens(budget) if budget is not None else None
        return Model(name=ModelName(f"model-{random.randint(1, 3)}")), Settings(tail=tail)
    if chance(random, 0.5):
        # A large window leaves any tail budget room, so that the boundary is explored for itself.
        budget = random.choice(BUDGETS)
        tail = Tokens(budget) if budget is not None else None
        return Model(name=ModelName("model-1")), Settings(tail=tail)
    small = Model(
        name=ModelName(f"model-{random.randint(1, 3)}"),
        window=Tokens(random.choice(WINDOWS)),
        max_output=Tokens(random.choice((8, 30, 64_000))),
    )
    overhead = small.window // random.choice((4, 8, 20)) if chance(random, 0.3) else 0
    return small, Settings(overhead=Tokens(overhead), automatic=not chance(random, 0.1))


def _attachment(random: Random, number: int) -> Part:
    id_ = PartId(f"extra-{number}")
    match random.randrange(8):
        case 0:
            return Image(id=id_, name="plot.png", media_type="image/png", data="iVBORw0KGgo=")
        case 1:
            return File(id=id_, name="notes.txt", media_type="text/plain", data="bm90ZXM=")
        case 2:
            return Reference(id=id_, item_key="ABCD1234", title="On trees", citation="(Doe 2001)")
        case 3:
            return PdfPage(id=id_, attachment="paper.pdf", page=2, pages=9)
        case 4:
            return EpubLocation(id=id_, section_index=3, href="ch3.xhtml", cfi="epubcfi(/6/8!/4/2)")
        case 5:
            return Annotation(
                id=id_,
                annotation_key="ANNO0001",
                text="a mark",
                comment="",
                page="iv",
                parent_item_key="ABCD1234",
            )
        case 6:
            return Collection(id=id_, collection_id="COLL0001", label="Thesis")
        case _:
            return Tag(id=id_, tag_id="to-read", label="to read")


def user_message(known: Known, random: Random, words: str | None = None) -> Message:
    """A user's message: a text, at times with attachments, at times nothing but them."""
    parts: list[Part] = []
    if words is not None or chance(random, 0.95):
        parts.append(Text(id=PartId("text"), text=words if words is not None else text(random)))
    if not parts or chance(random, 0.12):
        parts.extend(_attachment(random, number) for number in range(random.randint(1, 2)))
    return Message(id=NodeId(known.name("U")), role=Role.USER, parts=tuple(parts))


def status(random: Random) -> ResultStatus:
    """How a call ended."""
    return pick(
        random,
        {ResultStatus.OUTPUT: 7, ResultStatus.ERROR: 2, ResultStatus.DENIED: 1, ResultStatus.ABANDONED: 1},
    )


def result(random: Random, call: CallId, *, preliminary: bool = False, part: str | None = None) -> ToolResult:
    """A result for a call. ``part`` is its part id."""
    return ToolResult(
        id=PartId(part if part is not None else f"result-{call}"),
        call=call,
        status=ResultStatus.OUTPUT if preliminary else status(random),
        text=text(random),
        preliminary=preliminary,
    )


def _call_id(known: Known, random: Random, session: SessionId) -> CallId:
    taken = {one.call for one in known.scene.open_calls(session)}
    returning = [call for call in known.calls if call not in taken]
    if returning and chance(random, 0.15):
        return random.choice(returning)
    return CallId(known.name("c"))


def assistant_message(
    known: Known, random: Random, session: SessionId, *, calls: int | None = None, settled: bool | None = None
) -> Message:
    """An assistant's message that the session's branch takes.

    ``calls`` is how many calls it makes; ``settled`` whether their final results are already in it. What
    is ``None`` is drawn.
    """
    parts: list[Part] = []
    if chance(random, 0.12):
        parts.append(Reasoning(id=PartId("thought"), text=text(random), replayable=chance(random, 0.5)))
    if chance(random, 0.85) or calls == 0:
        parts.append(Text(id=PartId("text"), text=text(random)))
    if calls is None:
        calls = pick(random, {0: 12, 1: 4, 2: 3, 3: 1})
    ids = list(dict.fromkeys(_call_id(known, random, session) for _ in range(calls)))
    results: list[Part] = []
    for id_ in ids:
        parts.append(ToolCall(id=PartId(f"call-{id_}"), call=id_, name="look", input='{"for":"it"}'))
        if chance(random, 0.15):
            parts.append(ApprovalRequest(id=PartId(f"approve-{id_}"), call=id_))
        if settled is True or (settled is None and chance(random, 0.2)):
            results.append(result(random, id_))
        elif chance(random, 0.15):
            results.append(result(random, id_, preliminary=True, part=f"partial-{id_}"))
    random.shuffle(results)
    parts.extend(results)
    told = reported(known, random, session) if chance(random, 0.3) else None
    return Message(
        id=NodeId(known.name("A")),
        role=Role.ASSISTANT,
        parts=tuple(parts),
        end=random.choice((None, *AnswerEnd)) if chance(random, 0.15) else None,
        built_on=told.built_on if told is not None else None,
        usage=told.usage if told is not None else None,
    )


def tool_message(known: Known, random: Random, calls: Sequence[OpenAt]) -> Message:
    """A ``tool`` message with a final result for each of the calls, in any order."""
    ordered = list(calls)
    random.shuffle(ordered)
    return Message(
        id=NodeId(known.name("T")),
        role=Role.TOOL,
        parts=tuple(result(random, one.call, part=f"result-{one.call}") for one in ordered),
    )


def some(random: Random, calls: Sequence[OpenAt]) -> list[OpenAt]:
    """One or more of the calls, all of them most often."""
    if chance(random, 0.5):
        return list(calls)
    return random.sample(list(calls), random.randint(1, len(calls)))


def with_results(
    random: Random, message: Message, calls: Sequence[OpenAt], *, preliminary: bool = False
) -> Message:
    """The message with results for some of its own open calls, each in the place of its preliminary one or behind all parts."""
    parts = list(message.parts)
    for one in calls:
        new = result(
            random,
            one.call,
            preliminary=preliminary,
            part=f"{'partial' if preliminary else 'result'}-{one.call}",
        )
        for index, part in enumerate(parts):
            if isinstance(part, ToolResult) and part.preliminary and part.call == one.call:
                parts[index] = evolve(new, id=part.id)
                break
        else:
            if all(part.id != new.id for part in parts):
                parts.append(new)
    return evolve(message, parts=tuple(parts))


def altered(random: Random, message: Message) -> Message:
    """The message with another content under the same id, not by added results."""
    parts = list(message.parts)
    match random.randrange(4):
        case 0 if parts:
            del parts[random.randrange(len(parts))]
        case 1 if len(parts) > 1:
            parts.reverse()
        case 2 if message.role is not Role.TOOL:
            return evolve(message, role=Role.USER if message.role is Role.ASSISTANT else Role.ASSISTANT)
        case _:
            parts.insert(0, Text(id=PartId("other"), text="something else"))
    return evolve(message, parts=tuple(parts))


def summary_text(known: Known) -> str:
    """A usable summary that no other one equals."""
    return f"summary {known.name('s')}"


def usable_reply(known: Known, random: Random) -> SummariserReply:
    """A reply that a commit takes: text, in one part or several, also beside reasoning."""
    parts: list[Part] = [Text(id=PartId("text"), text=summary_text(known))]
    if chance(random, 0.1):
        parts.insert(0, Reasoning(id=PartId("thought"), text="hm"))
    if chance(random, 0.1):
        parts.append(Text(id=PartId("more"), text="and more"))
    if chance(random, 0.05):
        parts[0] = Text(id=PartId("text"), text="word " * 700)
    return SummaryAnswer(
        parts=tuple(parts), finish=FinishReason.OTHER if chance(random, 0.05) else FinishReason.STOP
    )


FAILURE = SummaryFailure(text="no connection")
"""The summariser gave no answer."""


def unusable_reply(random: Random) -> SummariserReply:
    """A reply of which no summary can be made (CMT-14, CMT-15)."""
    good = Text(id=PartId("text"), text="a summary")
    call = ToolCall(id=PartId("call"), call=CallId("summariser-call"), name="look", input="{}")
    thought = Reasoning(id=PartId("thought"), text="hm")
    if chance(random, 0.2):
        return FAILURE
    return random.choice(
        (
            SummaryAnswer(parts=()),
            SummaryAnswer(parts=(Text(id=PartId("text"), text=" \n\t"),)),
            SummaryAnswer(parts=(Text(id=PartId("text"), text=""), Text(id=PartId("more"), text=" "))),
            SummaryAnswer(parts=(good,), finish=FinishReason.LENGTH),
            SummaryAnswer(parts=(good, call)),
            SummaryAnswer(parts=(call,), finish=FinishReason.TOOL_CALL),
            SummaryAnswer(parts=(good,), finish=FinishReason.TOOL_CALL),
            SummaryAnswer(parts=(thought,)),
            SummaryAnswer(parts=(thought, call), finish=FinishReason.LENGTH),
        )
    )
