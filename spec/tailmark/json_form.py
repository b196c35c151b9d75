"""The one JSON form of the vocabulary, strict both ways.

Every value of the vocabulary is an object of its fields; a member of a closed union also has ``kind``. A
field at its default is left out. `dumps` gives the same bytes with and without the accelerator `orjson`.
`loads` refuses what JSON readers usually let pass: unknown fields, wrong types, NaN, lone surrogates,
keys that stand twice, and nodes or sessions that stand twice. `dumps` writes nothing that `loads` would
refuse. What a caller may get wrong, such as two parts of one id, can be written: refusing it is the
implementation's (DEF-MESSAGE). Each problem names its ``$.path``.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from tailmark.budgets import SettingName
from tailmark.damage import DamageKind, FindingKind
from tailmark.declarations import (
    AdvanceReading,
    Capability,
    Field,
    MeasureReading,
    OversizedReading,
    ReasoningReading,
    RefreshReading,
    TailReading,
)
from tailmark.json_text import (
    FaultError,
    JsonFormError,
    Problem,
    dump_plain,
    dump_vocabulary,
    fast_dumps,
    first_duplicate,
    named,
    parse,
    require_boolean,
    require_natural,
    require_object,
    require_text,
    shown,
    slow_dumps,
    strict_none,
    strict_text,
)
from tailmark.messages import AnswerEnd, ResultStatus, Role, UsageScope
from tailmark.outcomes import FailureReason, LargePart, NoopReason, RefusalCode
from tailmark.plans import FinishReason, Trigger
from tailmark.projections import Marking
from tailmark.traces import Trace
from tailmark.views import Change

__all__ = [
    "JsonFormError",
    "Problem",
    "digest",
    "digest_bytes",
    "dump_plain",
    "dump_vocabulary",
    "dumps",
    "loads",
    "parse",
    "structure",
    "structure_union",
    "unstructure",
]

T = TypeVar("T")


@cache
def _members(target: type[StrEnum]) -> Mapping[str, StrEnum]:
    return {member.value: member for member in target}


def _structure_enum(value: object, target: type[StrEnum]) -> StrEnum:
    members = _members(target)
    if not isinstance(value, str) or value not in members:
        raise FaultError(f"expected one of {', '.join(map(str, members))}, found {shown(value)}")
    return members[value]


def _unstructure_enum(target: type[StrEnum]) -> Callable[[object], str]:
    values = {member: str(member.value) for member in target}

    def unstructure(value: object) -> str:
        # A plain text that equals a member is not the member.
        if not isinstance(value, target):
            raise FaultError(f"expected a {target.__name__}, found {shown(value)}")
        return values[value]

    return unstructure


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


def _unique(where: str, ids: Sequence[str]) -> None:
    twice = first_duplicate(ids)
    if twice is not None:
        raise FaultError(f"id {twice!r} stands twice in {where}")


def _check_change(change: Change) -> None:
    _unique("nodes", [node.content.id for node in change.nodes])
    _unique("sessions", [view.session for view in change.sessions])


def _check_trace(trace: Trace) -> None:
    _unique("sessions", trace.sessions)


# Which class carries ids that must be unique, and the test for it.
# Any: each test takes the class that it is listed under.
_ID_CHECKS: dict[type, Callable[[Any], None]] = {
    Change: _check_change,
    Trace: _check_trace,
}


# All enums of the vocabulary.
_ENUMS: tuple[type[StrEnum], ...] = (
    AdvanceReading,
    AnswerEnd,
    Capability,
    DamageKind,
    FailureReason,
    Field,
    FindingKind,
    FinishReason,
    LargePart,
    Marking,
    MeasureReading,
    NoopReason,
    OversizedReading,
    ReasoningReading,
    RefreshReading,
    RefusalCode,
    ResultStatus,
    Role,
    SettingName,
    TailReading,
    Trigger,
    UsageScope,
)


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, omit_if_default=True)
    known_enums: set[type[StrEnum]] = set()

    # Any: the hooks below serve every class of the vocabulary alike.
    def structure_class(target: type[Any]) -> Callable[[object, object], Any]:
        base = make_dict_structure_fn(target, converter, _cattrs_forbid_extra_keys=True)
        kind = _kind(target)
        check = _ID_CHECKS.get(target)

        def structure(value: object, _: object) -> Any:
            fields = require_object(value)
            if kind is not None:
                if fields.get("kind") != kind:
                    raise FaultError(f"expected kind {kind!r}, found {shown(fields.get('kind'))}")
                fields = dict(fields)
                del fields["kind"]
            result = base(fields, target)
            if check is not None:
                check(result)
            return result

        return structure

    def unstructure_class(target: type[Any]) -> Callable[[Any], dict[str, Any]]:
        for field in attrs.fields(target):
            for one in (field.type, *get_args(field.type)):
                # By its class and not by a predicate, for the same reason as below.
                if isinstance(one, type) and issubclass(one, StrEnum) and one not in known_enums:
                    # Once: each registration makes the converter forget what it has worked out.
                    known_enums.add(one)
                    converter.register_unstructure_hook(one, _unstructure_enum(one))
        base = make_dict_unstructure_fn(target, converter, _cattrs_omit_if_default=True)
        kind = _kind(target)
        check = _ID_CHECKS.get(target)

        def unstructure(value: object) -> dict[str, Any]:
            if type(value) is not target:
                raise FaultError(f"expected a {target.__name__}, found {named(value)}")
            fields = base(value)
            # Behind the fields: by then their types are known to be right.
            if check is not None:
                check(value)
            return {"kind": kind, **fields} if kind is not None else fields

        return unstructure

    def structure_union(target: Any) -> Callable[[object, object], Any]:
        optional = type(None) in get_args(target)
        members = {_kind(member): member for member in get_args(target) if member is not type(None)}

        def structure(value: object, _: object) -> Any:
            if optional and value is None:
                return None
            kind = require_object(value).get("kind")
            member = members.get(kind) if isinstance(kind, str) else None
            if member is None:
                expected = ", ".join(str(name) for name in members)
                raise FaultError(f"expected a kind of {expected}, found {shown(kind)}")
            return converter.structure(value, member)

        return structure

    def unstructure_union(target: Any) -> Callable[[object], Any]:
        members = frozenset(get_args(target))

        def unstructure(value: object) -> Any:
            if type(value) not in members:
                raise FaultError(f"found {named(value)}, which is no member of the union")
            return converter.unstructure(value, type(value)) if value is not None else None

        return unstructure

    def structure_optional(target: Any) -> Callable[[object, object], Any]:
        (member,) = (one for one in get_args(target) if one is not type(None))
        return lambda value, _: None if value is None else converter.structure(value, member)

    def structure_tuple(target: Any) -> Callable[[object, object], Any]:
        (member, _) = get_args(target)
        base = converter.get_structure_hook(list[member])  # type: ignore[valid-type]  # the member is known at run time only

        def structure(value: object, _: object) -> Any:
            if not isinstance(value, list | tuple):
                raise FaultError(f"expected a list, found {named(value)}")
            return tuple(base(value, list[member]))  # type: ignore[valid-type]  # as above

        return structure

    def structure_mapping(value: object, _: object) -> dict[str, str]:
        fields = require_object(value)
        result = {}
        for key, field in fields.items():
            try:
                result[strict_text(key, str)] = strict_text(field, str)
            except FaultError as fault:
                raise FaultError(f"at key {key!r}: {fault}") from None
        return result

    def unstructure_tuple(target: Any) -> Callable[[object], list[Any]]:
        (member, _) = get_args(target)
        base = converter.get_unstructure_hook(member)

        def unstructure(value: object) -> list[Any]:
            if not isinstance(value, tuple):
                raise FaultError(f"expected a tuple, found {named(value)}")
            return [base(one) for one in value]

        return unstructure

    def unstructure_mapping(value: object) -> dict[str, str]:
        return {require_text(key): require_text(field) for key, field in require_object(value).items()}

    converter.register_structure_hook_factory(attrs.has, structure_class)
    converter.register_unstructure_hook_factory(attrs.has, unstructure_class)
    converter.register_structure_hook_factory(_is_optional, structure_optional)
    converter.register_structure_hook_factory(_is_closed_union, structure_union)
    converter.register_unstructure_hook_factory(_is_closed_union, unstructure_union)
    converter.register_structure_hook_factory(_is_tuple, structure_tuple)
    converter.register_unstructure_hook_factory(_is_tuple, unstructure_tuple)
    converter.register_structure_hook_func(_is_mapping, structure_mapping)
    converter.register_unstructure_hook_func(_is_mapping, unstructure_mapping)
    converter.register_structure_hook(str, strict_text)
    # A lone surrogate is found when the text is encoded, at no cost where there is none.
    converter.register_unstructure_hook(str, require_text)
    # An enum here is text as well; without a hook of its own it would be served by the one above.
    converter.register_structure_hook(StrEnum, _structure_enum)
    for enum in _ENUMS:
        converter.register_unstructure_hook(enum, _unstructure_enum(enum))
    # Every whole number of the vocabulary is a count or a size.
    converter.register_structure_hook(int, lambda value, _: require_natural(value))
    converter.register_unstructure_hook(int, require_natural)
    converter.register_structure_hook(bool, lambda value, _: require_boolean(value))
    converter.register_unstructure_hook(bool, require_boolean)
    converter.register_structure_hook(type(None), strict_none)
    return converter


_CONVERTER = _make_converter()


def _describe(exception: BaseException, _: type | None) -> str:
    match exception:
        case FaultError():
            return str(exception)
        case KeyError():
            return f"field {exception.args[0]!r} is missing"
        case ForbiddenExtraKeysError():
            return f"unknown field {', '.join(sorted(map(repr, exception.extra_fields)))}"
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
    except (BaseValidationError, FaultError) as error:
        raise JsonFormError(_problems(error)) from None


def structure_union(
    value: object, union: UnionType
) -> Any:  # Any: mypy has no type for "a member of this union"
    """As `structure`, for a closed union such as `tailmark.operations.Operation`."""
    return structure(value, union)  # type: ignore[arg-type]  # a union is no class


def unstructure(value: object) -> Any:  # Any: plain JSON values
    """Turn a value of the vocabulary into plain JSON values.

    Raises `JsonFormError` for what `structure` would refuse, lone surrogates aside: `dumps` finds those.
    """
    try:
        return _CONVERTER.unstructure(value, type(value))
    except FaultError as fault:
        raise _unwritable(value, str(fault)) from None


def _unwritable(value: object, text: str) -> JsonFormError:
    """What is wrong with a value of the vocabulary, found by reading what a careless writer would write of it."""
    try:
        _CONVERTER.structure(_careless(value), type(value))
    except (BaseValidationError, FaultError) as error:
        return JsonFormError(_problems(error))
    return JsonFormError((Problem(path="$", text=text),))


def _careless(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_careless(one) for one in value]
    if attrs.has(type(value)):
        kind = _kind(type(value))
        names = [field.name for field in attrs.fields(type(value))]  # type: ignore[arg-type]  # see the line above
        fields = {name: _careless(getattr(value, name)) for name in names}
        return {"kind": kind, **fields} if kind is not None else fields
    return value


def loads(text: str | bytes, target: type[T]) -> T:
    """Read a value of the vocabulary from JSON text. Raises `JsonFormError`."""
    return structure(parse(text), target)


def dumps(value: object) -> bytes:
    """The canonical JSON bytes (UTF-8, no white space, fields in declared order) of a value of the vocabulary.

    Raises `JsonFormError` for everything that `loads` would refuse.
    """
    plain = unstructure(value)
    if fast_dumps is not None:
        try:
            return fast_dumps(plain)
        except TypeError:
            pass  # the standard library below says what is wrong, in the same words everywhere
    try:
        return slow_dumps(plain)
    except ValueError as error:
        raise _unwritable(value, str(error)) from None


def digest(value: object) -> str:
    """Sixteen hexadecimal digits that stand for a value's content: of the SHA-256 of its canonical bytes."""
    return digest_bytes(dumps(value))


def digest_bytes(canonical: bytes) -> str:
    """`digest` where the canonical bytes are at hand."""
    return hashlib.sha256(canonical).hexdigest()[:16]
