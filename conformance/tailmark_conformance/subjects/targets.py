"""What a target's name stands for, and how it becomes a subject.

``reference`` is the SQLite store, ``reference:model`` the pure model, ``module:attribute`` a Python object:
a callable without arguments that returns a `tailmark.subjects.Subject`.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from attrs import frozen

from tailmark.subjects import Subject
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
    """A target by its name. It can be sent to another process."""

    name: str
    store_dir: Path

    @property
    def is_reference(self) -> bool:
        """Whether both oracles must agree about it."""
        return self.name in (REFERENCE, REFERENCE_MODEL)

    @property
    def stores_files(self) -> bool:
        """Whether `store_dir` matters."""
        return self.name == REFERENCE

    def check_name(self) -> None:
        """Raises `TargetNameError` for a name that can stand for nothing."""
        module, colon, attribute = self.name.partition(":")
        if not self.is_reference and not (module and colon and attribute):
            raise TargetNameError(
                f"unknown target {self.name!r}: use reference, reference:model,"
                " or module:attribute for a Python callable that returns a subject"
            )

    @contextmanager
    def opened(self) -> Iterator[Subject]:
        """A subject, closed in the end. Raises `TargetError` if it cannot be had."""
        if self.name == REFERENCE:
            with tempfile.TemporaryDirectory(prefix="tailmark-", dir=self.store_dir) as directory:
                yield from _closed(SqliteSubject(Path(directory)))
        elif self.name == REFERENCE_MODEL:
            yield from _closed(ModelSubject())
        else:
            yield from _closed(_made(self.name))


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
