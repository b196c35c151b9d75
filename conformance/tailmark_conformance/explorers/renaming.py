"""Counts generated names anew, so that a short script speaks of U1 and A1 and not of U37 and A52."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs
from attrs import evolve

from tailmark_conformance.explorers.scripts import Script

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

    def walk(value: object) -> object:
        match value:
            case Enum():
                return value
            case str() if len(value) < _LONGEST:
                return _NAME.sub(rename, value)
            case tuple():
                return tuple(walk(one) for one in value)
            case Mapping():
                return {key: walk(one) for key, one in value.items()}
            case _ if attrs.has(type(value)):
                # Any: an attrs value of the vocabulary; each field keeps its own type.
                known: Any = value
                fields = attrs.fields(type(known))
                return evolve(known, **{one.name: walk(getattr(known, one.name)) for one in fields})
            case _:
                return value

    result = walk(script)
    assert isinstance(result, Script)
    return result
