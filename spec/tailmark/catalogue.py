"""The clauses of the specification, read from their chapters in ``clauses/*.md``.

A chapter begins with its title and an introduction. Each clause is a heading with its id and title, a list
of facts (level, capability, provenance and, where something was decided, why), its text, and a last
paragraph on what its example shows. The reading is strict: whatever stands elsewhere is an error with
its file and line.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import pairwise

from attrs import frozen

from tailmark.declarations import Capability
from tailmark.identifiers import ClauseId

CHAPTERS = (
    "definitions",
    "outcomes",
    "tree",
    "projection",
    "boundary",
    "checkpoints",
    "triggers",
    "automatic",
    "requests",
    "capacity",
    "occupancy",
    "estimates",
    "commit",
    "branching",
    "summary",
    "prefixes",
    "damage",
)
"""The chapters in order; each is the stem of its file and of the module of its predicates."""


class Level(StrEnum):
    """How much a clause binds."""

    MUST = "must"
    SHOULD = "should"


class Provenance(StrEnum):
    """Where a clause comes from: it was required from the outset, or decided when the specification was written."""

    STATED = "stated"
    DECIDED = "decided"
    STATED_AND_DECIDED = "stated and decided"


@frozen(kw_only=True)
class Clause:
    """One clause. ``why`` is the reason of what was decided, ``None`` where nothing was; ``example`` says what its stored example shows."""

    id: ClauseId
    title: str
    level: Level
    capability: Capability
    provenance: Provenance
    why: str | None
    text: str
    example: str
    chapter: str


@frozen(kw_only=True)
class Chapter:
    """A chapter with its clauses in order. ``name`` is one of `CHAPTERS`."""

    name: str
    title: str
    introduction: str
    clauses: tuple[Clause, ...]


class CatalogueError(ValueError):
    """A chapter is not of its form. The message is ``file:line: what is wrong``."""

    def __init__(self, chapter: str, line: int, text: str) -> None:
        super().__init__(f"{chapter}.md:{line}: {text}")


@cache
def chapters() -> tuple[Chapter, ...]:
    """All chapters in order. Raises `CatalogueError`."""
    folder = files("tailmark").joinpath("clauses")
    read = tuple(
        read_chapter(name, folder.joinpath(f"{name}.md").read_text(encoding="utf-8")) for name in CHAPTERS
    )
    known: dict[ClauseId, str] = {}
    for chapter in read:
        for clause in chapter.clauses:
            if clause.id in known:
                raise CatalogueError(chapter.name, 1, f"{clause.id} stands in {known[clause.id]}.md as well")
            known[clause.id] = chapter.name
    return read


@cache
def clauses() -> Mapping[ClauseId, Clause]:
    """All clauses by their id, in the order of the chapters. Raises `CatalogueError`."""
    return {clause.id: clause for chapter in chapters() for clause in chapter.clauses}


_HEADING = re.compile(r"## ([A-Z]+-[A-Z0-9]+): (\S.*)")
_FACT = re.compile(r"- ([a-z]+): (\S.*)")
_EXAMPLE = "Example: "


@frozen
class _Line:
    number: int
    text: str


def read_chapter(name: str, text: str) -> Chapter:
    """Read one chapter. Raises `CatalogueError`."""
    lines = [_Line(number, line.rstrip()) for number, line in enumerate(text.splitlines(), start=1)]
    if not lines or not lines[0].text.startswith("# "):
        raise CatalogueError(name, 1, "expected the chapter's title, '# …'")
    starts = [index for index, line in enumerate(lines) if line.text.startswith("#") and index > 0]
    introduction = _paragraphs(lines[1 : starts[0] if starts else None])
    if not introduction:
        raise CatalogueError(name, 1, "the chapter has no introduction")
    read: list[Clause] = []
    for start, end in pairwise([*starts, len(lines)]):
        clause = _read_clause(name, lines[start], lines[start + 1 : end])
        if any(clause.id == other.id for other in read):
            raise CatalogueError(name, lines[start].number, f"{clause.id} stands twice")
        read.append(clause)
    return Chapter(
        name=name,
        title=lines[0].text.removeprefix("# "),
        introduction="\n\n".join(introduction),
        clauses=tuple(read),
    )


def _read_clause(chapter: str, heading: _Line, body: list[_Line]) -> Clause:
    match = _HEADING.fullmatch(heading.text)
    if match is None:
        raise CatalogueError(chapter, heading.number, f"expected '## ID: title', found {heading.text!r}")
    clause = ClauseId(match[1])
    facts, rest = _read_facts(chapter, body)
    for key in ("level", "capability", "provenance"):
        if key not in facts:
            raise CatalogueError(chapter, heading.number, f"{clause} has no {key}")
    provenance = Provenance(_one_of(chapter, facts["provenance"], [one.value for one in Provenance]))
    if (provenance is Provenance.STATED) is ("why" in facts):
        fault = "gives a reason, but nothing was decided" if "why" in facts else "has no why"
        raise CatalogueError(chapter, heading.number, f"{clause} {fault}")
    paragraphs = _paragraphs(rest)
    if not paragraphs or not paragraphs[-1].startswith(_EXAMPLE):
        raise CatalogueError(chapter, heading.number, f"{clause} does not end in a paragraph 'Example: …'")
    text = paragraphs[:-1]
    if not text or any(paragraph.startswith(_EXAMPLE) for paragraph in text):
        raise CatalogueError(chapter, heading.number, f"{clause} has {'two examples' if text else 'no text'}")
    return Clause(
        id=clause,
        title=match[2],
        level=Level(_one_of(chapter, facts["level"], [one.value for one in Level])),
        capability=Capability(_one_of(chapter, facts["capability"], [one.value for one in Capability])),
        provenance=provenance,
        why=facts["why"].text if "why" in facts else None,
        text="\n\n".join(text),
        example=paragraphs[-1].removeprefix(_EXAMPLE),
        chapter=chapter,
    )


def _read_facts(chapter: str, body: list[_Line]) -> tuple[dict[str, _Line], list[_Line]]:
    """The list of facts behind a heading, and what follows it."""
    facts: dict[str, _Line] = {}
    index = 0
    while index < len(body) and (not body[index].text or body[index].text.startswith("- ")):
        line = body[index]
        index += 1
        if not line.text:
            if facts:
                break
            continue
        match = _FACT.fullmatch(line.text)
        if match is None or match[1] not in ("level", "capability", "provenance", "why"):
            raise CatalogueError(
                chapter, line.number, f"expected level, capability, provenance or why, found {line.text!r}"
            )
        if match[1] in facts:
            raise CatalogueError(chapter, line.number, f"{match[1]} stands twice")
        value = match[2]
        # A long reason goes on in indented lines.
        while index < len(body) and body[index].text.startswith("  "):
            value = f"{value} {body[index].text.strip()}"
            index += 1
        facts[match[1]] = _Line(line.number, value)
    return facts, body[index:]


def _one_of(chapter: str, found: _Line, allowed: list[str]) -> str:
    if found.text not in allowed:
        raise CatalogueError(
            chapter, found.number, f"expected one of {', '.join(allowed)}, found {found.text!r}"
        )
    return found.text


def _paragraphs(lines: list[_Line]) -> list[str]:
    """Paragraphs, each on one line but for the items of its lists."""
    paragraphs: list[str] = []
    fresh = True
    for line in lines:
        text = line.text.strip()
        if not text:
            fresh = True
        elif fresh:
            paragraphs.append(text)
            fresh = False
        else:
            joint = "\n" if text.startswith("- ") else " "
            paragraphs[-1] = f"{paragraphs[-1]}{joint}{text}"
    return paragraphs


CATALOGUE: Mapping[ClauseId, Clause] = clauses()
"""All clauses by their id, in the order of the chapters."""
