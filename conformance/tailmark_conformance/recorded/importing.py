"""What every importer of a recorded format yields, and the protocol that they share.

An importer takes the records of one file in order and yields what they mean: steps to be judged, states
to be taken over, checkpoints for the report, and findings of its own. A finding that a predicate can make
is left to the predicate; an importer's own findings are damage (DMG-1) alone.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Protocol, TypeAlias

from attrs import define, frozen

from tailmark.declarations import Capability, Declaration, Field, Readings
from tailmark.identifiers import CallId, ClauseId, ModelName, NodeId, Tokens
from tailmark.plans import Trigger
from tailmark.traces import Step
from tailmark.views import Change

DAMAGE = ClauseId("DMG-1")


class Format(StrEnum):
    """A format that can be read."""

    PI_1 = "pi-v1"
    """The pi coding agent's session file, version 1: a list of entries."""
    PI_2 = "pi-v2"
    """The same, version 2: entries that name their parents."""
    PI_3 = "pi-v3"
    """The same, version 3."""
    CLAUDE_CODE = "claude-code"
    """Claude Code's session file: records that name their parents."""


@frozen(kw_only=True)
class Finding:
    """Something that a recorded session shows to be wrong: the clause, the line from 1, the node, and what it is.

    ``line`` is ``None`` for what concerns the file as a whole, ``node`` where no node is concerned.
    """

    clause: ClauseId
    line: int | None
    node: NodeId | None
    text: str


@frozen(kw_only=True)
class AbandonedCall:
    """A call that never got its result: the importer gave it an `abandoned` one. ``line`` is the call's."""

    line: int
    node: NodeId
    call: CallId


@frozen(kw_only=True)
class CheckpointFacts:
    """A checkpoint as the log tells of it.

    ``node`` follows ``parent``. ``place`` is the first message kept verbatim, at ``place_line``; ``None``
    keeps none of the messages before the checkpoint. ``previous_place`` is the first message behind the place of the checkpoint
    before it on the branch; ``None`` without one. ``tokens_before`` is the figure in the log, in its own tokens; ``measured_before`` the occupancy at the checkpoint by
    the usage before it, ``None`` without one; the estimates are of the
    whole projection, in this project's own tokens, so that before and after compare.
    ``trigger`` is ``None`` where the log does not tell. A ``damaged`` checkpoint is not judged.
    """

    line: int
    node: NodeId
    parent: NodeId | None
    place: NodeId | None
    place_line: int | None
    previous_place: NodeId | None
    trigger: Trigger | None
    tokens_before: Tokens | None
    measured_before: Tokens | None
    estimated_before: Tokens
    estimated_after: Tokens
    summary_tokens: Tokens
    kept_messages: int
    kept_tokens: Tokens
    excluded_messages: int
    open_calls: tuple[CallId, ...]
    refresh: bool
    damaged: bool


@frozen(kw_only=True)
class RequestFacts:
    """A request whose answer stands at ``line``, and what its provider counted.

    ``reported`` is its input and ``output`` its output, in the provider's tokens. ``estimated`` is our estimate of the projection that it was built on,
    without instructions and tools, which a log does not hold. ``measured`` is the occupancy that the answer before it and an
    estimate of the rest come to (OCC-2, OCC-15), in the provider's measure; ``None`` without a base.
    """

    line: int
    node: NodeId
    model: ModelName
    estimated: Tokens
    measured: Tokens | None
    reported: Tokens
    output: Tokens


@frozen(kw_only=True)
class ImportedStep:
    """A step that the log shows, made from the record at ``line``."""

    line: int
    step: Step


@frozen(kw_only=True)
class TakenOver:
    """The log shows where a session's leaf is, but not by which operation it came there: nothing is judged."""

    line: int
    change: Change


Imported: TypeAlias = ImportedStep | TakenOver | Finding | AbandonedCall | CheckpointFacts | RequestFacts


@define(kw_only=True)
class Tally:
    """What an importer counted so far.

    ``messages`` are those of the log, without what the importer added. ``turns`` are those that messages of the
    log opened, on any branch. ``branches`` counts the ends that the tree has. ``sessions`` are conversations that
    the file holds, subagents included. ``other_records`` are those that say nothing of a conversation.
    """

    messages: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    turns: int = 0
    branches: int = 0
    sessions: int = 0
    other_records: int = 0


class Importer(Protocol):
    """Reads one format. A new one for each file."""

    @property
    def format(self) -> Format:
        """The format that it reads."""
        ...

    @property
    def declaration(self) -> Declaration:
        """What the format can show and what it cannot."""
        ...

    @property
    def tally(self) -> Tally:
        """What was counted so far."""
        ...

    @property
    def branched_from(self) -> str | None:
        """The session that this one says it was copied from."""
        ...

    def feed(self, line: int, record: Mapping[str, object]) -> Iterator[Imported]:
        """Take the record of one line. What it means may come with a later record, never with an earlier one."""
        ...

    def lost_line(self, line: int) -> None:
        """A line that could not be read stood here."""
        ...

    def finish(self) -> Iterator[Imported]:
        """The file is over: what was held back."""
        ...

    def open_calls(self) -> int:
        """How many calls are open at the end of the sessions."""
        ...


_SHOWN = (Field.OUTCOME, Field.RECORD)
"""Nodes, their parents and leaves are always shown. A checkpoint in a log is a commit that succeeded, and its record is read off the log."""


def declaration_of(implementation: str, readings: Readings) -> Declaration:
    """What a log shows: the nodes, in which order they came, and nothing that a process knew."""
    return Declaration(
        implementation=implementation,
        capabilities=(Capability.VIEW, Capability.HISTORY, Capability.TREE, Capability.COMMIT),
        readings=readings,
        hidden=tuple(one for one in Field if one not in _SHOWN),
    )
