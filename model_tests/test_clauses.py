"""Texts, predicates, scenarios and stored examples of the clauses go together."""

import re
from importlib.resources import files

import pytest

from tailmark.catalogue import CATALOGUE, CHAPTERS, CatalogueError, chapters, read_chapter
from tailmark.examples import example
from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES, Judgement, StepVerdict, judge_trace
from tailmark_conformance.scenarios.writing import SCENARIOS, play_example

STORED = files("tailmark").joinpath("clauses", "examples")


def _violated(judgements: tuple[Judgement, ...]) -> list[Judgement]:
    return [one for one in judgements if one.verdict is StepVerdict.VIOLATED]


class TestEveryClause:
    """Each clause has a text, a predicate, a scenario, and two stored traces that differ in one thing."""

    def test_has_a_predicate_and_each_predicate_has_a_clause(self) -> None:
        assert list(CATALOGUE) == list(PREDICATES)

    def test_has_a_scenario_and_each_scenario_has_a_clause(self) -> None:
        assert list(SCENARIOS) == list(CATALOGUE)

    def test_has_a_stored_example_and_each_stored_example_has_a_clause(self) -> None:
        stored = {entry.name for entry in STORED.iterdir()}
        assert stored == {f"{clause}.json" for clause in CATALOGUE}

    def test_stands_in_the_chapter_of_its_predicate(self) -> None:
        for clause in CATALOGUE.values():
            assert PREDICATES[clause.id].__module__ == f"tailmark.rules.{clause.chapter}"

    def test_has_a_predicate_that_says_what_it_is_about(self) -> None:
        for clause, predicate in PREDICATES.items():
            assert predicate.__doc__, clause

    def test_does_not_name_a_clause_that_is_not_there(self) -> None:
        prefixes = {clause.split("-")[0] for clause in CATALOGUE}
        for clause in CATALOGUE.values():
            named = re.findall(r"\b[A-Z]+-\d+[A-Z]?\b", f"{clause.text} {clause.example} {clause.why}")
            assert not {one for one in named if one.split("-")[0] in prefixes} - set(CATALOGUE), clause.id


@pytest.mark.parametrize("clause", PREDICATES)
class TestExample:
    """A clause's example, and the one change that breaks it."""

    def test_is_what_the_model_plays_now(self, clause: ClauseId) -> None:
        assert STORED.joinpath(f"{clause}.json").read_bytes() == play_example(clause).to_bytes() + b"\n"

    def test_holds_and_breaks_no_clause(self, clause: ClauseId) -> None:
        judgements = judge_trace(example(clause).trace)
        assert _violated(judgements) == []
        assert any(one.clause == clause and one.verdict is StepVerdict.HOLDS for one in judgements)

    def test_breaks_with_the_change(self, clause: ClauseId) -> None:
        broken = _violated(judge_trace(example(clause).counterexample()))
        assert clause in {one.clause for one in broken}
        assert all(one.text for one in broken)


_CLAUSE = """\
# Title

Introduction.

## TREE-1: One

- level: must
- capability: history
- provenance: decided
- why: Because
  it is so.

Text over
two lines.

- an item

Example: it shows.
"""


class TestChapter:
    """A chapter is read strictly: whatever is wrong is one line that names the file and the line."""

    def test_is_read(self) -> None:
        (clause,) = read_chapter("tree", _CLAUSE).clauses
        assert clause.title == "One"
        assert clause.why == "Because it is so."
        assert clause.text == "Text over two lines.\n\n- an item"
        assert clause.example == "it shows."

    def test_stands_in_order(self) -> None:
        assert tuple(chapter.name for chapter in chapters()) == CHAPTERS

    @pytest.mark.parametrize(
        ("was", "becomes", "line", "says"),
        [
            ("# Title", "Title", 1, "expected the chapter's title"),
            ("Introduction.\n", "", 1, "no introduction"),
            ("## TREE-1: One", "## TREE-1", 5, "expected '## ID: title', found '## TREE-1'"),
            ("## TREE-1: One", "### TREE-1: One", 5, "expected '## ID: title'"),
            ("- level: must\n", "", 5, "TREE-1 has no level"),
            ("- level: must", "- level: may", 7, "expected one of must, should, found 'may'"),
            ("- level: must", "- levl: must", 7, "expected level, capability, provenance or why"),
            ("- level: must", "- level: must\n- level: must", 8, "level stands twice"),
            ("capability: history", "capability: magic", 8, "expected one of view"),
            ("provenance: decided", "provenance: guessed", 9, "expected one of stated, decided"),
            (
                "provenance: decided",
                "provenance: stated",
                5,
                "TREE-1 gives a reason, but nothing was decided",
            ),
            ("- why: Because\n  it is so.\n", "", 5, "TREE-1 has no why"),
            ("Text over\ntwo lines.\n\n- an item\n\n", "", 5, "TREE-1 has no text"),
            ("Example: it shows.", "It shows.", 5, "TREE-1 does not end in a paragraph 'Example: …'"),
            ("- an item", "Example: another.", 5, "TREE-1 has two examples"),
        ],
    )
    def test_is_refused(self, was: str, becomes: str, line: int, says: str) -> None:
        assert _CLAUSE.count(was) == 1
        with pytest.raises(CatalogueError, match=re.escape(says)) as caught:
            read_chapter("tree", _CLAUSE.replace(was, becomes))
        assert str(caught.value).startswith(f"tree.md:{line}: ")

    def test_is_refused_with_an_id_twice(self) -> None:
        _, clause = _CLAUSE.split("Introduction.\n\n")
        with pytest.raises(CatalogueError, match=r"tree\.md:20: TREE-1 stands twice"):
            read_chapter("tree", f"{_CLAUSE}\n{clause}")
