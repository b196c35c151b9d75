"""The command line: `tailmark check`, `tailmark replay`, `tailmark explain`, `tailmark audit`, `tailmark export`, `tailmark serve`, `tailmark init`.

Exit codes: 0 conforms, 1 does not, 2 usage, 3 the subject could not be run, 4 an error of the suite,
130 interrupted.
"""

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from tailmark import json_form
from tailmark_conformance.baseline import BaselineError
from tailmark_conformance.capsules import FOLDER, CapsuleError, capsule_files, read_capsule
from tailmark_conformance.checking import (
    DEFAULT_SEED,
    Profile,
    UsageError,
    clause_named,
    prepare,
    run_check,
    target_named,
)
from tailmark_conformance.exporting import export_session
from tailmark_conformance.gating import Gate
from tailmark_conformance.initialising import Language, initialise
from tailmark_conformance.outputs import Outputs, usable_file, write_file
from tailmark_conformance.recorded.audit import audit_files, exit_code
from tailmark_conformance.recorded.audit_text import print_report as print_audit
from tailmark_conformance.replaying import Result, replay_capsule
from tailmark_conformance.reports.explanation import explanation_lines, list_lines
from tailmark_conformance.reports.replay_text import closing_line as replay_closing_line
from tailmark_conformance.reports.replay_text import print_replayed
from tailmark_conformance.reports.terminal import print_report
from tailmark_conformance.subjects.serving import serve as serve_on
from tailmark_conformance.subjects.stdio import SECONDS
from tailmark_conformance.subjects.targets import TargetError, served


class Exit(IntEnum):
    """What the process answers."""

    CONFORMS = 0
    DOES_NOT = 1
    USAGE = 2
    NOT_RUN = 3
    SUITE_ERROR = 4
    INTERRUPTED = 130
    READER_GONE = 141
    """Whoever read the output closed it before the end, as ``| head`` does."""


_WIDTH = 120

