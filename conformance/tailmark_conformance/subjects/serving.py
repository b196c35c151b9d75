"""The other end of the wire, in Python: subjects served on two streams, so that they are driven as any program is (docs/wire.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Protocol, TypeVar

from tailmark import json_form
from tailmark.declarations import Declaration
from tailmark.json_form import JsonFormError
from tailmark.subjects import Subject
from tailmark.views import Observation, difference
from tailmark.wire import (
    METHODS,
    PROTOCOL,
    Accepted,
    Initialize,
    Initialized,
    Observe,
    Observed,
    Perform,
    Performed,
    Reopen,
    Reset,
    Shutdown,
)

T = TypeVar("T")

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMETERS: Final = -32602
SUBJECT_FAILED: Final = -32000
"""The subject raised where it must answer an outcome."""


class Maker(Protocol):
    """Makes the subjects that are served."""

    @property
    def declaration(self) -> Declaration:
        """What every subject made here says of itself."""
        ...

    def made(self, folder: Path) -> Subject:
        """A subject that keeps its durable state in an empty folder. It is reset before it is used."""
        ...

    def found(self, folder: Path) -> Subject:
        """A subject that goes on with the durable state in a folder. Raises `ValueError` if it keeps none."""
        ...


class CallError(Exception):
    """A call that is answered with an error, with its JSON-RPC code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def serve(maker: Maker, reader: IO[bytes], writer: IO[bytes]) -> None:
    """Answer each line with a line, until ``shutdown`` or the end of the lines."""
    server = Server(maker)
    try:
        for line in reader:
            writer.write(server.answer(line) + b"\n")
            writer.flush()
            if server.is_over:
                return
    finally:
        server.close()


class Server:
    """Answers requests one by one with the subjects of a maker."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._subject: Subject | None = None
        self._seen: Observation | None = None
        self.is_over = False

    def answer(self, line: bytes) -> bytes:
        """The response to a line: of a batch a list of responses, in the order of the requests."""
        try:
            asked = json_form.parse(line)
        except JsonFormError as error:
            return json_form.dump_plain(_failed(None, CallError(PARSE_ERROR, f"{error}")))
        if isinstance(asked, list) and asked:
            return json_form.dump_vocabulary([self._response(request) for request in asked])
        return json_form.dump_vocabulary(self._response(asked))

    def _response(self, request: object) -> dict[str, object]:
        if not isinstance(request, Mapping):
            return _failed(None, CallError(INVALID_REQUEST, "expected an object"))
        number = request.get("id")
        try:
            result = json_form.unstructure(self._called(request))
        except CallError as error:
            return _failed(number, error)
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def close(self) -> None:
        """Give back what the subject holds."""
        if self._subject is not None:
            self._subject.close()
            self._subject = None

    def _called(self, request: Mapping[str, object]) -> object:
        method = request.get("method")
        if not isinstance(method, str) or method not in METHODS:
            raise CallError(METHOD_NOT_FOUND, f"unknown method {method!r}; there are {', '.join(METHODS)}")
        try:
            parameters: object = json_form.structure(request.get("params"), METHODS[method][0])
        except JsonFormError as error:
            raise CallError(INVALID_PARAMETERS, f"{method}: {error}") from None
        try:
            return self._result(parameters)
        except CallError:
            raise
        except Exception as error:
            # Whatever the subject raises is told to whoever asked.
            raise CallError(SUBJECT_FAILED, f"{method} raised {type(error).__name__}: {error}") from error

    def _result(self, parameters: object) -> object:
        match parameters:
            case Initialize():
                return Initialized(protocol=PROTOCOL, declaration=self._maker.declaration)
            case Reset():
                self._use(self._maker.made(Path(parameters.store_dir)))
                self._used.reset(parameters.sessions, parameters.model, parameters.settings)
            case Reopen():
                self._use(self._maker.found(Path(parameters.store_dir)))
            case Perform():
                return Performed(outcome=self._used.perform(parameters.operation))
            case Observe(fresh=fresh):
                return self._observed(fresh=fresh)
            case Shutdown():
                self.is_over = True
        return Accepted()

    @property
    def _used(self) -> Subject:
        if self._subject is None:
            raise CallError(INVALID_REQUEST, "expected reset or reopen first")
        return self._subject

    def _use(self, subject: Subject) -> None:
        self.close()
        self._subject = subject
        self._seen = None

    def _observed(self, *, fresh: bool) -> Observed:
        before = self._seen
        now = self._used.observe_fresh() if fresh else self._used.observe()
        if not fresh:
            self._seen = now
        return Observed(observation=now) if before is None else Observed(change=difference(before, now))


def _failed(number: object, error: CallError) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": error.code, "message": str(error)}}
