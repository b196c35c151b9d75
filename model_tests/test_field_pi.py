"""The adapter of the pi coding agent loses nothing of what passes through it, so that a fault that is seen is pi's."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node import needs_node
from pi_agent import ADAPTER, S1, said, started, summary
from tailmark.budgets import Model, Settings
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, Tokens
from tailmark.messages import (
    Annotation,
    AnswerEnd,
    Collection,
    EpubLocation,
    File,
    Image,
    Message,
    Part,
    PdfPage,
    Reasoning,
    Reference,
    ResultStatus,
    Role,
    Tag,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UsageScope,
)
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Restart
from tailmark.outcomes import Committed, Done, Failed, FailureReason, Outcome, Planned
from tailmark.plans import Checkpoint, SummariserReply, SummaryFailure
from tailmark.views import Observation
from tailmark_conformance.subjects.stdio import StdioSubject
from vocabulary import TEXTS, values

VERSION: Final = "0.63.1"


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioSubject]:
    """The newer version."""
    with started(VERSION, tmp_path_factory.mktemp("stores")) as one:
        yield one


def _emptied(subject: StdioSubject, tail: int = 1000) -> None:
    subject.reset((S1,), Model(name=ModelName("m")), Settings(tail=Tokens(tail)))


# What the adapter passes on ----------------------------------------------------------------------------------

# pi keeps figures as JavaScript's numbers.
_FIGURES = st.integers(0, 2**40).map(Tokens)
_ATTACHED = st.one_of(
    *(values(kind) for kind in (Text, Image, File, Reference, Annotation, Collection, Tag)),
    st.builds(PdfPage, id=TEXTS, attachment=TEXTS, page=_FIGURES, pages=_FIGURES),
    st.builds(EpubLocation, id=TEXTS, section_index=_FIGURES, href=TEXTS, cfi=TEXTS),
)
_SAID = st.one_of(values(Text), values(Reasoning), values(ToolCall))


def _numbered(parts: list[Part]) -> tuple[Part, ...]:
    """Parts and calls with names of their own, however they were drawn."""
    return tuple(
        evolve(part, id=PartId(f"part {number}"), call=CallId(f"call {number}"))
        if isinstance(part, ToolCall)
        else evolve(part, id=PartId(f"part {number}"))
        for number, part in enumerate(parts)
    )


_USAGES = st.builds(
    Usage,
    input=_FIGURES,
    cached=_FIGURES,
    output=_FIGURES,
    reasoning_output=_FIGURES,
    scope=st.sampled_from(UsageScope),
    model=TEXTS.map(ModelName),
    ended_normally=st.booleans(),
)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """A question, an answer with calls, and a result for each of them."""
    question = Message(
        id=NodeId("U1"), role=Role.USER, parts=_numbered(draw(st.lists(_ATTACHED, max_size=4)))
    )
    said = _numbered(draw(st.lists(_SAID, max_size=4)))
    answer = Message(
        id=NodeId("A1"),
        role=Role.ASSISTANT,
        parts=said,
        end=draw(st.sampled_from((None, *AnswerEnd))),
        built_on=draw(st.sampled_from((None, NodeId("U1")))),
        usage=draw(st.none() | _USAGES),
    )
    results = tuple(
        Message(
            id=NodeId(f"T{number}"),
            role=Role.TOOL,
            parts=(
                ToolResult(
                    id=PartId("result"),
                    call=part.call,
                    status=draw(st.sampled_from(ResultStatus)),
                    text=draw(TEXTS),
                ),
            ),
        )
        for number, part in enumerate(said)
        if isinstance(part, ToolCall)
    )
    return (question, answer, *results)


def _contents(observation: Observation) -> list[object]:
    return [node.content for node in observation.nodes]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=_histories())
def test_what_is_appended_comes_back(subject: StdioSubject, history: tuple[Message, ...]) -> None:
    """Every form of message that is not lacking comes back as it was, from pi's memory, from its file, and after a restart."""
    _emptied(subject)
    for message in history:
        assert subject.perform(Append(session=S1, message=message)) == Done(written=(message.id,))
    assert _contents(subject.observe()) == list(history)
    assert _contents(subject.observe_fresh()) == list(history)
    subject.perform(Restart())
    after = subject.observe()
    assert _contents(after) == list(history)
    assert after.sessions[0].branch == tuple(message.id for message in history)


