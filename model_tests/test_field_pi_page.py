"""What docs/field/pi.md tells of the pi coding agent is what the check finds in it, and what it shows was played."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from checkout import text_of
from pi_agent import PATIENCE, S1, VERSIONS, command, said, started, summary
from tailmark.budgets import Model, Settings
from tailmark.identifiers import ClauseId, ModelName, PlanId, Tokens
from tailmark.operations import BeginCompaction, CommitCompaction, Operation, Restart
from tailmark.plans import Checkpoint
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.runs import Run, Selection, run
from tailmark_conformance.reports.words import found_lines

PAGE: Final = "docs/field/pi.md"
_MOST_STEPS: Final = 8


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `check` says of each version, as JSON. Any: plain JSON values."""
    found = {}
    for version in VERSIONS:
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
        code = main((*words, "--capsules", str(out / "capsules"), "--", *command(version)))
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


# Stories --------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Story:
    """A fault as the page shows it below a heading: what is asked of a version, and the clause that the last operation breaks."""

    heading: str
    version: str
    clause: ClauseId
    tail: int
    asks: Callable[[Known], Iterator[Operation]]


def _begin(plan: str, instructions: str | None = None) -> Operation:
    return BeginCompaction(session=S1, plan=PlanId(plan), instructions=instructions)


def _commit(known: Known, text: str) -> Operation:
    (plan,) = known.plans_of(S1)
    return CommitCompaction(plan=plan, reply=summary(text))


def _three_questions(known: Known) -> Iterator[Operation]:
    yield said("U1", "My cat is called Tom.")
    yield said("U2", "My dog is called Rex.")
    yield _begin("P1")
    yield _commit(known, "The cat is called Tom.")
    yield said("U3", "What are my pets called?")
    yield _begin("P2")


def _long_answer(known: Known) -> Iterator[Operation]:
    yield said("U1", "My cat is called Tom.")
    yield said("U2", "Tell me a story.")
    yield _begin("P1")
    yield _commit(known, "The cat is called Tom.")
    yield said("A2", "Once upon a time there was a cat.")
    yield _begin("P2")


def _instructions(_: Known) -> Iterator[Operation]:
    yield said("U1", "Tell me a story.")
    yield said("A1", "Once upon a time there was a cat.")
    yield _begin("P1", "keep the names")


def _two_questions(_: Known) -> Iterator[Operation]:
    yield said("U1", "My cat is called Tom.")
    yield said("U2", "My dog is called Rex.")
    yield _begin("P1")


def _question_and_restart(_: Known) -> Iterator[Operation]:
    yield said("U1", "My cat is called Tom.")
    yield Restart()


STORIES: Final = (
    Story(
        heading="The second compaction loses what the first one kept",
        version="0.63.0",
        clause=ClauseId("CHK-3"),
        tail=5,
        asks=_three_questions,
    ),
    Story(
        heading="A split turn drops the previous summary",
        version="0.63.1",
        clause=ClauseId("CHK-2"),
        tail=4,
        asks=_long_answer,
    ),
    Story(
        heading="Instructions do not reach a summary of a turn's beginning",
        version="0.63.1",
        clause=ClauseId("TRG-17"),
        tail=5,
        asks=_instructions,
    ),
    Story(
        heading="Nothing is summarised",
        version="0.63.1",
        clause=ClauseId("BND-9"),
        tail=20_000,
        asks=_two_questions,
    ),
    Story(
        heading="A session without an answer is not stored",
        version="0.63.1",
        clause=ClauseId("TREE-2"),
        tail=20_000,
        asks=_question_and_restart,
    ),
)


def _played(story: Story, version: str, folder: Path) -> Run:
    judged = Selection(clauses=(story.clause,), model=False)
    model = Model(name=ModelName("model"))
    with started(version, folder) as subject:
        return run(subject, (S1,), model, Settings(tail=Tokens(story.tail)), story.asks, judged)


def told(one: Run, clause: ClauseId) -> str:
    """The story as reports tell it, without the clause's text."""
    found = Found(fault=one.faults[clause, ""], run=one, example=0)
    return "\n".join(list(found_lines(found, label="fail"))[3:])


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.clause)
def test_the_page_shows_the_story_as_it_is_played(story: Story, tmp_path: Path) -> None:
    """Each story of the page is what comes of its operations, and its last operation is what breaks the clause."""
    one = _played(story, story.version, tmp_path)
    assert one.faults[story.clause, ""].step == one.steps - 1 < _MOST_STEPS
    section = text_of(PAGE).partition(f"## {story.heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)
    assert told(one, story.clause) in blocks


def test_the_first_story_ends_well_in_the_next_version(tmp_path: Path) -> None:
    """The same operations on 0.63.1 break CHK-3 no more, and it was judged."""
    one = _played(STORIES[0], "0.63.1", tmp_path)
    assert not one.faults
    assert one.holds[STORIES[0].clause] == 2


def test_the_dropped_summary_is_gone(tmp_path: Path) -> None:
    """What is stored behind the second story says that there was no history."""

    kept: list[Checkpoint] = []

    def asks(known: Known) -> Iterator[Operation]:
        yield from _long_answer(known)
        yield _commit(known, "The user wants a story.")
        kept.extend(known.checkpoints(S1))

    story = Story(heading="", version="0.63.1", clause=ClauseId("CHK-2"), tail=4, asks=asks)
    _played(story, "0.63.1", tmp_path)
    assert len(kept) == 2
    assert kept[1].summary.startswith("No prior history.")
    assert "Tom" not in kept[1].summary
