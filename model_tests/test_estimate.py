"""The reference's own estimate: prudent, additive, blind to what is not sent."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tailmark.identifiers import NodeId, PartId
from tailmark.messages import (
    ApprovalRequest,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark_reference.estimate import COSTS, estimate, estimate_summary, text_cost
from vocabulary import TEXTS, values


@given(TEXTS | st.text("a9 é漢語", max_size=50))
def test_text_costs_within_its_bounds(text: str) -> None:
    """OCC-9: one token for four ASCII characters, one for each other, never more than its bytes."""
    cost = text_cost(text)
    ascii_count = sum(character.isascii() for character in text)
    assert cost >= ascii_count / COSTS.ascii_per_token + len(text) - ascii_count
    assert cost <= len(text.encode())


@given(st.lists(values(Part), max_size=4))
def test_it_adds_up_over_parts(parts: list[Part]) -> None:
    """OCC-8: whatever stands beside a part, it costs the same, and nothing costs less than nothing."""

    def cost(*some: Part) -> int:
        return estimate(Message(id=NodeId("m"), role=Role.ASSISTANT, parts=some)) - COSTS.per_message

    assert cost(*parts) == sum(cost(part) for part in parts)
    assert all(cost(part) >= 0 for part in parts)


def _cost(part: Part) -> int:
    return estimate(Message(id=NodeId("m"), role=Role.ASSISTANT, parts=(part,))) - COSTS.per_message


@given(values(Image), TEXTS)
def test_an_image_costs_the_same_whatever_it_is_called(image: Image, words: str) -> None:
    """OCC-11."""
    assert _cost(image) == _cost(evolve(image, name=words, data=words)) == COSTS.per_image + COSTS.per_part


@given(values(Reasoning))
def test_reasoning_counts_where_it_is_sent(reasoning: Reasoning) -> None:
    """OCC-10."""
    sent = evolve(reasoning, replayable=True)
    assert _cost(sent) == COSTS.per_part + text_cost(reasoning.text)
    assert _cost(evolve(reasoning, replayable=False)) == COSTS.per_part


@given(values(ToolCall), values(ToolResult), values(ApprovalRequest))
def test_tools_count(call: ToolCall, result: ToolResult, request: ApprovalRequest) -> None:
    """OCC-12; a preliminary result is never sent, and asking the user is not the model's business."""
    assert _cost(call) == COSTS.per_part + text_cost(call.name) + text_cost(call.input)
    assert _cost(evolve(result, preliminary=False)) == COSTS.per_part + text_cost(result.text)
    assert _cost(evolve(result, preliminary=True)) == 0
    assert _cost(request) == COSTS.per_part


@given(TEXTS)
def test_a_summary_costs_what_a_message_of_its_text_does(text: str) -> None:
    """OCC-14: sizes before and after compare."""
    message = Message(id=NodeId("m"), role=Role.USER, parts=(Text(id=PartId("p"), text=text),))
    assert estimate_summary(text) == estimate(message)
