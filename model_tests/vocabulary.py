"""Every class of the vocabulary, and a strategy for its values made from its fields' types."""

from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from functools import cache
from types import ModuleType, NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from tailmark import declarations, messages, operations, outcomes, plans, traces, views
from tailmark.traces import Trace
from tailmark.views import Change

MODULES: Final[tuple[ModuleType, ...]] = (
    messages,
    plans,
    operations,
    outcomes,
    declarations,
    views,
    traces,
)

CLASSES: Final[tuple[type[attrs.AttrsInstance], ...]] = tuple(
    member
    for module in MODULES
    for member in vars(module).values()
    if isinstance(member, type) and attrs.has(member) and member.__module__ == module.__name__
)
"""All classes that have a JSON form, in the order of their definition."""

TEXTS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
"""Texts without surrogates: those have no UTF-8."""

# By which part of an element a list's elements must differ.
# Any: an element is of the class that it is listed under.
_UNIQUE_BY: Final[Mapping[tuple[type, str], Callable[[Any], Hashable]]] = {
    (Change, "nodes"): lambda node: node.content.id,
    (Change, "sessions"): lambda view: view.session,
    (Trace, "sessions"): lambda session: session,
}


# Any: a type expression has no narrower type, and a strategy gives values of the type that it is asked for.
@cache
def values(target: Any) -> st.SearchStrategy[Any]:
    """Values of a class, an enum, a union, a list, a mapping or a plain type of the vocabulary."""
    if isinstance(target, NewType):
        return values(target.__supertype__)
    if target is str:
        return TEXTS
    if target is bool:
        return st.booleans()
    if target is int:
        return st.integers(0, 2**63 - 1)
    if target is NoneType:
        return st.none()
    if isinstance(target, type) and issubclass(target, StrEnum):
        return st.sampled_from(target)
    if isinstance(target, type) and attrs.has(target):
        fields = {field.name: _field_values(target, field) for field in attrs.fields(target)}
        return st.builds(target, **fields)
    if get_origin(target) in (Union, UnionType):
        return st.one_of(*(values(member) for member in get_args(target)))
    if get_origin(target) is tuple:
        return st.lists(values(get_args(target)[0]), max_size=2).map(tuple)
    if get_origin(target) is Mapping:
        return st.dictionaries(TEXTS, TEXTS, max_size=2)
    raise TypeError(f"no strategy for {target!r}")


# Any: as above.
def _field_values(target: type[Any], field: "attrs.Attribute[Any]") -> st.SearchStrategy[Any]:
    unique_by = _UNIQUE_BY.get((target, field.name))
    if unique_by is None:
        return values(field.type)  # type: ignore[arg-type]  # every type is hashable
    return st.lists(values(get_args(field.type)[0]), max_size=2, unique_by=unique_by).map(tuple)
