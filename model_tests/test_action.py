"""The composite action: its file has the form that GitHub documents, and its steps do what they say, run as a runner runs them."""

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from attrs import frozen

from checkout import ROOT, text_of
from tailmark_conformance.cli import Exit

ACTION: Final = ROOT / "conformance" / "action"
ZOO: Final = Path(__file__).with_name("zoo.py")

_TOP: Final = {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
_STEP: Final = {
    "name",
    "id",
    "if",
    "shell",
    "working-directory",
    "env",
    "run",
    "uses",
    "with",
    "continue-on-error",
}
_INPUT: Final = {"description", "required", "default", "deprecationMessage"}
_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")


# Any: the values of a YAML file, here and below.
def _loaded() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return loaded


def _steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = _loaded()["runs"]["steps"]
    return steps


class TestTheFile:
    def test_has_the_keys_of_a_composite_action(self) -> None:
        """Those that GitHub documents, and no others."""
        action = _loaded()
        assert {"name", "description", "runs"} <= set(action) <= _TOP
        assert set(action["runs"]) == {"using", "steps"}
        assert action["runs"]["using"] == "composite"
        for name, told in action["inputs"].items():
            assert _NAME.fullmatch(name)
            assert "description" in told
            assert set(told) <= _INPUT
            # What is not given is an empty text otherwise, and a number or boolean would be written as YAML likes.
            assert told.get("required") is True or isinstance(told["default"], str), name
        for name, told in action["outputs"].items():
            assert _NAME.fullmatch(name)
            assert set(told) == {"description", "value"}

    def test_has_steps_that_run_or_use(self) -> None:
        """One of the two; who runs names the shell, and who uses names a commit."""
        for step in _steps():
            assert set(step) <= _STEP
            assert ("run" in step) != ("uses" in step)
            if "run" in step:
                assert step["shell"] == "bash"
            else:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])

    def test_shows_no_input_to_a_shell(self) -> None:
        """Expressions stand in `env`, `with` and such, and never in a script."""
        for step in _steps():
            assert "${{" not in step.get("run", "")

    def test_uses_every_input_and_no_other(self) -> None:
        """Each has an effect."""
        used = {
            name
            for step in _steps()
            for expression in _EXPRESSION.findall(yaml.safe_dump(step, width=10_000))
            for name in re.findall(r"\binputs\.([a-z-]+)", expression)
        }
        assert used == set(_loaded()["inputs"])

    def test_hands_on_what_a_step_puts_out(self) -> None:
        """Each output is one of the step with the id `check`."""
        written = (ACTION / "check.py").read_text(encoding="utf-8")
        for told in _loaded()["outputs"].values():
            (expression,) = _EXPRESSION.findall(told["value"])
            step, name = re.fullmatch(r"steps\.([a-z]+)\.outputs\.([a-z-]+)", expression).groups()  # type: ignore[union-attr]  # or the test fails
            assert step == "check"
            assert f'"{name}={{' in written


class TestThePage:
    def test_tells_every_input_and_output(self) -> None:
        """With the value that it has if it is left out."""
        page = text_of("docs/gate.md").partition("## On GitHub")[2].partition("\n## ")[0]
        rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
        told = {name: row[-1] for row in rows for name in re.findall(r"`([a-z-]+)`", row[0])}
        inputs = _loaded()["inputs"]
        assert set(told) == set(inputs)
        for name, one in inputs.items():
            assert one.get("default", "") in told[name]
        assert all(f"`{name}`" in page for name in _loaded()["outputs"])

    def test_shows_a_use_with_inputs_that_there_are(self) -> None:
        """And with the folder in which the action is."""
        page = text_of("docs/gate.md")
        (shown,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        step = yaml.safe_load(shown)["steps"][1]
        assert re.fullmatch(r"[^@]*/conformance/action@.*", step["uses"])
        assert set(step["with"]) <= set(_loaded()["inputs"])


@frozen(kw_only=True)
class Ran:
    """What a step left behind."""

    exit_code: int
    stdout: str
    stderr: str
    summary: str
    outputs: Mapping[str, str]
    asked_of_pip: str


def _filled(value: str, inputs: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: inputs[found[1].removeprefix("inputs.")], value)


def _run(name: str, folder: Path, **given: str) -> Ran:
    """Run the step of that name as a runner would, with ``python`` being this one, and a pip that only notes what it is asked."""
    told = {name.replace("_", "-"): value for name, value in given.items()}
    inputs = {key: told.get(key, one.get("default", "")) for key, one in _loaded()["inputs"].items()}
    assert set(told) <= set(inputs)
    (step,) = (step for step in _steps() if step["name"] == name)
    programs, temporary, work = folder / "programs", folder / "temporary", folder / "work"
    for one in (programs, temporary, work):
        one.mkdir(exist_ok=True)
    pip = temporary / "pip.txt"
    python = programs / "python"
    python.write_text(
        f'#!/bin/sh\nif [ "$1 $2" = "-m pip" ]; then echo "$@" >{shlex.quote(str(pip))}; exit; fi\n'
        f'exec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    script = temporary / "step.sh"
    script.write_text(step["run"])
    files = {"GITHUB_OUTPUT": temporary / "output", "GITHUB_STEP_SUMMARY": temporary / "summary"}
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(folder),
        "CI": "true",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_ACTION_PATH": str(ACTION),
        **{key: str(path) for key, path in files.items()},
        **{key: _filled(value, inputs) for key, value in step["env"].items()},
    }
    done = subprocess.run(
        ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)),
        cwd=work / _filled(step.get("working-directory", "."), inputs),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    texts = {key: path.read_text() if path.exists() else "" for key, path in files.items()}
    return Ran(
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr,
        summary=texts["GITHUB_STEP_SUMMARY"],
        outputs=dict(line.split("=", 1) for line in texts["GITHUB_OUTPUT"].splitlines()),
        asked_of_pip=pip.read_text().strip() if pip.exists() else "",
    )


