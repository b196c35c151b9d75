"""The files of the checkout that the tests about it read."""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

# Of a source tree that is no checkout every file counts, but for what tools leave behind.
_LEFT_BEHIND: Final = ("__pycache__", "site", "dist")


@cache
def files() -> tuple[Path, ...]:
    """What git tracks or would track, as paths below `ROOT`."""
    if not (ROOT / ".git").exists():
        return tuple(sorted(_all_files()))
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(Path(line) for line in listed.splitlines() if (ROOT / line).is_file()))


def _all_files() -> Iterator[Path]:
    for path in ROOT.rglob("*"):
        below = path.relative_to(ROOT)
        hidden = any(part.startswith(".") and part != ".ci" for part in below.parts[:-1])
        if path.is_file() and not hidden and not any(part in _LEFT_BEHIND for part in below.parts):
            yield below


def text_of(path: str | Path) -> str:
    """The text of a file of the checkout."""
    return (ROOT / path).read_text(encoding="utf-8")
