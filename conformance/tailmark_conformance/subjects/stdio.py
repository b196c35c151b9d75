"""A subject behind the wire: an adapter in a process of its own, driven over its stdin and stdout (docs/wire.md)."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Final, Protocol, TypeVar

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability, Declaration, Field
from tailmark.identifiers import SessionId
from tailmark.operations import Operation, Restart
from tailmark.outcomes import Done, Outcome
from tailmark.views import Observation
from tailmark.wire import (
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
    applied,
)
from tailmark_conformance.subjects.calls import Call, Result, request_line, results_of
from tailmark_conformance.subjects.failures import AnsweredError, CrashError, ProtocolError, WireError
from tailmark_conformance.subjects.process import AdapterProcess
from tailmark_conformance.subjects.validating import Validator

T = TypeVar("T")

SECONDS: Final = 4.0
"""How long a call may take, unless told otherwise."""

STARTING: Final = 5
"""A process that starts has so many times as long for its first answer."""

_ENDING_SECONDS = 1.0


class Process(Protocol):
    """Takes lines and answers each with a line. ``seconds`` is how long each may take. Raises `WireError`."""

    seconds: float

    def write(self, line: bytes) -> None:
        """Take a line with its end."""
        ...

    def read(self) -> bytes:
        """The next line, without its end."""
        ...

    def end(self) -> None:
        """Let it end."""
        ...

    def kill(self) -> None:
        """End it at once, as a crash would."""
        ...


class StdioSubject:
    """An adapter by its command. Each reset gives it an empty folder within ``folder``. ``validate``: lines are held against the JSON Schemas too.

    ``start`` makes what stands in the place of the command's process. Raises `WireError` where the adapter does not answer as it must; the next `reset` begins with a new process then.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        seconds: float = SECONDS,
        *,
        validate: bool = False,
        start: Callable[[], Process] | None = None,
    ) -> None:
        self._validator = Validator() if validate else None
        self._made = start or partial(AdapterProcess, tuple(command), seconds * STARTING)
        self._folder = folder
        self._seconds = seconds
        self._numbers = count(1)
        self._folders = count(1)
        self._store_dir: Path | None = None
        self._seen: Observation | None = None
        self._ahead: Result | None = None
        self._process: Process | None = None
        self._hidden: frozenset[Field] = frozenset()
        self._declaration = self._start()
        self._hidden = frozenset(self._declaration.hidden)

    @property
    def declaration(self) -> Declaration:
        """What the adapter said in its first answer."""
        return self._declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """Start from an empty store, in a new process if the last one failed."""
        if self._process is None:
            self._start_again()
        before = self._store_dir
        self._store_dir = self._folder / f"store-{next(self._folders)}"
        self._store_dir.mkdir()
        self._seen = self._ahead = None
        self._call(
            "reset",
            Reset(sessions=sessions, model=model, settings=settings, store_dir=str(self._store_dir)),
            Accepted,
        )
        # Until then the adapter may have its old store open.
        if before is not None:
            shutil.rmtree(before, ignore_errors=True)

    def perform(self, operation: Operation) -> Outcome:
        """Do one operation. Where durability is declared, a killed process is one: it is not asked, and another goes on."""
        if operation == Restart(killed=True) and Capability.DURABILITY in self._declaration.capabilities:
            self._die()
            return Done()
        if Capability.BATCH not in self._declaration.capabilities:
            return self._call("perform", Perform(operation=operation), Performed).outcome
        # What is observed next comes on the same line.
        performed, self._ahead = self._calls(
            ("perform", Perform(operation=operation)), ("observe", Observe())
        )
        return _answered("perform", performed, Performed).outcome

    def observe(self) -> Observation:
        """What the adapter sees now."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            self._seen = self._observed(fresh=False)
        else:
            self._seen = self._whole(_answered("observe", ahead, Observed))
        return self._seen

    def observe_fresh(self) -> Observation:
        """What another process would see."""
        return self._observed(fresh=True)

    def close(self) -> None:
        """Ask the process to end, end it, and delete its folder. How it ends is not judged."""
        try:
            if self._process is not None:
                self._process.seconds = min(self._seconds, _ENDING_SECONDS)
                self._call("shutdown", Shutdown(), Accepted)
        except WireError:
            pass  # it is ended all the same, and no clause speaks of it
        finally:
            self._end()
            self._delete()

    def _delete(self) -> None:
        if self._store_dir is not None:
            shutil.rmtree(self._store_dir, ignore_errors=True)
            self._store_dir = None

    def _die(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process = None
        self._seen = None
        self._start_again()
        self._call("reopen", Reopen(store_dir=str(self._store_dir)), Accepted)

    def _start_again(self) -> None:
        if self._start() != self._declaration:
            self._end()
            raise ProtocolError("initialize: expected the declaration of the process before, found another")

    def _start(self) -> Declaration:
        self._process = self._made()
        suite = f"tailmark {version('tailmark')}"
        told = self._call("initialize", Initialize(protocol=PROTOCOL, suite=suite), Initialized)
        if told.protocol != PROTOCOL:
            self._end()
            raise ProtocolError(f"initialize: expected protocol {PROTOCOL}, found {told.protocol}")
        self._process.seconds = self._seconds
        return told.declaration

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def _observed(self, *, fresh: bool) -> Observation:
        return self._whole(self._call("observe", Observe(fresh=fresh), Observed))

    def _whole(self, result: Observed) -> Observation:
        if result.observation is not None:
            return result.observation
        assert result.change is not None  # one of the two is there
        if self._seen is None:
            self._end()
            raise ProtocolError("observe: expected the whole observation first, found a change")
        return applied(self._seen, result.change)

    def _call(self, method: str, parameters: object, target: type[T]) -> T:
        (result,) = self._calls((method, parameters))
        return _answered(method, result, target)

    def _calls(self, *asked: tuple[str, object]) -> tuple[Result, ...]:
        """The results of one call, or of a batch of several. Whatever is no line of results ends the process."""
        calls = [Call(next(self._numbers), method, parameters) for method, parameters in asked]
        methods = ", ".join(call.method for call in calls)
        process = self._process
        if process is None:
            raise CrashError(f"{methods}: the process is gone")
        line = request_line(calls, self._validator)
        try:
            process.write(line)
            return results_of(process.read(), calls, self._hidden, self._validator)
        except WireError as error:
            process.kill()
            self._process = None
            raise type(error)(f"{methods}: {error}") from None


def _answered(method: str, result: Result, target: type[T]) -> T:
    if isinstance(result, AnsweredError):
        raise AnsweredError(f"{method}: {result}")
    assert isinstance(result, target)
    return result
