"""The audit: from a file to a report that people and programs can read."""

import gzip
import hashlib
import json
import tracemalloc
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from recorded_logs import (
    HEADER,
    ClaudeLog,
    Fields,
    lines_of,
    pi_answer,
    pi_compaction,
    pi_result,
    pi_user,
    write,
)
from tailmark import json_form
from tailmark.judge import PREDICATES
from tailmark_conformance.recorded import audit
from tailmark_conformance.recorded.audit import (
    OBSERVABLE,
    AuditReport,
    AuditVerdict,
    FileReport,
    audit_files,
    exit_code,
    memory_of,
)
from tailmark_conformance.recorded.audit_text import SHOWN_FINDINGS, print_report
from tailmark_conformance.recorded.importing import Tally

_SETTINGS = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

_TWO_TURNS = (HEADER, pi_user(), pi_answer(), pi_user(), pi_answer())


def _audit(path: Path, *records: Fields) -> FileReport:
    (file,) = audit_files([write(path, records)]).files
    return file


def _found(file: FileReport) -> list[tuple[str, int | None]]:
    return [(finding.clause, finding.line) for finding in file.findings]


def _printed(report: AuditReport, *, terminal: bool = False) -> str:
    output = StringIO()
    print_report(report, Console(file=output, width=200, force_terminal=terminal, color_system=None))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def _verdicts(file: FileReport) -> dict[str, AuditVerdict]:
    return {clause.clause: clause.verdict for clause in file.clauses}


class TestPredicates:
    """What a checkpoint broke is said by the same predicates that judge live implementations, once each."""

    def test_a_sound_session(self, tmp_path: Path) -> None:
        file = _audit(tmp_path / "log", *_TWO_TURNS, pi_compaction(3), pi_user(), pi_answer())
        assert file.findings == ()
        verdicts = _verdicts(file)
        assert verdicts["BND-1"] is AuditVerdict.HOLDS
        assert verdicts["DMG-1"] is AuditVerdict.HOLDS
        assert AuditVerdict.VIOLATED not in verdicts.values()

    def test_a_checkpoint_while_a_call_is_open(self, tmp_path: Path) -> None:
        file = _audit(
            tmp_path / "log", *_TWO_TURNS, pi_user(), pi_answer("c1"), pi_compaction(3), pi_result("c1")
        )
        assert "CMT-3" in dict(_found(file))
        assert {line for _, line in _found(file)} == {8}
        assert file.checkpoints[0].open_calls == ("c1",)

    def test_a_place_inside_a_turn(self, tmp_path: Path) -> None:
        file = _audit(tmp_path / "log", *_TWO_TURNS, pi_compaction(4))
        assert ("BND-1", 6) in _found(file)

    def test_a_place_between_a_call_and_its_result(self, tmp_path: Path) -> None:
        file = _audit(
            tmp_path / "log",
            *_TWO_TURNS,
            pi_user(),
            pi_answer("c1"),
            pi_result("c1"),
            pi_answer(),
            pi_compaction(7),
        )
        assert ("BND-2", 10) in _found(file)

    def test_a_place_that_moves_back(self, tmp_path: Path) -> None:
        file = _audit(
            tmp_path / "log",
            *_TWO_TURNS,
            pi_user(),
            pi_compaction(5),
            pi_user(),
            pi_answer(),
            pi_compaction(3),
        )
        assert ("BND-7", 10) in _found(file)

    def test_a_result_for_a_settled_call(self, tmp_path: Path) -> None:
        file = _audit(tmp_path / "log", HEADER, pi_user(), pi_answer("c1"), pi_result("c1"), pi_result("c1"))
        assert _found(file) == [("TREE-11", 5)]

    def test_claude_code_keeps_nothing(self, tmp_path: Path) -> None:
        log = ClaudeLog()
        log.user()
        log.text("m1")
        log.user()
        log.call("m2", "c1")
        log.result("c1")
        log.boundary()
        log.summary()
        log.text("m3")
        file = _audit(tmp_path / "log", *log.records)
        assert file.findings == ()

    def test_claude_code_while_a_call_is_open(self, tmp_path: Path) -> None:
        log = ClaudeLog()
        log.user()
        log.text("m1")
        log.user()
        log.call("m2", "c1")
        log.boundary()
        log.summary()
        file = _audit(tmp_path / "log", *log.records)
        assert ("CMT-3", 5) in _found(file)

    def test_every_clause_has_a_verdict_and_counts(self, tmp_path: Path) -> None:
        file = _audit(tmp_path / "log", *_TWO_TURNS, pi_compaction(4))
        assert {clause.clause for clause in file.clauses} == {*PREDICATES, "DMG-1"}
        assert set(PREDICATES) >= OBSERVABLE
        for clause in file.clauses:
            assert (clause.verdict is AuditVerdict.VIOLATED) == (clause.violated > 0)
            if clause.clause not in OBSERVABLE | {"DMG-1"}:
                assert clause.verdict is AuditVerdict.NOT_OBSERVED


