"""One session of a log as it grows: messages and checkpoints become steps.

Two things are not in a log and are added here, so that what follows can be judged. An answer that ended as
aborted or failed leaves no call open: its calls get `abandoned` results in the same message. And a call
whose result had not come when the next request went out is given up: a ``tool`` message with an
`abandoned` result is added, before the user messages that were written behind the last real result. For this user messages
are held back while calls are open, until the next record shows whether a result still comes.
"""

from collections.abc import Iterator

from attrs import evolve, frozen

from tailmark.budgets import Budgets, Model, Occupancy, Settings
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, Text, ToolCall, ToolResult
from tailmark.operations import Abandon, Append, CommitCompaction
from tailmark.outcomes import Committed, Done
from tailmark.plans import Checkpoint, Plan, SummaryAnswer, SummaryRequest, Trigger
from tailmark.traces import Step
from tailmark.views import Change, SessionView, StoredNode
from tailmark_conformance.recorded.importing import (
    DAMAGE,
    AbandonedCall,
    CheckpointFacts,
    Finding,
    Imported,
    ImportedStep,
    RequestFacts,
    TakenOver,
    Tally,
)
from tailmark_conformance.recorded.records import shorten, shorten_text
from tailmark_conformance.recorded.table import NodeTable
from tailmark_reference.estimate import estimate, estimate_summary


@frozen(kw_only=True)
class LoggedMessage:
    """A message of the log, its texts shortened, and what the whole of it costs."""

    line: int
    message: Message
    tokens: Tokens


def logged(line: int, message: Message, *, more_tokens: int = 0) -> LoggedMessage:
    """Take the estimate of a whole message, then shorten it. ``more_tokens`` is for content that the vocabulary has no part for."""
    return LoggedMessage(line=line, message=shorten(message), tokens=Tokens(estimate(message) + more_tokens))


@frozen(kw_only=True)
class LoggedCheckpoint:
    """A checkpoint of the log. ``damage`` says why its place cannot be taken as it stands."""

    line: int
    node: NodeId
    summary: str
    first_kept: NodeId | None
    trigger: Trigger | None
    tokens_before: Tokens | None
    damage: str | None = None


@frozen(kw_only=True)
class _Place:
    """The place of a checkpoint: how many messages of its branch stand before it, and the checkpoint's summary."""

    before: int
    summary: str
    summary_tokens: Tokens


@frozen(kw_only=True)
class _Base:
    """The newest answer with a usage: its figure, our estimate of what that covers, and of the path up to the answer."""

    node: NodeId
    figure: int
    covered: int
    tokens_to: Tokens
    checkpoint: NodeId | None


