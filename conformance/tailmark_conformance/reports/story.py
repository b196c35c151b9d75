"""Operations and outcomes in words, so that a trace reads as a story."""

from collections.abc import Iterable
from typing import assert_never

from tailmark.budgets import Model, Settings
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
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    InflictDamage,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    Save,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    More,
    Noop,
    Outcome,
    Planned,
    Previewed,
    ReadOnly,
    Refused,
    Sent,
    Skipped,
    Stale,
    TooLarge,
)
from tailmark.plans import Checkpoint, Node, Plan, SummariserReply, SummaryAnswer, SummaryFailure, Trigger

_LONGEST = 40


def quoted(text: str) -> str:
    """A text in quotes, cut where it is long, on one line."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    more = f" ({len(text)} characters)" if len(text) > _LONGEST else ""
    # repr shows line breaks and what cannot be printed.
    return f"{shown!r}{more}"


def listed(names: Iterable[str]) -> str:
    """Names in a row; "nothing" without any."""
    return ", ".join(names) or "nothing"


def tell_part(part: Part) -> str:
    """One part of a message in words."""
    match part:
        case Text():
            return quoted(part.text)
        case Reasoning():
            return f"reasoning {quoted(part.text)}"
        case ToolCall():
            return f"calls {part.call}"
        case ToolResult():
            preliminary = "preliminary " if part.preliminary else ""
            return f"{preliminary}result for {part.call} ({part.status}): {quoted(part.text)}"
        case ApprovalRequest():
            return f"asks to allow {part.call}"
        case Image():
            return f"image {part.name}"
        case File():
            return f"file {part.name}"
        case Reference():
            return f"reference {part.item_key}"
        case PdfPage():
            return f"page {part.page} of {part.attachment}"
        case EpubLocation():
            return f"place in an EPUB {part.href}"
        case Annotation():
            return f"annotation {part.annotation_key}"
        case Collection():
            return f"collection {part.label}"
        case Tag():
            return f"tag {part.label}"
        case _:
            assert_never(part)


def tell_message(message: Message) -> str:
    """A message in words: who, its id, and its parts."""
    parts = "; ".join(tell_part(part) for part in message.parts) or "no parts"
    end = f", ended {message.end}" if message.end is not None else ""
    return f"{message.role} {message.id}: {parts}{end}"


def tell_node(node: Node) -> str:
    """A stored node in words."""
    match node:
        case Message():
            return tell_message(node)
        case Checkpoint():
            return f"checkpoint {node.id}: {quoted(node.summary)}, verbatim {_from(node.first_kept)}"
        case _:
            assert_never(node)


def _from(first_kept: str | None) -> str:
    return f"from {first_kept}" if first_kept is not None else "from right behind it"


def _following(follows: str | None) -> str:
    return f", said to follow {follows}" if follows is not None else ""


def _asked(trigger: Trigger, instructions: str | None) -> str:
    by = "" if trigger is Trigger.MANUAL else f", trigger {trigger}"
    words = f", with the instructions {quoted(instructions)}" if instructions is not None else ""
    return by + words


def tell_model(model: Model) -> str:
    """A model and its sizes in words."""
    return f"{model.name} (window {model.window}, output up to {model.max_output} tokens)"


def tell_settings(settings: Settings) -> str:
    """Settings in words: what differs from the defaults."""
    parts = [] if settings.automatic else ["automatic off"]
    parts += [f"overhead {settings.overhead}"] if settings.overhead else []
    parts += [f"head {quoted(settings.head)}"] if settings.head else []
    figures = (("reserve", settings.reserve), ("threshold", settings.threshold), ("tail", settings.tail))
    parts += [f"{name} {figure}" for name, figure in figures if figure is not None]
    return ", ".join(parts) or "the defaults"


def tell_reply(reply: SummariserReply | None) -> str:
    """A summariser's reply in words."""
    match reply:
        case None:
            return "no reply"
        case SummaryFailure():
            return f"the summariser's failure {quoted(reply.text)}"
        case SummaryAnswer():
            parts = "; ".join(tell_part(part) for part in reply.parts) or "no parts"
            return f"the reply {parts} (finish {reply.finish})"
        case _:
            assert_never(reply)


