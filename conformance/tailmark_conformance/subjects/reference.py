"""The SQLite reference in the place of another subject: what fails there too is the suite's own fault."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from tailmark.declarations import Declaration, Parameters, Readings, ReasoningReading, TailReading
from tailmark.subjects import Subject
from tailmark_conformance.subjects.declaring import Declaring
from tailmark_conformance.subjects.loop import Loop
from tailmark_conformance.subjects.stdio import StdioSubject
from tailmark_reference.store.subject import SqliteSubject


def has_readings(readings: Readings) -> bool:
    """Whether the reference can behave in that way."""
    return readings.tail is TailReading.KEEPS_TURNS and readings.reasoning is ReasoningReading.SENT


@frozen(kw_only=True)
class InPlaceOf:
    """The reference with another subject's declaration and readings, and its own figures (a `Source`).

    ``over_wire``: it is asked by the same lines as a program, without a process. Stores go into folders in ``store_dir``.
    """

    told: Declaration
    store_dir: Path
    over_wire: bool
    is_reference: bool = False
    shrinking_runs: int = 0

    @property
    def declaration(self) -> Declaration:
        """What it says of itself. The figures are those of its own estimate."""
        return evolve(self.told, parameters=Parameters())

    def made(self, folder: Path) -> Subject:
        """A store in the folder (`tailmark_conformance.subjects.serving.Maker`)."""
        return self._store(folder)

    def found(self, folder: Path) -> Subject:
        """The store that is in the folder."""
        store = self._store(folder)
        store.reopen()
        return store

    @contextmanager
    def opened(self) -> Iterator[Subject]:
        """A subject, closed in the end."""
        with tempfile.TemporaryDirectory(prefix="tailmark-", dir=self.store_dir) as directory:
            subject = self._subject(Path(directory))
            try:
                yield subject
            finally:
                subject.close()

    def _subject(self, folder: Path) -> Subject:
        if self.over_wire:
            return StdioSubject((), folder, start=lambda: Loop(self))
        return Declaring(self._store(folder), self.declaration)

    def _store(self, folder: Path) -> SqliteSubject:
        return SqliteSubject(folder, readings=self.told.readings)
