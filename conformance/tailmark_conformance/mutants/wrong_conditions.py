"""The store's commit, each time without one of its conditions."""

from pathlib import Path

import attrs
from attrs import evolve

from tailmark_reference.store.conditions import COMMIT_CONDITIONS, CommitConditions, CommitFacts
from tailmark_reference.store.subject import SqliteSubject

CONDITIONS: tuple[str, ...] = tuple(field.name for field in attrs.fields(CommitConditions))
"""The names of all conditions, in the order in which the commit asks them."""


def _always(facts: CommitFacts) -> bool:  # noqa: ARG001  # the type of a condition
    return True


def without(condition: str) -> CommitConditions:
    """The commit's conditions, one of them always met."""
    return evolve(COMMIT_CONDITIONS, **{condition: _always})


def store_without(condition: str, folder: Path) -> SqliteSubject:
    """A store in a folder whose commit does not ask one condition."""
    return SqliteSubject(folder, conditions=without(condition))
