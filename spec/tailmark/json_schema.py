"""JSON Schemas (draft 2020-12) of the wire and of traces, made from the types.

``python -m tailmark.json_schema`` writes them to the folder ``schema`` beside this file. What a schema cannot say
is left to `tailmark.json_form`: ids that stand twice, and lone surrogates in texts.
"""

import inspect
import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, NewType, TypeAlias, Union, get_args, get_origin

import attrs

from tailmark.json_form import unstructure
from tailmark.traces import Trace
from tailmark.wire import MAY_BE_HIDDEN, METHODS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

FOLDER: Final = Path(__file__).with_name("schema")
"""Where the schemas are kept."""

Schema: TypeAlias = dict[str, Any]  # Any: plain JSON values

_MOST: Final = 2**63 - 1


class _Definitions:
    """Builds schemas of types, and collects those of classes by their names. ``optional``: fields that may be left out besides those with a default."""

    def __init__(self, optional: Mapping[type, Collection[str]]) -> None:
        self._optional = optional
        self.schemas: dict[str, Schema] = {}

    def of(self, target: Any) -> Schema:  # Any: a type expression has no narrower type
        """The schema of a type, as a reference where it has a name. Raises `TypeError` for a type that has no JSON form."""
        if isinstance(target, NewType):
            return self._named(str(target.__name__), lambda: self.of(target.__supertype__))
        if isinstance(target, type) and issubclass(target, StrEnum):
            values = [member.value for member in target]
            return self._named(target.__name__, lambda: {**_told(target), "enum": values})
        if isinstance(target, type) and attrs.has(target):
            return self._named(target.__name__, lambda: self._object(target))
        origin, arguments = get_origin(target), get_args(target)
        if origin in (Union, UnionType):
            return {"oneOf": [self.of(one) for one in arguments]}
        if origin is tuple:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is Mapping:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if target in _PLAIN:
            return dict(_PLAIN[target])
        raise TypeError(f"{target!r} has no JSON form")

    def _named(self, name: str, make: Any) -> Schema:  # Any: a callable without parameters
        if name not in self.schemas:
            self.schemas[name] = {}  # a class may speak of itself
            self.schemas[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, target: type[Any]) -> Schema:  # Any: any attrs class
        properties: dict[str, Schema] = {}
        required: list[str] = []
        kind = getattr(target, "kind", None)
        if isinstance(kind, str):
            properties["kind"] = {"const": kind}
            required.append("kind")
        for field in attrs.fields(target):
            properties[field.name] = self.of(field.type)
            if field.default is not attrs.NOTHING:
                properties[field.name] = {**properties[field.name], "default": _plain(field.default)}
            elif field.name not in self._optional.get(target, ()):
                required.append(field.name)
        return {
            **_told(target),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


_PLAIN: Final[Mapping[object, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0, "maximum": _MOST},
    NoneType: {"type": "null"},
}


def _told(target: type) -> Schema:
    return {"description": inspect.getdoc(target) or target.__name__}


def _plain(default: object) -> object:
    if isinstance(default, StrEnum):
        return default.value
    if isinstance(default, tuple):
        return [_plain(one) for one in default]
    return unstructure(default) if attrs.has(type(default)) else default


def trace_schema() -> Schema:
    """Of a trace: a vector, a counterexample, a recorded session."""
    definitions = _Definitions({})
    reference = definitions.of(Trace)
    return {"$schema": DIALECT, "title": "tailmark trace", **reference, "$defs": definitions.schemas}


def wire_schema() -> Schema:
    """Of the lines of the wire: ``$defs/request`` and ``$defs/response``, and the parameters and the result of each method by name."""
    definitions = _Definitions(MAY_BE_HIDDEN)
    requests = []
    for method, (parameters, result) in METHODS.items():
        requests.append(_request(method, definitions.of(parameters)))
        definitions.schemas[f"{method}.params"] = definitions.of(parameters)
        definitions.schemas[f"{method}.result"] = definitions.of(result)
    results = [{"$ref": f"#/$defs/{method}.result"} for method in METHODS]
    return {
        "$schema": DIALECT,
        "title": "tailmark wire",
        "description": "A line is a request, a response, or a list of either. Fields of what is shown may be left out where the declaration names them as hidden.",
        "anyOf": [
            {"$ref": "#/$defs/request"},
            {"$ref": "#/$defs/response"},
            {"type": "array", "items": {"$ref": "#/$defs/request"}, "minItems": 1},
            {"type": "array", "items": {"$ref": "#/$defs/response"}, "minItems": 1},
        ],
        "$defs": {"request": {"oneOf": requests}, "response": _response(results), **definitions.schemas},
    }


def _request(method: str, parameters: Schema) -> Schema:
    properties = {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": "integer"},
        "method": {"const": method},
        "params": parameters,
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _response(results: list[Schema]) -> Schema:
    error = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": True},
        "required": ["code", "message"],
    }
    return {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["integer", "null"]},
            "result": {"anyOf": results},
            "error": error,
        },
        "required": ["jsonrpc", "id"],
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
        "additionalProperties": False,
    }


SCHEMAS: Final = {"wire": wire_schema, "trace": trace_schema}
"""Each schema by the name of its file."""


def schema_text(name: str) -> str:
    """A schema as its file has it."""
    return json.dumps(SCHEMAS[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
