"""What could be simpler in a script: each candidate is the script with one thing less in it."""

from collections.abc import Iterator, Mapping

from attrs import evolve

from tailmark.budgets import Model, Settings
from tailmark.identifiers import PartId
from tailmark.messages import Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.plans import SummaryAnswer
from tailmark_conformance.explorers.renaming import renamed
from tailmark_conformance.explorers.scripts import BoundCommit, Entry, Script

_WORDS = "hi"
_REPLY = SummaryAnswer(parts=(Text(id=PartId("text"), text="summary"),))


def simplifications(script: Script) -> Iterator[Script]:
    """Candidates, those that save the most first. None equals the script."""
    for session in script.sessions:
        if len(script.sessions) > 1:
            yield evolve(script, sessions=tuple(one for one in script.sessions if one != session))
    if script.settings != Settings():
        yield evolve(script, settings=Settings())
    simple_model = Model(name=script.model.name)
    if script.model != simple_model:
        yield evolve(script, model=simple_model)
    for message in messages_of(script):
        for simpler in _simpler_messages(message):
            yield with_messages(script, {message: simpler})
    for index, entry in enumerate(script.entries):
        for simpler_entry in _simpler_entries(entry):
            yield evolve(
                script, entries=(*script.entries[:index], simpler_entry, *script.entries[index + 1 :])
            )
    counted = renamed(script)
    if counted != script:
        yield counted


def messages_of(script: Script) -> tuple[Message, ...]:
    """The different messages that the script brings."""
    found: dict[Message, None] = {}
    for entry in script.entries:
        match entry:
            case Append(message=message) | Edit(message=message) | Send(message=message):
                found[message] = None
            case Save(path=path):
                found.update((node, None) for node in path if isinstance(node, Message))
            case _:
                pass
    return tuple(found)


def with_messages(script: Script, table: Mapping[Message, Message]) -> Script:
    """The script with each message of the table replaced wherever it is brought."""
    return evolve(script, entries=tuple(_with_messages(entry, table) for entry in script.entries))


def _with_messages(entry: Entry, table: Mapping[Message, Message]) -> Entry:
    match entry:
        case Append() | Edit() | Send():
            return evolve(entry, message=table.get(entry.message, entry.message))
        case Save():
            return evolve(
                entry,
                path=tuple(
                    table.get(node, node) if isinstance(node, Message) else node for node in entry.path
                ),
            )
        case _:
            return entry


def _simpler_messages(message: Message) -> Iterator[Message]:
    plain = Message(id=message.id, role=message.role, parts=(Text(id=PartId("text"), text=_WORDS),))
    # No candidate leads back to an earlier one, or shrinking would go in circles.
    other = len(message.parts) > 1 or any(not isinstance(part, Text) for part in message.parts)
    if message.role is not Role.TOOL and other:
        yield plain
    for index in range(len(message.parts) if len(message.parts) > 1 else 0):
        yield evolve(message, parts=(*message.parts[:index], *message.parts[index + 1 :]))
    for bare in (evolve(message, end=None), evolve(message, built_on=None), evolve(message, usage=None)):
        if bare != message:
            yield bare
    for index, part in enumerate(message.parts):
        for simpler in _simpler_parts(part):
            yield evolve(message, parts=(*message.parts[:index], simpler, *message.parts[index + 1 :]))


def _simpler_parts(part: Part) -> Iterator[Part]:
    match part:
        case Text() | Reasoning():
            for text in _shorter(part.text):
                yield evolve(part, text=text)
        case ToolCall() if part.input != "{}":
            yield evolve(part, input="{}")
        case ToolResult():
            for text in _shorter(part.text):
                yield evolve(part, text=text)
        case _:
            pass


def _shorter(text: str) -> Iterator[str]:
    if len(text) > len(_WORDS):
        yield _WORDS
    if len(text) > 4 * len(_WORDS):
        yield "x" * (len(text) // 2)


def _simpler_entries(entry: Entry) -> Iterator[Entry]:
    match entry:
        case Append() | Send() | Abandon() | StartAnswer() | Retry() | Edit() | Undo() if (
            entry.follows is not None
        ):
            yield evolve(entry, follows=None)
        case BeginCompaction() | Preview() if entry.instructions is not None:
            yield evolve(entry, instructions=None)
        case EndAnswer() if entry.reason is not None:
            yield evolve(entry, reason=None)
        case Save():
            for index in range(len(entry.path)):
                yield evolve(entry, path=(*entry.path[:index], *entry.path[index + 1 :]))
        case Settle():
            for text in _shorter(entry.result.text):
                yield evolve(entry, result=evolve(entry.result, text=text))
        case BoundCommit():
            for name in entry.forged:
                yield evolve(entry, forged={key: one for key, one in entry.forged.items() if key != name})
            if entry.reply != _REPLY:
                yield evolve(entry, reply=_REPLY)
        case Restart(killed=True):
            yield Restart()
        case CommitCompaction() if entry.reply != _REPLY:
            yield evolve(entry, reply=_REPLY)
        case _:
            pass
