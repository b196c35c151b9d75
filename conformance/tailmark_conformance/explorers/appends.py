"""How appended messages are drawn: those that a branch takes, and every kind that it does not."""

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from attrs import evolve

from tailmark.identifiers import CallId, NodeId, PartId, SessionId
from tailmark.messages import AnswerEnd, ApprovalRequest, Message, Part, Tag, Text, ToolCall, ToolResult
from tailmark.operations import Append, Operation
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known, chance, pick

Builder: TypeAlias = Callable[[Known, Random, SessionId], Operation | None]


def follows(known: Known, random: Random, session: SessionId) -> NodeId | None:
    """What a caller says that the branch ends in: most often nothing, else the truth, else something wrong."""
    match pick(random, {"nothing": 14, "right": 5, "wrong": 1, "leaf": 1, "unknown": 1}):
        case "right":
            return known.last_message(session)
        case "wrong" if known.nodes:
            return random.choice(known.nodes)
        case "leaf":
            # Behind a checkpoint this names the checkpoint, which is no message.
            return known.scene.leaf(session)
        case "unknown":
            return NodeId("nowhere")
        case _:
            return None


def _append(known: Known, random: Random, session: SessionId, message: Message) -> Operation:
    return Append(session=session, message=message, follows=follows(known, random, session))


# Messages --------------------------------------------------------------------------------------------


def append_user(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A user message: it opens a turn, or steers where a call is open or an answer runs."""
    return _append(known, random, session, contents.user_message(known, random))


def append_assistant(known: Known, random: Random, session: SessionId) -> Operation | None:
    """An assistant message with or without calls, some with their results in it already."""
    return _append(known, random, session, contents.assistant_message(known, random, session))


def append_tool(known: Known, random: Random, session: SessionId) -> Operation | None:
    """Results for open calls in a message of their own."""
    calls = known.scene.open_calls(session)
    if not calls:
        return None
    return _append(known, random, session, contents.tool_message(known, random, contents.some(random, calls)))


def append_not_open(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A result for a call that is unknown, settled, left behind, or a second one for the same call."""
    open_calls = known.scene.open_calls(session)
    taken = {one.call for one in open_calls}
    call = CallId("no-such-call")
    over = [one for one in known.calls if one not in taken]
    if over and chance(random, 0.7):
        call = random.choice(over)
    message = contents.tool_message(known, random, open_calls)
    parts: list[Part] = [*message.parts, contents.result(random, call, part="extra")]
    if open_calls and chance(random, 0.4):
        parts[-1] = contents.result(random, open_calls[0].call, part="second")
    return _append(known, random, session, evolve(message, parts=tuple(parts)))


def append_taken_call_id(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A call whose id is open already, or stands twice in the message."""
    open_calls = known.scene.open_calls(session)
    call = random.choice(open_calls).call if open_calls else CallId(known.name("c"))
    message = contents.assistant_message(known, random, session)
    parts = [*message.parts, ToolCall(id=PartId("again"), call=call, name="look", input="{}")]
    if not open_calls or chance(random, 0.3):
        parts.append(ToolCall(id=PartId("once-more"), call=call, name="look", input="{}"))
    return _append(known, random, session, evolve(message, parts=tuple(parts)))


def append_invalid(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A message that no branch takes."""
    return _append(known, random, session, invalid_message(known, random, session))


def invalid_message(known: Known, random: Random, session: SessionId) -> Message:
    """A message that carries what its role may not, or carries it in a wrong order."""
    user = contents.user_message(known, random)
    own = contents.assistant_message(known, random, session, calls=1, settled=False)
    call = next(part.call for part in own.parts if isinstance(part, ToolCall))
    final = contents.result(random, call)
    open_calls = known.scene.open_calls(session)
    tools = contents.tool_message(known, random, open_calls)
    foreign = contents.result(random, open_calls[0].call if open_calls else CallId("other"), part="foreign")
    return random.choice(
        (
            evolve(
                user,
                parts=(*user.parts, Text(id=PartId("text"), text="a"), Text(id=PartId("text"), text="b")),
            ),
            evolve(user, parts=(*user.parts, ToolCall(id=PartId("call"), call=call, name="look", input=""))),
            evolve(user, parts=(*user.parts, foreign)),
            evolve(user, end=AnswerEnd.FINAL),
            evolve(user, built_on=NodeId("nowhere")),
            evolve(tools, parts=()),
            evolve(tools, parts=(*tools.parts, Text(id=PartId("text"), text="no result"))),
            evolve(tools, parts=(*tools.parts[1:], evolve(foreign, preliminary=True))),
            evolve(tools, end=AnswerEnd.FINAL),
            evolve(own, parts=(final, *(part for part in own.parts if not isinstance(part, ToolResult)))),
            evolve(own, parts=(*own.parts, final, evolve(final, id=PartId("final-again")))),
            evolve(
                own,
                parts=(*own.parts, final, evolve(final, id=PartId("too-late"), preliminary=True)),
            ),
            evolve(own, parts=(ApprovalRequest(id=PartId("early"), call=call), *own.parts)),
            evolve(own, parts=(*own.parts, foreign)),
            evolve(own, parts=(*own.parts, Tag(id=PartId("tag"), tag_id="t", label="t"))),
        )
    )


def append_known_id(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A message under an id that is known: equal, different, with results, on this branch, off it, a checkpoint's."""
    if not known.nodes:
        return None
    own = known.messages(session)
    away = known.off_branch(session)
    if away and chance(random, 0.35):
        content = known.content(random.choice(away))
        if not isinstance(content, Message):
            return _append(
                known, random, session, evolve(contents.user_message(known, random), id=content.id)
            )
        return _append(known, random, session, content)
    if not own:
        return None
    index = random.randrange(len(own))
    message = own[index]
    match pick(random, {"same": 3, "right": 2, "wrong": 2, "other": 2, "checkpoint": 1}):
        case "same":
            return Append(session=session, message=message)
        case "right":
            return Append(session=session, message=message, follows=own[index - 1].id if index else None)
        case "wrong":
            return Append(session=session, message=message, follows=random.choice(own).id)
        case "other":
            return Append(session=session, message=contents.altered(random, message))
        case _:
            checkpoints = known.checkpoints(session)
            if not checkpoints:
                return None
            return Append(
                session=session, message=evolve(contents.user_message(known, random), id=checkpoints[-1].id)
            )


def append_results(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A known assistant message again, now with results for its own open calls."""
    open_calls = known.scene.open_calls(session)
    if not open_calls:
        return None
    node = random.choice(open_calls).message
    message = known.content(node)
    if not isinstance(message, Message):
        return None
    own = contents.some(random, [one for one in open_calls if one.message == node])
    new = contents.with_results(random, message, own, preliminary=chance(random, 0.3))
    if chance(random, 0.1):
        new = evolve(new, parts=(*new.parts, Text(id=PartId("also"), text="and a text")))
    before: NodeId | None = None
    if chance(random, 0.3):
        ids = [one.id for one in known.messages(session)]
        before = random.choice((ids[max(ids.index(node) - 1, 0)], ids[-1]))
    return Append(session=session, message=new, follows=before)
