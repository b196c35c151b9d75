"""The one JSON form of the vocabulary, strict both ways.

Every value of the vocabulary is an object of its fields; a member of a closed union also has ``kind``. A
field at its default is left out. `dumps` gives the same bytes with and without the accelerator `orjson`.
`loads` refuses what JSON readers usually let pass: unknown fields, wrong types, NaN, lone surrogates,
keys that stand twice, and ids that must be unique and are not. Each problem names its ``$.path``.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
from attrs import frozen
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from tailmark.messages import Message
from tailmark.traces import Trace
from tailmark.views import Change

try:
    import orjson
except ImportError:  # the optional accelerator
    _fast_dumps: Callable[[object], bytes] | None = None
else:
    _fast_dumps = orjson.dumps

T = TypeVar("T")


@frozen
class Problem:
    """One fault in a document: where (``$.path``) and what."""

    path: str
    text: str


class JsonFormError(ValueError):
    """A document is not of the form asked for. ``problems`` has at least one entry."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{problem.path}: {problem.text}" for problem in problems))
        self.problems = problems


class _FaultError(ValueError):
    """A fault found while structuring; its path is added on the way out."""


class _TwiceKeyed(dict[str, object]):
    """An object of a document in which ``twice`` stands as a key more than once."""

    twice: str


def _named(value: object) -> str:
    match value:
        case float() if not math.isfinite(value):
            return "NaN or infinity, which JSON does not have"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "a whole number"
        case float():
            return "a number with a fraction"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return type(value).__name__


def _strict_text(value: object, _: object) -> str:
    if not isinstance(value, str):
        raise _FaultError(f"expected text, found {_named(value)}")
    # Encoding is the fastest test for a surrogate without its partner.
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _FaultError(f"lone surrogate at character {error.start}") from None
    return value


