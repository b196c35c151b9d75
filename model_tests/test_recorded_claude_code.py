"""The importer of Claude Code's sessions: parent links that branch where the conversation does not become one branch."""

import pytest

from recorded_logs import ClaudeLog, Run, run
from tailmark.identifiers import NodeId
from tailmark.messages import (
    AnswerEnd,
    File,
    Image,
    Reasoning,
    ResultStatus,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tailmark.operations import Abandon
from tailmark.plans import Trigger
from tailmark_conformance.recorded.claude_code import ClaudeCodeImporter
from tailmark_reference.estimate import estimate


def _run(log: ClaudeLog) -> Run:
    return run(ClaudeCodeImporter(), log.records)


def _calls(result: Run, node: str) -> list[str]:
    return [part.call for part in result.message(node).parts if isinstance(part, ToolCall)]


class TestOneAnswerInSeveralRecords:
    """Records that share ``message.id`` are one message, named after the first of them."""

    def test_they_are_merged(self) -> None:
        log = ClaudeLog()
        user = log.user()
        first = log.block("m1", {"type": "thinking", "thinking": "hm", "signature": "s"})
        log.progress()
        log.text("m1", "so")
        log.call("m1", "c1")
        answered = log.result("c1")
        end = log.text("m2")
        result = _run(log)
        assert result.branch() == (user, first, answered, end)
        assert [part.kind for part in result.message(first).parts] == ["reasoning", "text", "tool-call"]
        assert [part.id for part in result.message(first).parts] == ["p0", "p1", "p2"]
        assert result.nodes[NodeId(first)].estimate == estimate(result.message(first))
        tally = result.importer.tally
        assert (tally.messages, tally.tool_calls, tally.tool_results, tally.turns) == (4, 1, 1, 1)
        assert not result.findings

    def test_results_between_its_records_follow_it(self) -> None:
        log = ClaudeLog()
        user = log.user()
        first = log.call("m1", "c1")
        one = log.result("c1")
        log.call("m1", "c2")
        two = log.result("c2")
        end = log.text("m2")
        result = _run(log)
        assert result.branch() == (user, first, one, two, end)
        assert _calls(result, first) == ["c1", "c2"]
        assert not result.moves

    def test_the_last_usage_is_the_answers(self) -> None:
        log = ClaudeLog()
        log.user()
        first = log.text("m1")
        message = {"id": "m1", "role": "assistant", "content": [], "stop_reason": "end_turn"}
        usage = {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4}
        log.record("assistant", {"message": {**message, "usage": {**usage, "output_tokens": 99}}})
        answer = _run(log).message(first)
        assert answer.usage is not None
        assert (answer.usage.input, answer.usage.cached, answer.usage.output) == (7, 4, 99)
        assert answer.end is AnswerEnd.FINAL


class TestParallelCalls:
    """Results name the record of their call as parent. They stand one behind another, in the order of the file."""

    def test_results_out_of_order(self) -> None:
        log = ClaudeLog()
        user = log.user()
        first = log.call("m1", "c1")
        log.progress()
        second = log.call("m1", "c2")
        late = log.result("c2", parent=second)
        early = log.result("c1", parent=first)
        end = log.text("m2", parent=late)
        result = _run(log)
        assert result.branch() == (user, first, late, early, end)
        assert not result.moves
        assert result.importer.tally.branches == 1

    def test_text_typed_while_tools_run_belongs_to_the_turn(self) -> None:
        log = ClaudeLog()
        user = log.user()
        first = log.call("m1", "c1")
        second = log.call("m1", "c2")
        one = log.result("c1", parent=first)
        typed = log.user("also")
        two = log.result("c2", parent=second)
        end = log.text("m2", parent=typed)
        result = _run(log)
        assert result.branch() == (user, first, one, typed, two, end)
        assert result.importer.tally.turns == 1
        assert not result.moves

    def test_one_record_with_a_result_and_text_is_two_messages(self) -> None:
        log = ClaudeLog()
        user = log.user()
        first = log.call("m1", "c1")
        both = log.result("c1", said="stop")
        end = log.text("m2")
        result = _run(log)
        assert result.branch() == (user, first, both, f"{both}:said", end)
        assert result.message(both).role is Role.TOOL
        assert result.message(f"{both}:said").role is Role.USER

    def test_a_call_is_given_up_when_the_next_request_goes_out(self) -> None:
        log = ClaudeLog()
        log.user()
        log.call("m1", "c1")
        log.user("never mind")
        log.text("m2")
        result = _run(log)
        assert isinstance(result.operations[2], Abandon)
        assert [(call.line, call.call) for call in result.abandoned] == [(2, "c1")]
        assert result.importer.tally.turns == 2

    def test_calls_at_the_end_stay_open(self) -> None:
        log = ClaudeLog()
        log.user()
        log.call("m1", "c1")
        log.call("m1", "c2")
        log.result("c2")
        assert _run(log).importer.open_calls() == 1


class TestParts:
    """Content blocks become parts; what the vocabulary has no part for is kept as text."""

    def test_of_a_user(self) -> None:
        log = ClaudeLog()
        content = [
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "xx"}},
            {"type": "document", "title": "t.pdf", "source": {"media_type": "application/pdf"}},
            {"type": "new-kind"},
        ]
        user = log.record("user", {"message": {"role": "user", "content": content}})
        kinds = [type(part) for part in _run(log).message(user).parts]
        assert kinds == [Text, Image, File, Text]

    def test_of_an_answer(self) -> None:
        log = ClaudeLog()
        log.user()
        first = log.block("m1", {"type": "redacted_thinking", "data": "xx"})
        log.block("m1", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})
        log.block("m1", {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})
        log.block("m1", {"type": "new-kind"})
        result = _run(log)
        assert [type(part) for part in result.message(first).parts] == [Reasoning, ToolCall, ToolResult, Text]
        assert result.importer.open_calls() == 0
        assert (result.importer.tally.tool_calls, result.importer.tally.tool_results) == (1, 1)

    def test_a_failed_result_is_an_error(self) -> None:
        log = ClaudeLog()
        log.user()
        log.call("m1", "c1")
        block = {
            "type": "tool_result",
            "tool_use_id": "c1",
            "is_error": True,
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        }
        node = log.record("user", {"message": {"role": "user", "content": [block]}})
        (part,) = _run(log).message(node).parts
        assert isinstance(part, ToolResult)
        assert (part.status, part.text) == (ResultStatus.ERROR, "a\nb")

    def test_an_error_of_the_interface_is_a_failed_answer(self) -> None:
        log = ClaudeLog()
        log.user()
        node = log.block("m1", {"type": "text", "text": "overloaded"}, isApiErrorMessage=True)
        assert _run(log).message(node).end is AnswerEnd.FAILED


