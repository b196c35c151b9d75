"""The importer of pi's format 1: a list of entries becomes a branch, and calls that were left get their results."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recorded_logs import (
    HEADER,
    Fields,
    Run,
    pi_answer,
    pi_compaction,
    pi_result,
    pi_user,
    run,
)
from tailmark.identifiers import ModelName, NodeId
from tailmark.messages import (
    AnswerEnd,
    Image,
    Message,
    Reasoning,
    ResultStatus,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.operations import Abandon, Append, CommitCompaction
from tailmark_conformance.recorded.pi import PiImporter
from tailmark_conformance.recorded.records import KEPT_TEXT
from tailmark_reference.estimate import COSTS, estimate, estimate_summary

_SETTINGS = settings(derandomize=True, deadline=None, max_examples=200)


def _run(*entries: Fields) -> Run:
    return run(PiImporter(), [HEADER, *entries])


def _kinds(result: Run) -> list[str]:
    return [operation.kind for operation in result.operations]


class TestMessages:
    """Each message follows the one before it and is named after its entry."""

    def test_a_turn_with_a_call(self) -> None:
        result = _run(pi_user(), pi_answer("c1"), pi_result("c1"), pi_answer())
        assert result.branch() == ("entry:1", "entry:2", "entry:3", "entry:4")
        assert [result.message(node).role for node in result.branch()] == [
            Role.USER,
            Role.ASSISTANT,
            Role.TOOL,
            Role.ASSISTANT,
        ]
        assert (result.message("entry:2").end, result.message("entry:4").end) == (None, AnswerEnd.FINAL)
        tally = result.importer.tally
        assert (tally.messages, tally.tool_calls, tally.tool_results, tally.turns) == (4, 1, 1, 1)
        assert (tally.branches, tally.sessions, tally.other_records) == (1, 1, 1)
        assert result.importer.open_calls() == 0
        assert not result.findings

    def test_settings_are_no_messages_and_change_the_model(self) -> None:
        result = _run(
            pi_user(),
            {"type": "thinking_level_change", "thinkingLevel": "high"},
            {"type": "model_change", "modelId": "m2"},
            pi_answer(),
        )
        assert result.branch() == ("entry:1", "entry:4")
        assert result.steps[0].step.change.sessions[0].model.name == ModelName("m1")
        assert result.steps[1].step.change.sessions[0].model.name == ModelName("m2")

    def test_a_command_of_the_user_is_what_the_user_says(self) -> None:
        command = {"role": "bashExecution", "command": "ls", "output": "a b", "exitCode": 0}
        result = _run({"type": "message", "message": command}, pi_answer())
        assert result.message("entry:1").role is Role.USER
        assert result.message("entry:1").parts[0] == Text(
            id=result.message("entry:1").parts[0].id, text="ls\na b"
        )

    def test_parts_of_every_kind(self) -> None:
        answer = {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "why", "thinkingSignature": "signed"},
                {"type": "thinking", "thinking": "why", "thinkingSignature": ""},
                {"type": "text", "text": "so"},
                {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "é"}},
                {"type": "new-kind", "x": 1},
            ],
            "model": "m9",
            "stopReason": "toolUse",
            "usage": {"input": 10, "cacheRead": 20, "cacheWrite": 30, "output": 7},
        }
        user = {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "xx", "mimeType": "image/png"},
            ],
        }
        result = _run({"type": "message", "message": user}, {"type": "message", "message": answer})
        image = result.message("entry:1").parts[1]
        assert isinstance(image, Image)
        assert (image.media_type, image.data) == ("image/png", "")
        first, second, text, call, other = result.message("entry:2").parts
        assert isinstance(first, Reasoning)
        assert isinstance(second, Reasoning)
        assert (first.replayable, second.replayable) == (True, False)
        assert isinstance(text, Text)
        assert isinstance(call, ToolCall)
        assert call.input == '{"path":"é"}'
        assert isinstance(other, Text)
        usage = result.message("entry:2").usage
        assert usage is not None
        assert (usage.input, usage.cached, usage.output, usage.model) == (60, 20, 7, "m9")

    def test_the_estimate_is_of_the_whole_text_and_the_stored_text_is_short(self) -> None:
        whole = "x" * 10_000
        result = _run(pi_user(whole))
        node = result.nodes[NodeId("entry:1")]
        (part,) = result.message("entry:1").parts
        assert isinstance(part, Text)
        assert len(part.text) == KEPT_TEXT
        assert node.estimate == estimate(
            Message(id=NodeId("n"), role=Role.USER, parts=(Text(id=part.id, text=whole),))
        )

    def test_an_image_in_a_result_costs_what_an_image_costs(self) -> None:
        plain, pictured = pi_result("c1"), pi_result("c1")
        message = cast("dict[str, list[Fields]]", pictured["message"])
        message["content"].append({"type": "image", "data": "xx", "mimeType": "image/png"})
        estimates = [
            _run(pi_user(), pi_answer("c1"), one).nodes[NodeId("entry:3")].estimate
            for one in (plain, pictured)
        ]
        assert estimates[1] - estimates[0] == COSTS.per_image


class TestCallsWithoutResult:
    """An answer that was ended, or a request that went out, leaves no call open."""

    @pytest.mark.parametrize("stop", ["aborted", "error"])
    def test_an_answer_that_was_ended_abandons_its_calls(self, stop: str) -> None:
        result = _run(pi_user(), pi_answer("c1", "c2", stop=stop), pi_user())
        results = [part for part in result.message("entry:2").parts if isinstance(part, ToolResult)]
        assert [(part.call, part.status) for part in results] == [
            ("c1", ResultStatus.ABANDONED),
            ("c2", ResultStatus.ABANDONED),
        ]
        assert [(call.line, call.call) for call in result.abandoned] == [(3, "c1"), (3, "c2")]
        assert _kinds(result) == ["append", "append", "append"]
        assert result.importer.tally.turns == 2

    def test_a_call_is_given_up_when_the_next_request_goes_out(self) -> None:
        result = _run(pi_user(), pi_answer("c1", "c2"), pi_result("c1"), pi_user(), pi_answer())
        assert _kinds(result) == ["append", "append", "append", "abandon", "append", "append"]
        given_up = result.branch()[3]
        assert result.results(given_up) == ("c2",)
        assert result.branch() == ("entry:1", "entry:2", "entry:3", given_up, "entry:4", "entry:5")
        assert isinstance(result.operations[3], Abandon)
        assert result.importer.tally.turns == 2
        assert result.importer.tally.messages == 5

    def test_a_user_message_before_the_result_belongs_to_the_running_turn(self) -> None:
        result = _run(pi_user(), pi_answer("c1"), pi_user("steering"), pi_result("c1"), pi_answer())
        assert _kinds(result) == ["append"] * 5
        assert result.branch() == tuple(f"entry:{index}" for index in range(1, 6))
        assert result.importer.tally.turns == 1
        assert not result.abandoned

    def test_calls_at_the_end_of_the_file_stay_open(self) -> None:
        result = _run(pi_user(), pi_answer("c1"), pi_user("waiting"))
        assert result.importer.open_calls() == 1
        assert result.branch()[-1] == "entry:3"
        assert not result.abandoned

    def test_a_second_result_goes_into_the_trace_to_be_judged(self) -> None:
        result = _run(pi_user(), pi_answer("c1"), pi_result("c1"), pi_result("c1"))
        assert isinstance(result.operations[-1], Append)
        assert result.branch()[-1] == "entry:4"
        assert not result.findings


class TestCheckpoints:
    """A compaction entry becomes a commit behind the leaf, with the place that its index names."""

    def test_sizes_and_counts(self) -> None:
        entries = [pi_user("a" * 400), pi_answer(text="b" * 400), pi_user("c" * 40), pi_answer(text="d" * 40)]
        result = _run(*entries, pi_compaction(3), pi_user(), pi_answer(), pi_compaction(6, "s" * 80))
        sizes = {node: result.nodes[NodeId(node)].estimate for node in result.branch()}
        first, second = result.checkpoints
        assert (first.line, first.node, first.parent) == (6, "entry:5", "entry:4")
        assert (first.place, first.place_line, first.previous_place) == ("entry:3", 4, None)
        assert (first.trigger, first.tokens_before) == (None, 1000)
        assert first.estimated_before == sum(sizes[f"entry:{index}"] for index in range(1, 5))
        assert first.kept_tokens == sizes["entry:3"] + sizes["entry:4"]
        assert first.estimated_after == first.kept_tokens + estimate_summary("summary")
        assert (first.kept_messages, first.excluded_messages) == (2, 2)
        assert (first.open_calls, first.refresh, first.damaged) == ((), False, False)
        assert (second.place, second.previous_place) == ("entry:6", "entry:3")
        assert second.estimated_before == estimate_summary("summary") + sum(
            sizes[f"entry:{index}"] for index in (3, 4, 6, 7)
        )
        assert second.summary_tokens == estimate_summary("s" * 80)
        assert (second.kept_messages, second.excluded_messages) == (2, 2)

    def test_what_is_written_down(self) -> None:
        result = _run(pi_user(), pi_answer(), pi_user(), pi_answer(), pi_compaction(3))
        operation = result.operations[-1]
        assert isinstance(operation, CommitCompaction)
        assert operation.plan.excluded == ("entry:1", "entry:2")
        stored = result.stored_checkpoint("entry:5")
        assert (stored.first_kept, stored.previous, stored.old_first_kept) == ("entry:3", None, None)
        assert (stored.first_excluded, stored.last_excluded) == ("entry:1", "entry:2")
        assert result.branch()[-1] == "entry:5"

    def test_an_index_of_a_setting_means_the_message_behind_it(self) -> None:
        result = _run(
            pi_user(), pi_answer(), {"type": "model_change", "modelId": "m2"}, pi_user(), pi_compaction(3)
        )
        assert result.checkpoints[0].place == "entry:4"

    def test_an_index_behind_the_last_message_keeps_nothing(self) -> None:
        result = _run(pi_user(), pi_answer(), {"type": "model_change", "modelId": "m2"}, pi_compaction(3))
        (facts,) = result.checkpoints
        assert (facts.place, facts.kept_messages, facts.kept_tokens) == (None, 0, 0)
        assert facts.estimated_after == facts.summary_tokens

    def test_the_same_place_again_is_a_refresh(self) -> None:
        result = _run(
            pi_user(), pi_answer(), pi_user(), pi_answer(), pi_compaction(3), pi_user(), pi_compaction(3)
        )
        assert [facts.refresh for facts in result.checkpoints] == [False, True]
        assert result.checkpoints[1].excluded_messages == 0

    def test_open_calls_are_named(self) -> None:
        result = _run(pi_user(), pi_answer(), pi_user(), pi_answer("c1"), pi_compaction(3))
        assert result.checkpoints[0].open_calls == ("c1",)

    @pytest.mark.parametrize(
        ("entry", "text"),
        [
            (pi_compaction(3), "the first kept index 3 is not before the checkpoint's own, 3"),
            (pi_compaction(10**6), "the first kept index 1000000 is not before the checkpoint's own, 3"),
            (pi_compaction(-1), "a checkpoint does not say where the kept messages begin"),
            (pi_compaction(True), "a checkpoint does not say where the kept messages begin"),
            (pi_compaction("1"), "a checkpoint does not say where the kept messages begin"),
            ({"type": "compaction", "firstKeptEntryIndex": 1}, "a checkpoint has no summary"),
        ],
    )
    def test_a_damaged_checkpoint_is_named_and_not_judged(self, entry: Fields, text: str) -> None:
        result = _run(pi_user(), pi_answer(), entry, pi_user())
        (finding,) = result.findings
        assert (finding.clause, finding.line, finding.node) == ("DMG-1", 4, "entry:3")
        assert finding.text == f"{text}; this checkpoint is not judged"
        assert result.checkpoints[0].damaged
        assert _kinds(result) == ["append"] * 3

    def test_a_checkpoint_before_every_message_is_damage(self) -> None:
        result = _run(pi_compaction(0), pi_user())
        assert result.findings[0].text.startswith("a checkpoint stands before every message")


class TestDamage:
    """What cannot be part of the branch is named and left out."""

    def test_a_dangling_result(self) -> None:
        result = _run(pi_user(), pi_result("c1"), pi_answer())
        (finding,) = result.findings
        assert (finding.clause, finding.line, finding.node) == ("DMG-1", 3, "entry:2")
        assert finding.text.startswith("a dangling result: no call c1 stands before it")
        assert result.branch() == ("entry:1", "entry:3")
        assert result.importer.tally.tool_results == 1

    def test_an_unknown_role(self) -> None:
        result = _run(pi_user(), {"type": "message", "message": {"role": "ghost"}}, {"type": "message"})
        assert [finding.text for finding in result.findings] == [
            "an invalid message: the role 'ghost' is not known; it is left out of the branch",
            "an invalid message: it has no role; it is left out of the branch",
        ]

    def test_a_missing_and_a_second_header(self) -> None:
        result = run(PiImporter(), [pi_user(), HEADER, pi_answer()])
        assert [(finding.line, finding.text[:28]) for finding in result.findings] == [
            (1, "the session header is missin"),
            (2, "a second session header stan"),
        ]
        assert result.branch() == ("entry:0", "entry:2")


_ENTRIES = st.lists(
    st.one_of(
        st.builds(pi_user, st.text(max_size=20)),
        st.builds(
            lambda calls, stop: pi_answer(*calls, stop=stop),
            st.lists(st.sampled_from(["c1", "c2", "c3"]), max_size=2, unique=True),
            st.sampled_from([None, None, "aborted"]),
        ),
        st.builds(pi_result, st.sampled_from(["c1", "c2", "c3"])),
        st.builds(pi_compaction, st.integers(0, 12)),
        st.just({"type": "model_change", "modelId": "m2"}),
    ),
    max_size=25,
)


@_SETTINGS
@given(entries=_ENTRIES)
def test_the_branch_holds_every_message_once_in_the_order_of_the_file(entries: Sequence[Fields]) -> None:
    result = _run(*entries)
    dropped = {finding.node for finding in result.findings}
    expected = [
        f"entry:{index}"
        for index, entry in enumerate(entries, 1)
        if entry["type"] in ("message", "compaction") and f"entry:{index}" not in dropped
    ]
    branch = result.branch() if result.steps else ()
    assert [node for node in branch if node.startswith("entry:")] == expected
    for before, after in pairwise(branch):
        assert result.nodes[NodeId(after)].parent == before
    assert result.importer.tally.branches == min(1, len(branch))


@_SETTINGS
@given(entries=_ENTRIES)
def test_no_request_goes_out_while_a_call_is_open(entries: Sequence[Fields]) -> None:
    result = _run(*entries)
    open_calls: list[str] = []
    for node in result.branch() if result.steps else ():
        content = result.nodes[NodeId(node)].content
        if not isinstance(content, Message):
            continue
        if content.role is Role.ASSISTANT:
            assert not open_calls
        for part in content.parts:
            if isinstance(part, ToolCall):
                open_calls.append(part.call)
            elif isinstance(part, ToolResult) and part.call in open_calls:
                open_calls.remove(part.call)
    assert result.importer.open_calls() == len(open_calls)


@_SETTINGS
@given(entries=_ENTRIES)
def test_the_figures_of_a_checkpoint_are_those_of_a_plain_count(entries: Sequence[Fields]) -> None:
    result = _run(*entries)
    nodes = result.nodes
    for facts in result.checkpoints:
        if facts.damaged:
            continue
        path = [
            node for node in result.branch(facts.parent) if isinstance(nodes[NodeId(node)].content, Message)
        ]
        place = path.index(facts.place) if facts.place is not None else len(path)
        assert facts.kept_messages == len(path) - place
        assert facts.kept_tokens == sum(nodes[NodeId(node)].estimate for node in path[place:])
        assert facts.estimated_after - facts.kept_tokens == facts.summary_tokens
        stored = result.stored_checkpoint(facts.node)
        old = path.index(stored.old_first_kept) if stored.old_first_kept is not None else 0
        if stored.previous is None or stored.old_first_kept is not None:
            assert facts.excluded_messages == max(0, place - old)