class TestUnusableInput:
    """Each file that is no session gets one clear line, and the others are audited all the same."""

    @pytest.fixture
    def problems(self, tmp_path: Path) -> dict[str, str]:
        contents = {
            "empty": b"",
            "binary": bytes(range(256)) * 20,
            "text": b"Dear reader,\n\nthis is a letter.\n",
            "records": b'{"a": 1}\n{"b": 2}\n',
            "blank": b"\n\n",
            "newer": b'{"type": "session", "version": 4, "id": "x"}\n',
            "odd": b'{"type": "session", "version": null, "id": "x"}\n',
            "cut.gz": gzip.compress(lines_of(_TWO_TURNS))[:20],
            "invalid": b"\xff\xfe{\x00}\x00\n",
            "long": b'"' + b"x" * (50 * 1024**2) + b'"\n',
        }
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
        names = [*contents, ".", "nowhere"]
        report = audit_files([tmp_path / name for name in names])
        return {name: file.problem or "" for name, file in zip(names, report.files, strict=True)}

    def test_what_each_says(self, problems: dict[str, str], tmp_path: Path) -> None:
        reads = ". This reads the pi coding agent's session formats 1 to 3 and Claude Code's sessions"
        expected = {
            "empty": "is empty; there is nothing to judge",
            "binary": "is no session: line 1 is no JSON",
            "text": "is no session: line 1 is no JSON",
            "records": f"holds JSON records, but is no session of a known format{reads}",
            "blank": f"holds blank lines only; there is nothing to judge{reads}",
            "newer": f"is a pi session of another format version, 4{reads}",
            "odd": f"is a pi session of another format version, None{reads}",
            "cut.gz": "is no session: the gzip data ends or is broken within line 1",
            "invalid": "is no session: line 1 is no UTF-8 at byte 1",
            "long": "is no session: line 1 is longer than 32 MiB",
            ".": "is a folder; name the session files in it",
            "nowhere": "there is no such file; check the path",
        }
        assert list(problems) == list(expected)
        for name, text in expected.items():
            assert problems[name].startswith(f"{tmp_path / name}: {text}"), name
            assert "\n" not in problems[name]

    def test_a_session_beside_them_is_audited(self, tmp_path: Path) -> None:
        report = audit_files([tmp_path / "nowhere", write(tmp_path / "log", _TWO_TURNS)])
        assert [file.messages for file in report.files] == [0, 4]
        assert exit_code(report) == 2
        assert _printed(report).endswith("0 findings in 1 session; 1 file could not be read\n")


