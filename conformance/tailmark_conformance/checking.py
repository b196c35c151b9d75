"""One check from the words of the command line to its report: profiles, settings, and what is shown meanwhile."""

import difflib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES
from tailmark_conformance.examination import CheckReport, examine, selection_of
from tailmark_conformance.explorers.generated import Effort, Exploration, Found, explore, processes
from tailmark_conformance.explorers.rerunning import rerun_on
from tailmark_conformance.explorers.runs import MODEL
from tailmark_conformance.reports.story import tell_operation, tell_outcome
from tailmark_conformance.subjects.reference import InPlaceOf, has_readings
from tailmark_conformance.subjects.stdio import SECONDS
from tailmark_conformance.subjects.targets import Target, TargetNameError, default_store_dir

DEFAULT_SEED = 0
"""The seed of a check that names none, so that the same code gets the same check."""

_SHOWN_STEPS = 6


class UsageError(Exception):
    """Something on the command line cannot be used. One line: what, where, what to do."""


class Profile(StrEnum):
    """How much is explored."""

    SMOKE = "smoke"
    STANDARD = "standard"
    DEEP = "deep"


@frozen(kw_only=True)
class Size:
    """So many runs of so many operations."""

    examples: int
    steps: int


SIZES = {
    Profile.SMOKE: Size(examples=54, steps=45),
    Profile.STANDARD: Size(examples=500, steps=60),
    Profile.DEEP: Size(examples=5000, steps=80),
}
"""The profiles on the SQLite reference and two cores: smoke takes seconds, standard a minute, deep many."""

_ROUNDS = 8
"""Further rounds at most, where a profile's runs leave a clause unreached: with most seeds smoke needs one or two."""


def clause_named(name: str) -> ClauseId:
    """The clause of that name, in any case. Raises `UsageError`, which offers the nearest names."""
    known = [*PREDICATES, MODEL]
    clause = ClauseId(name.upper())
    if clause in known:
        return clause
    near = difflib.get_close_matches(clause, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`tailmark explain` lists all"
    raise UsageError(f"unknown clause {name!r}: {hint}")


def usable_store_dir(path: Path | None) -> Path:
    """The folder for stores. Raises `UsageError` if no store could be written there."""
    folder = path if path is not None else default_store_dir()
    if not folder.is_dir():
        raise UsageError(f"--store-dir {folder}: there is no such folder: make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"--store-dir {folder}: it cannot be written ({error.strerror}): name another folder"
        ) from None
    return folder


@frozen(kw_only=True)
class Check:
    """What is to be checked, and how. Build it with `prepare`."""

    target: Target
    clauses: tuple[ClauseId, ...]
    profile: Profile
    effort: Effort
    is_partial: bool = False
    """Whether it is less than its profile asks for."""


def target_named(
    words: Sequence[str], *, store_dir: Path | None, timeout: float = SECONDS, validate: bool = False
) -> Target:
    """The target of the words on a command line. Raises `UsageError`."""
    if not words:
        raise UsageError("no target given: name reference, module:attribute, or -- and a program")
    if not timeout > 0:
        raise UsageError(f"--timeout {timeout:g}: use a number of seconds above 0")
    target = Target(
        words=tuple(words), store_dir=usable_store_dir(store_dir), seconds=timeout, validate=validate
    )
    try:
        target.check_name()
    except TargetNameError as error:
        raise UsageError(str(error)) from None
    if validate and not target.is_program:
        raise UsageError(f"--validate: {target.name} is no program, so there are no lines to validate")
    return target


def prepare(
    words: Sequence[str],
    *,
    timeout: float = SECONDS,
    validate: bool = False,
    seed: int,
    examples: int | None,
    clauses: Sequence[str],
    profile: Profile,
    store_dir: Path | None,
    workers: int | None = None,
) -> Check:
    """Raises `UsageError` for anything that cannot be used."""
    if seed < 0:
        raise UsageError(f"--seed {seed}: use a whole number from 0")
    if examples is not None and examples < 1:
        raise UsageError(f"--examples {examples}: use a whole number from 1")
    chosen = tuple(dict.fromkeys(clause_named(clause) for clause in clauses))
    target = target_named(words, store_dir=store_dir, timeout=timeout, validate=validate)
    size = SIZES[profile]
    return Check(
        target=target,
        clauses=chosen,
        profile=profile,
        effort=Effort(
            seed=seed,
            examples=examples if examples is not None else size.examples,
            steps=size.steps,
            workers=workers if workers is not None else processes(),
            # A number that was asked for is kept to.
            rounds=_ROUNDS if examples is None else 0,
        ),
        is_partial=bool(chosen) or examples is not None,
    )


def run_check(check: Check, console: Console, bar: Console) -> CheckReport:
    """Perform a check. ``bar`` shows how far it is, if it is a terminal. Raises `TargetError` if the subject cannot be run."""
    began = time.monotonic()
    selection = selection_of(check.clauses)
    with _listening(check, console, bar) as listener:
        exploration = explore(check.target, selection, check.effort, listener)
        if not check.target.is_reference and has_readings(exploration.declaration.readings):
            exploration = rerun_on(_reference_for(check.target, exploration), exploration, selection)
    return examine(
        exploration,
        selection,
        subject=check.target.name,
        profile=check.profile.value,
        seconds=time.monotonic() - began,
        store_dir=check.target.store_dir if check.target.stores_files else None,
        complete=not check.is_partial,
    )


def _reference_for(target: Target, exploration: Exploration) -> InPlaceOf:
    return InPlaceOf(told=exploration.declaration, store_dir=target.store_dir, over_wire=target.is_program)


@contextmanager
def _listening(check: Check, console: Console, bar: Console) -> Iterator["_Listener"]:
    if not bar.is_terminal:
        yield _Listener(console, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=bar, transient=True) as progress:
        progress.add_task(check.target.name, total=check.effort.examples)
        yield _Listener(progress.console if bar is console else console, progress)


class _Listener:
    """Moves the bar, and tells of the first fault at once."""

    def __init__(self, console: Console, progress: Progress | None) -> None:
        self._console = console
        self._progress = progress
        self._told = False

    def ran(self, runs: int) -> None:
        """Move on."""
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0], runs)

    def goes_on(self, runs: int) -> None:
        """The end is further away."""
        if self._progress is not None:
            (task,) = self._progress.tasks
            self._progress.update(task.id, total=(task.total or 0) + runs)

    def found(self, found: Found) -> None:
        """The first fault is told as it is; shrinking takes its time."""
        if self._told:
            return
        self._told = True
        for line in _first_lines(found):
            self._console.print(Text(line), soft_wrap=True)

    def shrinking(self, found: Found) -> None:
        """Say what takes so long."""
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=f"shrinking {found.fault.clause}")


def _first_lines(found: Found) -> Iterator[str]:
    yield f"{found.fault.clause} is broken in run {found.example}, step {found.fault.step + 1}: {found.fault.text}"
    steps = found.run.trace.steps if found.run.trace is not None else ()
    if len(steps) > _SHOWN_STEPS:
        yield f"  … {len(steps) - _SHOWN_STEPS} steps before"
    for step in steps[-_SHOWN_STEPS:]:
        yield f"  {tell_operation(step.operation)}"
        yield f"     → {tell_outcome(step.outcome)}"
    yield "The smallest run follows when all runs are over."
    yield ""
