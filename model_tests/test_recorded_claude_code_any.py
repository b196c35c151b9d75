"""Properties of the importer of Claude Code's sessions, over generated conversations and over records that make no sense."""

from collections.abc import Sequence

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from recorded_logs import ClaudeLog, Fields, Run, run
from tailmark.identifiers import NodeId
from tailmark.messages import ToolCall
from tailmark_conformance.recorded.claude_code import ClaudeCodeImporter

_SETTINGS = settings(derandomize=True, deadline=None, max_examples=200)


def _calls(result: Run, node: str) -> list[str]:
    return [part.call for part in result.message(node).parts if isinstance(part, ToolCall)]


@frozen
class _Turn:
    """A turn: for each answer the ids of its calls, and how the records are interleaved."""

    answers: tuple[tuple[str, ...], ...]
    shuffle: tuple[int, ...]


_CALLS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True).map(tuple)
_TURNS = st.lists(
    st.builds(
        _Turn,
        st.lists(_CALLS, min_size=1, max_size=3).map(tuple),
        st.lists(st.integers(0, 5), min_size=12, max_size=12).map(tuple),
    ),
    min_size=1,
    max_size=4,
)


def _conversation(turns: Sequence[_Turn]) -> tuple[list[Fields], list[str], list[tuple[str, list[str]]]]:
    """A log of these turns, the branch that it tells of, and the calls of each answer.

    Every call has its own record and every result the record of its call as its parent. ``shuffle`` decides which of the
    next record of the answer, a result that is due and a hook's record comes next.
    """
    log = ClaudeLog()
    branch: list[str] = []
    answers: list[tuple[str, list[str]]] = []
    for number, turn in enumerate(turns):
        branch.append(log.user())
        for index, calls in enumerate(turn.answers):
            api_id = f"m{number}.{index}"
            first = log.text(api_id)
            branch.append(first)
            names = [f"{api_id}.{call}" for call in calls]
            answers.append((first, names))
            to_make, due = list(names), list[tuple[str, str]]()
            results: list[str] = []
            shuffle = list(turn.shuffle)
            above = first
            while to_make or due:
                choice = shuffle.pop() if shuffle else 0
                if choice == 5:
                    above = log.progress(parent=above)
                elif to_make and (choice % 2 == 0 or not due):
                    name = to_make.pop(0)
                    above = log.call(api_id, name, parent=above)
                    due.append((name, above))
                else:
                    name, made = due.pop(choice % len(due))
                    result = log.result(name, parent=made)
                    results.append(result)
                    above = result if not to_make else above
            branch += results
            log.last = results[-1] if results else above
    return log.records, branch, answers


@_SETTINGS
@given(turns=_TURNS)
def test_however_records_are_interleaved_the_conversation_is_one_branch(turns: list[_Turn]) -> None:
    records, branch, answers = _conversation(turns)
    result = run(ClaudeCodeImporter(), records)
    assert result.branch() == tuple(branch)
    assert [(node, _calls(result, node)) for node, _ in answers] == answers
    assert not result.findings
    assert not result.moves
    assert not result.abandoned
    assert result.importer.tally.turns == len(turns)
    assert result.importer.tally.branches == 1


_WILD = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["user", "assistant", "progress", "system"]),
            "uuid": st.sampled_from(["a", "b", "c", "d", "e", "f", "g"]),
            "parentUuid": st.sampled_from([None, "a", "b", "c", "d", "e", "f", "g", "h"]),
            "isSidechain": st.sampled_from([False, False, True]),
            "message": st.fixed_dictionaries(
                {
                    "id": st.sampled_from(["m1", "m2"]),
                    "content": st.sampled_from(
                        [
                            "text",
                            [{"type": "tool_use", "id": "c1"}],
                            [{"type": "tool_result", "tool_use_id": "c1"}],
                            [{"type": "tool_result", "tool_use_id": "c1"}, {"type": "text", "text": "x"}],
                            None,
                        ]
                    ),
                }
            ),
        },
        optional={
            "isCompactSummary": st.just(True),
            "subtype": st.just("compact_boundary"),
            "logicalParentUuid": st.sampled_from(["a", "b", "h"]),
            "compactMetadata": st.just({"preservedSegment": {"headUuid": "a"}}),
        },
    ),
    max_size=14,
)


@settings(_SETTINGS, max_examples=1000)
@given(records=_WILD)
def test_any_records_give_a_tree_without_loose_ends(records: list[Fields]) -> None:
    """Whatever the links say, every step follows a node that was written before it, and no node is written twice."""
    result = run(ClaudeCodeImporter(), records)
    known: set[NodeId] = set()
    for step in result.steps:
        for node in step.step.change.nodes:
            assert node.parent is None or node.parent in known
            assert node.content.id not in known
            known.add(node.content.id)
    for moved in result.moves:
        assert moved is None or moved in known
    assert all(finding.clause == "DMG-1" for finding in result.findings)
