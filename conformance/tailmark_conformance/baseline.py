"""The baseline: which failures are known, why, and until when they are accepted. A TOML file that people write."""

import re
import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from attrs import Attribute, field, frozen
from cattrs import Converter, transform_error
from cattrs.errors import ForbiddenExtraKeysError

from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark_conformance.explorers.runs import PSEUDO_CLAUSES

UNTESTABLE: Final = "untestable"
"""Stands in the place of a fingerprint where a clause was never exercised."""

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}")


class BaselineError(Exception):
    """A baseline cannot be used. One line: what, where, what to do."""


def _not_blank(_: object, attribute: "Attribute[str]", value: str) -> None:
    if not value.strip():
        wanted = {"reason": "say why it is accepted", "link": "say where it is tracked"}
        raise ValueError(f"{attribute.name} is empty: {wanted[attribute.name]}")


def _is_fingerprint(_: object, __: "Attribute[str]", value: str) -> None:
    if value != UNTESTABLE and _FINGERPRINT.fullmatch(value) is None:
        raise ValueError(f"expected sixteen hexadecimal digits or {UNTESTABLE!r}, found {value!r}")


def _is_clause(_: object, __: "Attribute[ClauseId]", value: ClauseId) -> None:
    if value not in clauses() and value not in PSEUDO_CLAUSES:
        raise ValueError(f"unknown clause {value!r}")


@frozen(kw_only=True)
class KnownFailure:
    """A failure that is accepted until a day: its clause, its fingerprint (or `UNTESTABLE`), why, and where it is tracked."""

    clause: ClauseId = field(validator=_is_clause)
    fingerprint: str = field(validator=_is_fingerprint)
    reason: str = field(validator=_not_blank)
    link: str = field(validator=_not_blank)
    expires: date

    @property
    def key(self) -> tuple[ClauseId, str]:
        """What tells it from other entries."""
        return self.clause, self.fingerprint


@frozen(kw_only=True)
class Baseline:
    """What is known of one profile with one seed. With others, other faults come up first."""

    profile: str
    seed: int
    known: tuple[KnownFailure, ...] = ()


def _strict(name: str, kind: type) -> Any:  # Any: cattrs' form of a hook
    def structure(value: object, _: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"expected {name}, found {value!r}")
        return value

    return structure


def _date(value: object, _: object) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError(f"expected a date such as 2030-12-31, without quotes, found {value!r}")
    return value


def _told(error: BaseException, _: type | None) -> str:
    match error:
        case KeyError():
            return f"{error} is missing"
        case ForbiddenExtraKeysError(extra_fields=extra):
            return f"unknown key {', '.join(repr(one) for one in sorted(extra))}"
        case TypeError() if "not iterable" in str(error):
            return "expected a list of tables, each headed by [[known]]"
        case AttributeError():
            return "expected a table"
        case _:
            return " ".join(str(error).split())


_CONVERTER: Final = Converter(forbid_extra_keys=True)
_CONVERTER.register_structure_hook(str, _strict("a text", str))
_CONVERTER.register_structure_hook(int, _strict("a whole number", int))
_CONVERTER.register_structure_hook(date, _date)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises `BaselineError`."""
    return parse_baseline(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a baseline's file. Raises `BaselineError`."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise BaselineError(
            f"--baseline {path}: it cannot be read ({error.strerror}): --update-baseline makes a new one"
        ) from None
    except UnicodeDecodeError:
        raise BaselineError(f"--baseline {path}: expected text in UTF-8") from None


def parse_baseline(text: str, path: Path, *, drafts: bool = False) -> Baseline:
    """The baseline of a text; the path stands in errors. ``drafts``: an entry may lack its reason and link yet. Raises `BaselineError`."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BaselineError(f"--baseline {path}: this is no TOML: {error}") from None
    except RecursionError:
        raise BaselineError(f"--baseline {path}: it is nested too deeply") from None
    if drafts:
        _fill(plain.get("known"))
    try:
        baseline = _CONVERTER.structure(plain, Baseline)
    except Exception as error:  # noqa: BLE001  # cattrs raises what its hooks raise, in groups
        problems = transform_error(error, path="$", format_exception=_told)
        raise BaselineError(f"--baseline {path}: {'; '.join(problems)}") from None
    seen = set()
    for entry in baseline.known:
        if entry.key in seen:
            raise BaselineError(
                f"--baseline {path}: {entry.clause} with {entry.fingerprint} stands there twice: leave one"
            )
        seen.add(entry.key)
    return baseline


def _fill(entries: object) -> None:
    for entry in entries if isinstance(entries, list) else ():
        for name in ("reason", "link"):
            if isinstance(entry, dict) and entry.get(name) == "":
                entry[name] = "to be filled in"
