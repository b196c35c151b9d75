"""The JSON Schemas say what the types say."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from changing import changed_plain
from tailmark import json_form
from tailmark.json_form import JsonFormError
from tailmark.json_schema import FOLDER, SCHEMAS, schema_text, trace_schema, wire_schema
from tailmark.traces import Trace
from tailmark.wire import METHODS
from vocabulary import values

# What no schema says of a text or of a list: `tailmark.json_form` says it.
_NO_SCHEMA_SAYS = ("stands twice", "lone surrogate", "expected either observation or change")

_TYPES = {
    **{f"{method}.params": parameters for method, (parameters, _) in METHODS.items()},
    **{f"{method}.result": result for method, (_, result) in METHODS.items()},
    "trace": Trace,
}


def _validator(name: str) -> Draft202012Validator:
    if name == "trace":
        return Draft202012Validator(trace_schema())
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": wire_schema()["$defs"]})


_VALIDATORS = {name: _validator(name) for name in _TYPES}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_are_as_the_types_say(name: str) -> None:
    """``python -m tailmark.json_schema`` would write the same."""
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == schema_text(name)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_schemas(name: str) -> None:
    """By the schema of schemas."""
    Draft202012Validator.check_schema(json.loads(schema_text(name)))


@pytest.mark.parametrize("name", _TYPES)
@given(data=st.data())
def test_what_can_be_written_fits(name: str, data: st.DataObject) -> None:
    """Every value of the type, as it is written."""
    plain = json_form.unstructure(data.draw(values(_TYPES[name])))
    assert [*_VALIDATORS[name].iter_errors(plain)] == []


@pytest.mark.parametrize("name", _TYPES)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_schema_and_types_refuse_the_same(name: str, data: st.DataObject, seed: int) -> None:
    """A value with something in it changed fits the schema just when it can be read."""
    plain = changed_plain(Random(seed), json_form.unstructure(data.draw(values(_TYPES[name]))))
    refused = _refusal(plain, _TYPES[name])
    fits = _VALIDATORS[name].is_valid(plain)
    # Fields that may be hidden are left out on the wire alone.
    if refused is not None and not any(said in refused for said in (*_NO_SCHEMA_SAYS, "is missing")):
        assert not fits, refused
    if refused is None:
        assert fits


def _refusal(plain: Any, target: type) -> str | None:  # Any: a plain JSON value
    try:
        json_form.structure(plain, target)
    except JsonFormError as error:
        return str(error)
    return None
