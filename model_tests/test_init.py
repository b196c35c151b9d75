"""What `tailmark init` writes runs at once and conforms, and what it refuses it leaves as it was."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from checkout import text_of
from node import needs_node
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.initialising import TEMPLATES, Language, template_files

_BLOCK: Final = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Change:
    """What a template's README says to write in the place of something else, to see a clause fail."""

    file: str
    old: str
    new: str
    clause: str


BREAKING: Final = {
    Language.PYTHON: Change(
        file="implementation.py",
        old="_index(messages, latest.first_kept)",
        new="_index(messages, latest.first_kept) + 1",
        clause="PROJ-2",
    ),
    Language.TYPESCRIPT: Change(
        file="implementation.mjs",
        old="indexOf(messages, latest.firstKept)",
        new="indexOf(messages, latest.firstKept) + 1",
        clause="PROJ-2",
    ),
}


@pytest.fixture(params=Language)
def language(request: pytest.FixtureRequest) -> Language:
    """Each language whose programs are there."""
    chosen = Language(request.param)
    if chosen is Language.TYPESCRIPT:
        needs_node()
    return chosen


def _init(folder: Path | str, language: Language, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["init", "--language", language, str(folder)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    """The calls of `tailmark` in what was printed or in code blocks, without `tailmark` itself."""
    for line in text.splitlines():
        if line.strip().startswith("tailmark "):
            yield tuple(shlex.split(line.strip())[1:])


def _everything(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


class TestTemplates:
    def test_it_conforms_by_the_command_that_is_printed(
        self,
        language: Language,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """In an empty folder the two commands are enough, every line is as the schemas say, and what is declared is reached."""
        monkeypatch.chdir(tmp_path)
        code, told = _init("mine", language, capsys)
        assert code == Exit.CONFORMS, told
        (command,) = _commands(told)
        assert main(command) == Exit.CONFORMS
        assert main(["check", "--examples", "18", "--validate", *command[1:]]) == Exit.CONFORMS
        out = capsys.readouterr().out
        assert "untestable" not in out
        assert "departs" not in out

    def test_its_readme_shows_commands_that_run(
        self,
        language: Language,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """All that stands in its code blocks, and what it names in the text."""
        assert _init(tmp_path, language, capsys)[0] == Exit.CONFORMS
        monkeypatch.chdir(tmp_path)
        text = Path("README.md").read_text(encoding="utf-8")
        commands = [*_commands("".join(_BLOCK.findall(text)))]
        commands += [tuple(shlex.split(one)[1:]) for one in re.findall(r"`(tailmark [^`]*)`", text)]
        assert {command[0] for command in commands} == {"check", "explain"}
        for command in commands:
            # The whole check is the printed command's, see above.
            few = ("--examples", "2") if command[0] == "check" else ()
            assert main([command[0], *few, *command[1:]]) == Exit.CONFORMS
        for name in re.findall(r"`(\w+\.\w+)`", text):
            assert Path(name).is_file(), name

    def test_it_can_be_broken_as_its_readme_says(
        self,
        language: Language,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The change can be made, and the check names the clause that the README names."""
        monkeypatch.chdir(tmp_path)
        _, told = _init("mine", language, capsys)
        (command,) = _commands(told)
        change = BREAKING[language]
        readme = Path("mine/README.md").read_text(encoding="utf-8")
        for named in (f"tailmark explain {change.clause}", change.file, change.old, change.new):
            assert f"`{named}`" in readme
        file = Path("mine", change.file)
        before = file.read_text(encoding="utf-8")
        assert before.count(change.old) == 1
        file.write_text(before.replace(change.old, change.new), encoding="utf-8")
        assert main(command) == Exit.DOES_NOT
        assert f"{change.clause}: fail" in capsys.readouterr().out


def test_the_page_shows_commands_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of docs/your-implementation.md with templates, each in an empty folder of its own, and README.md's line."""
    needs_node()
    blocks = [block for block in _BLOCK.findall(text_of("docs/your-implementation.md")) if "mine" in block]
    assert len(blocks) == len(Language)
    for number, block in enumerate(blocks):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        init, check = _commands(block)
        assert init[0] == "init"
        assert main(init) == Exit.CONFORMS
        assert check in _commands(capsys.readouterr().out), check
        assert main([check[0], "--examples", "2", *check[1:]]) == Exit.CONFORMS
    assert "tailmark init --language python mine " in text_of("README.md")


class TestFolders:
    def test_an_empty_folder_is_used(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It has the template's files and nothing else afterwards."""
        assert _init(tmp_path, Language.PYTHON, capsys)[0] == Exit.CONFORMS
        assert _everything(tmp_path) == template_files(Language.PYTHON)

    def test_a_new_folder_is_made(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Nothing else is left beside it."""
        assert _init(tmp_path / "mine", Language.PYTHON, capsys)[0] == Exit.CONFORMS
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
        assert _everything(tmp_path / "mine") == template_files(Language.PYTHON)

    @pytest.mark.parametrize("name", ["two words", "it's", "-x", "."])
    def test_the_printed_command_names_the_folder_as_a_shell_wants_it(
        self,
        name: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Names with spaces and quotes, one that looks like an option, and the present folder."""
        monkeypatch.chdir(tmp_path)
        assert main(["init", "--language", "python", "--", name]) == Exit.CONFORMS
        (command,) = _commands(capsys.readouterr().out)
        assert main([*command[:-3], "--examples", "1", *command[-3:]]) == Exit.CONFORMS

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("full", "this folder is not empty"),
            ("full/file", "this is no folder"),
            ("link", "this is no folder"),
            ("none/mine", "there is no folder none: make it first"),
            ("full/file/mine", "there is no folder full/file: make it first"),
            ("x" * 300, "it cannot be"),
        ],
    )
    def test_what_cannot_be_used_is_refused_with_one_line(
        self,
        name: str,
        says: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """It says what, where and what to do, and everything is as it was."""
        monkeypatch.chdir(tmp_path)
        Path("full").mkdir()
        Path("full/file").write_text("mine", encoding="utf-8")
        Path("link").symlink_to("nowhere")
        before = _everything(tmp_path)
        code, text = _init(name, Language.PYTHON, capsys)
        assert code == Exit.USAGE
        assert says in text
        assert text.count("\n") == 1
        assert _everything(tmp_path) == before

    def test_an_unknown_language_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """One line lists all languages, and nothing is written."""
        assert main(["init", "--language", "cobol", str(tmp_path / "mine")]) == Exit.USAGE
        text = capsys.readouterr().err
        assert all(language in text for language in Language)
        assert text.count("\n") == 1
        assert not list(tmp_path.iterdir())

    def test_a_write_that_fails_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Where the disk is full, one line says so, and no half of a template is there."""

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        for folder in (tmp_path, tmp_path / "mine"):
            code, text = _init(folder, Language.PYTHON, capsys)
            assert code == Exit.USAGE
            assert "No space left on device" in text
            assert not list(tmp_path.iterdir())


def test_every_language_has_a_template() -> None:
    """With the files that are named to the user."""
    assert set(TEMPLATES) == set(Language)
    for language, template in TEMPLATES.items():
        assert {template.adapter, template.implementation, "README.md"} <= set(template_files(language))


def test_the_python_template_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """mypy finds nothing, as strict as it can be."""
    assert _init(tmp_path, Language.PYTHON, capsys)[0] == Exit.CONFORMS
    command = (
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={tmp_path}/cache",
        ".",
    )
    run = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_python_template_needs_the_standard_library_alone() -> None:
    """It names no module of tailmark."""
    for name, content in template_files(Language.PYTHON).items():
        if name.endswith(".py"):
            assert b"import tailmark" not in content
            assert b"from tailmark" not in content