app = App(
    name="tailmark",
    help="Checks the context compaction of LLM agents against an executable specification.",
    version=version("tailmark"),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


class _PlainConsole(Console):
    def on_broken_pipe(self) -> None:  # type: ignore[explicit-override]  # Python 3.11 has no override
        # The library would exit with 1, which here means that the subject does not conform.
        raise BrokenPipeError


def _console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Where nobody looks at a terminal, lines are not to be broken at 80.
    return _PlainConsole(file=stream, highlight=False, width=None if stream.isatty() else _WIDTH)


@app.command
def check(
    *target: str,
    json: Path | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    capsules: Annotated[Path, Parameter(env_var="TAILMARK_CAPSULES")] = Path(FOLDER),
    baseline: Path | None = None,
    update_baseline: Annotated[bool, Parameter(negative="")] = False,
    seed: int = DEFAULT_SEED,
    examples: int | None = None,
    clause: Annotated[tuple[str, ...], Parameter(consume_multiple=False)] = (),
    profile: Profile = Profile.STANDARD,
    store_dir: Path | None = None,
    workers: int | None = None,
    timeout: float = SECONDS,
    validate: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Drive an implementation through generated histories and judge every step.

    Parameters
    ----------
    target
        ``reference`` (the SQLite store), ``reference:model`` (the pure model), ``module:attribute``: a Python callable that
        returns a subject, or, behind ``--``, a program with its arguments that speaks the wire on its stdin and stdout.
    json
        Write the report to this file as well.
    junit
        Write the report to this file as JUnit XML, a test case for each clause.
    markdown
        Write the report to this file as Markdown, for the summary page of a CI run.
    capsules
        The folder for capsules: a file for each clause that fails, for ``tailmark replay``.
    baseline
        A TOML file of known failures: they are accepted, and an entry that nothing fails with any more is a failure.
    update_baseline
        Bring the baseline's file up to date, or make it. A whole profile is needed for it.
    seed
        The same seed on the same code makes the same check.
    examples
        How many histories, instead of the profile's number. The profile goes on for a while where a clause was never
        reached; this number is kept to.
    clause
        Judge by this clause alone; give it again for more. ``MODEL`` is the second oracle.
    profile
        How much is explored.
    store_dir
        Where stores are written; in memory unless told otherwise, where the machine has a file system there.
    workers
        How many processes; as many as the machine runs at once unless told otherwise. The result is the same.
    timeout
        How many seconds a call to a program may take; its start may take five times as long.
    validate
        Hold every line of a program against the JSON Schemas, both ways. It is slower.
    """
    outputs = Outputs(json=json, junit=junit, markdown=markdown, capsules=capsules)
    outputs.check()
    if update_baseline and baseline is None:
        raise UsageError("--update-baseline: name the file with --baseline FILE")
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: use a whole number from 1")
    prepared = prepare(
        target,
        seed=seed,
        examples=examples,
        clauses=clause,
        profile=profile,
        store_dir=store_dir,
        workers=workers,
        timeout=timeout,
        validate=validate,
    )
    gate = Gate.of(prepared, baseline, updates=update_baseline) if baseline is not None else None
    console = _console()
    report = run_check(prepared, console, _console(stderr=True))
    told: str | None = None
    if gate is not None:
        report, told = gate.judged(report, datetime.now(tz=UTC).date())
    try:
        written = outputs.write(report)
    except (UsageError, CapsuleError):
        # What was seen is not lost for a file that cannot be written.
        print_report(report, console)
        raise
    print_report(report, console, capsules=written, command=prepared.target.command)
    if told is not None:
        console.print(told, markup=False, soft_wrap=True)
    if report.conforms:
        return Exit.CONFORMS
    return Exit.SUITE_ERROR if report.is_suite_error else Exit.DOES_NOT


@app.command
def replay(
    capsule: Path,
    *target: str,
    store_dir: Path | None = None,
    timeout: float = SECONDS,
    validate: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a failure again: FIXED, STILL FAILS, or ERROR where it cannot be told.

    Parameters
    ----------
    capsule
        A file that a failing check wrote, or a folder of them.
    target
        What is to be run, as in ``tailmark check``. A capsule names no command.
    store_dir
        Where stores are written.
    timeout
        How many seconds a call to a program may take.
    validate
        Hold every line of a program against the JSON Schemas.
    """
    chosen = target_named(target, store_dir=store_dir, timeout=timeout, validate=validate)
    read = [(path, read_capsule(path)) for path in capsule_files(capsule)]
    console = _console()
    results = []
    for path, one in read:
        replayed = replay_capsule(one, chosen)
        print_replayed(path, replayed, console)
        results.append(replayed)
    if len(results) > 1:
        console.print(replay_closing_line(results), markup=False, soft_wrap=True)
    if any(one.result is Result.ERROR for one in results):
        return Exit.NOT_RUN
    return Exit.DOES_NOT if any(one.result is Result.STILL_FAILS for one in results) else Exit.CONFORMS


@app.command
def explain(clause: str | None = None) -> int:
    """Tell what a clause says, why, and show its example. Without a clause, list all.

    Parameters
    ----------
    clause
        The clause's id, such as ``TREE-1``.
    """
    lines = explanation_lines(clause_named(clause)) if clause is not None else list_lines()
    console = _console()
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    return Exit.CONFORMS


@app.command
def audit(*files: Path, json: Path | None = None) -> int:
    """Read recorded sessions and judge what they show.

    Parameters
    ----------
    files
        Session files of pi (format version 1) or Claude Code, plain or gzip. They are only read.
    json
        Write the report to this file as well.
    """
    if not files:
        raise UsageError("audit: no file given: name at least one recorded session")
    usable_file("--json", json)
    with _bytes_bar(_console(stderr=True)) as progress:
        report = audit_files(files, progress)
    print_audit(report, _console())
    if json is not None:
        write_file("--json", json, json_form.dumps(report) + b"\n")
    return exit_code(report)


@app.command
def export(store: Path, session: str, new: Path) -> int:
    """Take the readable part of a session out of a damaged store of the reference.

    Parameters
    ----------
    store
        The store's file. It is only read.
    session
        The session's id.
    new
        The file of the new store, which must not exist.
    """
    export_session(store, session, new, _console())
    return Exit.CONFORMS


@app.command
def serve(target: str) -> int:
    """Serve a subject on stdin and stdout, so that it can be checked as a program is. What it prints goes to stderr.

    Parameters
    ----------
    target
        ``reference``, ``reference:model`` or ``module:attribute``.
    """
    # The lines of the wire are alone on the real stdout, whatever the subject prints.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as writer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        serve_on(served(target), sys.stdin.buffer, writer)
    return Exit.CONFORMS


@app.command
def init(folder: Path, *, language: Language) -> int:
    """Write the beginning of an adapter, with a small implementation behind it that conforms as it stands.

    Parameters
    ----------
    folder
        Where to write it: a new folder, or an empty one.
    language
        What it is written in.
    """
    initialise(language, folder, _console())
    return Exit.CONFORMS


@contextmanager
def _bytes_bar(console: Console) -> Iterator[Callable[[int, int], None] | None]:
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading")
        yield lambda done, total: progress.update(task, completed=done, total=total)


def main(tokens: Sequence[str] | None = None) -> int:
    """Run the command line and answer the exit code. ``tokens`` are the process's own arguments unless given."""
    # A terminal that cannot show a character shows another in its place; that is no reason to stop.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        result = app(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return _complain(" ".join(str(error).split()), Exit.USAGE)
    except (UsageError, BaselineError, CapsuleError) as error:
        return _complain(str(error), Exit.USAGE)
    except TargetError as error:
        return _complain(f"the subject could not be run: {error}", Exit.NOT_RUN)
    except KeyboardInterrupt:
        return _complain("interrupted", Exit.INTERRUPTED)
    except BrokenPipeError:
        # What is still in the buffer has nobody to go to; without this Python complains about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.READER_GONE
    except Exception:  # noqa: BLE001  # whatever is left is the suite's own fault, and says so
        traceback.print_exc()
        return _complain("this is an error of the suite, not of the subject", Exit.SUITE_ERROR)
    return int(result) if isinstance(result, int) else Exit.CONFORMS


def _complain(line: str, code: Exit) -> int:
    sys.stderr.write(f"tailmark: {line}\n")
    return code
