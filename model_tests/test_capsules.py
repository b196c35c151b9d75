"""A failing clause becomes a file that anyone can run again."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports import report_of
from tailmark import json_form
from tailmark.declarations import Capability, Field
from tailmark_conformance.capsules import (
    Capsule,
    CapsuleError,
    capsule_files,
    capsules_of,
    read_capsule,
    write_capsules,
)
from tailmark_conformance.cli import Exit, main
from tailmark_conformance.replaying import Result, replay_capsule
from tailmark_conformance.subjects.declaring import Declaring
from tailmark_conformance.subjects.targets import Target
from tailmark_conformance.verdicts import Verdict
from wrong_subjects import counts_twice

ZOO: Final = Path(__file__).with_name("zoo.py")
WRONG: Final = (
    "counts_twice_and_forgets",
    "crashes",
    "forgets_at_restart",
    "observes_nothing",
    "shows_no_projection",
)


def _capsules(subject: str) -> tuple[Capsule, ...]:
    return capsules_of(report_of(subject), "tailmark 0")


def _target(name: str, folder: Path) -> Target:
    return Target(words=(name if ":" in name else f"wrong_subjects:{name}",), store_dir=folder)


@pytest.mark.parametrize("subject", WRONG)
def test_a_capsule_is_read_as_it_was_written(subject: str, tmp_path: Path) -> None:
    """A file for each clause that failed, under its clause and fingerprint; nothing else is left in the folder."""
    capsules = _capsules(subject)
    assert {one.clause for one in capsules} == {
        one.id for one in report_of(subject).wrong if one.found is not None
    }
    paths = write_capsules(capsules, tmp_path / "made" / "here")
    assert [read_capsule(path) for path in paths] == [*capsules]
    assert sorted(paths) == [*capsule_files(tmp_path / "made" / "here")]
    assert [path.name for path in paths] == [f"{one.clause}-{one.fingerprint}.json" for one in capsules]


def test_what_conforms_leaves_nothing(tmp_path: Path) -> None:
    """Not even the folder."""
    assert write_capsules(_capsules("right"), tmp_path / "capsules") == ()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("subject", WRONG)
def test_it_still_fails_where_it_did(subject: str, tmp_path: Path) -> None:
    """Every capsule of a subject, with the clause's own words on what was seen."""
    for capsule in _capsules(subject):
        seen = replay_capsule(capsule, _target(subject, tmp_path))
        assert (seen.result, seen.text) == (Result.STILL_FAILS, capsule.text)


@pytest.mark.parametrize("fixed", ["right", "reference:model", "reference"])
@pytest.mark.parametrize("subject", WRONG)
def test_it_is_fixed_elsewhere(subject: str, fixed: str, tmp_path: Path) -> None:
    """Those that are right do not fail with it."""
    words = _target(fixed, tmp_path) if fixed != "reference" else Target(words=(fixed,), store_dir=tmp_path)
    for capsule in _capsules(subject):
        assert replay_capsule(capsule, words).result is Result.FIXED


def test_another_fault_is_told(tmp_path: Path) -> None:
    """What is fixed may break something else."""
    (capsule,) = [one for one in _capsules("counts_twice_and_forgets") if one.clause == "CMT-2"]
    seen = replay_capsule(capsule, _target("counts_twice", tmp_path))
    assert seen.result is Result.FIXED
    assert "break something else: CMT-6" in seen.text


class TestErrors:
    """Where it cannot be told, that is said."""

    def _capsule(self) -> Capsule:
        (capsule,) = [one for one in _capsules("counts_twice") if one.clause == "CMT-6"]
        return capsule

    def test_a_subject_that_cannot_be_run(self, tmp_path: Path) -> None:
        """As a check says it."""
        seen = replay_capsule(self._capsule(), _target("cannot_be_made", tmp_path))
        assert seen.result is Result.ERROR
        assert "the subject could not be run: wrong_subjects:cannot_be_made raised" in seen.text

    def test_a_run_that_ends_early(self, tmp_path: Path) -> None:
        """What stands behind the crash was not seen."""
        seen = replay_capsule(self._capsule(), _target("observes_nothing", tmp_path))
        assert seen.result is Result.ERROR
        assert "the run ended early: observe answered a value of type int" in seen.text

    def test_a_subject_that_declares_it_no_more(self, tmp_path: Path) -> None:
        """It is not judged by the clause, so nothing was fixed."""
        seen = replay_capsule(self._capsule(), _target("test_capsules:declares_a_view", tmp_path))
        assert seen.result is Result.ERROR
        assert "does not declare commit any more" in seen.text

    def test_a_subject_that_shows_it_no_more(self, tmp_path: Path) -> None:
        """It cannot be judged by the clause."""
        seen = replay_capsule(self._capsule(), _target("test_capsules:hides_the_revision", tmp_path))
        assert seen.result is Result.ERROR
        assert "does not show any more what CMT-6 needs" in seen.text


def declares_a_view() -> Declaring:
    """Wrong, and not judged by it any more."""
    subject = counts_twice()
    return Declaring(subject, evolve(subject.declaration, capabilities=(Capability.VIEW,)))


def hides_the_revision() -> Declaring:
    """Wrong where nobody can see it."""
    subject = counts_twice()
    return Declaring(subject, evolve(subject.declaration, hidden=(Field.REVISION,)))


