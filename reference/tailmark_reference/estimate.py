"""What a message costs in a request, in tokens of the reference's own estimate.

The estimate is prudent and plain: a constant for each message, a constant for each part, and the text.
It adds up over parts and never falls when a part is added. Results that are preliminary cost nothing,
because they are never projected. Model and store share this one estimator; both take another.
"""

from collections.abc import Callable
from typing import assert_never

from attrs import frozen

from tailmark.identifiers import Tokens
from tailmark.messages import (
    Annotation,
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
    Tag,
    Text,
    ToolCall,
    ToolResult,
)


@frozen(kw_only=True)
class Costs:
    """The declared constants, in tokens, and how many ASCII characters make one."""

    per_message: int = 4
    per_part: int = 2
    per_image: int = 1000
    ascii_per_token: int = 4


COSTS = Costs()


def text_cost(text: str) -> int:
    """One token for four ASCII characters, rounded up, and one for each other character."""
    if text.isascii():
        ascii_count, other_count = len(text), 0
    else:
        ascii_count = len(text.encode("ascii", "ignore"))
        other_count = len(text) - ascii_count
    return -(-ascii_count // COSTS.ascii_per_token) + other_count


def _sent_texts(part: Part) -> tuple[str, ...]:
    match part:
        case Text():
            return (part.text,)
        case Reasoning():
            return (part.text,) if part.replayable else ()
        case ToolCall():
            return (part.name, part.input)
        case ToolResult():
            return (part.text,)
        case ApprovalRequest() | Image():
            return ()
        case File():
            return (part.name, part.media_type)
        case Reference():
            return (part.item_key, part.title, part.citation)
        case PdfPage():
            return (part.attachment,)
        case EpubLocation():
            return (part.href, part.cfi)
        case Annotation():
            return (part.annotation_key, part.text, part.comment, part.page, part.parent_item_key)
        case Collection():
            return (part.collection_id, part.label)
        case Tag():
            return (part.tag_id, part.label)
        case _:
            assert_never(part)


def part_cost(part: Part) -> int:
    """What one part adds to its message. A preliminary result adds nothing."""
    if isinstance(part, ToolResult) and part.preliminary:
        return 0
    fixed = COSTS.per_image if isinstance(part, Image) else 0
    return COSTS.per_part + fixed + sum(map(text_cost, _sent_texts(part)))


def estimate(message: Message) -> Tokens:
    """What a message costs where it is projected, without its preliminary results."""
    return Tokens(COSTS.per_message + sum(map(part_cost, message.parts)))


def estimate_summary(text: str) -> Tokens:
    """What a summary costs: a message with one text part."""
    return Tokens(COSTS.per_message + COSTS.per_part + text_cost(text))


@frozen(kw_only=True)
class Estimator:
    """The functions that model and store are given."""

    part: Callable[[Part], int] = part_cost
    message: Callable[[Message], Tokens] = estimate
    summary: Callable[[str], Tokens] = estimate_summary


ESTIMATOR = Estimator()
