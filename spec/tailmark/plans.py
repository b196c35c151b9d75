"""Compactions: the plan, the summariser's request and answer, and the checkpoint that results.

A place on a branch stands between two nodes. It is named by the first message after it; ``None`` names
the place behind the last message (``open``).
"""

from enum import StrEnum
from typing import ClassVar, TypeAlias

from attrs import frozen

from tailmark.budgets import Budgets, Model, Occupancy
from tailmark.identifiers import ModelName, NodeId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import Message, Part


class Trigger(StrEnum):
    """What asked for a compaction."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"
    PREFLIGHT = "preflight"


class FinishReason(StrEnum):
    """Why the summarising model stopped."""

    STOP = "stop"
    LENGTH = "length"
    """Cut off at its output cap."""
    TOOL_CALL = "tool-call"
    OTHER = "other"


@frozen(kw_only=True)
class SummaryRequest:
    """What the summariser is given: the previous summary, unchanged, and the messages to fold in (CHK-2).

    ``instructions`` are the user's own words (TRG-17). ``summary_pass`` counts from 1.
    """

    previous_summary: str | None
    messages: tuple[NodeId, ...]
    instructions: str | None = None
    summary_pass: int = 1


@frozen(kw_only=True)
class SendFor:
    """A preflight compaction is for a draft that waits to be sent."""

    kind: ClassVar[str] = "send-for"
    message: Message


@frozen(kw_only=True)
class RetryFor:
    """A preflight compaction is for a question that waits to be answered anew."""

    kind: ClassVar[str] = "retry-for"


@frozen(kw_only=True)
class EditFor:
    """A preflight compaction is for a message that waits to replace the question ``target``."""

    kind: ClassVar[str] = "edit-for"
    target: NodeId
    message: Message


Purpose: TypeAlias = SendFor | RetryFor | EditFor
"""What a preflight compaction makes room for."""


@frozen(kw_only=True)
class Plan:
    """What a compaction read at its start (CMT-4).

    ``base`` is the node that the checkpoint will follow. ``first_kept`` names the new place,
    ``old_first_kept`` the present one; it is ``None`` without a previous checkpoint: the present place is the root.
    ``excluded`` are the messages between the two, in branch order. A ``refresh`` moves no place and
    excludes nothing. ``purpose`` is what a preflight compaction makes room for, ``None`` with the other triggers; ``draft`` is the
    estimate of its message, 0 for a retry. ``budgets`` and ``occupancy`` are those of the branch up to ``base`` when
    the plan was made; the ratio in them holds for the whole plan. ``request`` is ``None`` where no summariser is needed: the previous summary is taken over verbatim.
    The sizes are estimates of the whole projection, in tokens; ``tokens_after`` leaves the new summary out.
    """

    id: PlanId
    session: SessionId
    leaf: NodeId
    revision: Revision
    base: NodeId
    trigger: Trigger
    first_kept: NodeId | None
    old_first_kept: NodeId | None
    previous_checkpoint: NodeId | None
    previous_summary: str | None
    excluded: tuple[NodeId, ...]
    refresh: bool
    model: Model
    budgets: Budgets
    occupancy: Occupancy
    purpose: Purpose | None = None
    draft: Tokens = Tokens(0)
    instructions: str | None
    request: SummaryRequest | None
    tokens_before: Tokens
    tokens_after: Tokens


@frozen(kw_only=True)
class SummaryAnswer:
    """What the summarising model returned."""

    kind: ClassVar[str] = "summary-answer"
    parts: tuple[Part, ...]
    finish: FinishReason = FinishReason.STOP


@frozen(kw_only=True)
class SummaryFailure:
    """The summariser gave no answer. ``text`` is its error, for people."""

    kind: ClassVar[str] = "summary-failure"
    text: str


SummariserReply: TypeAlias = SummaryAnswer | SummaryFailure


@frozen(kw_only=True)
class Checkpoint:
    """A stored summary and the place where the verbatim tail begins (CHK-7).

    ``first_kept`` and ``old_first_kept`` as in `Plan`. ``previous`` is the checkpoint that this one
    takes over from. ``first_excluded`` and ``last_excluded`` bound what the summary newly covers; both are
    ``None`` for a refresh. ``figure`` and ``covered`` are the ratio that its costs were measured with, as in
    `Occupancy`. ``tokens_before`` and ``tokens_after`` are estimates of the whole projection.
    """

    kind: ClassVar[str] = "checkpoint"
    id: NodeId
    summary: str
    first_kept: NodeId | None
    old_first_kept: NodeId | None
    previous: NodeId | None
    first_excluded: NodeId | None
    last_excluded: NodeId | None
    trigger: Trigger
    model: ModelName
    refresh: bool
    instructions: str | None
    finish: FinishReason | None
    figure: Tokens = Tokens(0)
    covered: Tokens = Tokens(0)
    tokens_before: Tokens
    tokens_after: Tokens


Node: TypeAlias = Message | Checkpoint
"""What stands in the tree."""
