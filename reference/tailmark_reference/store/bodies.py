"""Content as it is stored: canonical JSON text, structured only where somebody asks for it.

What is read back is the store's own canonical text, so the standard library's plain reading does.
"""

import json

from attrs import evolve

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.messages import Message, ToolResult
from tailmark.plans import Checkpoint
from tailmark_reference.store.schema import NodeKind

# In canonical JSON a quote inside text is escaped, so this stands nowhere but in a preliminary result.
_PRELIMINARY = '"preliminary":true'


def to_body(value: Message | Checkpoint | Model | Settings) -> str:
    """The canonical JSON text. Raises `json_form.JsonFormError` for what JSON cannot carry."""
    return json_form.dumps(value).decode()


def to_message(body: str) -> Message:
    """The message that `to_body` wrote."""
    return json_form.structure(json.loads(body), Message)


def to_checkpoint(body: str) -> Checkpoint:
    """The checkpoint that `to_body` wrote."""
    return json_form.structure(json.loads(body), Checkpoint)


def to_summary(body: str) -> str:
    """The summary of the checkpoint that `to_body` wrote, without structuring the rest."""
    return str(json.loads(body)["summary"])


def to_content(kind: int, body: str) -> Message | Checkpoint:
    """The content of a node of this kind."""
    return to_checkpoint(body) if kind == NodeKind.CHECKPOINT else to_message(body)


def to_model(body: str) -> Model:
    """The model that `to_body` wrote."""
    return json_form.structure(json.loads(body), Model)


def to_settings(body: str) -> Settings:
    """The settings that `to_body` wrote."""
    return json_form.structure(json.loads(body), Settings)


def _has_preliminary(body: str) -> bool:
    return _PRELIMINARY in body


def to_projected(body: str) -> Message:
    """The message as it is projected: without results that are preliminary (PROJ-4)."""
    message = to_message(body)
    if not _has_preliminary(body):
        return message
    kept = (part for part in message.parts if not (isinstance(part, ToolResult) and part.preliminary))
    return evolve(message, parts=tuple(kept))


def projected_digest(body: str) -> str:
    """The digest of a message as it is projected. Most bodies need no structuring for it."""
    if _has_preliminary(body):
        return json_form.digest(to_projected(body))
    return json_form.digest_bytes(body.encode())


def with_result(message: Message, result: ToolResult) -> Message:
    """The message with a result in the place of the call's preliminary one, or behind its last part."""
    for position, part in enumerate(message.parts):
        if isinstance(part, ToolResult) and part.preliminary and part.call == result.call:
            return evolve(message, parts=(*message.parts[:position], result, *message.parts[position + 1 :]))
    return evolve(message, parts=(*message.parts, result))


def grown_by(stored: Message, content: Message) -> tuple[ToolResult, ...] | None:
    """The results that, put into ``stored`` one after another, make it ``content``.

    ``None`` where it differs in any other way.
    """
    results = tuple(
        part for part in content.parts if isinstance(part, ToolResult) and part not in stored.parts
    )
    grown = stored
    for result in results:
        grown = with_result(grown, result)
    return results if grown == content else None