class TestCompaction:
    """A boundary and its summary are one checkpoint behind the boundary's logical parent."""

    @pytest.mark.parametrize(
        ("logged", "trigger"), [("auto", Trigger.AUTOMATIC), ("manual", Trigger.MANUAL), ("other", None)]
    )
    def test_a_checkpoint(self, logged: str, trigger: Trigger | None) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        boundary = log.boundary(trigger=logged)
        log.summary("short")
        log.progress()
        after = log.text("m2")
        result = _run(log)
        assert result.branch() == (user, answer, boundary, after)
        (facts,) = result.checkpoints
        assert (facts.line, facts.node, facts.parent, facts.place) == (3, boundary, answer, None)
        assert (facts.trigger, facts.tokens_before) == (trigger, 1000)
        assert (facts.kept_messages, facts.excluded_messages, facts.refresh) == (0, 2, False)
        assert facts.estimated_after == facts.summary_tokens
        assert result.stored_checkpoint(boundary).summary == "short"
        assert not result.findings
        assert not result.moves

    def test_a_logical_parent_that_does_not_exist(self) -> None:
        log = ClaudeLog()
        log.user()
        answer = log.text("m1")
        boundary = log.boundary(logical="gone")
        log.summary()
        log.text("m2")
        result = _run(log)
        (finding,) = result.findings
        assert (finding.clause, finding.line, finding.node) == ("DMG-1", 3, boundary)
        assert finding.text.startswith(
            "names a logical parent that does not exist, gone; it is taken to follow"
        )
        assert result.checkpoints[0].parent == answer

    def test_a_boundary_without_a_logical_parent_follows_the_end(self) -> None:
        log = ClaudeLog()
        log.user()
        answer = log.text("m1")
        log.boundary(logical=None)
        log.summary()
        result = _run(log)
        assert result.checkpoints[0].parent == answer
        assert not result.findings

    def test_calls_open_at_the_boundary_are_named(self) -> None:
        log = ClaudeLog()
        log.user()
        log.call("m1", "c1")
        log.boundary()
        log.summary()
        result = _run(log)
        assert result.checkpoints[0].open_calls == ("c1",)

    def test_a_summary_without_a_boundary_is_the_checkpoint(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        summary = log.summary()
        after = log.user()
        result = _run(log)
        assert result.branch() == (user, answer, summary, after)
        assert result.checkpoints[0].trigger is None

    @pytest.mark.parametrize("more", [True, False])
    def test_a_boundary_without_a_summary_is_damage(self, more: bool) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        boundary = log.boundary()
        branch: tuple[str, ...] = (user, answer)
        if more:
            log.progress()
            branch += (log.user(), log.text("m2"))
        result = _run(log)
        (finding,) = result.findings
        assert (finding.line, finding.node) == (3, boundary)
        assert finding.text == "no summary follows a checkpoint; this checkpoint is not judged"
        assert result.branch() == branch

    def test_going_back_to_a_damaged_checkpoint_goes_to_the_message_before_it(self) -> None:
        log = ClaudeLog()
        log.user()
        answer = log.text("m1")
        boundary = log.boundary()
        log.user("one")
        log.text("m2")
        other = log.user("two", parent=boundary)
        result = _run(log)
        assert result.branch()[-2:] == (answer, other)
        assert result.moves == (answer,)

    def test_a_preserved_segment_is_kept(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        kept, tail = log.user(), log.text("m2")
        boundary = log.boundary(preservedSegment={"headUuid": kept, "tailUuid": tail})
        log.summary()
        after = log.user(parent=tail)
        result = _run(log)
        assert result.checkpoints[0].place == kept
        assert result.checkpoints[0].kept_messages == 2
        assert result.branch() == (user, answer, kept, tail, boundary, after)
        assert not result.moves

    def test_a_preserved_segment_that_does_not_exist(self) -> None:
        log = ClaudeLog()
        log.user()
        log.boundary(preservedSegment={"headUuid": "gone"})
        log.summary()
        result = _run(log)
        assert result.findings[0].text.startswith("the first kept record gone does not exist")


class TestGoingBack:
    """A parent that is not the end means that somebody went back. The log does not say by which operation."""

    def test_to_an_earlier_answer(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        log.user("left")
        log.text("m2")
        other = log.user("instead", parent=answer)
        result = _run(log)
        assert result.branch() == (user, answer, other)
        assert result.moves == (answer,)
        assert result.importer.tally.branches == 2

    def test_to_the_root(self) -> None:
        log = ClaudeLog()
        log.user()
        log.text("m1")
        other = log.user("anew", parent=None)
        result = _run(log)
        assert result.branch() == (other,)
        assert result.moves == (None,)

    def test_before_a_checkpoint(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        log.boundary()
        log.summary()
        log.user()
        other = log.user("instead", parent=answer)
        result = _run(log)
        assert result.branch() == (user, answer, other)

    def test_a_record_of_a_hook_moves_nothing(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        log.progress(parent=user)
        after = log.user(parent=answer)
        result = _run(log)
        assert result.branch() == (user, answer, after)
        assert not result.moves


class TestSubagents:
    """Records of a subagent are a conversation of their own."""

    @staticmethod
    def _side(log: ClaudeLog, start: int) -> None:
        log.records[start:] = [{**record, "isSidechain": True} for record in log.records[start:]]

    def test_inside_a_session(self) -> None:
        log = ClaudeLog()
        user, call = log.user(), log.call("m1", "c1")
        inner_user, inner_answer = log.user("task", parent=None), log.text("m2")
        self._side(log, 2)
        done = log.result("c1", parent=call)
        end = log.text("m3")
        result = _run(log)
        assert result.branch(end) == (user, call, done, end)
        assert result.branch(inner_answer) == (inner_user, inner_answer)
        assert (result.importer.tally.sessions, result.importer.tally.branches) == (2, 2)
        assert not result.moves
        assert not result.findings

    def test_that_names_a_parent_in_the_session_begins_anew(self) -> None:
        log = ClaudeLog()
        log.user()
        log.call("m1", "c1")
        inner = log.user("task")
        self._side(log, 2)
        assert _run(log).branch(inner) == (inner,)

    def test_in_a_file_of_its_own(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        self._side(log, 0)
        result = _run(log)
        assert result.branch() == (user, answer)
        assert result.importer.tally.sessions == 1


class TestDamage:
    """What is wrong with ids and links is named, and the rest goes on."""

    def test_a_missing_parent(self) -> None:
        log = ClaudeLog()
        user, answer = log.user(), log.text("m1")
        orphan = log.user(parent="gone")
        result = _run(log)
        (finding,) = result.findings
        assert (finding.clause, finding.line, finding.node) == ("DMG-1", 3, orphan)
        assert finding.text == (
            "names a parent that does not exist, gone; it is taken to follow the record before it"
        )
        assert result.branch() == (user, answer, orphan)

    def test_a_missing_parent_that_a_bad_line_may_have_held(self) -> None:
        log = ClaudeLog()
        log.user(parent="gone")
        importer = ClaudeCodeImporter()
        importer.lost_line(1)
        found = [*importer.feed(2, log.records[0]), *importer.finish()]
        texts = [one.text for one in found if hasattr(one, "text")]
        assert "gone, unless it stood on line 1, which could not be read" in texts[0]

    def test_a_parent_that_stands_later(self) -> None:
        log = ClaudeLog()
        log.user()
        log.user(parent="later")
        log.record("progress", {}, parent=None, uuid="later")
        (finding,) = _run(log).findings
        assert finding.text.startswith("the parent later stands later in the file")
        assert finding.line == 2

    def test_a_cycle(self) -> None:
        log = ClaudeLog()
        first = log.user(parent="u3")
        log.text("m1")
        last = log.user()
        assert last == "u3"
        result = _run(log)
        (finding,) = result.findings
        assert finding.text.startswith("a cycle: the parent u3 descends from this record")
        assert (finding.line, finding.node) == (1, first)
        assert len(result.branch()) == 3

    def test_a_record_that_is_its_own_parent(self) -> None:
        log = ClaudeLog()
        log.record("user", {"message": {"role": "user", "content": "x"}}, parent="self", uuid="self")
        (finding,) = _run(log).findings
        assert finding.text.startswith("a cycle")

    def test_a_duplicate_id(self) -> None:
        log = ClaudeLog()
        user = log.user()
        answer = log.text("m1")
        log.records.append(log.records[0])
        result = _run(log)
        (finding,) = result.findings
        assert (finding.line, finding.node) == (3, user)
        assert finding.text.startswith("a duplicate id")
        assert result.branch() == (user, answer)

    def test_a_dangling_result(self) -> None:
        log = ClaudeLog()
        log.user()
        answer = log.call("m1", "c1")
        node = log.result("c1", "c9")
        lone = log.result("c8")
        end = log.text("m2")
        result = _run(log)
        assert [(finding.line, finding.node) for finding in result.findings] == [(3, node), (4, lone)]
        assert result.results(node) == ("c1",)
        assert result.branch()[-3:] == (answer, node, end)

    def test_records_without_an_id_or_a_message(self) -> None:
        log = ClaudeLog()
        log.user()
        log.record("assistant", {})
        log.records.append({"type": "user", "parentUuid": None, "message": {"content": "x"}})
        log.records.append({"type": "file-history-snapshot", "messageId": "x"})
        result = _run(log)
        assert [finding.text.split(":")[0] for finding in result.findings] == ["an invalid message"] * 2
        assert result.importer.tally.messages == 1
