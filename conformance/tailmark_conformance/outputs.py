"""The files that a check writes besides what it prints. Each is tried before the runs, so that no work is lost for a wrong name."""

import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from attrs import frozen

from tailmark_conformance.capsules import capsules_of, write_capsules
from tailmark_conformance.checking import UsageError
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.reports.json_report import report_bytes
from tailmark_conformance.reports.junit import junit_bytes
from tailmark_conformance.reports.markdown import markdown_bytes


def usable_file(flag: str, path: Path | None) -> None:
    """Raises `UsageError` for a file that could not be written in the end."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{flag} {path}: there is no folder {folder}: make it first")
    if path.is_dir():
        raise UsageError(f"{flag} {path}: this is a folder: name a file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{flag} {path}: it cannot be written: name another file")


def write_file(flag: str, path: Path, content: bytes) -> None:
    """Write a file that was named on the command line. Raises `UsageError`."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{flag} {path}: it cannot be written ({error.strerror}): name another file"
        ) from None


@frozen(kw_only=True)
class Outputs:
    """Files for reports in other forms, and the folder for capsules."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    capsules: Path

    def check(self) -> None:
        """Raises `UsageError` for what could not be written in the end."""
        for flag, path, _ in self._files():
            usable_file(flag, path)
        there = next(one for one in (self.capsules, *self.capsules.absolute().parents) if one.exists())
        if not there.is_dir():
            raise UsageError(f"--capsules {self.capsules}: {there} is no folder: name another")

    def write(self, report: CheckReport) -> tuple[Path, ...]:
        """Write them all. Returns the capsules, one for each clause that failed. Raises `UsageError` and `CapsuleError`."""
        for flag, path, form in self._files():
            write_file(flag, path, form(report))
        return write_capsules(capsules_of(report, f"tailmark {version('tailmark')}"), self.capsules)

    def _files(self) -> Iterator[tuple[str, Path, Callable[[CheckReport], bytes]]]:
        if self.json is not None:
            yield "--json", self.json, report_bytes
        if self.junit is not None:
            yield "--junit", self.junit, junit_bytes
        if self.markdown is not None:
            yield "--markdown", self.markdown, markdown_bytes
