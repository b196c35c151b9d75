"""What README and documentation say of commands is true."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkout import ROOT, files, text_of
from tailmark_conformance.cli import app, main

SET_UP = ("pip install uv && uv run tailmark check reference", "uv run pytest")
_BLOCK = re.compile(r"^(?: *)```(?:\w*)\n(.*?)^(?: *)```$", re.MULTILINE | re.DOTALL)
# `test_init` runs what a template's README shows, where `init` has written it, and `test_gate_page` runs its page.
_ELSEWHERE = {"clauses", "templates", "gate.md"}
_PAGES = [path for path in files() if path.suffix == ".md" and not _ELSEWHERE & set(path.parts)]
# These take their time; `.ci/run` runs them.
_LONG = ("check reference",)
# Stand-ins in descriptions.
_PLACEHOLDERS = ("FILE…", "session.jsonl", "pi-0.63.0")
# What `init` writes in the examples. `test_init` runs those commands, one after the other in an empty folder.
_WRITTEN = ("mine", "mine/adapter.py", "mine/adapter.mjs")


def commands(page: Path | str) -> Iterator[str]:
    """Every line of a page's code blocks, without comments."""
    for block in _BLOCK.finditer(text_of(page)):
        for line in block[1].splitlines():
            command = line.partition("  #")[0].strip()
            if command:
                yield command


def tailmark_commands() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every call of `tailmark` in a code block, without `tailmark` itself."""
    for page in _PAGES:
        for command in commands(page):
            found = re.search(r"(?:^|&& )(?:uv run )?tailmark (.*)", command)
            if found is not None:
                yield page, tuple(shlex.split(found[1]))


CALLS = sorted({call for _, call in tailmark_commands()})


def test_the_readme_has_exactly_two_commands_to_set_up() -> None:
    section = text_of("README.md").partition("## Set up\n")[2].partition("\n## ")[0]
    (block,) = _BLOCK.findall(section)
    assert tuple(block.splitlines()) == SET_UP


@pytest.mark.parametrize("command", SET_UP)
def test_ci_runs_them_as_they_stand(command: str) -> None:
    assert command in text_of(".ci/run").splitlines()
    assert command in text_of("CONTRIBUTING.md").splitlines()


def test_what_contributors_run_is_what_ci_runs() -> None:
    shown = [command for command in commands("CONTRIBUTING.md") if command.startswith("uv run")]
    ci = text_of(".ci/run")
    for command in shown:
        if command.endswith("tailmark_conformance.scenarios"):
            continue  # a test compares what it writes
        assert command in ci, command


def test_the_readme_fits_on_a_screen() -> None:
    assert len(text_of("README.md").splitlines()) <= 70


def test_commands_are_found() -> None:
    assert {call[0] for call in CALLS} == {"check", "explain", "audit", "init"}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_command_shown_parses(call: tuple[str, ...]) -> None:
    app.parse_args(call, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_cheap_command_shown_runs(
    call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if " ".join(call).startswith(_LONG) and "smoke" not in call:
        return
    if any(word.endswith(_PLACEHOLDERS) or word.endswith(".gz") for word in call):
        return
    if set(_WRITTEN) & set(call):
        return
    skeleton = "skeleton:Skeleton" in call
    monkeypatch.chdir(ROOT / "docs" / "examples" if skeleton else ROOT)
    # An audit that finds something says so by its exit code; the skeleton does nothing yet, so it does not conform.
    expected = {"audit": (0, 1), "check": (1,) if skeleton else (0,)}
    assert main(call) in expected.get(call[0], (0,))
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_what_pages_name_is_there(page: Path) -> None:
    """Paths in back quotes that lead into the source are those of files or folders."""
    folders = ("spec/", "reference/", "conformance/", "model_tests/", "docs/", ".ci/", "changelog.d/")
    for name in re.findall(r"`([^`\s]+)`", text_of(page)):
        if name.startswith(folders) and "abc" not in name:
            assert list(ROOT.glob(name.rstrip("/"))), f"{page} names {name}"
