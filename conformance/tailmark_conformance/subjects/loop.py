"""The wire without a process: the lines go to a server in this one and come back."""

from collections import deque

from tailmark_conformance.subjects.failures import CrashError
from tailmark_conformance.subjects.serving import Maker, Server


class Loop:
    """Stands where an adapter's process stands (`tailmark_conformance.subjects.stdio.Process`). Killed, it forgets what is not durable."""

    def __init__(self, maker: Maker) -> None:
        self.seconds = 0.0
        self._server = Server(maker)
        self._lines: deque[bytes] = deque()

    def write(self, line: bytes) -> None:
        """Answer the line."""
        self._lines.append(self._server.answer(line))

    def read(self) -> bytes:
        """The answer to the earliest line that was not read yet. Raises `CrashError` if there is none."""
        if not self._lines:
            raise CrashError("nothing was asked")
        return self._lines.popleft()

    def end(self) -> None:
        """Give back what the subject holds. What is durable stays."""
        self._server.close()

    def kill(self) -> None:
        """As `end`."""
        self._server.close()
