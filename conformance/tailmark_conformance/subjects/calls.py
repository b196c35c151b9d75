"""The lines of the wire: a request from methods and their parameters, results from a response (JSON-RPC 2.0)."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from tailmark import json_form
from tailmark.declarations import Field
from tailmark.json_form import JsonFormError
from tailmark.wire import result_of
from tailmark_conformance.subjects.failures import AnsweredError, ProtocolError
from tailmark_conformance.subjects.validating import Validator

_TOLD = 300

PAGE = "docs/wire.md"
"""Where the protocol is described."""


@frozen
class Call:
    """One call: its number, its method, and its parameters, a value of the method's type."""

    number: int
    method: str
    parameters: object


Result: TypeAlias = object
"""A value of the method's type, or `AnsweredError` where the adapter answered an error."""


def quoted(line: bytes) -> str:
    """A line as it is told to people: its beginning, whatever bytes it has."""
    text = line[:_TOLD].decode("utf-8", "backslashreplace")
    return f"{text!r}" + (f" … ({len(line)} bytes)" if len(line) > _TOLD else "")


def request_line(calls: Sequence[Call], validator: Validator | None = None) -> bytes:
    """A request, or a batch of several, with the end of its line."""
    requests = [
        {
            "jsonrpc": "2.0",
            "id": call.number,
            "method": call.method,
            "params": json_form.unstructure(call.parameters),
        }
        for call in calls
    ]
    if validator is not None:
        for request in requests:
            validator.request(request)
    return json_form.dump_vocabulary(requests[0] if len(requests) == 1 else requests) + b"\n"


def results_of(
    line: bytes, calls: Sequence[Call], hidden: Collection[Field], validator: Validator | None = None
) -> tuple[Result, ...]:
    """The results in the line that answers the calls, in the order of the calls. Raises `ProtocolError`."""
    try:
        answer = json_form.parse(line)
    except JsonFormError as error:
        raise _wrong(calls, f"{error}", line) from None
    if len(calls) == 1:
        return (_result(calls[0], answer, line, hidden, validator),)
    if not isinstance(answer, list) or len(answer) != len(calls):
        raise _wrong(calls, f"expected a list of {len(calls)} responses, one for each request", line)
    # Responses of a batch may stand in any order.
    by_number = {
        response["id"]: response
        for response in answer
        if isinstance(response, Mapping) and type(response.get("id")) is int
    }
    missing = [call.number for call in calls if call.number not in by_number]
    if missing:
        raise _wrong(calls, f"expected a response with the id {missing[0]} of its request", line)
    return tuple(_result(call, by_number[call.number], line, hidden, validator) for call in calls)


def _result(
    call: Call, response: object, line: bytes, hidden: Collection[Field], validator: Validator | None
) -> Result:
    if not isinstance(response, Mapping) or response.get("jsonrpc") != "2.0":
        raise _wrong([call], 'expected a JSON-RPC response with "jsonrpc": "2.0"', line)
    found = response.get("id")
    if type(found) is not int or found != call.number:
        raise _wrong([call], f"expected the id {call.number} of the request, found {found!r}", line)
    if ("result" in response) == ("error" in response):
        raise _wrong([call], "expected either result or error", line)
    if validator is not None:
        fault = validator.fault_of_response(call.method, response)
        if fault is not None:
            raise _wrong([call], f"by the schema: {fault}", line)
    if "error" in response:
        answered = response["error"]
        text = answered.get("message") if isinstance(answered, Mapping) else None
        if not isinstance(text, str):
            raise _wrong([call], "expected an error with a message", line)
        return AnsweredError(f"the adapter answered the error: {text[:_TOLD]}")
    try:
        return result_of(call.method, response["result"], hidden)
    except JsonFormError as error:
        raise _wrong([call], f"in the result: {error}", line) from None


def _wrong(calls: Sequence[Call], what: str, line: bytes) -> ProtocolError:
    told = f"{' '.join(what.split())}; the line was {quoted(line)}; see {PAGE}"
    # The call itself names the method of a single one.
    return ProtocolError(told if len(calls) == 1 else f"in a batch of {len(calls)}: {told}")
