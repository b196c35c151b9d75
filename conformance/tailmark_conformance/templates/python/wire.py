"""The wire: JSON-RPC 2.0 on stdin and stdout, one message a line. Nothing in this file has to be changed."""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]  # Any: plain JSON values

PROTOCOL = 1
"""The version of the protocol that this file speaks."""

METHOD_NOT_FOUND = -32601
FAILED = -32000
"""The codes of errors. Bad input is an outcome; an error says that the adapter itself has a fault."""


def serve(methods: Mapping[str, Callable[..., Json]]) -> None:
    """Answer each line with a line, until `shutdown` or the end of the lines. Parameters are given by their names."""
    lines, answers = sys.stdin.buffer, sys.stdout.buffer
    # Stdout belongs to the wire. Whatever is printed goes to stderr, whose end is shown when something fails.
    sys.stdout = sys.stderr
    for line in lines:
        asked = json.loads(line)
        # A list is a batch: the suite asks for an operation and the observation behind it at once.
        batch = asked if isinstance(asked, list) else [asked]
        responses = [_response(methods, request) for request in batch]
        answers.write(_canonical(responses if isinstance(asked, list) else responses[0]) + b"\n")
        answers.flush()
        if any(request["method"] == "shutdown" for request in batch):
            return


def digest(value: object) -> str:
    """What stands for the content of a message, or for the text of a summary, in a projection."""
    return hashlib.sha256(_canonical(value)).hexdigest()[:16]


def _canonical(value: object) -> bytes:
    # The suite sends fields in the order of the vocabulary, without those at their default, and dictionaries keep that order.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _response(methods: Mapping[str, Callable[..., Json]], request: Json) -> Json:
    head: Json = {"jsonrpc": "2.0", "id": request["id"]}
    method = methods.get(request["method"])
    if method is None:
        return {**head, "error": {"code": METHOD_NOT_FOUND, "message": f"no method {request['method']}"}}
    try:
        return {**head, "result": method(**request["params"])}
    except Exception as error:
        # The suite reports it with the operations that led to it, and the traceback is on stderr.
        traceback.print_exc()
        return {**head, "error": {"code": FAILED, "message": f"{type(error).__name__}: {error}"}}
