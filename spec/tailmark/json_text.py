"""JSON text and plain JSON values, read and written strictly.

What JSON readers and writers usually let pass is an error here, with its ``$.path``. The values of the
vocabulary are the business of `tailmark.json_form`.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

try:
    import orjson
except ImportError:  # the optional accelerator
    fast_dumps: Callable[[object], bytes] | None = None
else:
    fast_dumps = orjson.dumps


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


class FaultError(ValueError):
    """A fault in one place of a document; its path is added on the way out."""


class TwiceKeyed(dict[str, object]):
    """An object of a document in which ``twice`` stands as a key more than once."""

    twice: str


def named(value: object) -> str:
    """What a value is, in words for people."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN or infinity"
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


def shown(value: object) -> str:
    """A text as it stands, cut where it is long; of anything else what it is, for it may be of any size or depth."""
    return f"{value[:100]!r}" if isinstance(value, str) else named(value)


def require_text(value: object) -> str:
    """The value, if it is text. Raises `FaultError`."""
    if not isinstance(value, str):
        raise FaultError(f"expected text, found {named(value)}")
    return value


def strict_text(value: object, _: object) -> str:
    """As `require_text`, without a lone surrogate."""
    value = require_text(value)
    # Encoding is the fastest test for a surrogate without its partner.
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FaultError(f"lone surrogate at character {error.start}") from None
    return value


def require_natural(value: object) -> int:
    """The value, if it is a whole number of 63 bits. Raises `FaultError`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise FaultError(f"expected a whole number, found {named(value)}")
    if not 0 <= value < 2**63:
        found = value if abs(value) < 2**128 else "a longer number"
        raise FaultError(f"expected 0 to 2**63 - 1, found {found}")
    return value


def require_boolean(value: object) -> bool:
    """The value, if it is true or false. Raises `FaultError`."""
    if not isinstance(value, bool):
        raise FaultError(f"expected true or false, found {named(value)}")
    return value


def strict_none(value: object, _: object) -> None:
    """Nothing, if the value is null. Raises `FaultError`."""
    if value is not None:
        raise FaultError(f"expected null, found {named(value)}")


def require_object(value: object) -> Mapping[str, object]:
    """The value, if it is an object without a key that stands twice. Raises `FaultError`."""
    if isinstance(value, TwiceKeyed):
        raise FaultError(f"key {value.twice!r} stands twice in one object")
    if not isinstance(value, Mapping):
        raise FaultError(f"expected an object, found {named(value)}")
    return value


def first_duplicate(ids: Sequence[str]) -> str | None:
    """The first id that stands twice."""
    if len(set(ids)) == len(ids):
        return None
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    # `structure` reports it, because only there the path is known.
    marked = TwiceKeyed(pairs)
    twice = first_duplicate([key for key, _ in pairs])
    assert twice is not None  # the two lengths differ
    marked.twice = twice
    return marked


_MARK = "\ufeff"
# Made once: `json.loads` and `json.dumps` make a new one for each call with such wishes.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse(text: str | bytes) -> object:
    """Read JSON text into plain values for `tailmark.json_form.structure`, which reports NaN and keys that stand twice.

    Raises `JsonFormError` for what is no JSON or no UTF-8.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        if not text.startswith(_MARK):
            return _DECODER.decode(text)
        problem = "no JSON: a byte order mark stands before it"
    except json.JSONDecodeError as error:
        problem = f"no JSON: {error.msg} at line {error.lineno}, character {error.colno}"
    except UnicodeDecodeError as error:
        problem = f"no UTF-8: byte {error.start}"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:  # such as a number of more digits than Python reads
        problem = f"no JSON: {error}"
    raise JsonFormError((Problem(path="$", text=problem),))


def slow_dumps(plain: object) -> bytes:
    """The bytes of plain values by the standard library. Raises `ValueError` for what JSON cannot carry."""
    return _ENCODER.encode(plain).encode()


def dump_vocabulary(plain: object) -> bytes:
    """As `dump_plain`, and faster, for what consists of values that `tailmark.json_form.unstructure` made. Raises `JsonFormError`."""
    try:
        return fast_dumps(plain) if fast_dumps is not None else slow_dumps(plain)
    except (TypeError, ValueError):
        return dump_plain(plain)  # it says what is wrong, or knows a longer number


def dump_plain(plain: object) -> bytes:
    """The bytes of plain JSON values, which may have fractions; else as `tailmark.json_form.dumps`. Raises `JsonFormError`."""
    # Always the standard library: orjson writes fractions in another way, and NaN as null.
    try:
        problems = tuple(_plain_problems(plain, "$"))
        if not problems:
            return slow_dumps(plain)
    except RecursionError:
        problems = (Problem(path="$", text="nested too deeply"),)
    raise JsonFormError(problems)


def _plain_problems(plain: object, path: str) -> Iterator[Problem]:
    match plain:
        case None | bool() | int():
            pass
        case str():
            yield from _text_problems(plain, path)
        case float() if math.isfinite(plain):
            pass
        case list() | tuple():
            for index, one in enumerate(plain):
                yield from _plain_problems(one, f"{path}[{index}]")
        case Mapping():
            for key, one in plain.items():
                yield from _text_problems(key, path)
                yield from _plain_problems(one, f"{path}.{key}")
        case _:
            yield Problem(path=path, text=f"found {named(plain)}, which JSON does not have")


def _text_problems(value: object, path: str) -> Iterator[Problem]:
    try:
        strict_text(value, str)
    except FaultError as fault:
        yield Problem(path=path, text=str(fault))
