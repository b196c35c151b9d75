"""The step of the action that checks: from its inputs, which come as environment variables, to the exit code of ``tailmark check``.

It needs the standard library alone, and no shell sees an input: the target is split into words, and each other input is the value
of one option. The report's Markdown goes to the run's summary page, also where the check fails; where there is no report, what
tailmark said on stderr goes there.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

USAGE: Final = 2
"""The exit code for an input that cannot be used, as tailmark's own."""

OPTIONS: Final = {
    "TAILMARK_PROFILE": "--profile",
    "TAILMARK_SEED": "--seed",
    "TAILMARK_EXAMPLES": "--examples",
    "TAILMARK_TIMEOUT": "--timeout",
    "TAILMARK_BASELINE": "--baseline",
}
"""Inputs with the options that they are values of. An empty one is left out."""

REPORTS: Final = {"--json": "report.json", "--junit": "junit.xml", "--markdown": "summary.md"}

LONGEST_SUMMARY: Final = 1_000_000
"""Bytes. GitHub refuses the summary of a step that has more than a mebibyte."""


class InputError(Exception):
    """An input cannot be used. One line: what, and what to do."""


def words_of(target: str) -> list[str]:
    """The words of a target, as a shell would split them, with or without a ``--`` before them. Raises `InputError`."""
    try:
        words = shlex.split(target)
    except ValueError as error:
        raise InputError(
            f"target: {target!r} cannot be split into words ({error}): close its quotes"
        ) from None
    return words[1:] if words[:1] == ["--"] else words


def folder_of(name: str) -> Path:
    """The folder for reports and capsules, made if it is not there. Raises `InputError`."""
    if not name or name != " ".join(name.splitlines()):
        raise InputError(f"artifacts: {name!r} is no folder's name: give one line")
    folder = Path(name).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for report in REPORTS.values():
            # What is there in the end is of this check.
            (folder / report).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"artifacts: {name}: {error.strerror}: name a folder that can be written") from None
    return folder


def command_of(inputs: Mapping[str, str], folder: Path) -> list[str]:
    """The command that checks. Raises `InputError`."""
    return [
        *(sys.executable, "-m", "tailmark_conformance", "check"),
        *(f"{option}={folder / report}" for option, report in REPORTS.items()),
        f"--capsules={folder / 'capsules'}",
        # One word each, so that no value can be taken for another option.
        *(f"{option}={value}" for name, option in OPTIONS.items() if (value := inputs.get(name, ""))),
        "--",
        *words_of(inputs.get("TAILMARK_TARGET", "")),
    ]


def not_checked(code: int, errors: str) -> str:
    """A summary without a report: what was said on stderr. Indented, it is shown as it is, whatever it is."""
    told = "".join(f"    {line}\n" for line in errors.splitlines())
    return f"## tailmark: not checked (exit code {code})\n\n{told}"


def summary_of(report: Path, code: int, errors: str) -> str:
    """What goes to the summary page: the report, or else what was said on stderr."""
    if not report.is_file():
        return not_checked(code, errors)
    content = report.read_bytes()
    if len(content) <= LONGEST_SUMMARY:
        return content.decode("utf-8", "replace")
    kept = content[:LONGEST_SUMMARY].decode("utf-8", "ignore").rpartition("\n")[0]
    return f"This report is cut short; the whole one is `{report.name}` among the artifacts.\n\n{kept}\n"


def append(file: str | None, text: str) -> None:
    """Append to one of the files that the runner names. Elsewhere there may be none."""
    if file:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)


def run(environment: Mapping[str, str]) -> int:
    """Check, and answer tailmark's exit code. Raises `InputError`."""
    folder = folder_of(environment.get("TAILMARK_ARTIFACTS", ""))
    command = command_of(environment, folder)
    append(environment.get("GITHUB_OUTPUT"), f"folder={folder}\n")
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)  # noqa: S603  # words, not a line for a shell
    errors = done.stderr.decode("utf-8", "replace")
    sys.stderr.write(errors)
    append(
        environment.get("GITHUB_STEP_SUMMARY"),
        summary_of(folder / REPORTS["--markdown"], done.returncode, errors),
    )
    append(environment.get("GITHUB_OUTPUT"), f"exit-code={done.returncode}\n")
    return done.returncode


def main(environment: Mapping[str, str]) -> int:
    """As `run`; an input that cannot be used is told in one line."""
    try:
        return run(environment)
    except InputError as error:
        told = f"tailmark: {error}\n"
        sys.stderr.write(told)
        append(environment.get("GITHUB_STEP_SUMMARY"), not_checked(USAGE, told))
        append(environment.get("GITHUB_OUTPUT"), f"exit-code={USAGE}\n")
        return USAGE


if __name__ == "__main__":
    sys.exit(main(os.environ))
