"""An adapter's process: lines out, lines in, each within a time, and what it wrote to stderr kept.

It is driven with file descriptors and `selectors`, so that a call costs two system calls and no thread. That needs POSIX.
"""

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from tailmark.wire import LONGEST_LINE
from tailmark_conformance.subjects.calls import quoted
from tailmark_conformance.subjects.failures import CrashError, HangError, ProtocolError, StartError

_PIECE = 1 << 16
_TOLD = 300
"""So much is quoted of what was written to stderr, in bytes."""
_GRACE_SECONDS = 1.0
"""So long a process may take to end when it is asked to, before it is killed."""


class AdapterProcess:
    """A running adapter. Raises `StartError` if there is no such program.

    ``seconds`` is how long each line may take to be written or to come; it can be set anew.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = command
        self.seconds = seconds
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process, see `end`
        self._buffer = bytearray()
        self._searched = 0
        try:
            self._process = subprocess.Popen(  # noqa: S603  # running what the user names is what this is for
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise StartError(f"{shlex.join(command)}: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._writer = self._process.stdin.fileno()
        self._reader = self._process.stdout.fileno()
        for descriptor in (self._writer, self._reader):
            os.set_blocking(descriptor, False)
        self._may_read = selectors.DefaultSelector()
        self._may_read.register(self._reader, selectors.EVENT_READ)
        self._may_write = selectors.DefaultSelector()
        self._may_write.register(self._writer, selectors.EVENT_WRITE)
        # While a long line is written the adapter may be writing too, and neither must wait for the other.
        self._may_write.register(self._reader, selectors.EVENT_READ)

    def write(self, line: bytes) -> None:
        """Write one line with its end. Raises `CrashError` or `HangError`."""
        end = time.monotonic() + self.seconds
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._writer, rest) :]
            except BlockingIOError:
                self._wait(self._may_write, end)
                self._take()
            except BrokenPipeError:
                raise self._gone("it closed its stdin") from None

    def read(self) -> bytes:
        """The next line, without its end. Raises `CrashError`, `HangError`, or `ProtocolError` for one that is too long."""
        end = time.monotonic() + self.seconds
        while True:
            cut = self._buffer.find(b"\n", self._searched)
            if cut >= 0:
                line = bytes(self._buffer[:cut])
                del self._buffer[: cut + 1]
                self._searched = 0
                return line
            self._searched = len(self._buffer)
            if self._searched >= LONGEST_LINE:
                raise ProtocolError(
                    f"expected lines of at most {LONGEST_LINE} bytes, found a longer one: {quoted(bytes(self._buffer))}"
                )
            if not self._take():
                self._wait(self._may_read, end)

    def _take(self) -> bool:
        try:
            piece = os.read(self._reader, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            raise self._gone("it closed its stdout")
        self._buffer += piece
        return True

    def _wait(self, selector: selectors.BaseSelector, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0 or not selector.select(left):
            raise HangError(f"nothing came for {self.seconds:g} seconds{self.told_errors()}")

    def _gone(self, what: str) -> CrashError:
        """Why the process does not answer any more."""
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return CrashError(f"{what} and goes on running{self.told_errors()}")
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        return CrashError(f"the process ended with {how}{self.told_errors()}")

    def told_errors(self) -> str:
        """The end of what was written to stderr, as the end of a sentence."""
        if self._errors.closed:
            return ""
        length = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(length - _TOLD, 0))
        text = " ".join(self._errors.read().decode("utf-8", "replace").split())
        return f"; its stderr ends: {text}" if text else ""

    def end(self) -> None:
        """Let the process end, which it should when its stdin closes; else, or where it has children left, kill them."""
        if self._errors.closed:
            return
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
        # Its children may outlive it, and hold the store.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._may_read.close()
        self._may_write.close()
        self._errors.close()

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._process.kill()
        self.end()
