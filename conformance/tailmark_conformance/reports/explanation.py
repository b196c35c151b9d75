"""A clause explained: its text, where it comes from, its example, and the one change that would break it."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path

from tailmark.catalogue import clauses
from tailmark.examples import ABSENT, example
from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.words import clause_text, story_lines


def list_lines() -> Iterator[str]:
    """Every clause with its level and capability, one a line."""
    for clause in clauses().values():
        yield f"{clause.id:<12} {clause.level.value:<8} {clause.capability.value:<10} {clause.title}"


def explanation_lines(clause: ClauseId) -> Iterator[str]:
    """Everything about one clause."""
    known = clauses().get(clause)
    if known is None:
        yield f"{clause}: {clause_text(clause)}"
        return
    yield f"{known.id}: {known.title} ({known.level}, capability {known.capability}, {known.provenance})"
    yield ""
    yield known.text
    if known.why is not None:
        yield ""
        yield f"Why: {known.why}"
    shown = example(clause)
    yield ""
    yield f"Example: {known.example}"
    yield from story_lines(shown.trace)
    yield ""
    yield from (f"  {line}" for line in draw_tree(scene_of(shown.trace)).splitlines())
    yield ""
    change = shown.becomes
    value = (
        "is left out" if change.value is ABSENT else f"becomes {json.dumps(change.value, ensure_ascii=False)}"
    )
    yield f"It would be broken if {change.path} {value}."
    yield ""
    yield f"Predicate: {_source(clause)}"
    yield f"Text: tailmark/clauses/{known.chapter}.md"
    yield f"Example: tailmark/clauses/examples/{clause}.json"


def _source(clause: ClauseId) -> str:
    predicate = PREDICATES[clause]
    path = inspect.getsourcefile(predicate)
    _, line = inspect.getsourcelines(predicate)
    where = "/".join(Path(path).parts[-3:]) if path is not None else predicate.__module__
    return f"{predicate.__name__} in {where}, line {line}"
