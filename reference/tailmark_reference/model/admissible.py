"""Which figures of another implementation the model admits: budgets, and estimates of messages (CAP, OCC-8 to OCC-12).

An implementation has its own shares and its own estimator. What is asked here is whether they keep within what
the specification leaves open.
"""

from tailmark.budgets import Budgets, Model, SettingName, Settings, WrongSetting
from tailmark.declarations import Parameters
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
from tailmark.plans import Checkpoint


def budgets_fault(model: Model, settings: Settings, budgets: Budgets) -> str | None:
    """What is wrong with the budgets of a model under settings; ``None`` if they are allowed."""
    figures = (
        ("window", model.window, budgets.window),
        ("overhead", settings.overhead, budgets.overhead),
        ("safe limit", budgets.window - budgets.reserve, budgets.safe),
    )
    for name, wanted, seen in figures:
        if wanted != seen:
            return f"the {name} is {wanted}, saw {seen}"
    tail = budgets.tail
    if not 0 < budgets.reserve < budgets.window or budgets.summary < 1 or tail == 0:
        return "reserve, summary and tail budget are 1 or more, and the reserve is below the window"
    if budgets.summary > min(budgets.reserve, model.max_output):
        return f"the summary budget is at most the reserve and the output, saw {budgets.summary}"
    if not 0 < budgets.threshold <= budgets.safe:
        return f"the threshold is at most the safe limit, saw {budgets.threshold}"
    room = budgets.threshold - budgets.overhead - budgets.summary - (tail or 0)
    if budgets.margin > max(0, room):
        return f"the margin is at most {max(0, room)}, saw {budgets.margin}"
    if budgets.margin == 0 and room > 0:
        return f"there is room for a margin of {room}, saw none"
    return _setting_fault(settings, budgets)


def _setting_fault(settings: Settings, budgets: Budgets) -> str | None:
    wishes = (
        (SettingName.RESERVE, settings.reserve, budgets.reserve),
        (SettingName.THRESHOLD, settings.threshold, budgets.threshold),
        (SettingName.TAIL, settings.tail, budgets.tail),
    )
    for name, wish, seen in wishes:
        if wish is not None and wish != seen and name not in budgets.scaled:
            return f"the {name} was set to {wish}, saw {seen}, and not that it was scaled"
        if wish is None and name in budgets.scaled:
            return f"the {name} was not set, saw that it was scaled"
    return None


def names_a_wish(settings: Settings, wrong: WrongSetting) -> bool:
    """Whether a figure that is named as wrong was set."""
    wishes = {
        SettingName.RESERVE: settings.reserve,
        SettingName.THRESHOLD: settings.threshold,
        SettingName.TAIL: settings.tail,
    }
    return wishes.get(wrong.setting) == wrong.figure


def monotone_fault(
    model: Model, settings: Settings, budgets: Budgets, known: dict[tuple[Model, Settings], Budgets]
) -> str | None:
    """In what budgets shrink against those of a smaller window, all else equal (CAP-3); ``None`` if in nothing."""
    for (other, others_settings), theirs in known.items():
        if others_settings != settings or (other.name, other.max_output) != (model.name, model.max_output):
            continue
        if theirs.scaled or budgets.scaled or other.window == model.window:
            continue
        small, large = (theirs, budgets) if other.window < model.window else (budgets, theirs)
        for name in ("reserve", "safe", "threshold", "tail"):
            if (getattr(small, name) or 0) > (getattr(large, name) or 0) > 0:
                return f"the {name} does not shrink when the window grows to {large.window}"
    return None


def _texts(part: Part) -> tuple[str, ...]:
    """The texts that a part is certain to send."""
    match part:
        case Text() | ToolResult():
            return (part.text,)
        case Reasoning():
            return (part.text,) if part.replayable else ()
        case ToolCall():
            return (part.name, part.input)
        case Reference():
            return (part.title, part.citation)
        case Annotation():
            return (part.text, part.comment)
        case _:
            return ()


def _all_texts(part: Part) -> tuple[str, ...]:
    """The texts that a part may send."""
    match part:
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
        case ApprovalRequest():
            return ()
        case _:
            return _texts(part)


def _floor(text: str) -> int:
    ascii_count = sum(character.isascii() for character in text)
    dense = sum(_is_dense(character) for character in text)
    return -(-ascii_count // 4) + dense


def _is_dense(character: str) -> bool:
    """Chinese, Japanese and Korean characters cost a token each at least."""
    code = ord(character)
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3


def least_cost(part: Part) -> int:
    """The fewest tokens that a part's texts may be said to cost (OCC-9, OCC-12)."""
    return sum(map(_floor, _texts(part)))


def summary_fault(checkpoint: Checkpoint, estimate: Tokens, parameters: Parameters) -> str | None:
    """What is wrong with what a summary is said to cost; ``None`` if it is allowed (OCC-9)."""
    floor = _floor(checkpoint.summary)
    if parameters.tokenizer or estimate >= floor:
        return None
    return f"the summary of {checkpoint.id} costs {floor} or more, saw {estimate}"


def estimate_fault(message: Message, estimate: Tokens, parameters: Parameters) -> str | None:
    """What is wrong with what a message is said to cost; ``None`` if it is allowed (OCC-9 to OCC-12)."""
    sent = [part for part in message.parts if not (isinstance(part, ToolResult) and part.preliminary)]
    images = sum(isinstance(part, Image) for part in sent) * parameters.per_image
    floor = images + sum(_floor(text) for part in sent for text in _texts(part))
    if not parameters.tokenizer and estimate < floor:
        return f"{message.id} costs {floor} or more, saw {estimate}"
    constants = parameters.per_message + parameters.per_part * len(sent)
    ceiling = images + constants + sum(len(text.encode()) for part in sent for text in _all_texts(part))
    if estimate > ceiling:
        return f"{message.id} costs {ceiling} or less, saw {estimate}"
    return None
