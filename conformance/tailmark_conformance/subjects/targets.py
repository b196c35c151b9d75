"""What a target's name stands for, and how it becomes a subject.

``reference`` is the SQLite store, ``reference:model`` the pure model, ``module:attribute`` a Python object:
a callable without arguments that returns a `tailmark.subjects.Subject`. Anything else is a program with its
arguments, driven over the wire.
"""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from attrs import evolve, frozen

from tailmark.declarations import Capability, Declaration
from tailmark.subjects import Subject
from tailmark_conformance.subjects.failures import WireError
from tailmark_conformance.subjects.stdio import SECONDS, StdioSubject
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.store.subject import SqliteSubject

REFERENCE = "reference"
REFERENCE_MODEL = "reference:model"

_MEMORY = Path("/dev/shm")  # noqa: S108  # a file system in memory, where there is one; each store has a folder of its own


class TargetError(Exception):
    """The subject cannot be run. The text says what, where and what to do."""


class TargetNameError(TargetError):
    """No target has this name."""


def default_store_dir() -> Path:
    """Where stores go unless told otherwise: in memory where the machine has a file system there."""
    return _MEMORY if _MEMORY.is_dir() else Path(tempfile.gettempdir())


@frozen(kw_only=True)
class Target:
    """A target by the words that name it. It can be sent to another process.

    ``seconds`` is how long a call to a program may take. ``validate``: the lines of a program are held against the JSON Schemas too.
    """

    words: tuple[str, ...]
    store_dir: Path
    seconds: float = SECONDS
    validate: bool = False

    @property
    def name(self) -> str:
        """The words as they would be typed."""
        return shlex.join(self.words)

    @property
    def command(self) -> str:
        """The words as they are typed behind other words: a program behind ``--``."""
        return f"-- {self.name}" if self.is_program else self.name

    @property
    def is_reference(self) -> bool:
        """Whether both oracles must agree about it."""
        return self.words in ((REFERENCE,), (REFERENCE_MODEL,))

    @property
    def is_program(self) -> bool:
        """Whether it is driven over the wire."""
        return not self.is_reference and (len(self.words) > 1 or ":" not in self.words[0])

    @property
    def stores_files(self) -> bool:
        """Whether `store_dir` matters."""
        return self.words == (REFERENCE,) or self.is_program

    @property
    def shrinking_runs(self) -> int:
        """A run of a program costs as much as several of an object."""
        return 4_000 if self.is_program else 40_000

    def check_name(self) -> None:
        """Raises `TargetNameError` for words that can stand for nothing."""
        if not self.is_program:
            module, _, attribute = self.words[0].partition(":")
            if (module and attribute) or self.is_reference:
                return
        elif shutil.which(self.words[0]) is not None:
            return
        raise TargetNameError(
            f"unknown target {self.words[0]!r}: use reference, reference:model,"
            " module:attribute for a Python callable that returns a subject,"
            " or -- and a program that can be run, with its arguments"
        )

    @contextmanager
    def opened(self) -> Iterator[Subject]:
        """A subject, closed in the end. Raises `TargetError` if it cannot be had."""
        if self.stores_files:
            with tempfile.TemporaryDirectory(prefix="tailmark-", dir=self.store_dir) as directory:
                yield from _closed(self._in_folder(Path(directory)))
        elif self.is_reference:
            yield from _closed(ModelSubject())
        else:
            yield from _closed(_made(self.words[0]))

    def _in_folder(self, folder: Path) -> Subject:
        if not self.is_program:
            return SqliteSubject(folder)
        try:
            return StdioSubject(self.words, folder, self.seconds, validate=self.validate)
        except WireError as error:
            raise TargetError(f"{self.name}: {error}") from error


def _closed(subject: Subject) -> Iterator[Subject]:
    try:
        yield subject
    finally:
        subject.close()


def _made(name: str) -> Subject:
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except Exception as error:
        # Whatever an import runs into, it is the target that cannot be had.
        raise TargetError(f"module {module_name} cannot be imported: {_told(error)}") from error
    maker = getattr(module, attribute, None)
    if maker is None:
        raise TargetError(f"module {module_name} has no {attribute}: name a callable that returns a subject")
    if not callable(maker):
        raise TargetError(f"{name} is no callable: it must return a subject when it is called")
    return _called(name, maker)


def _called(name: str, maker: Callable[[], object]) -> Subject:
    try:
        subject = maker()
    except Exception as error:
        # As above.
        raise TargetError(f"{name} raised {_told(error)}") from error
    missing = [
        member
        for member in ("declaration", "reset", "perform", "observe", "observe_fresh", "close")
        if not hasattr(subject, member)
    ]
    if missing:
        raise TargetError(f"{name} returned no subject: {', '.join(missing)} missing")
    return subject  # type: ignore[return-value]  # its members were looked at


def _told(error: Exception) -> str:
    # One line, however long the exception's text is.
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@frozen(kw_only=True)
class ServedTarget:
    """What is served on the wire by a target's name (`tailmark_conformance.subjects.serving.Maker`). Raises `TargetError`."""

    name: str
    declaration: Declaration

    def made(self, folder: Path) -> Subject:
        """A new subject. A Python object is not told of the folder."""
        return SqliteSubject(folder) if self.name == REFERENCE else _served(self.name)

    def found(self, folder: Path) -> Subject:
        """The store that is in the folder. Raises `ValueError` for anything but the store."""
        if self.name != REFERENCE:
            raise ValueError(f"{self.name} keeps no durable state")
        subject = SqliteSubject(folder)
        subject.reopen()
        return subject


def served(name: str) -> ServedTarget:
    """What is to be served under a target's name, with the capability `batch`. Raises `TargetError`.

    Only the reference offers `durability` here: an object that is not told of the folder keeps nothing there.
    """
    if name == REFERENCE:
        with tempfile.TemporaryDirectory() as folder:
            declaration = SqliteSubject(Path(folder)).declaration
        offered = declaration.capabilities
    else:
        declaration = _served(name).declaration
        offered = tuple(one for one in declaration.capabilities if one is not Capability.DURABILITY)
    return ServedTarget(
        name=name,
        declaration=evolve(declaration, capabilities=tuple(dict.fromkeys((*offered, Capability.BATCH)))),
    )


def _served(name: str) -> Subject:
    return ModelSubject() if name == REFERENCE_MODEL else _made(name)
