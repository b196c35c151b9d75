"""The pi coding agent on the wire: its adapter loses nothing, and the check finds in it what docs/field/pi.md tells."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkout import ROOT, text_of
from node import needs_node
from tailmark.budgets import Model, Settings
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, SessionId, Tokens
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
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Operation, Restart
from tailmark.outcomes import Committed, Done, Failed, FailureReason, Outcome, Planned
from tailmark.plans import Checkpoint, SummaryAnswer, SummaryFailure
from tailmark.views import Observation
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.subjects.stdio import StdioSubject
from vocabulary import TEXTS, values

ADAPTER: Final = str(ROOT / "conformance/field/pi/adapter.mjs")
VERSIONS: Final = ("0.63.0", "0.63.1")
PAGE: Final = "docs/field/pi.md"
S1: Final = SessionId("S1")
PATIENCE: Final = 60.0
"""Seconds that a call may take: other tests run beside these."""

_INSTALL: Final = ("install", "--no-save", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
_MOST_STEPS: Final = 8


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each version, installed once for all tests of this file."""
    needs_node()
    npm = shutil.which("npm")
    folders = {version: tmp_path_factory.mktemp(f"pi-{version}") for version in VERSIONS}
    for version, folder in folders.items():
        name = f"@mariozechner/pi-coding-agent@{version}"
        if npm is None:
            _is_missing("there is no program npm: install Node 20 or later")
        else:
            done = subprocess.run(  # noqa: S603  # installing the version named above
                [npm, *_INSTALL, "--prefix", str(folder), name], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                _is_missing(f"{name} could not be installed: {done.stderr.strip()[-500:]}")
    return folders


def _is_missing(told: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


@pytest.fixture(scope="module")
def subject(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioSubject]:
    """The newer version, its lines held against the schemas."""
    command = ("node", ADAPTER, str(packages["0.63.1"]))
    with closing(StdioSubject(command, tmp_path_factory.mktemp("stores"), PATIENCE, validate=True)) as one:
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


def test_content_stands_in_the_places_that_pi_has_for_it(packages: dict[str, Path], tmp_path: Path) -> None:
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
    command = ("node", ADAPTER, str(packages["0.63.1"]))
    with closing(StdioSubject(command, tmp_path, PATIENCE)) as subject:
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


# What is found --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reports(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `check` says of each version, as JSON. Any: plain JSON values."""
    found = {}
    for version, folder in packages.items():
        out = tmp_path_factory.mktemp("report")
        words = (
            "check",
            "--profile",
            "smoke",
            "--timeout",
            str(PATIENCE),
            "--json",
            str(out / "report.json"),
        )
        code = main((*words, "--capsules", str(out / "capsules"), "--", "node", ADAPTER, str(folder)))
        assert code == Exit.DOES_NOT
        found[version] = json.loads((out / "report.json").read_bytes())
    return found


def _clause(report: Any, clause: str) -> Any:  # Any: plain JSON values
    (one,) = (one for one in report["clauses"] if one["id"] == clause)
    return one


def test_the_second_compaction_of_0_63_0_loses_what_the_first_one_kept(reports: dict[str, Any]) -> None:
    """The fault is found without a hint: in words, and with a story of at most eight operations."""
    found = _clause(reports["0.63.0"], "CHK-3")
    assert found["verdict"] == "fail"
    steps = found["failure"]["trace"]["steps"]
    assert len(steps) <= _MOST_STEPS
    kinds = [step["operation"]["kind"] for step in steps]
    assert kinds.count("begin-compaction") == 2
    assert kinds.count("commit-compaction") == 1
    assert re.fullmatch(r"expected \w+ to be covered, saw nothing", found["failure"]["text"])


def test_0_63_1_has_mended_it(reports: dict[str, Any]) -> None:
    """Nothing falls through any more."""
    found = _clause(reports["0.63.1"], "CHK-3")
    assert found["verdict"] == "pass"
    assert found["exercised"] > 100


@pytest.mark.parametrize("version", VERSIONS)
def test_the_page_has_the_verdicts(reports: dict[str, Any], version: str) -> None:
    """The page names each clause that is broken, with its verdict for each version, and no other."""
    table = re.findall(r"^\| ([A-Z]+-\w+) \| (\w+) \| (\w+) \|", text_of(PAGE), re.MULTILINE)
    column = VERSIONS.index(version)
    told = {clause: verdicts[column] for clause, *verdicts in table}
    seen = {one["id"]: one["verdict"] for one in reports[version]["clauses"]}
    broken = {clause: verdict for clause, verdict in seen.items() if verdict not in ("pass", "not-declared")}
    assert {clause: verdict for clause, verdict in told.items() if verdict != "pass"} == broken
    assert all(seen[clause] == verdict for clause, verdict in told.items())


def _long_turn(subject: StdioSubject) -> Checkpoint:
    """Two questions are compacted, the second one's answer grows beyond what is kept, and another compaction follows."""
    _emptied(subject, tail=20)
    for name in ("U1", "U2"):
        _said(subject, name, "word " * 20)
    _compacted(subject, "P1", SummaryAnswer(parts=(Text(id=PartId("s"), text="the user wants tea"),)))
    _said(subject, "A2", "word " * 20)
    _compacted(subject, "P2", SummaryAnswer(parts=(Text(id=PartId("s"), text="the turn so far"),)))
    latest = subject.observe().nodes[-1].content
    assert isinstance(latest, Checkpoint)
    return latest


def _said(subject: StdioSubject, name: str, text: str) -> None:
    role = Role.USER if name.startswith("U") else Role.ASSISTANT
    message = Message(id=NodeId(name), role=role, parts=(Text(id=PartId("text"), text=text),))
    subject.perform(Append(session=S1, message=message))


def _compacted(subject: StdioSubject, plan: str, reply: SummaryAnswer | SummaryFailure) -> Outcome:
    begun = subject.perform(_begin(plan))
    assert isinstance(begun, Planned)
    return subject.perform(CommitCompaction(plan=begun.plan, reply=reply))


def _begin(plan: str, instructions: str | None = None) -> Operation:
    return BeginCompaction(session=S1, plan=PlanId(plan), instructions=instructions)


def test_a_split_first_turn_drops_the_summary(subject: StdioSubject) -> None:
    """What the page says of CHK-2 in 0.63.1: the stored summary says that there was no history, and the one before is gone."""
    latest = _long_turn(subject)
    assert latest.summary.startswith("No prior history.")
    assert "tea" not in latest.summary
    assert subject.observe().sessions[0].checkpoint == latest.id


def test_a_summariser_that_fails_leaves_nothing(subject: StdioSubject) -> None:
    """pi's own error becomes the outcome, and nothing is stored."""
    _emptied(subject)
    _said(subject, "U1", "hi")
    _said(subject, "A1", "hello")
    before = subject.observe()
    assert _compacted(subject, "P1", SummaryFailure(text="no connection")) == Failed(
        reason=FailureReason.SUMMARISER
    )
    assert subject.observe() == before


def test_the_summary_is_the_models_answer(subject: StdioSubject) -> None:
    """A commit stores what the suite answered, under a name that it tells."""
    _emptied(subject, tail=1)
    _said(subject, "U1", "hi")
    _said(subject, "U2", "and now?")
    reply = SummaryAnswer(parts=(Text(id=PartId("s"), text="they greeted"),))
    assert _compacted(subject, "P1", reply) == Committed(checkpoint=NodeId("compaction-1"))
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
