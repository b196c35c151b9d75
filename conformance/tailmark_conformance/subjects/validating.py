"""Looks at every line of the wire with the JSON Schemas, both ways: what ``--validate`` asks for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tailmark.json_schema import wire_schema
from tailmark_conformance.subjects.failures import SchemaError

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_TOLD = 300


class Validator:
    """The schemas of the wire, ready to be asked."""

    def __init__(self) -> None:
        self._definitions = wire_schema()["$defs"]
        self._by_name: dict[str, Draft202012Validator] = {}

    def request(self, request: Mapping[str, object]) -> None:
        """Look at a request. Raises `SchemaError`."""
        method = request["method"]
        fault = self._fault("request", request) or self._fault(f"{method}.params", request["params"])
        if fault is not None:
            raise SchemaError(f"{method}: the suite's own request: {fault}")

    def fault_of_response(self, method: str, response: Mapping[str, object]) -> str | None:
        """What is wrong with a response to a call of that method, with its path; ``None`` if nothing."""
        if "result" in response:
            return self._fault(f"{method}.result", response["result"])
        return self._fault("response", response)

    def _fault(self, name: str, plain: object) -> str | None:
        # Imported where it is asked for, because every start of the command line would wait for it.
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        if name not in self._by_name:
            schema = {"$ref": f"#/$defs/{name}", "$defs": self._definitions}
            self._by_name[name] = Draft202012Validator(schema)
        error = best_match(self._by_name[name].iter_errors(plain))
        return f"{error.json_path}: {error.message[:_TOLD]}" if error is not None else None
