"""Lines of a recorded session, plain or gzip, one at a time.

The file is opened for reading only and never held in memory: at most one line of `LONGEST_LINE` bytes is.
What is wrong with a line is a value, `BadLine`, and reading goes on behind it where that is possible.
"""

import gzip
import json
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypeAlias, cast

from attrs import frozen

LONGEST_LINE = 32 * 1024 * 1024
"""In bytes. A longer line is passed over and reported."""

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1024 * 1024

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many bytes of the input are done, and how many there are. Bytes as they stand on the disk."""


@frozen
class Record:
    """One line that holds a JSON object. ``number`` counts from 1."""

    number: int
    fields: Mapping[str, object]


@frozen
class BadLine:
    """A line that holds none. ``text`` says what is wrong and what was done about it."""

    number: int
    text: str


class UnusableError(Exception):
    """Nothing of a file can be read as a session. The text says why and what to do."""


def read_records(path: Path, progress: Progress | None = None) -> Iterator[Record | BadLine]:
    """Every line of a file that is not blank, in order.

    Raises `UnusableError` if there is no such file, it is no regular file or it cannot be opened.
    """
    with _open(path) as raw:
        size = path.stat().st_size
        magic = raw.read(len(_GZIP))
        raw.seek(0)
        # A file of one of the two kinds is read by the same calls.
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if magic == _GZIP else raw
        number = 0
        while True:
            number += 1
            try:
                line = stream.readline(LONGEST_LINE + 1)
                if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                    _pass_over(stream)
                    yield BadLine(
                        number,
                        f"line {number} is longer than {LONGEST_LINE // 1024**2} MiB and was left out; "
                        "split or shorten it to have it judged",
                    )
                    line = b"\n"
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                yield BadLine(
                    number,
                    f"the gzip data ends or is broken within line {number} ({error}); what stands before it was "
                    "read; copy the file again to have the rest judged",
                )
                return
            except OSError as error:
                yield BadLine(
                    number,
                    f"the file could not be read beyond line {number - 1} ({error.strerror}); try again",
                )
                return
            if not line:
                break
            if progress is not None:
                progress(raw.tell(), size)
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.isspace():
                yield _parse(number, line)
        if progress is not None:
            progress(size, size)


def _open(path: Path) -> IO[bytes]:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnusableError("is a folder; name the session files in it")
        if not stat.S_ISREG(mode):
            raise UnusableError("is no regular file; save the session to a file first")
        if path.stat().st_size == 0:
            raise UnusableError("is empty; there is nothing to judge")
        return path.open("rb")
    except FileNotFoundError:
        raise UnusableError("there is no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnusableError(f"cannot be opened ({reason}); check the path and its permissions") from None


def _pass_over(stream: IO[bytes]) -> None:
    """Read on to the end of a line that is too long to hold."""
    while chunk := stream.readline(_CHUNK):
        if chunk.endswith(b"\n"):
            return


def _parse(number: int, line: bytes) -> Record | BadLine:
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return BadLine(
            number,
            f"line {number} is no UTF-8 at byte {error.start + 1} and was left out; save the file as UTF-8",
        )
    except RecursionError:
        return BadLine(
            number, f"line {number} is nested too deeply and was left out; it is no session record"
        )
    except ValueError as error:
        if not line.endswith(b"\n"):
            return BadLine(
                number,
                f"the file ends within line {number}, whose record is cut off and was left out; "
                "copy the file again, or remove that line",
            )
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        return BadLine(
            number, f"line {number} is no JSON ({reason}) and was left out; mend or remove that line"
        )
    if not isinstance(value, dict):
        return BadLine(
            number, f"line {number} is no JSON object and was left out; each line must be one record"
        )
    return Record(number, value)