class TestDamagedFiles:
    """What can be read of a damaged file is judged; each bad line is a finding."""

    def test_a_file_that_ends_within_a_line(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(lines_of(_TWO_TURNS)[:-10])
        report = audit_files([path])
        (file,) = report.files
        assert _found(file) == [("DMG-1", 5)]
        assert file.findings[0].text.startswith("the file ends within line 5")
        assert (file.messages, file.damaged_lines, exit_code(report)) == (3, 1, 1)

    def test_a_bad_line_in_the_middle(self, tmp_path: Path) -> None:
        log = ClaudeLog()
        log.user()
        log.text("m1")
        log.user()
        content = lines_of(log.records).splitlines(keepends=True)
        path = tmp_path / "log"
        path.write_bytes(content[0] + b"{\xff}\n" + content[2])
        (file,) = audit_files([path]).files
        assert _found(file) == [("DMG-1", 2), ("DMG-1", 3)]
        assert "unless it stood on line 2, which could not be read" in file.findings[1].text
        assert file.messages == 2

    def test_gzip_that_is_cut_off(self, tmp_path: Path) -> None:
        texts = (hashlib.sha256(bytes([number])).hexdigest() for number in range(200))
        path = tmp_path / "log.gz"
        packed = gzip.compress(lines_of([HEADER, *map(pi_user, texts)]))
        path.write_bytes(packed[: len(packed) // 2])
        (file,) = audit_files([path]).files
        assert 0 < file.messages < 200
        assert _found(file) == [("DMG-1", file.messages + 2)]

    @_SETTINGS
    @given(cut=st.integers(1, 2000))
    def test_wherever_a_session_is_cut_it_gets_a_report_and_is_not_written_to(
        self, tmp_path: Path, cut: int
    ) -> None:
        whole = lines_of([*_TWO_TURNS, pi_compaction(3), pi_user(), pi_answer("c1"), pi_result("c1")])
        path = tmp_path / "log"
        path.write_bytes(whole[:cut])
        (file,) = audit_files([path]).files
        assert (file.problem is None) == (file.format is not None)
        assert file.damaged_lines <= 1
        assert path.read_bytes() == whole[:cut]


class TestReport:
    """The same report as values, as JSON and on the screen."""

    def _report(self, tmp_path: Path) -> AuditReport:
        log = ClaudeLog()
        log.user()
        log.text("m1")
        log.boundary(logical="gone")
        log.summary()
        log.user(parent=None)
        return audit_files(
            [
                write(tmp_path / "pi", [*_TWO_TURNS, pi_answer("c1", stop="aborted"), pi_compaction(4)]),
                write(tmp_path / "claude", log.records),
                tmp_path / "nowhere",
            ]
        )

    def test_json_has_what_the_documentation_promises(self, tmp_path: Path) -> None:
        report = self._report(tmp_path)
        plain = json.loads(json_form.dumps(report))
        assert json_form.structure(plain, AuditReport) == report
        pi, claude, nowhere = plain["files"]
        assert pi["path"] == str(tmp_path / "pi")
        assert (pi["format"], claude["format"], nowhere["format"]) == ("pi-v1", "claude-code", None)
        assert (pi["messages"], pi["tool_calls"], pi["tool_results"]) == (5, 1, 0)
        (checkpoint,) = pi["checkpoints"]
        assert checkpoint["line"] == 7
        assert checkpoint["place"] == "entry:4"
        assert checkpoint["trigger"] is None
        assert checkpoint["tokens_before"] == 1000
        assert claude["checkpoints"][0]["trigger"] == "automatic"
        assert claude["checkpoints"][0]["place"] is None
        assert claude["findings"][0].keys() == {"clause", "line", "node", "text"}
        assert nowhere["problem"].endswith("check the path")

    @pytest.mark.parametrize("terminal", [True, False])
    def test_what_is_printed(self, tmp_path: Path, terminal: bool) -> None:
        printed = _printed(self._report(tmp_path), terminal=terminal)
        for expected in (
            f"{tmp_path / 'pi'}: pi coding agent, format version 1\n",
            "  5 messages in 2 turns, 1 tool call, 0 results, 7 lines\n",
            "  1 call never got a result (line 6)\n",
            "  checkpoint at line 7 (entry:6)\n",
            "trigger     not told by the log\n",
            "place       line 5 (entry:4)\n",
            "the log says 1,000 before\n",
            "BND-1 at line 7 (entry:",
            f"{tmp_path / 'claude'}: Claude Code\n",
            "  1 conversation with 2 ends of branches\n",
            "trigger     automatic\n",
            "place       behind the last message: none is kept verbatim\n",
            "DMG-1 at line 3 (u3)\n    names a logical parent that does not exist, gone;",
            f"{tmp_path / 'nowhere'}: there is no such file; check the path\n",
            "not-observed: ",
        ):
            assert expected in printed
        assert printed.endswith("findings in 2 sessions; 1 file could not be read\n")

    def test_a_log_cannot_steer_the_terminal(self, tmp_path: Path) -> None:
        log = ClaudeLog()
        log.record("user", {"message": {"content": "x"}}, parent="\x1b[31m[bold]gone\n")
        report = audit_files([write(tmp_path / "log", log.records)])
        printed = _printed(report)
        assert "\x1b" not in printed
        assert "\N{REPLACEMENT CHARACTER}[31m[bold]gone\N{REPLACEMENT CHARACTER}" in printed

    def test_lone_surrogates_do_not_stop_the_json(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(lines_of([HEADER, pi_user("\ud800"), pi_answer("\udfff"), pi_result("\udfff")]))
        report = audit_files([path, Path("gone\udcff")])
        assert json.loads(json_form.dumps(report))["files"][0]["messages"] == 3

    def test_many_findings_are_cut_short_on_the_screen_only(self, tmp_path: Path) -> None:
        results = [pi_result(f"c{number}") for number in range(SHOWN_FINDINGS + 3)]
        report = audit_files([write(tmp_path / "log", [HEADER, pi_user(), *results])])
        printed = _printed(report)
        assert len(report.files[0].findings) == SHOWN_FINDINGS + 3
        assert printed.count("DMG-1 at") == SHOWN_FINDINGS
        assert "and 3 more; --json FILE writes up to 10,000" in printed

    def test_exit_codes(self, tmp_path: Path) -> None:
        sound = write(tmp_path / "sound", _TWO_TURNS)
        found = write(tmp_path / "found", [*_TWO_TURNS, pi_compaction(99)])
        assert exit_code(audit_files([sound])) == 0
        assert exit_code(audit_files([sound, found])) == 1
        assert exit_code(audit_files([sound, found, tmp_path / "nowhere"])) == 2

    def test_progress_goes_over_all_files(self, tmp_path: Path) -> None:
        paths = [write(tmp_path / name, _TWO_TURNS) for name in ("one", "two")]
        total = sum(path.stat().st_size for path in paths)
        seen: list[tuple[int, int]] = []
        audit_files([paths[0], tmp_path / "nowhere", paths[1]], lambda done, all_: seen.append((done, all_)))
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1] == (total, total)


def test_a_log_of_more_than_fits_is_judged_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_MEMORY", 10 * 1024**2)
    path = write(tmp_path / "log", [HEADER, *(pi_user() for _ in range(12_000))])
    report = audit_files([path])
    (file,) = report.files
    assert file.problem == (
        f"{path}: holds more than fits 10 MiB; it was judged up to line 10241; split it to have the rest judged"
    )
    assert 10_000 < file.messages < 10_300
    assert exit_code(report) == 2
    assert file.problem in _printed(report)


def test_more_findings_than_are_kept_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_FINDINGS", 5)
    path = tmp_path / "log"
    path.write_bytes(lines_of(_TWO_TURNS) + b"junk\n" * 8)
    report = audit_files([path])
    (file,) = report.files
    assert (len(file.findings), file.more_findings, file.damaged_lines) == (5, 3, 8)
    assert _printed(report).endswith("8 findings in 1 session\n")


def test_memory_depends_on_the_messages_and_not_on_their_length(tmp_path: Path) -> None:
    """A few MB of log stay within what is stated, beside one line as it is read."""
    path = tmp_path / "log"
    turns = 300
    with path.open("wb") as file:
        file.write(lines_of([HEADER]))
        for turn in range(turns):
            calls = [f"c{turn}.{number}" for number in range(4)]
            entries = [pi_user("u" * 500), pi_answer(*calls, text="a" * 2000)]
            entries += [pi_result(call, "r" * 3000) for call in calls]
            file.write(lines_of([*entries, pi_answer(text="e" * 500)]))
    assert path.stat().st_size > 4 * 1024**2
    tracemalloc.start()
    try:
        (report,) = audit_files([path]).files
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.messages == turns * 7
    counted = Tally(
        messages=report.messages,
        tool_calls=report.tool_calls,
        tool_results=report.tool_results,
        other_records=report.other_records,
    )
    assert peak < memory_of(counted) + 1024**2
