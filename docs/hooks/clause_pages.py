"""The pages of the specification as Markdown: a page for each chapter, and one with all clauses.

They are made from the clauses' texts, the stored examples and the predicates, so they say what the package says.
"""

import json
import re
from collections.abc import Iterator, Mapping

from tailmark.catalogue import Chapter, Clause, chapters, clauses
from tailmark.examples import ABSENT, Example, example
from tailmark.json_form import JsonFormError, structure_union, unstructure
from tailmark.judge import PREDICATES, StepVerdict, judge_trace
from tailmark.outcomes import Outcome
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.story import tell_outcome
from tailmark_conformance.reports.words import story_lines
from tailmark_conformance.scenarios.writing import SCENARIOS

_CLAUSE_ID = re.compile(r"\b[A-Z]+-[A-Z0-9]+\b")
_CODE = re.compile(r"(`[^`]*`)")
_STEP = re.compile(r"\$\.steps\[(\d+)\](.*)")
_LONG = 60

_READ_ALSO = (
    "The texts bind. What each operation does and in which order it answers is told in"
    " [Operations, one by one](../operations.md); operations, outcomes and views are listed in the"
    " [vocabulary](../vocabulary.md)."
)
_FACTS = (
    "A clause has a **level**: a `must` binds everybody, from a `should` one may depart. It belongs to a"
    " **capability**, which an implementation offers or does not. Its **provenance** says whether it was required"
    " from the outset (`stated`) or decided when the specification was written (`decided`, with the reason)."
)


def specification_pages() -> Mapping[str, str]:
    """All generated pages of the specification by their path in the site's sources."""
    pages = {"specification/index.md": _index()}
    for chapter in chapters():
        pages[f"specification/{chapter.name}.md"] = _chapter_page(chapter)
    return pages


def linked(text: str, folder: str = "") -> str:
    """A text in which the clauses that it names are links. ``folder`` leads to the chapters' pages."""

    def link(found: re.Match[str]) -> str:
        clause = next((one for one in clauses().values() if one.id == found[0]), None)
        return found[0] if clause is None else f"[{clause.id}]({folder}{clause.chapter}.md#{clause.id})"

    # What stands in code stays as it is.
    return "".join(
        piece if piece.startswith("`") else _CLAUSE_ID.sub(link, piece) for piece in _CODE.split(text)
    )


def _index() -> str:
    lines = [
        "# The specification",
        "",
        f"{len(clauses())} clauses in {len(chapters())} chapters. {_READ_ALSO}",
        "",
        _FACTS,
    ]
    for chapter in chapters():
        lines += [
            "",
            f"## [{chapter.title}]({chapter.name}.md)",
            "",
            "| clause | title | level | capability | provenance |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| [{clause.id}]({chapter.name}.md#{clause.id}) | {clause.title} | {clause.level}"
            f" | {clause.capability} | {clause.provenance} |"
            for clause in chapter.clauses
        ]
    return "\n".join(lines) + "\n"


def _chapter_page(chapter: Chapter) -> str:
    lines = [f"# {chapter.title}", "", linked(chapter.introduction), ""]
    for clause in chapter.clauses:
        lines += [*_clause_lines(clause), ""]
    return "\n".join(lines)


def _clause_lines(clause: Clause) -> Iterator[str]:
    shown = example(clause.id)
    yield f"## {clause.id}: {clause.title} {{ #{clause.id} }}"
    yield ""
    yield f"*{clause.level} · capability {clause.capability} · {clause.provenance}*"
    yield ""
    yield linked(clause.text)
    if clause.why is not None:
        yield ""
        yield f"**Why:** {linked(clause.why)}"
    yield ""
    yield f"**Example:** {linked(clause.example)}"
    yield ""
    yield from _code(line.removeprefix("  ") for line in story_lines(shown.trace))
    yield from _code(draw_tree(scene_of(shown.trace)).splitlines())
    yield from _counterexample_lines(shown)
    yield ""
    predicate, scenario = PREDICATES[clause.id], SCENARIOS[clause.id]
    yield (
        f"Predicate `{predicate.__name__}` in `spec/tailmark/rules/{clause.chapter}.py`,"
        f" scenario `{scenario.__name__}` in `conformance/tailmark_conformance/scenarios/{clause.chapter}.py`,"
        f" stored example `spec/tailmark/clauses/examples/{clause.id}.json`."
    )


def _code(lines: Iterator[str] | list[str], language: str = "text") -> Iterator[str]:
    yield f"```{language}"
    yield from lines
    yield "```"
    yield ""


def _counterexample_lines(shown: Example) -> Iterator[str]:
    change = shown.becomes
    found = _STEP.fullmatch(change.path)
    where = f"in step {int(found[1]) + 1} `{found[2].removeprefix('.')}`" if found else f"`{change.path}`"
    before = _at(unstructure(shown.trace), change.path)
    said = _in_words(change.value)
    if change.value is ABSENT:
        yield f"**Counterexample:** the same trace, but {where} is left out."
    elif said is not None:
        was = _in_words(before)
        instead = f" instead of *{was}*" if was is not None else ""
        yield f"**Counterexample:** the same trace, but {where} is *{said}*{instead}."
    else:
        value = json.dumps(change.value, ensure_ascii=False)
        if len(value) <= _LONG:
            old = json.dumps(before, ensure_ascii=False) if before is not ABSENT else ""
            instead = f" instead of `{old}`" if 0 < len(old) <= _LONG else ""
            yield f"**Counterexample:** the same trace, but {where} is `{value}`{instead}."
        else:
            yield f"**Counterexample:** the same trace, but {where} is:"
            yield ""
            yield from _code(json.dumps(change.value, ensure_ascii=False, indent=2).splitlines(), "json")
    for judgement in judge_trace(shown.counterexample()):
        if judgement.clause == shown.clause and judgement.verdict is StepVerdict.VIOLATED:
            yield ""
            yield f"The predicate says of step {judgement.step + 1}: {_quoted(judgement.text)}"
            return


def _quoted(text: str) -> str:
    # Two back quotes hold a text that may have one in it.
    return f"`` {text} ``"


def _in_words(value: object) -> str | None:
    """An outcome in words; ``None`` for anything else."""
    if not isinstance(value, dict):
        return None
    try:
        return tell_outcome(structure_union(value, Outcome))
    except JsonFormError:
        return None


def _at(plain: object, path: str) -> object:
    """What stands at a path, or `ABSENT` where something is left out."""
    for name, index in re.findall(r"\.([a-z_]+)|\[(\d+)\]", path):
        if isinstance(plain, dict) and name in plain:
            plain = plain[name]
        elif isinstance(plain, list | tuple) and index and int(index) < len(plain):
            plain = plain[int(index)]
        else:
            return ABSENT
    return plain