class Chain:
    """A session of a log. Every method takes records in the order of the file and yields what they mean."""

    def __init__(self, session: SessionId, table: NodeTable, tally: Tally) -> None:
        self.session = session
        self.model = ModelName("")
        self._table = table
        self._tally = tally
        self._leaf: NodeId | None = None
        self._held: list[LoggedMessage] = []
        self._places: dict[NodeId, _Place] = {}
        self._base: _Base | None = None

    @property
    def leaf(self) -> NodeId | None:
        """The node that a record without a parent of its own would follow, held messages included."""
        return self._held[-1].message.id if self._held else self._leaf

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """The calls open behind the leaf."""
        return tuple(made.call for made in self._table.open_calls(self._leaf))

    def path(self) -> Iterator[NodeId]:
        """The nodes from the leaf to the root, held messages included."""
        for logged_message in reversed(self._held):
            yield logged_message.message.id
        yield from self._table.walk(self._leaf)

    def keeps_messages(self, node: NodeId) -> bool:
        """Whether a node is a checkpoint that keeps messages before it verbatim."""
        place = self._places.get(node)
        return place is not None and place.before < self._table.messages_to(node)

    def message_behind(self, node: NodeId | None) -> NodeId | None:
        """The first message of the branch behind a node of it; ``None`` if none stands there."""
        above = self._table.messages_to(node) if node is not None else 0
        return next(iter(self._table.messages_between(above, self._leaf)), None)

    def begin(self, line: int) -> Iterator[Imported]:
        """The session as it is before its first record."""
        self._tally.sessions += 1
        yield TakenOver(line=line, change=Change(sessions=(self._view(),)))

    def assistant(self, logged_message: LoggedMessage) -> Iterator[Imported]:
        """A model's answer: a request went out before it."""
        yield from self._give_up(logged_message.line)
        yield from self._release()
        message = logged_message.message
        if message.end in (AnswerEnd.ABORTED, AnswerEnd.FAILED):
            left = _unsettled(message)
            results = tuple(_abandoned(call) for call in left)
            message = evolve(message, parts=message.parts + results)
            for call in left:
                yield AbandonedCall(line=logged_message.line, node=message.id, call=call.call)
        before = self._projection_tokens()
        usage = message.usage
        if usage is not None:
            yield RequestFacts(
                line=logged_message.line,
                node=message.id,
                model=usage.model,
                estimated=before,
                measured=self._measured(),
                reported=usage.input,
                output=usage.output,
            )
        yield self._append(evolve(logged_message, message=message))
        if usage is not None and usage.ended_normally and usage.input > 0:
            self._base = _Base(
                node=message.id,
                figure=usage.input + usage.output,
                covered=before + logged_message.tokens,
                tokens_to=self._table.tokens_to(self._leaf),
                checkpoint=self._table.latest_checkpoint(self._leaf),
            )

    def result(self, logged_message: LoggedMessage) -> Iterator[Imported]:
        """A message of the role ``tool``."""
        yield from self._release()
        yield self._append(logged_message)

    def user(self, logged_message: LoggedMessage) -> Iterator[Imported]:
        """A user's message. It is held back while calls are open."""
        if self.open_calls:
            self._held.append(logged_message)
        else:
            yield self._append(logged_message)

    def checkpoint(self, checkpoint: LoggedCheckpoint) -> Iterator[Imported]:
        """A compaction that the log shows as done."""
        yield from self._release()
        damage = checkpoint.damage
        if self._leaf is None:
            damage = "a checkpoint stands before every message"
        elif damage is None and checkpoint.first_kept is not None:
            damage = self._place_damage(checkpoint.first_kept, self._leaf)
        yield self._facts(checkpoint, damaged=damage is not None)
        if damage is not None or self._leaf is None:
            yield Finding(
                clause=DAMAGE,
                line=checkpoint.line,
                node=checkpoint.node,
                text=f"{damage}; this checkpoint is not judged",
            )
            return
        yield self._commit(checkpoint, self._leaf)

    def move(self, line: int, target: NodeId | None) -> Iterator[Imported]:
        """The next record follows another node than the leaf: somebody went back."""
        yield from self._release()
        self._leaf = target
        yield TakenOver(line=line, change=Change(sessions=(self._view(),)))

    def finish(self) -> Iterator[Imported]:
        """The file is over. Calls that are open stay open."""
        yield from self._release()

    # Messages -----------------------------------------------------------------------------------

    def _give_up(self, line: int) -> Iterator[Imported]:
        open_calls = self._table.open_calls(self._leaf)
        if not open_calls:
            return
        calls = tuple(made.call for made in open_calls)
        for made in open_calls:
            yield AbandonedCall(line=self._table.line(made.node), node=made.node, call=made.call)
        message = Message(
            id=self._free_id(f"abandoned:{self._leaf}"),
            role=Role.TOOL,
            parts=tuple(
                ToolResult(id=PartId(f"abandoned:{index}"), call=call, status=ResultStatus.ABANDONED, text="")
                for index, call in enumerate(calls)
            ),
        )
        node = StoredNode(parent=self._leaf, content=message, estimate=estimate(message))
        self._table.add_message(line, self._leaf, message, node.estimate)
        self._leaf = message.id
        yield ImportedStep(
            line=line,
            step=Step(
                operation=Abandon(session=self.session),
                outcome=Done(written=(message.id,), abandoned=calls),
                change=Change(sessions=(self._view(),), nodes=(node,)),
            ),
        )

    def _free_id(self, wanted: str) -> NodeId:
        node = NodeId(wanted)
        count = 1
        while node in self._table:
            count += 1
            node = NodeId(f"{wanted}:{count}")
        return node

    def _release(self) -> Iterator[Imported]:
        held, self._held = self._held, []
        for logged_message in held:
            yield self._append(logged_message)

    def _append(self, logged_message: LoggedMessage) -> ImportedStep:
        message = logged_message.message
        parent = self._leaf
        opens_turn = self._table.add_message(logged_message.line, parent, message, logged_message.tokens)
        self._tally.messages += 1
        self._tally.turns += opens_turn
        self._leaf = message.id
        node = StoredNode(parent=parent, content=message, estimate=logged_message.tokens)
        return ImportedStep(
            line=logged_message.line,
            step=Step(
                operation=Append(session=self.session, message=message),
                outcome=Done(written=(message.id,)),
                change=Change(sessions=(self._view(),), nodes=(node,)),
            ),
        )

    # Checkpoints --------------------------------------------------------------------------------

    def _place_damage(self, first_kept: NodeId, leaf: NodeId) -> str | None:
        if first_kept not in self._table or self._table.is_checkpoint(first_kept):
            return f"the first kept node {first_kept} is no message"
        if not self._table.is_above(first_kept, leaf):
            return f"the first kept node {first_kept} does not stand on the branch"
        return None

    def _latest(self) -> _Place | None:
        latest = self._table.latest_checkpoint(self._leaf)
        return self._places[latest] if latest is not None else None

    def _before_place(self, first_kept: NodeId | None) -> int:
        """How many messages of the branch stand before a place."""
        if first_kept is None:
            return self._table.messages_to(self._leaf)
        return self._table.messages_to(first_kept) - 1

    def _tokens_from(self, before: int) -> Tokens:
        """What the messages of the branch behind its first ``before`` ones cost."""
        behind = self._table.messages_between(before, self._leaf)
        if not behind:
            return Tokens(0)
        above = self._table.tokens_to(self._table.parent(behind[0]))
        return Tokens(self._table.tokens_to(self._leaf) - above)

    def _projection_tokens(self) -> Tokens:
        """Our estimate of what a request on the leaf carries."""
        latest = self._latest()
        if latest is None:
            return self._table.tokens_to(self._leaf)
        return Tokens(latest.summary_tokens + self._tokens_from(latest.before))

    def _measured(self) -> Tokens | None:
        """The occupancy at the leaf by the newest usage, if that speaks of this branch and of what its latest checkpoint left (OCC)."""
        base = self._base
        if base is None or base.checkpoint != self._table.latest_checkpoint(self._leaf):
            return None
        if base.node != self._leaf and not self._table.is_above(base.node, self._leaf):
            return None
        added = self._table.tokens_to(self._leaf) - base.tokens_to
        if base.figure > base.covered > 0:
            added = -(-added * base.figure // base.covered)
        return Tokens(base.figure + added)

    def _present_place(self) -> NodeId | None:
        """The first message behind the present place; ``None`` for the root."""
        latest = self._latest()
        if latest is None:
            return None
        return next(iter(self._table.messages_between(latest.before, self._leaf)), None)

    def _facts(self, checkpoint: LoggedCheckpoint, *, damaged: bool) -> CheckpointFacts:
        latest = self._latest()
        old_before = latest.before if latest is not None else 0
        old_summary = latest.summary_tokens if latest is not None else 0
        first_kept = None if damaged else checkpoint.first_kept
        before = old_before if damaged else self._before_place(first_kept)
        kept = self._tokens_from(before)
        summary = estimate_summary(checkpoint.summary)
        return CheckpointFacts(
            line=checkpoint.line,
            node=checkpoint.node,
            parent=self._leaf,
            place=first_kept,
            place_line=self._table.line(first_kept) if first_kept is not None else None,
            previous_place=self._present_place(),
            trigger=checkpoint.trigger,
            tokens_before=checkpoint.tokens_before,
            measured_before=self._measured(),
            estimated_before=Tokens(old_summary + self._tokens_from(old_before)),
            estimated_after=Tokens(summary + kept),
            summary_tokens=summary,
            kept_messages=self._table.messages_to(self._leaf) - before,
            kept_tokens=kept,
            excluded_messages=max(0, before - old_before),
            open_calls=self.open_calls,
            refresh=latest is not None and before == old_before,
            damaged=damaged,
        )

    def _commit(self, checkpoint: LoggedCheckpoint, leaf: NodeId) -> ImportedStep:
        latest = self._latest()
        old_before = latest.before if latest is not None else 0
        before = self._before_place(checkpoint.first_kept)
        summary = shorten_text(checkpoint.summary)
        summary_tokens = estimate_summary(checkpoint.summary)
        kept = self._tokens_from(before)
        excluded = self._table.messages_between(old_before, leaf)[: max(0, before - old_before)]
        previous_summary = latest.summary if latest is not None else None
        plan = Plan(
            id=PlanId(f"line:{checkpoint.line}"),
            session=self.session,
            leaf=leaf,
            revision=Revision(0),
            base=leaf,
            # A log that does not tell is written as manual; the plan is hidden from the predicates.
            trigger=checkpoint.trigger or Trigger.MANUAL,
            first_kept=checkpoint.first_kept,
            old_first_kept=self._present_place(),
            previous_checkpoint=self._table.latest_checkpoint(leaf),
            previous_summary=previous_summary,
            excluded=excluded,
            refresh=latest is not None and before == old_before,
            model=self._model(),
            budgets=Budgets(),
            occupancy=Occupancy(tokens=Tokens(0), added=Tokens(0)),
            instructions=None,
            request=SummaryRequest(previous_summary=previous_summary, messages=excluded),
            tokens_before=Tokens(
                (latest.summary_tokens if latest is not None else 0) + self._tokens_from(old_before)
            ),
            tokens_after=kept,
        )
        content = Checkpoint(
            id=checkpoint.node,
            summary=summary,
            first_kept=plan.first_kept,
            old_first_kept=plan.old_first_kept,
            previous=plan.previous_checkpoint,
            first_excluded=excluded[0] if excluded else None,
            last_excluded=excluded[-1] if excluded else None,
            trigger=plan.trigger,
            model=plan.model.name,
            refresh=plan.refresh,
            instructions=None,
            finish=None,
            tokens_before=plan.tokens_before,
            tokens_after=Tokens(kept + summary_tokens),
        )
        self._table.add_checkpoint(checkpoint.line, leaf, checkpoint.node)
        self._places[checkpoint.node] = _Place(before=before, summary=summary, summary_tokens=summary_tokens)
        self._leaf = checkpoint.node
        node = StoredNode(parent=leaf, content=content, estimate=summary_tokens)
        return ImportedStep(
            line=checkpoint.line,
            step=Step(
                operation=CommitCompaction(
                    plan=plan, reply=SummaryAnswer(parts=(Text(id=PartId("summary"), text=summary),))
                ),
                outcome=Committed(checkpoint=checkpoint.node),
                change=Change(sessions=(self._view(),), nodes=(node,)),
            ),
        )

    def _model(self) -> Model:
        return Model(name=self.model)

    def _view(self) -> SessionView:
        """What is known of the session now. The empty fields are declared hidden."""
        return SessionView(
            session=self.session,
            leaf=self._leaf,
            revision=Revision(0),
            branch=(),
            open_calls=(),
            running=None,
            checkpoint=None,
            projection=(),
            model=self._model(),
            settings=Settings(),
            budgets=Budgets(),
            occupancy=Occupancy(tokens=Tokens(0), added=Tokens(0)),
            metadata={},
        )


def _unsettled(message: Message) -> tuple[ToolCall, ...]:
    settled = {part.call for part in message.parts if isinstance(part, ToolResult)}
    return tuple(part for part in message.parts if isinstance(part, ToolCall) and part.call not in settled)


def _abandoned(call: ToolCall) -> ToolResult:
    return ToolResult(
        id=PartId(f"abandoned:{call.id}"), call=call.call, status=ResultStatus.ABANDONED, text=""
    )
