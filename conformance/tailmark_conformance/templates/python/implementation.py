"""REPLACE THIS FILE by the implementation that you want to check.

It is a small one, so that there is something to check from the start: a list of messages in memory, with compaction. It knows nothing of the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

Message = dict[str, Any]  # Any: plain JSON values
"""A message in the form of the wire. It has an `id`, a `role` and `parts`."""

TAIL = 2000
"""What is kept word for word if nobody says how much, in tokens."""


@dataclass(frozen=True)
class Checkpoint:
    """A summary, and the id of the message with which the part begins that is kept word for word."""

    id: str
    summary: str
    first_kept: str


Entry = Union[Message, Checkpoint]


@dataclass(frozen=True)
class Plan:
    """A compaction that waits for its summary. ``leaf`` is the entry behind which it was planned, ``excluded`` what leaves the tail."""

    leaf: str
    first_kept: str
    excluded: list[str]
    previous: Checkpoint | None

    @property
    def refresh(self) -> bool:
        """Whether the tail stays as it is, so that the summary alone is written anew."""
        return self.previous is not None and self.first_kept == self.previous.first_kept


class NothingToDoError(Exception):
    """There is nothing to compact. The text says why."""


class UnstableError(Exception):
    """A tool call waits for its result."""


class StaleError(Exception):
    """The conversation has gone on since the compaction was planned."""


class Conversation:
    """Messages and checkpoints in the order in which they came. Nothing is ever taken away."""

    def __init__(self, tail: int | None) -> None:
        self.tail = TAIL if tail is None else tail
        self.entries: list[Entry] = []

    def append(self, message: Message) -> None:
        """Add a message."""
        self.entries.append(message)

    def begin(self) -> Plan:
        """Plan a compaction. Raises `UnstableError` and `NothingToDoError`."""
        if self.open_calls():
            raise UnstableError
        previous = self.checkpoint()
        messages = self._messages()
        present = _index(messages, previous.first_kept) if previous is not None else 0
        # Without a checkpoint at least the first turn is summarised.
        places = [place for place in _turns(messages) if previous is None or place >= present]
        places = places[1:] if previous is None else places
        if not places:
            raise NothingToDoError("too-few-turns")
        if self.entries[-1] is previous:
            raise NothingToDoError("checkpoint-is-leaf")
        place = self._place(messages, places, first=previous is None)
        return Plan(
            leaf=id_of(self.entries[-1]),
            first_kept=id_of(messages[place]),
            excluded=[id_of(message) for message in messages[present:place]],
            previous=previous,
        )

    def commit(self, plan: Plan, summary: str) -> Checkpoint:
        """Add the checkpoint with its summary. Raises `StaleError`."""
        if id_of(self.entries[-1]) != plan.leaf:
            raise StaleError
        number = sum(isinstance(entry, Checkpoint) for entry in self.entries) + 1
        checkpoint = Checkpoint(
            id=f"{plan.leaf}:summary:{number}", summary=summary, first_kept=plan.first_kept
        )
        self.entries.append(checkpoint)
        return checkpoint

    def checkpoint(self) -> Checkpoint | None:
        """The latest one."""
        return next((entry for entry in reversed(self.entries) if isinstance(entry, Checkpoint)), None)

    def request(self) -> list[Entry]:
        """What the model is sent: the latest summary, if there is one, and the tail."""
        latest, messages = self.checkpoint(), self._messages()
        if latest is None:
            return list(messages)
        return [latest, *messages[_index(messages, latest.first_kept) :]]

    def open_calls(self) -> dict[str, str]:
        """The tool calls that wait for their results, each with the message that made it."""
        return _open_calls(self._messages())

    def _messages(self) -> list[Message]:
        return [entry for entry in self.entries if not isinstance(entry, Checkpoint)]

    def _place(self, messages: list[Message], places: list[int], *, first: bool) -> int:
        """Where the tail is to begin: as early as the budget allows, and with the last turn if that is too long."""
        fitting = [place for place in places if cost(messages[place:]) <= self.tail]
        if first and cost(messages) <= self.tail:
            # Nothing had to be summarised, but somebody asked for it.
            return places[-1]
        return fitting[0] if fitting else places[-1]


def id_of(entry: Entry) -> str:
    """A message's id, or a checkpoint's."""
    return entry.id if isinstance(entry, Checkpoint) else str(entry["id"])


def estimate(entry: Entry) -> int:
    """What an entry costs in a request, in tokens: four characters are about one."""
    return 4 + len(entry.summary if isinstance(entry, Checkpoint) else str(entry["parts"])) // 4


def cost(messages: list[Message]) -> int:
    """What messages cost together, in tokens."""
    return sum(estimate(message) for message in messages)


def _index(messages: list[Message], name: str) -> int:
    return next(index for index, message in enumerate(messages) if message["id"] == name)


def _open_calls(messages: list[Message]) -> dict[str, str]:
    calls: dict[str, str] = {}
    for message in messages:
        for part in message["parts"]:
            if part["kind"] == "tool-call":
                calls[part["call"]] = id_of(message)
            elif part["kind"] == "tool-result":
                calls.pop(part["call"], None)
    return calls


def _turns(messages: list[Message]) -> list[int]:
    """Where turns begin: at each message of the user that was not typed while a tool ran."""
    return [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and not _open_calls(messages[:index])
    ]
