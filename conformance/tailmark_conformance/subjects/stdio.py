"""A subject behind the wire: an adapter in a process of its own, driven over its stdin and stdout (docs/wire.md)."""

import shutil
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

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
from tailmark_conformance.subjects.calls import request_line, result_of
from tailmark_conformance.subjects.failures import AnsweredError, CrashError, ProtocolError, WireError
from tailmark_conformance.subjects.process import AdapterProcess

T = TypeVar("T")

SECONDS: Final = 4.0
"""How long a call may take, unless told otherwise; a process that starts has five times as long for its first answer."""

_STARTING = 5

_ENDING_SECONDS = 1.0


class StdioSubject:
    """An adapter by its command. Each reset gives it an empty folder within ``folder``.

    Raises `WireError` where the adapter does not answer as it must; the next `reset` begins with a new process then.
    """

    def __init__(self, command: Sequence[str], folder: Path, seconds: float = SECONDS) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._seconds = seconds
        self._numbers = count(1)
        self._folders = count(1)
        self._store_dir: Path | None = None
        self._seen: Observation | None = None
        self._process: AdapterProcess | None = None
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
        self._seen = None
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
        return self._call("perform", Perform(operation=operation), Performed).outcome

    def observe(self) -> Observation:
        """What the adapter sees now."""
        self._seen = self._observed(fresh=False)
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
        self._process = AdapterProcess(self._command, self._seconds * _STARTING)
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
        result = self._call("observe", Observe(fresh=fresh), Observed)
        if result.observation is not None:
            return result.observation
        assert result.change is not None  # one of the two is there
        if self._seen is None:
            self._end()
            raise ProtocolError("observe: expected the whole observation first, found a change")
        return applied(self._seen, result.change)

    def _call(self, method: str, parameters: object, target: type[T]) -> T:
        process, number = self._process, next(self._numbers)
        if process is None:
            raise CrashError(f"{method}: the process is gone")
        try:
            process.write(request_line(number, method, parameters))
            result = result_of(process.read(), number, method, self._hidden)
        except AnsweredError:
            raise
        except WireError as error:
            process.kill()
            self._process = None
            raise type(error)(f"{method}: {error}") from None
        assert isinstance(result, target)
        return result