def test_content_stands_in_the_places_that_pi_has_for_it(tmp_path: Path) -> None:
    """What was said is in pi's session file as pi's own blocks, so that pi reads what the suite wrote."""
    call = ToolCall(id=PartId("c"), call=CallId("call-1"), name="look", input='{"for":"it"}')
    result = ToolResult(id=PartId("r"), call=CallId("call-1"), status=ResultStatus.DENIED, text="not allowed")
    usage = Usage(input=Tokens(100), cached=Tokens(40), output=Tokens(7), model=ModelName("m"))
    thought = Reasoning(id=PartId("t"), text="hm", replayable=True)
    messages = (
        Message(id=NodeId("U1"), role=Role.USER, parts=(Text(id=PartId("p"), text="hi"),)),
        Message(
            id=NodeId("A1"), role=Role.ASSISTANT, parts=(thought, call), end=AnswerEnd.ABORTED, usage=usage
        ),
        Message(id=NodeId("T1"), role=Role.TOOL, parts=(result,)),
    )
    with started(VERSION, tmp_path) as subject:
        _emptied(subject)
        for message in messages:
            subject.perform(Append(session=S1, message=message))
        (file,) = tmp_path.rglob("*.jsonl")
        _, *entries = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    user, assistant, tool = (entry["message"] for entry in entries)
    assert user["content"] == [{"type": "text", "text": "hi"}]
    assert assistant["content"] == [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "signed"},
        {"type": "toolCall", "id": "call-1", "name": "look", "arguments": {"input": '{"for":"it"}'}},
    ]
    assert assistant["stopReason"] == "aborted"
    told = assistant["usage"]
    assert (told["input"], told["cacheRead"], told["output"], told["totalTokens"]) == (60, 40, 7, 107)
    assert (tool["toolCallId"], tool["toolName"], tool["isError"]) == ("call-1", "look", True)
    assert tool["content"] == [{"type": "text", "text": "not allowed"}]


# Compactions ---------------------------------------------------------------------------------------------------


def _compacted(subject: StdioSubject, reply: SummariserReply) -> Outcome:
    begun = subject.perform(BeginCompaction(session=S1, plan=PlanId("P1")))
    assert isinstance(begun, Planned)
    return subject.perform(CommitCompaction(plan=begun.plan, reply=reply))


def test_a_summariser_that_fails_leaves_nothing(subject: StdioSubject) -> None:
    """pi's own error becomes the outcome, and nothing is stored."""
    _emptied(subject)
    subject.perform(said("U1", "hi"))
    subject.perform(said("A1", "hello"))
    before = subject.observe()
    failed = Failed(reason=FailureReason.SUMMARISER)
    assert _compacted(subject, SummaryFailure(text="no connection")) == failed
    assert subject.observe() == before


def test_the_summary_is_the_models_answer(subject: StdioSubject) -> None:
    """A commit stores what the suite answered, under a name that it tells."""
    _emptied(subject, tail=1)
    subject.perform(said("U1", "hi"))
    subject.perform(said("U2", "and now?"))
    assert _compacted(subject, summary("they greeted")) == Committed(checkpoint=NodeId("compaction-1"))
    latest = subject.observe().nodes[-1].content
    assert isinstance(latest, Checkpoint)
    assert (latest.id, latest.summary, latest.first_kept) == ("compaction-1", "they greeted", "U2")


# Bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("here", "there"), ("no-such-folder",)])
def test_bad_input_gets_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    """Without the package the adapter says what to do, and exits with 2."""
    node = needs_node()
    done = subprocess.run(  # noqa: S603  # the adapter of this checkout
        [node, ADAPTER, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "node_modules" in line or "npm install" in line
    assert not done.stdout