class TestInstalling:
    def test_takes_the_code_of_the_action_itself(self, tmp_path: Path) -> None:
        """In a Python of its own it takes the pinned versions of everything else."""
        ran = _run("Install tailmark", tmp_path)
        constraints = tmp_path / "temporary" / "tailmark-constraints.txt"
        assert ran.exit_code == 0, ran.stderr
        assert ran.asked_of_pip.endswith(f"install --quiet {ACTION}/../.. --constraint {constraints}")
        assert (ACTION / ".." / ".." / "pyproject.toml").is_file()
        assert any(line.startswith("attrs==") for line in constraints.read_text().splitlines())

    def test_changes_nothing_in_a_python_that_is_there(self, tmp_path: Path) -> None:
        """Whatever suits tailmark stays in its version."""
        assert "--constraint" not in _run("Install tailmark", tmp_path, python_version="").asked_of_pip

    @pytest.mark.parametrize("version", ["0.1.0", "0.1.0 --index-url elsewhere", "$(touch ran)"])
    def test_takes_a_version(self, version: str, tmp_path: Path) -> None:
        """The input is one word, whatever stands in it."""
        ran = _run("Install tailmark", tmp_path, version=version)
        assert ran.asked_of_pip.endswith(f"install --quiet tailmark=={version}")
        assert not (tmp_path / "work" / "ran").exists()


class TestChecking:
    def test_a_target_that_conforms(self, tmp_path: Path) -> None:
        """It ends with 0, and the summary page has the report."""
        ran = _run("Check", tmp_path, target="reference:model", profile="smoke")
        assert ran.exit_code == Exit.CONFORMS, ran.stdout + ran.stderr
        assert "tailmark: conforms" in ran.summary
        assert ran.outputs["exit-code"] == "0"
        kept = {path.name for path in Path(ran.outputs["folder"]).iterdir()}
        assert kept == {"report.json", "junit.xml", "summary.md"}

    def test_a_program_that_does_not(self, tmp_path: Path) -> None:
        """It ends with 1, the summary page is there all the same, and the capsules are where they can be uploaded."""
        target = f"-- python {shlex.quote(str(ZOO))} 'answers_all'"
        ran = _run(
            "Check", tmp_path, target=target, profile="smoke", examples="2", artifacts="a folder/for it"
        )
        assert ran.exit_code == Exit.DOES_NOT, ran.stdout + ran.stderr
        assert "tailmark: does not conform" in ran.summary
        assert ran.outputs == {"folder": str(tmp_path / "work" / "a folder" / "for it"), "exit-code": "1"}
        assert any((Path(ran.outputs["folder"]) / "capsules").iterdir())

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({}, "no target given"),
            ({"target": "reference", "seed": "-1"}, "--seed -1"),
            ({"target": "reference", "profile": "all; touch ran"}, "all; touch ran"),
            ({"target": "reference", "profile": "--validate"}, "--validate"),
            ({"target": "reference", "examples": "0"}, "--examples 0"),
            ({"target": "-- true", "timeout": "0"}, "--timeout 0"),
            ({"target": "reference", "baseline": "none.toml"}, "none.toml"),
            ({"target": "-- python 'adapter.py"}, "close its quotes"),
            ({"target": "reference", "artifacts": "a\nexit-code=0"}, "give one line"),
            ({"target": "reference", "artifacts": "/dev/null/a"}, "name a folder that can be written"),
            ({"target": "reference", "artifacts": ""}, "give one line"),
            ({"target": "$(touch ran) `touch ran` ; touch ran"}, "$("),
        ],
    )
    def test_an_input_that_cannot_be_used(self, given: Mapping[str, str], told: str, tmp_path: Path) -> None:
        """It ends with 2, with one line on stderr and on the summary page, and nothing of it is run."""
        ran = _run("Check", tmp_path, **given)
        assert ran.exit_code == Exit.USAGE, ran.stdout + ran.stderr
        assert told in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
        assert ran.stderr.strip() in ran.summary
        assert ran.outputs["exit-code"] == "2"
        assert not (tmp_path / "work" / "ran").exists()

    def test_a_target_that_cannot_be_run(self, tmp_path: Path) -> None:
        """It ends with 3, and the summary page says why, not what an earlier report said."""
        folder = tmp_path / "work" / "tailmark-report"
        folder.mkdir(parents=True)
        (folder / "summary.md").write_text("an earlier report")
        ran = _run("Check", tmp_path, target=f"-- python {ZOO} dies_at_start", profile="smoke")
        assert ran.exit_code == Exit.NOT_RUN
        assert "no configuration" in ran.summary
        assert "earlier" not in ran.summary

    def test_where_the_working_directory_says(self, tmp_path: Path) -> None:
        """Paths start there."""
        (tmp_path / "work" / "below").mkdir(parents=True)
        ran = _run("Check", tmp_path, target="reference", seed="-1", working_directory="below")
        assert ran.exit_code == Exit.USAGE
        assert Path(ran.outputs["folder"]) == tmp_path / "work" / "below" / "tailmark-report"

    def test_a_summary_that_is_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is cut behind a whole line, and says so."""
        monkeypatch.syspath_prepend(str(ACTION))
        check = __import__("check")
        monkeypatch.setattr(check, "LONGEST_SUMMARY", 10)
        report = tmp_path / "summary.md"
        report.write_text("first\nsecond\n")
        cut: str = check.summary_of(report, 1, "")
        assert cut.endswith("\n\nfirst\n")
        assert cut.startswith("This report is cut short")