def tell_operation(operation: Operation) -> str:
    """An operation in words."""
    match operation:
        case Append():
            return f"{operation.session}: append {tell_message(operation.message)}{_following(operation.follows)}"
        case Save():
            return f"{operation.session}: save the path {listed(node.id for node in operation.path)}"
        case Settle():
            return f"{operation.session}: put into {operation.message} the {tell_part(operation.result)}"
        case Abandon():
            return f"{operation.session}: abandon the open calls{_following(operation.follows)}"
        case StartAnswer():
            return f"{operation.session}: an answer starts{_following(operation.follows)}"
        case NextRequest():
            return f"{operation.session}: the answer's next request"
        case EndAnswer():
            reason = f" ({operation.reason})" if operation.reason is not None else ""
            how = "" if operation.end is AnswerEnd.FINAL else f" as {operation.end}"
            return f"{operation.session}: the answer ends{how}{reason}"
        case BeginCompaction():
            asked = _asked(operation.trigger, operation.instructions)
            return f"{operation.session}: begin a compaction {operation.plan}{asked}"
        case Preview():
            asked = _asked(operation.trigger, operation.instructions)
            return f"{operation.session}: preview a compaction {operation.plan}{asked}"
        case CommitCompaction():
            plan = operation.plan
            return f"{plan.session}: commit {plan.id} ({tell_plan(plan)}) with {tell_reply(operation.reply)}"
        case CancelCompaction():
            return f"{operation.session}: cancel {operation.plan}"
        case Send():
            return (
                f"{operation.session}: send {tell_message(operation.message)}{_following(operation.follows)}"
            )
        case Retry():
            return f"{operation.session}: retry the last turn{_following(operation.follows)}"
        case Edit():
            message = tell_message(operation.message)
            return (
                f"{operation.session}: edit {operation.target} into {message}{_following(operation.follows)}"
            )
        case Fork():
            return f"{operation.session}: fork {operation.new_session} at {operation.target}"
        case Undo():
            return f"{operation.session}: undo the checkpoint{_following(operation.follows)}"
        case SetModel():
            return f"{operation.session}: choose the model {tell_model(operation.model)}"
        case SetSettings():
            return f"{operation.session}: set {tell_settings(operation.settings)}"
        case InflictDamage():
            return (
                f"{operation.session}: the durable state is damaged: {operation.damage} at {operation.node}"
            )
        case SetMetadata():
            return f"{operation.session}: set {operation.key} to {quoted(operation.value)}"
        case Load():
            return f"{operation.session}: load"
        case Restart(killed=killed):
            return "the process is killed and another begins" if killed else "the process restarts"
        case _:
            assert_never(operation)


def tell_plan(plan: Plan) -> str:
    """What a plan would do, in words."""
    kept = f"keep from {plan.first_kept}" if plan.first_kept is not None else "keep nothing"
    does = f"refresh, {kept}" if plan.refresh else f"summarise {listed(plan.excluded)}, {kept}"
    return f"{does}, on {plan.leaf} at revision {plan.revision}"


def tell_outcome(outcome: Outcome) -> str:
    """An outcome in words."""
    match outcome:
        case Done():
            more = [
                f"{label} {listed(names)}"
                for label, names in (
                    ("wrote", outcome.written),
                    ("left the branch:", outcome.left),
                    ("abandoned", outcome.abandoned),
                )
                if names
            ]
            if outcome.plan is not None:
                more.append(f"an automatic compaction begins: {tell_plan(outcome.plan)}")
            return "done" + (f" ({'; '.join(more)})" if more else "")
        case Sent():
            items = listed(item.node or "something not stored" for item in outcome.request.items)
            more = [
                f"{label} {listed(names)}"
                for label, names in (
                    ("wrote", outcome.written),
                    ("left the branch:", outcome.left),
                    ("abandoned", outcome.abandoned),
                )
                if names
            ]
            if outcome.attempt is not None:
                more.append(f"its compaction: {tell_outcome(outcome.attempt)}")
            return f"sent {items}" + (f" ({'; '.join(more)})" if more else "")
        case TooLarge():
            tried = (
                f", its compaction: {tell_outcome(outcome.attempt)}" if outcome.attempt is not None else ""
            )
            sizes = f"projection {outcome.projection}, draft {outcome.draft}, overhead {outcome.overhead}"
            return f"too large ({outcome.part}): {sizes}, limit {outcome.limit}{tried}"
        case Planned():
            return f"planned: {tell_plan(outcome.plan)}"
        case Previewed():
            return f"previewed: {tell_plan(outcome.plan)}"
        case More():
            return f"more: pass {outcome.request.summary_pass}"
        case Committed():
            return f"committed as {outcome.checkpoint}"
        case Noop():
            return f"nothing to do ({outcome.reason})"
        case Skipped():
            running = ", an answer runs" if outcome.answer_running else ""
            return f"skipped: open calls {listed(outcome.open_calls)}{running}"
        case Stale():
            return f"stale: the leaf is {outcome.leaf or 'none'} at revision {outcome.revision}"
        case Failed():
            return f"failed ({outcome.reason})"
        case Cancelled():
            return "cancelled"
        case ReadOnly():
            return "read-only"
        case Refused():
            way = f"; fork at {outcome.way} instead" if outcome.way is not None else ""
            wrong = f": {outcome.wrong.setting} {outcome.wrong.figure}" if outcome.wrong is not None else ""
            return f"refused ({outcome.code}{wrong}){way}"
        case _:
            assert_never(outcome)


def role_name(node: Node) -> str:
    """What a node is, in one word."""
    match node:
        case Message(role=Role() as role):
            return role.value
        case Checkpoint():
            return "checkpoint"
        case _:
            assert_never(node)
