"""Predicates of the chapter on estimates: what a message may be said to cost."""

import re
from collections.abc import Iterator

from tailmark.messages import (
    Annotation,
    Collection,
    EpubLocation,
    File,
    Image,
    Message,
    Part,
    PdfPage,
    Reasoning,
    Reference,
    Tag,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.plans import Checkpoint
from tailmark.rules.scene import Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated
from tailmark.views import StoredNode

_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]")
"""Kana, ideographs and hangul: at least one token for each character."""


def _new_messages(seen: Seen) -> Iterator[tuple[StoredNode, Message]]:
    for node in seen.change.nodes:
        if isinstance(node.content, Message):
            yield node, node.content


def _sent(message: Message) -> Iterator[Part]:
    return (part for part in message.parts if not (isinstance(part, ToolResult) and part.preliminary))


def least(text: str) -> int:
    """The fewest tokens that a text may be said to be."""
    if text.isascii():
        return -(-len(text) // 4)
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 4) + len(_DENSE.findall(text))


def most(text: str) -> int:
    """The most tokens that a text may be said to be: its bytes in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def carried(part: Part) -> tuple[str, ...]:
    """Every text of a part that a request may carry. An image is no text, and reasoning that is not replayable is not carried."""
    match part:
        case Text() | ToolResult():
            return (part.text,)
        case Reasoning():
            return (part.text,) if part.replayable else ()
        case ToolCall():
            return (part.name, part.input)
        case File():
            return (part.name, part.media_type, part.data)
        case Reference():
            return (part.item_key, part.title, part.citation)
        case PdfPage():
            return (part.attachment, str(part.page), str(part.pages))
        case EpubLocation():
            return (str(part.section_index), part.href, part.cfi)
        case Annotation():
            return (part.annotation_key, part.text, part.comment, part.page, part.parent_item_key)
        case Collection():
            return (part.collection_id, part.label)
        case Tag():
            return (part.tag_id, part.label)
        case _:
            return ()


def ceiling(seen: Seen, message: Message) -> int:
    """The most that a message may be said to cost, in tokens."""
    parameters = seen.declaration.parameters
    total = int(parameters.per_message)
    for part in _sent(message):
        total += parameters.per_part + (parameters.per_image if isinstance(part, Image) else 0)
        total += sum(map(most, carried(part)))
    return total


def _images(seen: Seen, message: Message) -> int:
    return seen.declaration.parameters.per_image * sum(isinstance(part, Image) for part in _sent(message))


def _floor(message: Message, kinds: tuple[type[Part], ...]) -> int:
    return sum(least(text) for part in _sent(message) if isinstance(part, kinds) for text in carried(part))


def _estimate(scene: Scene, node: StoredNode) -> int:
    return scene.estimate(node.content.id)


def occ_8(seen: Seen) -> Result:
    """An estimate never falls when something is added to its message."""
    exercised = False
    for node, message in _new_messages(seen):
        old = seen.before.node(message.id)
        if old is None or not isinstance(old.content, Message) or old.content == message:
            continue
        if any(part not in message.parts for part in _sent(old.content)):
            continue
        before, after = seen.before.estimate(message.id), _estimate(seen.after, node)
        if after < before:
            return Violated(f"expected {before} or more behind an addition, saw {after}", message.id)
        exercised = True
    return HOLDS if exercised else None


def occ_9(seen: Seen) -> Result:
    """A text costs a token for four ASCII characters and for each Chinese, Japanese or Korean one, or more; and a token for each byte, or less."""
    exercised = False
    for node in seen.change.nodes:
        if isinstance(node.content, Checkpoint) and not seen.declaration.parameters.tokenizer:
            floor, estimate = least(node.content.summary), _estimate(seen.after, node)
            if estimate < floor:
                return Violated(
                    f"expected {floor} tokens or more for the summary, saw {estimate}", node.content.id
                )
    for node, message in _new_messages(seen):
        estimate = _estimate(seen.after, node)
        floor = _floor(message, (Text,))
        if not seen.declaration.parameters.tokenizer and estimate < floor:
            return Violated(f"expected {floor} tokens or more for the text, saw {estimate}", message.id)
        hidden = any(isinstance(part, Reasoning) and not part.replayable for part in message.parts)
        if hidden or any(isinstance(part, Image) for part in message.parts):
            continue  # OCC-10 and OCC-11 have an upper bound of their own
        if estimate > ceiling(seen, message):
            return Violated(
                f"expected {ceiling(seen, message)} tokens or less, the bytes and the declared constants; saw {estimate}",
                message.id,
            )
        exercised = exercised or floor > 0
    return HOLDS if exercised else None


def occ_10(seen: Seen) -> Result:
    """Reasoning counts if and only if the projection sends it."""
    exercised = False
    for node, message in _new_messages(seen):
        thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
        if not any(part.text for part in thoughts):
            continue
        estimate = _estimate(seen.after, node)
        floor = _floor(message, (Text, Reasoning))
        if not seen.declaration.parameters.tokenizer and estimate < floor:
            return Violated(
                f"expected the replayable reasoning to count, saw {estimate} for {floor} or more", message.id
            )
        if estimate > ceiling(seen, message):
            return Violated(
                f"expected reasoning that is not sent not to count, saw {estimate} for {ceiling(seen, message)} or less",
                message.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_11(seen: Seen) -> Result:
    """An image costs the declared amount, whatever its name and bytes."""
    exercised = False
    for node, message in _new_messages(seen):
        images = _images(seen, message)
        if images == 0 and not any(isinstance(part, Image) for part in message.parts):
            continue
        estimate = _estimate(seen.after, node)
        if not images <= estimate <= ceiling(seen, message):
            return Violated(
                f"expected {images} tokens for the images and at most {ceiling(seen, message)} in all, saw {estimate}",
                message.id,
            )
        exercised = True
    return HOLDS if exercised else None


def occ_12(seen: Seen) -> Result:
    """Inputs and outputs of tools count."""
    if seen.declaration.parameters.tokenizer:
        return None
    exercised = False
    for node, message in _new_messages(seen):
        floor = _floor(message, (ToolCall, ToolResult))
        if floor == 0:
            continue
        estimate = _estimate(seen.after, node)
        if estimate < floor:
            return Violated(
                f"expected {floor} tokens or more for calls and results, saw {estimate}", message.id
            )
        exercised = True
    return HOLDS if exercised else None
