"""Adapters that are broken in one way each: ``python zoo.py KIND`` speaks the wire and does what its kind says.

Each is the model, rightly served but for the fault. `test_wire_zoo` says what becomes of each.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import evolve, frozen

from tailmark.declarations import Capability, Declaration
from tailmark.operations import Operation
from tailmark.outcomes import Done, Outcome, RefusalCode, Refused
from tailmark.subjects import Subject
from tailmark_conformance.subjects.serving import Server
from tailmark_reference.model.subject import ModelSubject

Request: TypeAlias = Mapping[str, Any]  # Any: plain JSON values

LONG_AS_A_LINE: Final = 100_000_000
"""Bytes."""


class AnswersAll(ModelSubject):
    """Says that everything is done, and does nothing."""

    def perform(self, operation: Operation) -> Outcome:  # type: ignore[explicit-override]  # Python 3.11 has no override
        """Done."""
        return Done()


class RefusesAll(ModelSubject):
    """Refuses everything."""

    def perform(self, operation: Operation) -> Outcome:  # type: ignore[explicit-override]  # as above
        """Refused."""
        return Refused(code=RefusalCode.UNKNOWN_SESSION)


@frozen(kw_only=True)
class _Maker:
    make: Callable[[], Subject] = ModelSubject
    offers: tuple[Capability, ...] = (
        Capability.VIEW,
        Capability.HISTORY,
        Capability.TREE,
        Capability.COMMIT,
        Capability.CAPACITY,
    )

    @property
    def declaration(self) -> Declaration:
        """As the subject says, with the capabilities named here."""
        return evolve(self.make().declaration, capabilities=self.offers)

    def made(self, folder: Path) -> Subject:  # nothing is stored
        """A new subject."""
        return self.make()

    def found(self, folder: Path) -> Subject:
        """There is none."""
        raise ValueError(f"nothing is stored in {folder}")


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _id(answer: bytes, number: int) -> bytes:
    return json.dumps({**json.loads(answer), "id": number}).encode()


class _Zoo:
    """What each kind does with a request, its number (from 1) and the right answer."""

    def wrong_id(self, request: Request, answer: bytes) -> None:
        """Numbers its answers by itself."""
        _say(_id(answer, request["id"] + 1) if request["method"] == "perform" else answer)

    def anothers_id(self, request: Request, answer: bytes) -> None:
        """Answers with the id of the first request."""
        _say(_id(answer, 1))

    def no_json(self, request: Request, answer: bytes) -> None:
        """Answers in words."""
        _say(b"done" if request["method"] == "perform" else answer)

    def several_lines(self, request: Request, answer: bytes) -> None:
        """Prints its JSON to be read by people."""
        _say(json.dumps(json.loads(answer), indent=2).encode())

    def dies_in_the_middle(self, request: Request, answer: bytes) -> None:
        """Ends at its fifth request."""
        if request["id"] == 5:
            sys.stderr.write("out of memory\n")
            os._exit(137)
        _say(answer)

    def dies_on_one_method(self, request: Request, answer: bytes) -> None:
        """Ends when it is asked for a plan."""
        if request["params"].get("operation", {}).get("kind") == "begin-compaction":
            os._exit(1)
        _say(answer)

    def exits_early(self, request: Request, answer: bytes) -> None:
        """Ends behind its third answer as if all were done."""
        _say(answer)
        if request["id"] == 3:
            os._exit(0)

    def hangs(self, request: Request, answer: bytes) -> None:
        """Says nothing to its fifth request."""
        if request["id"] == 5:
            time.sleep(3600)
        _say(answer)

    def hangs_at_shutdown(self, request: Request, answer: bytes) -> None:
        """Does not end, though it does everything else."""
        if request["method"] == "shutdown":
            time.sleep(3600)
        _say(answer)

    def closes_stdout(self, request: Request, answer: bytes) -> None:
        """Closes its stdout and goes on."""
        if request["id"] == 4:
            os.close(1)
            time.sleep(3600)
        _say(answer)

    def long_line(self, request: Request, answer: bytes) -> None:
        """Answers with a line of 100 MB."""
        _say(b"x" * LONG_AS_A_LINE if request["method"] == "perform" else answer)

    def noise(self, request: Request, answer: bytes) -> None:
        """Logs to its stdout."""
        if request["method"] == "perform":
            _say(f"[info] {request['params']['operation']['kind']}".encode())
        _say(answer)

    def answers_twice(self, request: Request, answer: bytes) -> None:
        """Says everything twice."""
        _say(answer)
        _say(answer)

    def half_a_line(self, request: Request, answer: bytes) -> None:
        """Ends in the middle of a line."""
        sys.stdout.buffer.write(answer[: len(answer) // 2])
        sys.stdout.buffer.flush()
        os._exit(0)

    def batch(self, request: Request, answer: bytes) -> None:
        """Answers a single request with a list."""
        _say(b"[" + answer + b"]")

    def null_result(self, request: Request, answer: bytes) -> None:
        """Leaves results out."""
        _say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": None}).encode())

    def unknown_outcome(self, request: Request, answer: bytes) -> None:
        """Has outcomes of its own."""
        if request["method"] == "perform":
            answer = _id(b'{"jsonrpc": "2.0", "result": {"outcome": {"kind": "ok"}}}', request["id"])
        _say(answer)

    def answers_errors(self, request: Request, answer: bytes) -> None:
        """Answers an error where an outcome is due."""
        if request["method"] == "perform":
            error = {"code": -32000, "message": "KeyError: 'S1'"}
            answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()
        _say(answer)

    def right(self, request: Request, answer: bytes) -> None:
        """Nothing is wrong."""
        _say(answer)


MAKERS: Final[Mapping[str, _Maker]] = {
    "answers_all": _Maker(make=AnswersAll),
    "refuses_all": _Maker(make=RefusesAll),
    "claims_what_it_lacks": _Maker(offers=(*_Maker().offers, Capability.DURABILITY)),
}
"""Kinds that speak the wire as they should."""

_AT_START: Final = ("dies_at_start", "hangs_at_start", "speaks_first", "does_nothing")
_CONFORM: Final = ("right", "hangs_at_shutdown")

BROKEN: Final = (
    *_AT_START,
    *(name for name in vars(_Zoo) if not name.startswith("_") and name not in _CONFORM),
    *MAKERS,
)
"""Every kind that does not conform."""


def main(kind: str) -> None:
    """Be an adapter of that kind."""
    match kind:
        case "dies_at_start":
            sys.exit("no configuration")
        case "hangs_at_start":
            time.sleep(3600)
        case "speaks_first":
            _say(b"listening on stdin")
        case "does_nothing":
            for _ in sys.stdin.buffer:
                pass
    behave = getattr(_Zoo(), kind, None) or _Zoo().right
    server = Server(MAKERS.get(kind, _Maker()))
    for line in sys.stdin.buffer:
        behave(json.loads(line), server.answer(line))
        if server.is_over:
            return


if __name__ == "__main__":
    main(sys.argv[1])
