"""Careful reading of other programs' records, in which any field may be missing or of another type."""

import json
from collections.abc import Mapping, Sequence

from attrs import evolve

from tailmark.identifiers import Tokens
from tailmark.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

KEPT_TEXT = 200
"""So many characters of a text are kept; its estimate is taken of the whole."""

_NOTHING: Mapping[str, object] = {}


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by a question mark: it has no UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def text_at(record: Mapping[str, object], key: str) -> str | None:
    """A field that holds text."""
    value = record.get(key)
    return clean(value) if isinstance(value, str) else None


def name_at(record: Mapping[str, object], key: str) -> str | None:
    """A field that holds an id or a name: text that is not blank, kept as far as ids are ever long."""
    text = text_at(record, key)
    return text[:KEPT_TEXT] if text is not None and text.strip() else None


def natural_at(record: Mapping[str, object], key: str) -> int | None:
    """A field that holds a whole number of 0 or more that JSON readers agree on."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        return None
    return value


def tokens_at(record: Mapping[str, object], key: str) -> Tokens:
    """A field that holds a size in tokens; 0 if it holds none."""
    return Tokens(natural_at(record, key) or 0)


def object_at(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    """A field that holds an object; an empty one if it holds none."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else _NOTHING


def objects_at(record: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
    """The objects of a field that holds a list."""
    value = record.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def json_text(value: object) -> str:
    """A value as JSON text, for what has no text of its own."""
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def shorten_text(text: str) -> str:
    """The first `KEPT_TEXT` characters."""
    return text if len(text) <= KEPT_TEXT else text[:KEPT_TEXT]


def shorten_part(part: Part) -> Part:
    """The part with the first `KEPT_TEXT` characters of its text."""
    match part:
        case Text() | Reasoning() | ToolResult():
            return evolve(part, text=shorten_text(part.text)) if len(part.text) > KEPT_TEXT else part
        case ToolCall():
            return evolve(part, input=shorten_text(part.input)) if len(part.input) > KEPT_TEXT else part
        case _:
            return part


def shorten(message: Message) -> Message:
    """The message with the first `KEPT_TEXT` characters of each of its texts, so that memory stays bounded."""
    return evolve(message, parts=tuple(map(shorten_part, message.parts)))