def _strict_integer(value: object, _: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _FaultError(f"expected a whole number, found {_named(value)}")
    return value


def _strict_natural(value: object, _: object) -> int:
    number = _strict_integer(value, _)
    if not 0 <= number < 2**63:
        raise _FaultError(f"expected 0 to 2**63 - 1, found {number}")
    return number


def _strict_boolean(value: object, _: object) -> bool:
    if not isinstance(value, bool):
        raise _FaultError(f"expected true or false, found {_named(value)}")
    return value


def _strict_none(value: object, _: object) -> None:
    if value is not None:
        raise _FaultError(f"expected null, found {_named(value)}")


def _structure_enum(value: object, target: type[StrEnum]) -> StrEnum:
    members = {member.value: member for member in target}
    if not isinstance(value, str) or value not in members:
        raise _FaultError(f"expected one of {', '.join(map(str, members))}, found {value!r}"[:300])
    return members[value]


def _kind(target: object) -> str | None:
    kind = getattr(target, "kind", None)
    return kind if isinstance(kind, str) else None


def _is_closed_union(target: object) -> bool:
    if get_origin(target) not in (Union, UnionType):
        return False
    members = [member for member in get_args(target) if member is not type(None)]
    return len(members) > 1 and all(_kind(member) is not None for member in members)


def _is_optional(target: object) -> bool:
    if get_origin(target) not in (Union, UnionType):
        return False
    return type(None) in get_args(target) and len(get_args(target)) == 2


# Any: a type expression has no narrower type.
def _is_tuple(target: Any) -> bool:
    return get_origin(target) is tuple


def _is_mapping(target: Any) -> bool:
    return get_origin(target) is Mapping


def _require_object(value: object) -> Mapping[str, object]:
    if isinstance(value, _TwiceKeyed):
        raise _FaultError(f"key {value.twice!r} stands twice in one object")
    if not isinstance(value, Mapping):
        raise _FaultError(f"expected an object, found {_named(value)}")
    return value


def _duplicates(ids: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None


def _unique(where: str, ids: Iterable[str]) -> None:
    twice = _duplicates(ids)
    if twice is not None:
        raise _FaultError(f"id {twice!r} stands twice in {where}")


def _check_message(message: Message) -> None:
    _unique("parts", (part.id for part in message.parts))


def _check_change(change: Change) -> None:
    _unique("nodes", (node.content.id for node in change.nodes))
    _unique("sessions", (view.session for view in change.sessions))


def _check_trace(trace: Trace) -> None:
    _unique("sessions", trace.sessions)


# Which class carries ids that must be unique, and the test for it.
# Any: each test takes the class that it is listed under.
_ID_CHECKS: dict[type, Callable[[Any], None]] = {
    Message: _check_message,
    Change: _check_change,
    Trace: _check_trace,
}


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, omit_if_default=True)

    # Any: the hooks below serve every class of the vocabulary alike.
    def structure_class(target: type[Any]) -> Callable[[object, object], Any]:
        base = make_dict_structure_fn(target, converter, _cattrs_forbid_extra_keys=True)
        kind = _kind(target)
        check = _ID_CHECKS.get(target)

        def structure(value: object, _: object) -> Any:
            fields = _require_object(value)
            if kind is not None:
                if fields.get("kind") != kind:
                    raise _FaultError(f"expected kind {kind!r}, found {fields.get('kind')!r}")
                fields = {key: field for key, field in fields.items() if key != "kind"}
            result = base(fields, target)
            if check is not None:
                check(result)
            return result

        return structure

    def unstructure_class(target: type[Any]) -> Callable[[Any], dict[str, Any]]:
        base = make_dict_unstructure_fn(target, converter, _cattrs_omit_if_default=True)
        kind = _kind(target)
        if kind is None:
            return base
        return lambda value: {"kind": kind, **base(value)}

    def structure_union(target: Any) -> Callable[[object, object], Any]:
        optional = type(None) in get_args(target)
        members = {_kind(member): member for member in get_args(target) if member is not type(None)}

        def structure(value: object, _: object) -> Any:
            if optional and value is None:
                return None
            kind = _require_object(value).get("kind")
            member = members.get(kind) if isinstance(kind, str) else None
            if member is None:
                expected = ", ".join(str(name) for name in members)
                raise _FaultError(f"expected a kind of {expected}, found {kind!r}"[:300])
            return converter.structure(value, member)

        return structure

    def unstructure_union(_: object) -> Callable[[Any], Any]:
        return lambda value: converter.unstructure(value, type(value)) if value is not None else None

    def structure_optional(target: Any) -> Callable[[object, object], Any]:
        (member,) = (one for one in get_args(target) if one is not type(None))
        return lambda value, _: None if value is None else converter.structure(value, member)

    def structure_tuple(target: Any) -> Callable[[object, object], Any]:
        (member, _) = get_args(target)
        base = converter.get_structure_hook(list[member])  # type: ignore[valid-type]  # the member is known at run time only

        def structure(value: object, _: object) -> Any:
            if not isinstance(value, list | tuple):
                raise _FaultError(f"expected a list, found {_named(value)}")
            return tuple(base(value, list[member]))  # type: ignore[valid-type]  # as above

        return structure

    def structure_mapping(value: object, _: object) -> dict[str, str]:
        fields = _require_object(value)
        result = {}
        for key, field in fields.items():
            try:
                result[_strict_text(key, str)] = _strict_text(field, str)
            except _FaultError as fault:
                raise _FaultError(f"at key {key!r}: {fault}") from None
        return result

    converter.register_structure_hook_factory(attrs.has, structure_class)
    converter.register_unstructure_hook_factory(attrs.has, unstructure_class)
    converter.register_structure_hook_factory(_is_optional, structure_optional)
    converter.register_structure_hook_factory(_is_closed_union, structure_union)
    converter.register_unstructure_hook_factory(_is_closed_union, unstructure_union)
    converter.register_structure_hook_factory(_is_tuple, structure_tuple)
    converter.register_structure_hook_func(_is_mapping, structure_mapping)
    converter.register_structure_hook(str, _strict_text)
    # An enum here is text as well; without a hook of its own it would be served by the one above.
    converter.register_structure_hook(StrEnum, _structure_enum)
    # Every whole number of the vocabulary is a count or a size.
    converter.register_structure_hook(int, _strict_natural)
    converter.register_structure_hook(bool, _strict_boolean)
    converter.register_structure_hook(type(None), _strict_none)
    return converter


_CONVERTER = _make_converter()


def _describe(exception: BaseException, _: type | None) -> str:
    match exception:
        case _FaultError():
            return str(exception)
        case KeyError():
            return f"field {exception.args[0]!r} is missing"
        case ForbiddenExtraKeysError():
            return f"unknown field {', '.join(repr(field) for field in sorted(exception.extra_fields))}"
        case _:
            raise exception


def _problems(exception: BaseException) -> tuple[Problem, ...]:
    problems = []
    for line in transform_error(exception, format_exception=_describe):
        text, _, path = line.rpartition(" @ ")
        problems.append(Problem(path=path, text=text))
    return tuple(problems)


def structure(value: object, target: type[T]) -> T:
    """Turn plain JSON values into a value of the vocabulary.

    Raises `JsonFormError`, which names every problem with its path.
    """
    try:
        return _CONVERTER.structure(value, target)
    except (BaseValidationError, _FaultError) as error:
        raise JsonFormError(_problems(error)) from None


def structure_union(
    value: object, union: UnionType
) -> Any:  # Any: mypy has no type for "a member of this union"
    """As `structure`, for a closed union such as `tailmark.operations.Operation`."""
    return structure(value, union)  # type: ignore[arg-type]  # a union is no class


def unstructure(value: object) -> Any:  # Any: plain JSON values
    """Turn a value of the vocabulary into plain JSON values. A lone surrogate in it raises `JsonFormError`."""
    return _CONVERTER.unstructure(value, type(value))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    twice = _duplicates(key for key, _ in pairs)
    if twice is None:
        return dict(pairs)
    # `structure` reports it, because only there the path is known.
    marked = _TwiceKeyed(pairs)
    marked.twice = twice
    return marked


def parse(text: str | bytes) -> object:
    """Read JSON text into plain values for `structure`, which reports NaN and keys that stand twice.

    Raises `JsonFormError` for what is no JSON or no UTF-8.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        problem = f"no JSON: {error.msg} at line {error.lineno}, character {error.colno}"
    except UnicodeDecodeError as error:
        problem = f"no UTF-8: byte {error.start}"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:  # such as a number of more digits than Python reads
        problem = f"no JSON: {error}"
    raise JsonFormError((Problem(path="$", text=problem),))


def loads(text: str | bytes, target: type[T]) -> T:
    """Read a value of the vocabulary from JSON text. Raises `JsonFormError`."""
    return structure(parse(text), target)


def dumps(value: object) -> bytes:
    """The canonical JSON bytes (UTF-8, no white space, fields in declared order) of a value of the vocabulary.

    Raises `JsonFormError` for a lone surrogate or a number that JSON cannot carry.
    """
    return dump_plain(unstructure(value))


def dump_plain(plain: object) -> bytes:
    """As `dumps`, for plain JSON values."""
    if _fast_dumps is not None:
        try:
            return _fast_dumps(plain)
        except TypeError:
            pass  # the standard library below says what is wrong, in the same words everywhere
    try:
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError as error:
        problem = f"lone surrogate at character {error.start} of the document"
    except ValueError as error:
        problem = str(error)
    raise JsonFormError((Problem(path="$", text=problem),))


def digest(value: object) -> str:
    """Sixteen hexadecimal digits that stand for a value's content: of the SHA-256 of its canonical bytes."""
    return digest_bytes(dumps(value))


def digest_bytes(canonical: bytes) -> str:
    """`digest` where the canonical bytes are at hand."""
    return hashlib.sha256(canonical).hexdigest()[:16]
