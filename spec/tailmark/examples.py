"""The example of a clause, and the counterexample that differs from it in one thing.

An example is an executed trace, stored in ``clauses/examples/<clause>.json`` together with one change to its
JSON form. Behind the change the clause's predicate says that it is violated.
"""

import re
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, Final

from attrs import frozen

from tailmark.identifiers import ClauseId
from tailmark.json_form import JsonFormError, Problem, dump_plain, parse, structure, unstructure
from tailmark.traces import Trace


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""In `Becomes`: the element is taken out."""


@frozen(kw_only=True)
class Becomes:
    """One change to the JSON form of a trace: what stands at ``path`` becomes ``value``, a plain JSON value.

    A path is ``$`` and then ``.field`` or ``[index]``, such as ``$.steps[1].outcome``. A field that is left
    out because it is at its default can be set all the same.
    """

    path: str
    value: object


@frozen(kw_only=True)
class Example:
    """A trace on which a clause holds, and the one change that breaks the clause."""

    clause: ClauseId
    trace: Trace
    becomes: Becomes

    def counterexample(self) -> Trace:
        """The trace behind the change. Raises `JsonFormError` if the change leads nowhere or to no trace."""
        return structure(changed(unstructure(self.trace), self.becomes), Trace)

    def to_bytes(self) -> bytes:
        """The bytes of the stored file."""
        change: dict[str, object] = {"path": self.becomes.path}
        if self.becomes.value is not ABSENT:
            change["value"] = self.becomes.value
        return dump_plain({"clause": self.clause, "trace": unstructure(self.trace), "counterexample": change})


_PATH = re.compile(r"\$(?:\.[a-z_]+|\[\d+\])+")
_STEP = re.compile(r"\.([a-z_]+)|\[(\d+)\]")


def changed(plain: Any, becomes: Becomes) -> Any:  # Any: plain JSON values
    """Plain JSON values with one change made; the given ones stay as they are. Raises `JsonFormError`."""
    if _PATH.fullmatch(becomes.path) is None:
        raise JsonFormError((Problem(path=becomes.path, text="this is no path"),))
    keys = [name or int(index) for name, index in _STEP.findall(becomes.path)]
    return _set(plain, keys, becomes)


def _set(plain: Any, keys: list[Any], becomes: Becomes) -> Any:  # Any: plain JSON values and their keys
    key, rest = keys[0], keys[1:]
    is_list = isinstance(plain, list | tuple)
    if is_list is not isinstance(key, int) or not isinstance(plain, list | tuple | dict):
        raise JsonFormError((Problem(path=becomes.path, text=f"nothing stands at {key!r}"),))
    copy = list(plain) if is_list else dict(plain)
    if not rest and becomes.value is not ABSENT and not is_list:
        copy[key] = becomes.value
        return copy
    try:
        if rest:
            copy[key] = _set(copy[key], rest, becomes)
        elif becomes.value is ABSENT:
            del copy[key]
        else:
            copy[key] = becomes.value
    except (KeyError, IndexError):
        raise JsonFormError((Problem(path=becomes.path, text=f"nothing stands at {key!r}"),)) from None
    return copy


@cache
def example(clause: ClauseId) -> Example:
    """The stored example of a clause. Raises `FileNotFoundError` if there is none, `JsonFormError` if it is damaged."""
    stored = files("tailmark").joinpath("clauses", "examples", f"{clause}.json").read_bytes()
    plain = parse(stored)
    if not isinstance(plain, dict) or set(plain) != {"clause", "trace", "counterexample"}:
        raise JsonFormError((Problem(path="$", text="expected clause, trace and counterexample"),))
    change = plain["counterexample"]
    if plain["clause"] != clause or not isinstance(change, dict) or not isinstance(change.get("path"), str):
        raise JsonFormError((Problem(path="$", text=f"this is no example of {clause}"),))
    return Example(
        clause=clause,
        trace=structure(plain["trace"], Trace),
        becomes=Becomes(path=change["path"], value=change.get("value", ABSENT)),
    )
