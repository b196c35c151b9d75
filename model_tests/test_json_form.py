"""The JSON form: every value comes back, the same bytes come with and without the accelerator, and every
damage is found at its place."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin

import attrs
import orjson
import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailmark import json_text
from tailmark.budgets import Model
from tailmark.json_form import (
    JsonFormError,
    dump_plain,
    dump_vocabulary,
    dumps,
    loads,
    parse,
    structure,
    structure_union,
    unstructure,
)
from tailmark.json_text import slow_dumps
from tailmark.messages import Message, Part, Role, Text
from tailmark.operations import Append, Operation, SetMetadata
from tailmark.outcomes import Outcome
from tailmark.plans import Node, SummariserReply
from tailmark.traces import Step, Trace
from tailmark.views import Change
from vocabulary import CLASSES, values

UNIONS: Final[tuple[UnionType, ...]] = (Part, Operation, Outcome, Node, SummariserReply)
# A trace is a large value of many small ones.
LARGE: Final = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


class TestEveryValueComesBack:
    @pytest.mark.parametrize("target", CLASSES, ids=lambda target: target.__name__)
    @given(data=st.data())
    @settings(LARGE, max_examples=20)
    def test_of_every_class(self, target: type[attrs.AttrsInstance], data: st.DataObject) -> None:
        value = data.draw(values(target))
        assert loads(dumps(value), target) == value
        assert structure(unstructure(value), target) == value

    @pytest.mark.parametrize("union", UNIONS, ids=lambda union: get_args(union)[0].__name__)
    @given(data=st.data())
    @settings(max_examples=50)
    def test_of_every_closed_union(self, union: UnionType, data: st.DataObject) -> None:
        value = data.draw(values(union))
        assert structure_union(parse(dumps(value)), union) == value

    @pytest.mark.parametrize("union", UNIONS, ids=lambda union: get_args(union)[0].__name__)
    def test_the_kinds_of_a_union_differ(self, union: UnionType) -> None:
        kinds = [member.kind for member in get_args(union)]
        assert len(set(kinds)) == len(kinds)


class TestTheBytes:
    @given(value=values(Operation) | values(Outcome) | values(Step))
    @settings(LARGE)
    def test_are_the_same_with_and_without_the_accelerator(self, value: object) -> None:
        assert dumps(value) == orjson.dumps(unstructure(value)) == slow_dumps(unstructure(value))

    @given(value=values(Operation) | values(Outcome))
    def test_are_the_same_where_it_is_plain_already(self, value: object) -> None:
        plain = {"id": 1, "params": unstructure(value)}
        assert dump_vocabulary(plain) == dump_plain(plain)

    def test_of_plain_values_are_the_standard_librarys(self) -> None:
        assert dump_plain({"ä": [1e-7, 1e16, 2**70, None, True]}) == (
            '{"ä":[1e-07,1e+16,1180591620717411303424,null,true]}'.encode()
        )

    def test_leave_out_what_is_at_its_default(self) -> None:
        message = Message(id="m", role=Role.USER, parts=())  # type: ignore[arg-type]  # a plain text will do
        assert dumps(message) == b'{"kind":"message","id":"m","role":"user","parts":[]}'


@frozen(kw_only=True)
class Place:
    """An element of a document: its path, its type without ``None``, and whether it may be null."""

    path: str
    steps: tuple[str | int, ...]
    target: Any  # Any: a type expression
    nullable: bool


# Any: type expressions and plain JSON values, here and below.
def places(plain: Any, target: Any, path: str = "$", steps: tuple[str | int, ...] = ()) -> Iterator[Place]:
    """All elements of a document, the outermost first."""
    if isinstance(target, NewType):
        target = target.__supertype__
    nullable = False
    members = get_args(target) if get_origin(target) in (Union, UnionType) else ()
    if NoneType in members:
        nullable = True
        members = tuple(member for member in members if member is not NoneType)
        target = members[0] if len(members) == 1 else Union[members]  # noqa: UP007  # its members are known at run time only
        if isinstance(target, NewType):
            target = target.__supertype__
    yield Place(path=path, steps=steps, target=target, nullable=nullable)
    if plain is None:
        return
    if len(members) > 1:
        target = next(member for member in members if member.kind == plain["kind"])
    if isinstance(target, type) and attrs.has(target):
        for field in attrs.fields(target):
            if field.name in plain:
                yield from places(plain[field.name], field.type, f"{path}.{field.name}", (*steps, field.name))
    elif get_origin(target) is tuple:
        for index, one in enumerate(plain):
            yield from places(one, get_args(target)[0], f"{path}[{index}]", (*steps, index))


_LONE = "a\ud800b"
_NO_TEXT: tuple[object, ...] = (0, True, 1.5, [], {}, ["a"], _LONE)
_NO_NUMBER: tuple[object, ...] = ("1", True, 1.0, 1.5, math.nan, math.inf, -1, 2**63, 10**400, [], {})
_NO_BOOLEAN: tuple[object, ...] = (0, 1, "true", 1.0, [], {})
_NO_ENUM: tuple[object, ...] = ("no-such-member", "", 0, True, [], {}, _LONE)
_NO_LIST: tuple[object, ...] = ({}, "ab", 0, False, 2.5)
_NO_OBJECT: tuple[object, ...] = ([], [1], "kind", 0, True, math.nan)
_NO_MAPPING: tuple[object, ...] = (*_NO_OBJECT, {"a": 1}, {"a": None}, {"a": _LONE}, {_LONE: "a"})


def wrong_values(place: Place) -> tuple[object, ...]:
    """What may not stand at a place."""
    target = place.target
    nothing: tuple[object, ...] = () if place.nullable else (None,)
    if target is str:
        return (*nothing, *_NO_TEXT)
    if target is int:
        return (*nothing, *_NO_NUMBER)
    if target is bool:
        return (*nothing, *_NO_BOOLEAN)
    if isinstance(target, type) and issubclass(target, StrEnum):
        return (*nothing, *_NO_ENUM)
    if get_origin(target) is tuple:
        return (*nothing, *_NO_LIST)
    if get_origin(target) is Mapping:
        return (*nothing, *_NO_MAPPING)
    return (*nothing, *_NO_OBJECT)


def put(plain: Any, steps: tuple[str | int, ...], value: object) -> Any:
    """A document with another value at a place."""
    if not steps:
        return value
    copy: Any = list(plain) if isinstance(plain, list) else dict(plain)
    copy[steps[0]] = put(plain[steps[0]], steps[1:], value)
    return copy


def at(plain: Any, steps: tuple[str | int, ...]) -> Any:
    """What stands at a place."""
    for step in steps:
        plain = plain[step]
    return plain


def problems_of(text: str, target: type[object]) -> dict[str, str]:
    """What is wrong with a document, by path. Anything but `JsonFormError` is an error of the test."""
    with pytest.raises(JsonFormError) as caught:
        loads(text, target)
    assert caught.value.problems
    return {problem.path: problem.text for problem in caught.value.problems}


TARGETS: Final[tuple[type[attrs.AttrsInstance], ...]] = (Trace, Step, Change, Append, Message, SetMetadata)
documents = st.sampled_from(TARGETS).flatmap(lambda target: st.tuples(st.just(target), values(target)))


class TestDamage:
    """A valid document is damaged in one place, at any depth."""

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=400)
    def test_a_wrong_value(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        plain = json.loads(dumps(value))
        place = data.draw(st.sampled_from(list(places(plain, target))))
        wrong = data.draw(st.sampled_from(wrong_values(place)))
        assert place.path in problems_of(json.dumps(put(plain, place.steps, wrong)), target)

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=200)
    def test_an_unknown_field(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        plain = json.loads(dumps(value))
        place = self._object(plain, target, data)
        damaged = {**at(plain, place.steps), "no-such-field": None}
        found = problems_of(json.dumps(put(plain, place.steps, damaged)), target)
        assert found[place.path] == "unknown field 'no-such-field'"

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=200)
    def test_a_missing_field(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        plain = json.loads(dumps(value))
        place = self._object(plain, target, data)
        known = at(plain, place.steps)
        one = self._class(place, known)
        required = [field.name for field in attrs.fields(one) if field.default is attrs.NOTHING]
        # A kind that is a field of its own is one like the others.
        tells_its_class = isinstance(getattr(one, "kind", None), str)
        if tells_its_class:
            required.append("kind")
        if not required:
            return
        name = data.draw(st.sampled_from(required))
        damaged = {key: field for key, field in known.items() if key != name}
        found = problems_of(json.dumps(put(plain, place.steps, damaged)), target)
        # Without its kind nobody knows what fields an object has.
        assert (place.path if name == "kind" and tells_its_class else f"{place.path}.{name}") in found

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=200)
    def test_an_unknown_kind(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        plain = json.loads(dumps(value))
        place = self._object(plain, target, data)
        wrong: object = data.draw(
            st.sampled_from(["no-such-kind", "", None, 0, True, [], {}, _LONE, [[["a"]]]])
        )
        known = at(plain, place.steps)
        damaged = {**known, "kind": wrong}
        fields = {field.name for field in attrs.fields(self._class(place, known))}
        path = f"{place.path}.kind" if "kind" in fields else place.path
        assert path in problems_of(json.dumps(put(plain, place.steps, damaged)), target)

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=200)
    def test_a_key_that_stands_twice(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        plain = json.loads(dumps(value))
        place = self._object(plain, target, data)
        known = at(plain, place.steps)
        if not known:
            return
        key = data.draw(st.sampled_from(sorted(known)))
        marked = json.dumps(put(plain, place.steps, {**known, "#twice#": 0}))
        text = marked.replace('"#twice#": 0', f"{json.dumps(key)}: {json.dumps(known[key])}")
        assert problems_of(text, target)[place.path] == f"key {key!r} stands twice in one object"

    @given(change=values(Change).filter(lambda change: change.nodes or change.sessions))
    @settings(LARGE)
    def test_a_node_or_session_that_stands_twice(self, change: Change) -> None:
        plain = json.loads(dumps(change))
        field = "nodes" if change.nodes else "sessions"
        plain[field].append(plain[field][0])
        assert f"stands twice in {field}" in problems_of(json.dumps(plain), Change)["$"]

    def test_several_faults_at_once(self) -> None:
        parts = [{"kind": "text", "id": "a", "text": 3}, {"kind": "text", "id": "b", "text": "", "z": 1}]
        document = {"kind": "message", "id": "m", "role": "nobody", "parts": parts}
        assert set(problems_of(json.dumps(document), Message)) == {
            "$.role",
            "$.parts[0].text",
            "$.parts[1]",
        }

    def _object(self, plain: Any, target: Any, data: st.DataObject) -> Place:
        objects = [
            place
            for place in places(plain, target)
            if isinstance(at(plain, place.steps), dict) and get_origin(place.target) is not Mapping
        ]
        return data.draw(st.sampled_from(objects))

    def _class(self, place: Place, known: Mapping[str, object]) -> type[attrs.AttrsInstance]:
        members = get_args(place.target)
        one = next((member for member in members if member.kind == known["kind"]), place.target)
        assert isinstance(one, type)
        assert attrs.has(one)
        return one


_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["kind", "append", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "id", "session", "message", "parts", "text", "x"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


class TestAnythingElse:
    @given(text=st.text(max_size=30) | st.binary(max_size=30))
    def test_any_text_is_read_or_refused(self, text: str | bytes) -> None:
        with pytest.raises(JsonFormError):
            loads(text, Trace)

    @given(plain=_anything, target=st.sampled_from(CLASSES))
    @settings(max_examples=500)
    def test_any_json_is_read_or_refused(self, plain: object, target: type[attrs.AttrsInstance]) -> None:
        with suppress(JsonFormError):
            assert isinstance(loads(json.dumps(plain), target), target)

    @pytest.mark.parametrize("depth", [50, 500, 900, 960, 990, 2000, 100_000])
    @pytest.mark.parametrize("opening", ["[", '{"kind":', '{"kind":"append","message":{"parts":['])
    def test_deep_nesting(self, opening: str, depth: int) -> None:
        closing = "".join({"[": "]", "{": "}"}[one] for one in reversed(opening) if one in "[{")
        deep = opening * depth + "0" + closing * depth
        for text in (deep, f'{{"kind":{deep}}}', f'{{"kind":"append","session":{deep}}}'):
            problems_of(text, Append)

    def test_no_json(self) -> None:
        assert "no JSON" in problems_of("{", Model)["$"]
        assert "byte order mark" in problems_of('\ufeff{"name": "m"}', Model)["$"]
        assert problems_of('{"name": "' + "\\ud800" + '"}', Model) == {
            "$.name": "lone surrogate at character 0"
        }

    def test_no_utf_8(self) -> None:
        with pytest.raises(JsonFormError, match=r"\$: no UTF-8: byte 9"):
            loads(b'{"name":"\xff"}', Model)

    def test_a_number_of_too_many_digits(self) -> None:
        assert "$" in problems_of('{"name":"m","tail_budget":' + "9" * 5000 + "}", Model)


class TestWriting:
    """Nothing is written that could not be read."""

    @given(document=documents, data=st.data())
    @settings(LARGE, max_examples=200)
    def test_a_wrong_value(
        self, document: tuple[type[attrs.AttrsInstance], attrs.AttrsInstance], data: st.DataObject
    ) -> None:
        target, value = document
        field = data.draw(st.sampled_from(attrs.fields(target)))
        path = f"$.{field.name}"
        (place,) = (one for one in places(_with_defaults(value), target) if one.path == path)
        # A list is no tuple, but what is written of both is the same.
        wrong = data.draw(st.sampled_from([one for one in wrong_values(place) if one != []]))
        fields = {one.name: getattr(value, one.name) for one in attrs.fields(target)}
        damaged = target(**{**fields, field.name: wrong})
        with pytest.raises(JsonFormError) as caught:
            dumps(damaged)
        assert path in [problem.path for problem in caught.value.problems]

    def test_deep_inside(self) -> None:
        text = Text(id="t", text=_LONE)  # type: ignore[arg-type]  # a plain text will do, here and below
        message = Message(id="m", role=Role.USER, parts=(text,))  # type: ignore[arg-type]
        with pytest.raises(JsonFormError, match=r"^\$\.message\.parts\[0\]\.text: lone surrogate"):
            dumps(Append(session="S", message=message))  # type: ignore[arg-type]

    @pytest.mark.parametrize("wrong", [math.nan, math.inf, _LONE, {1: 2}, {_LONE: 1}, object(), b"a"])
    def test_plain_values_that_json_does_not_have(self, wrong: object) -> None:
        with pytest.raises(JsonFormError, match=r"^\$\.a\[1\]: "):
            dump_plain({"a": [0, wrong]})

    @pytest.mark.parametrize("fast", [json_text.fast_dumps, None], ids=["fast", "slow"])
    def test_texts_among_plain_values_of_the_vocabulary(
        self, fast: Callable[[object], bytes] | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_text, "fast_dumps", fast)
        with pytest.raises(JsonFormError, match=r"^\$\.a\[1\]: lone surrogate"):
            dump_vocabulary({"a": [0, _LONE]})


def _with_defaults(value: attrs.AttrsInstance) -> dict[str, object]:
    """A value's plain form at its outermost level, nothing left out; what is nested is left as null."""
    return {field.name: None for field in attrs.fields(type(value))}
