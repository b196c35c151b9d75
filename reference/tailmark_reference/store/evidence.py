"""A damaged store stays as it is: its bytes are evidence, and often enough the way back (DMG-4)."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def store_digest(path: Path) -> str:
    """A digest of the durable bytes: the file, and the log of what is not in it yet."""
    hashed = hashlib.sha256()
    for file in (path, path.with_name(f"{path.name}-wal")):
        # A log that holds nothing and none are the same.
        if file.exists():
            with file.open("rb") as stream:
                for block in iter(lambda: stream.read(1 << 20), b""):
                    hashed.update(block)
    return hashed.hexdigest()


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    """Meanwhile connections to the store may close without tidying up.

    The last one to close copies the log into the file, unless another is there. This one may only read, and so
    copies nothing when it closes.
    """
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    ) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM session").fetchone()
        yield
