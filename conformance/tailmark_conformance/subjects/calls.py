"""The lines of the wire: a request from a method and its parameters, a result from a response (JSON-RPC 2.0)."""

from collections.abc import Collection, Mapping

from tailmark import json_form
from tailmark.declarations import Field
from tailmark.json_form import JsonFormError
from tailmark.wire import METHODS, Observed, observed
from tailmark_conformance.subjects.failures import AnsweredError, ProtocolError

_TOLD = 300

PAGE = "docs/wire.md"
"""Where the protocol is described."""


def quoted(line: bytes) -> str:
    """A line as it is told to people: its beginning, whatever bytes it has."""
    text = line[:_TOLD].decode("utf-8", "backslashreplace")
    return f"{text!r}" + (f" … ({len(line)} bytes)" if len(line) > _TOLD else "")


def request_line(number: int, method: str, parameters: object) -> bytes:
    """A request, with the end of its line."""
    plain = {
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        "params": json_form.unstructure(parameters),
    }
    return json_form.dump_plain(plain) + b"\n"


def result_of(line: bytes, number: int, method: str, hidden: Collection[Field]) -> object:
    """The result in the response to request ``number``, of the method's type.

    Raises `ProtocolError`, and `AnsweredError` for an error that the adapter answers.
    """
    try:
        response = json_form.parse(line)
    except JsonFormError as error:
        raise _wrong(method, f"{error}", line) from None
    if not isinstance(response, Mapping) or response.get("jsonrpc") != "2.0":
        raise _wrong(method, 'expected a JSON-RPC response with "jsonrpc": "2.0"', line)
    found = response.get("id")
    if type(found) is not int or found != number:
        raise _wrong(method, f"expected the id {number} of the request, found {found!r}", line)
    if ("result" in response) == ("error" in response):
        raise _wrong(method, "expected either result or error", line)
    if "error" in response:
        answered = response["error"]
        text = answered.get("message") if isinstance(answered, Mapping) else None
        if not isinstance(text, str):
            raise _wrong(method, "expected an error with a message", line)
        raise AnsweredError(f"{method}: the adapter answered the error: {text[:_TOLD]}")
    try:
        return _structured(method, response["result"], hidden)
    except JsonFormError as error:
        raise _wrong(method, f"in the result: {error}", line) from None


def _structured(method: str, result: object, hidden: Collection[Field]) -> object:
    (_, target) = METHODS[method]
    return observed(result, hidden) if target is Observed else json_form.structure(result, target)


def _wrong(method: str, what: str, line: bytes) -> ProtocolError:
    return ProtocolError(f"{method}: {' '.join(what.split())}; the line was {quoted(line)}; see {PAGE}")
