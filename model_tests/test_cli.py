"""The command line: exit codes, one clear line for what cannot be used, and the JSON report."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tailmark_conformance import cli
from tailmark_conformance.cli import main

FEW = ["--examples", "12", "--workers", "1"]


def _lines(captured: str) -> list[str]:
    return [line for line in captured.splitlines() if line]


class TestCheck:
    """`tailmark check`."""

    def test_a_clause_that_holds(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit 0, a table, a closing line."""
        assert main(["check", "reference:model", "--clause", "tree-1", *FEW]) == 0
        out = capsys.readouterr().out
        assert "TREE-1" in out
        assert "reference:model conforms: 1 pass" in _lines(out)[-1]

    def test_a_broken_clause_tells_its_story(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit 1, the operations in words, expected beside seen, the tree, the clause's text."""
        assert main(["check", "wrong_subjects:counts_twice", "--clause", "CMT-6", *FEW]) == 1
        out = capsys.readouterr().out
        assert "CMT-6: fail" in out
        assert "1. S1: append user U1: 'hi'" in out
        assert "→ done (wrote U1)" in out
        assert "✗ expected" in out
        assert "U1  user" in out
        assert "does not conform" in _lines(out)[-1]

    def test_json(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The report has what programs are promised, and the failing trace."""
        file = tmp_path / "report.json"
        chosen = ["--clause", "CMT-6", "--clause", "TREE-1"]
        code = main(
            ["check", "wrong_subjects:counts_twice", "--json", str(file), "--seed", "5", *chosen, *FEW]
        )
        capsys.readouterr()
        plain = json.loads(file.read_bytes())
        assert code == 1
        assert plain["conforms"] is False
        assert plain["seed"] == 5
        assert plain["seconds"] > 0
        assert plain["subject"] == "wrong_subjects:counts_twice"
        clauses = {clause["id"]: clause for clause in plain["clauses"]}
        assert set(clauses) == {"CMT-6", "TREE-1"}
        assert {"id", "level", "capability", "verdict", "exercised"} <= set(clauses["TREE-1"])
        assert clauses["TREE-1"]["verdict"] == "pass"
        assert clauses["TREE-1"]["exercised"] > 0
        assert clauses["CMT-6"]["failure"]["trace"]["steps"]

    def test_the_store_dir_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The report says where the stores were."""
        arguments = ["check", "reference", "--store-dir", str(tmp_path), "--clause", "TREE-1"]
        assert main([*arguments, "--examples", "2", "--workers", "1"]) == 0
        assert f"stores in {tmp_path}" in capsys.readouterr().out

    def test_a_python_object_in_the_present_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The present folder is looked in."""
        (tmp_path / "my_agent.py").write_text(
            "from tailmark_reference.model.subject import ModelSubject as Agent\n"
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        assert main(["check", "my_agent:Agent", "--clause", "TREE-1", *FEW]) == 0
        capsys.readouterr()


class TestUsage:
    """Bad input: one line on stderr, exit 2, nothing on stdout."""

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                ["check", "nothing"],
                "unknown target 'nothing': use reference, reference:model, module:attribute",
            ),
            (["check"], "no target given: name reference, "),
            (["chek", "reference"], "Unknown command"),
            (["check", "reference", "--clause", "TREE1"], "unknown clause 'TREE1': did you mean TREE-1"),
            (["check", "reference", "--clause", "zzz"], "unknown clause 'zzz': `tailmark explain` lists all"),
            (["check", "reference", "--seed", "x"], "--seed"),
            (["check", "reference", "--seed", "-1"], "--seed -1: use a whole number from 0"),
            (["check", "reference", "--examples", "0"], "--examples 0: use a whole number from 1"),
            (["check", "reference", "--workers", "0"], "--workers 0: use a whole number from 1"),
            (["check", "reference", "--profile", "big"], '"smoke", "standard", "deep"'),
            (["check", "reference", "--json", "/no/such/file"], "there is no folder /no/such: make it first"),
            (["check", "reference", "--json", "/"], "this is a folder: name a file"),
            (["check", "reference", "--store-dir", "/no/such"], "there is no such folder: make it first"),
            (["check", "reference", "--store-dir", "/proc"], "it cannot be written"),
            (["check", "reference", "--bogus"], "Unknown option"),
            (["explain", "BND-77"], "did you mean BND-7"),
            (["audit"], "no file given"),
            (["audit", "--json", "/no/such/file", "x"], "there is no folder /no/such"),
        ],
    )
    def test_one_clear_line(
        self, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What, where, what to do."""
        assert main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = _lines(captured.err)
        assert line.startswith("tailmark: ")
        assert text in line

    def test_a_subject_that_cannot_be_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit 3."""
        assert main(["check", "wrong_subjects:cannot_be_made", *FEW]) == 3
        (line,) = _lines(capsys.readouterr().err)
        assert "the subject could not be run: wrong_subjects:cannot_be_made raised RuntimeError" in line

    def test_an_error_of_the_suite(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Exit 4, and whose fault it is."""
        monkeypatch.setattr(cli, "run_check", lambda *_: 1 // 0)
        assert main(["check", "reference:model", *FEW]) == 4
        assert "this is an error of the suite" in _lines(capsys.readouterr().err)[-1]

    def test_interrupted(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit 130, one line."""

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(cli, "run_check", interrupted)
        assert main(["check", "reference:model", *FEW]) == 130
        assert _lines(capsys.readouterr().err) == ["tailmark: interrupted"]


class TestOtherCommands:
    """`--version`, `explain`, `audit`."""

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        """One number."""
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.strip()[0].isdigit()

    def test_explain_lists_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A line for each clause."""
        assert main(["explain"]) == 0
        assert any(line.startswith("TREE-1 ") for line in _lines(capsys.readouterr().out))

    def test_explain_tells_everything(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Text, reason, example, change, and where they are."""
        assert main(["explain", "cmt-2"]) == 0
        out = capsys.readouterr().out
        for text in ("CMT-2", "Example: ", "1. S: ", "It would be broken if $.", "cmt_2 in"):
            assert text in out

    def test_audit_of_what_is_no_session(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit 2, and the file's name."""
        file = tmp_path / "notes.txt"
        file.write_text("nothing\n")
        report = tmp_path / "report.json"
        assert main(["audit", str(file), "--json", str(report)]) == 2
        assert "notes.txt" in capsys.readouterr().out
        assert json.loads(report.read_bytes())["files"][0]["messages"] == 0


def test_as_a_process_without_a_terminal() -> None:
    """The entry point ends with the code, and there is no bar and no colour where nobody looks."""
    program = "import sys; from tailmark_conformance.cli import main; sys.exit(main())"
    arguments = ["check", "reference:model", "--clause", "TREE-1", "--examples", "2"]
    result = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
    )
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_the_bar_moves_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn on stderr while runs go on."""
    bar = io.StringIO()

    def console(*, stderr: bool = False) -> Console:
        return Console(file=bar, force_terminal=True, width=100) if stderr else Console(file=io.StringIO())

    monkeypatch.setattr(cli, "_console", console)
    assert main(["check", "reference:model", "--clause", "TREE-1", *FEW]) == 0
    assert "12/12" in bar.getvalue()


def test_a_reader_that_goes_away_is_no_verdict() -> None:
    """Exit 141 and not a word: whoever closed the output was not told that something does not conform."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(  # the project's own command
        [
            sys.executable,
            "-c",
            "import sys; from tailmark_conformance.cli import main; sys.exit(main(['explain']))",
        ],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


SMOKE = ["--profile", "smoke", "--workers", "1"]


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("answers_nothing", "undo answered a value of type NoneType, which is not an outcome"),
        ("observes_nothing", "observe answered a value of type int, which is not an observation"),
        (
            "shows_no_projection",
            "the first observation: in sessions[0].projection: expected a list, found null",
        ),
    ],
)
def test_an_answer_of_another_type_is_the_subjects_fault(
    subject: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a crash of the subject, in one line, and no error of the suite."""
    assert main(["check", f"wrong_subjects:{subject}", *SMOKE]) == 1
    captured = capsys.readouterr()
    assert said in captured.out
    assert "Traceback" not in captured.out + captured.err


def test_smoke_sees_what_a_restart_forgets(capsys: pytest.CaptureFixture[str]) -> None:
    """A restart right behind a commit belongs to every profile."""
    assert main(["check", "wrong_subjects:forgets_at_restart", *SMOKE]) == 1
    assert "CMT-12: fail" in capsys.readouterr().out


def test_what_is_not_declared_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """An implementation of the view alone conforms, whatever it answers to the rest, and the model is not asked."""
    assert main(["check", "wrong_subjects:view_alone", *SMOKE]) == 0
    out = capsys.readouterr().out
    assert any(line.split()[:3] == ["MODEL", "must", "not-declared"] for line in _lines(out))


def test_the_skeleton_of_the_documentation_runs_and_does_not_conform(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can be judged as it stands, and nothing that it does not do counts as right."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs" / "examples"))
    assert main(["check", "skeleton:Skeleton", *SMOKE]) == 1
    out = capsys.readouterr().out
    assert "TREE-1       must    untestable" in out
    assert "OUT-2: fail" in out
