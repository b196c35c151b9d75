"""Capsules: a failing clause as a file that any checkout can run again (`tailmark replay`).

A capsule holds the whole trace, not a seed to make it from: another release of the explorers replays it all the same. It
names no command. Who replays it says what is to be run.
"""

import os
from pathlib import Path
from typing import Final

from attrs import frozen

from tailmark import json_form
from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark.json_form import JsonFormError
from tailmark.operations import Operation
from tailmark.traces import Trace
from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.explorers.runs import PSEUDO_CLAUSES
from tailmark_conformance.explorers.scripts import Script, entries_of
from tailmark_conformance.fingerprints import Fingerprint, fingerprint
from tailmark_conformance.verdicts import Verdict

FORMAT: Final = 1
"""The version of the form below."""

FOLDER: Final = "tailmark-capsules"
"""Where capsules go unless told otherwise: a folder within the present one, made when there is something to write."""

SUFFIX: Final = ".json"

_MOST_BYTES: Final = 64 * 1024 * 1024


class CapsuleError(Exception):
    """A capsule cannot be read or written. One line: what, where, what to do."""


@frozen(kw_only=True)
class Capsule:
    """A fault with the run that shows it.

    ``suite`` is who wrote it, with its version; ``subject`` the words that named the subject; ``example`` the number of the generated run in
    which it came up first. ``text`` says what was expected and seen at the end of the trace. Behind its steps follows what was ``unanswered``.
    ``signature`` tells faults of one pseudo-clause apart.
    """

    format: int
    suite: str
    subject: str
    profile: str
    seed: int
    example: int
    clause: ClauseId
    signature: str
    verdict: Verdict
    fingerprint: Fingerprint
    text: str
    trace: Trace
    unanswered: tuple[Operation, ...] = ()

    @property
    def script(self) -> Script:
        """What is to be asked again."""
        return Script(
            sessions=self.trace.sessions,
            model=self.trace.model,
            settings=self.trace.settings,
            entries=entries_of(self.trace.steps, self.unanswered),
        )


def capsules_of(report: CheckReport, suite: str) -> tuple[Capsule, ...]:
    """A capsule for each clause that makes the check fail and has a trace."""
    return tuple(
        one
        for clause in report.clauses
        if not clause.verdict.conforms
        for one in _capsule(clause, report, suite)
    )


def _capsule(clause: ClauseReport, report: CheckReport, suite: str) -> tuple[Capsule, ...]:
    found = clause.found
    if found is None or found.run.trace is None:
        return ()
    return (
        Capsule(
            format=FORMAT,
            suite=suite,
            subject=report.subject,
            profile=report.profile,
            seed=report.seed,
            example=found.example,
            clause=found.fault.clause,
            signature=found.fault.signature,
            verdict=clause.verdict,
            fingerprint=fingerprint(found),
            text=found.fault.text,
            trace=found.run.trace,
            unanswered=found.run.unanswered,
        ),
    )


def write_capsules(capsules: tuple[Capsule, ...], folder: Path) -> tuple[Path, ...]:
    """Write each into a file named by its clause and fingerprint. Raises `CapsuleError`; no file is there half written."""
    paths = []
    for capsule in capsules:
        path = folder / f"{capsule.clause}-{capsule.fingerprint}{SUFFIX}"
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(json_form.dumps(capsule) + b"\n")
            beside.replace(path)
        except OSError as error:
            raise CapsuleError(
                f"--capsules {folder}: {path.name} cannot be written ({error.strerror}): name another folder"
            ) from None
        paths.append(path)
    return tuple(paths)


def capsule_files(path: Path) -> tuple[Path, ...]:
    """The file, or all capsules in the folder, by their names. Raises `CapsuleError` if there is none."""
    if not path.is_dir():
        return (path,)
    try:
        files = tuple(
            sorted(one for one in path.iterdir() if one.suffix == SUFFIX and not one.name.startswith("."))
        )
    except OSError as error:
        raise CapsuleError(f"{path}: it cannot be read ({error.strerror})") from None
    if not files:
        raise CapsuleError(f"{path}: there is no capsule in this folder: a check that fails writes them")
    return files


def read_capsule(path: Path) -> Capsule:
    """The capsule in a file. Raises `CapsuleError`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CapsuleError(f"{path}: expected at most {_MOST_BYTES} bytes: this is no capsule")
        content = path.read_bytes()
    except OSError as error:
        raise CapsuleError(
            f"{path}: it cannot be read ({error.strerror}): name a file that a check wrote"
        ) from None
    try:
        plain = json_form.parse(content)
        if isinstance(plain, dict) and plain.get("format", FORMAT) != FORMAT:
            raise CapsuleError(
                f"{path}: expected a capsule of format {FORMAT}, found {plain['format']!r}: run the check again"
            )
        capsule = json_form.structure(plain, Capsule)
    except JsonFormError as error:
        told = " ".join(f"{error}".split())
        raise CapsuleError(f"{path}: this is no capsule: {told[:300]}") from None
    if capsule.clause not in clauses() and capsule.clause not in PSEUDO_CLAUSES:
        raise CapsuleError(f"{path}: unknown clause {capsule.clause!r}: it is of another specification")
    return capsule
