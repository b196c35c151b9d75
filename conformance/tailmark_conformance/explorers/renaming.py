"""Counts generated names anew, so that a short script speaks of U1 and A1 and not of U37 and A52."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs
from attrs import evolve

from tailmark_conformance.explorers.scripts import Script

T = TypeVar("T")

_LONGEST = 80
# The prefixes that the strategies give: sessions, messages, calls, plans, sessions of forks, invented checkpoints.
_NAME = re.compile(r"\b([SUATcPFXK])(\d+)\b")


def renamed(script: Script) -> Script:
    """The script with each kind of name counted from 1 in the order in which the names come up."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def rename(match: re.Match[str]) -> str:
        prefix = match.group(1)
        if match.group() not in names:
            counts[prefix] = counts.get(prefix, 0) + 1
            names[match.group()] = f"{prefix}{counts[prefix]}"
        return names[match.group()]

    def change(text: str) -> str:
        return _NAME.sub(rename, text) if len(text) < _LONGEST else text

    return with_texts(script, change)


def with_texts(value: T, change: Callable[[str], str]) -> T:
    """The value of the vocabulary, or script, with every text in it changed. Members of enumerations and keys stay."""

    def walk(part: object) -> object:
        match part:
            case Enum():
                return part
            case str():
                return change(part)
            case tuple():
                return tuple(walk(one) for one in part)
            case Mapping():
                return {key: walk(one) for key, one in part.items()}
            case _ if attrs.has(type(part)):
                # Any: each field keeps its own type.
                known: Any = part
                fields = attrs.fields(type(known))
                return evolve(known, **{one.name: walk(getattr(known, one.name)) for one in fields})
            case _:
                return part

    changed = walk(value)
    assert isinstance(changed, type(value))
    return changed
