"""Writes the beginning of an adapter: what `tailmark init` does.

A template is a folder of files below `templates`, named by its language. Its files are written as they stand, so that what is
tested here is what a user gets.
"""

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Final

from attrs import frozen
from rich.console import Console

from tailmark_conformance.checking import UsageError


class Language(StrEnum):
    """What a template is written in."""

    PYTHON = "python"
    TYPESCRIPT = "typescript"


@frozen(kw_only=True)
class Template:
    """How an adapter made from a template is run: the programs of which one runs it, the best first, and its first file."""

    programs: tuple[str, ...]
    adapter: str
    implementation: str


TEMPLATES: Final = {
    Language.PYTHON: Template(
        programs=("python", "python3"), adapter="adapter.py", implementation="implementation.py"
    ),
    Language.TYPESCRIPT: Template(
        programs=("node",), adapter="adapter.mjs", implementation="implementation.mjs"
    ),
}

_LEFT_BEHIND: Final = "__pycache__"
"""An installer compiles every Python file that it finds."""


def template_files(language: Language) -> dict[str, bytes]:
    """The content of each file of a template, by its name."""
    folder = files("tailmark_conformance") / "templates" / language.value
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name != _LEFT_BEHIND
    }


def initialise(language: Language, folder: Path, console: Console) -> None:
    """Write a template to a new or empty folder, and print what to do next. Raises `UsageError` with one clear line; then nothing is written."""
    contents = template_files(language)
    _write(contents, folder)
    for line in _told(language, folder, contents):
        console.print(line, markup=False, soft_wrap=True)


def _told(language: Language, folder: Path, contents: dict[str, bytes]) -> Iterator[str]:
    template = TEMPLATES[language]
    program = next((name for name in template.programs if shutil.which(name)), template.programs[0])
    adapter = str(folder / template.adapter)
    if adapter.startswith("-"):
        # It would be taken for an option.
        adapter = f"./{adapter}"
    yield f"written to {folder}: {', '.join(contents)}"
    yield ""
    yield "It conforms as it stands. Check it:"
    yield f"  tailmark check --profile smoke -- {program} {shlex.quote(adapter)}"
    yield (
        f"Then put your own implementation in the place of {template.implementation}, and change what is marked with CHANGE"
        f" in {template.adapter}. README.md says in which order."
    )


def _write(contents: dict[str, bytes], folder: Path) -> None:
    """All of the files, or none of them."""
    is_new = _is_new(folder)
    try:
        # Beside the new folder, or in the empty one: in both cases the files have to be moved within one file system only.
        with tempfile.TemporaryDirectory(
            prefix=".tailmark-", dir=folder.parent if is_new else folder
        ) as staging:
            made = Path(staging) / "made"
            made.mkdir()
            for name, content in contents.items():
                (made / name).write_bytes(content)
            if is_new:
                made.rename(folder)
            else:
                for name in contents:
                    (made / name).rename(folder / name)
    except OSError as error:
        raise UsageError(f"{folder}: it cannot be written ({error.strerror}): name another folder") from None


def _is_new(folder: Path) -> bool:
    """Whether the folder is still to be made; if not, it is there and empty."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise UsageError(f"{folder}: this folder is not empty: name a new one")
            return False
        if folder.exists() or folder.is_symlink():
            raise UsageError(f"{folder}: this is no folder: name a new one")
        if not folder.parent.is_dir():
            raise UsageError(f"{folder}: there is no folder {folder.parent}: make it first")
    except OSError as error:
        raise UsageError(f"{folder}: it cannot be read ({error.strerror}): name another folder") from None
    return True