def _spoilt(plain: dict[str, Any], name: str) -> bytes:  # Any: plain JSON values
    match name:
        case "no JSON":
            return b"{"
        case "a list":
            return b"[]"
        case "empty":
            return b""
        case "not UTF-8":
            return b'{"format": "\xff"}'
        case "another format":
            return json.dumps({**plain, "format": 2}).encode()
        case "another clause":
            return json.dumps({**plain, "clause": "ZZZ-1"}).encode()
        case "another verdict":
            return json.dumps({**plain, "verdict": "splendid"}).encode()
        case "no trace":
            return json.dumps({key: value for key, value in plain.items() if key != "trace"}).encode()
        case "a key too many":
            return json.dumps({**plain, "command": "rm -r /"}).encode()
        case _:
            raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no JSON", "this is no capsule: "),
        ("a list", "this is no capsule: "),
        ("empty", "this is no capsule: "),
        ("not UTF-8", "this is no capsule: "),
        ("another format", "expected a capsule of format 1, found 2: run the check again"),
        ("another clause", "unknown clause 'ZZZ-1'"),
        ("another verdict", "this is no capsule: $.verdict"),
        ("no trace", "field 'trace' is missing"),
        ("a key too many", "'command'"),
    ],
)
def test_a_file_that_is_none_gets_one_line(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and nothing is run."""
    path = tmp_path / "capsule.json"
    path.write_bytes(_spoilt(json.loads(json_form.dumps(_capsules("counts_twice")[0])), name))
    assert main(["replay", str(path), "wrong_subjects:cannot_be_made"]) == Exit.USAGE
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith(f"tailmark: {path}: ")
    assert said in line
    assert captured.out == ""


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_file_is_anything_but_a_capsule_or_an_error(data: st.DataObject, tmp_path: Path) -> None:
    """Whatever is cut off or changed in one."""
    content = bytearray(json_form.dumps(_capsules("counts_twice")[0]))
    place = data.draw(st.integers(min_value=0, max_value=len(content) - 1))
    content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=3))
    path = tmp_path / "capsule.json"
    path.write_bytes(content)
    said = ""
    try:
        read_capsule(path)
    except CapsuleError as error:
        said = str(error)
    assert "\n" not in said


class TestCommandLine:
    """`tailmark check` writes capsules, `tailmark replay` runs them."""

    def test_from_a_failure_to_its_repair(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Over the wire: it fails, the report names the command, the command repeats it, and what is right mends it."""
        monkeypatch.chdir(tmp_path)
        wrong, right = ([sys.executable, str(ZOO), kind] for kind in ("refuses_all", "right"))
        options = ["--examples", "6", "--workers", "1", "--clause", "OUT-2"]
        assert main(["check", *options, "--capsules", "kept", "--", *wrong]) == Exit.DOES_NOT
        (path,) = Path("kept").iterdir()
        out = capsys.readouterr().out
        assert f"To run it again: tailmark replay {path} -- {sys.executable}" in out
        assert main(["replay", str(path), "--", *wrong]) == Exit.DOES_NOT
        out = capsys.readouterr().out
        assert out.startswith(f"STILL FAILS: OUT-2 of {path}: ")
        assert "1. S1: " in out
        assert main(["replay", "kept", "--", *right]) == Exit.CONFORMS
        assert capsys.readouterr().out.startswith(f"FIXED: OUT-2 of {path}: ")
        assert main(["replay", "kept", "wrong_subjects:cannot_be_made"]) == Exit.NOT_RUN
        assert capsys.readouterr().out.startswith(f"ERROR: OUT-2 of {path}: the subject could not be run")

    def test_a_folder_of_several(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """All are run, and counted in the end."""
        write_capsules(_capsules("counts_twice"), tmp_path)
        assert main(["replay", str(tmp_path), "wrong_subjects:counts_twice"]) == Exit.DOES_NOT
        assert capsys.readouterr().out.splitlines()[-1] == f"{len(_capsules('counts_twice'))} STILL FAILS"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["/no/such.json", "reference"], "it cannot be read (No such file or directory)"),
            (["/proc/self/fd", "reference"], "there is no capsule in this folder"),
            (["/no/such.json"], "no target given"),
            (["/no/such.json", "nothing"], "unknown target 'nothing'"),
        ],
    )
    def test_usage(self, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
        """One line, exit 2."""
        assert main(["replay", *words]) == Exit.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line

    def test_a_folder_that_cannot_be_written(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Said before the runs where it can be known, and in one line where it cannot."""
        (tmp_path / "file").write_text("")
        few = ["--examples", "2", "--workers", "1", "--clause", "CMT-6"]
        assert main(["check", "wrong_subjects:counts_twice", *few, "--capsules", str(tmp_path / "file")]) == 2
        assert "is no folder: name another" in capsys.readouterr().err
        assert main(["check", "wrong_subjects:counts_twice", *few, "--capsules", "/proc/capsules"]) == 2
        captured = capsys.readouterr()
        assert "--capsules /proc/capsules: " in captured.err
        # What was seen is told all the same.
        assert "does not conform" in captured.out.splitlines()[-1]

    def test_capsules_can_be_read_by_others(self, tmp_path: Path) -> None:
        """As the user's other files."""
        (path, *_) = write_capsules(_capsules("counts_twice"), tmp_path)
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_deviations_and_departures_are_no_failures() -> None:
    """They have no capsule."""
    report = report_of("deviates")
    assert Verdict.DEVIATES in {one.verdict for one in report.clauses}
    assert "CMT-6" not in {one.clause for one in _capsules("deviates")}
