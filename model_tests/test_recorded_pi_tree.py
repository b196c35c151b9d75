"""The importer of pi's formats 2 and 3: a tree of entries, read from sessions that pi's own code wrote."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorded_logs import Fields, run
from tailmark.messages import Message, Role
from tailmark_conformance.recorded.audit import AuditReport, FileReport, audit_file, exit_code
from tailmark_conformance.recorded.detect import detect
from tailmark_conformance.recorded.importing import Format
from tailmark_conformance.recorded.pi_tree import PiTreeImporter
from tailmark_conformance.recorded.reading import UnusableError

DATA = Path(__file__).parent / "data"
VERSIONS = (2, 3)


def _records(name: str) -> list[Fields]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def _facts(report: FileReport) -> list[tuple[object, ...]]:
    return [
        (
            one.line,
            one.place_line,
            one.estimated_before,
            one.estimated_after,
            one.kept_messages,
            one.excluded_messages,
        )
        for one in report.checkpoints
    ]


@pytest.mark.parametrize("version", VERSIONS)
class TestSession:
    """The whole session, with three compactions, a branch with a summary, and a retry."""

    def test_its_format_is_told_by_its_header(self, version: int) -> None:
        assert detect(DATA / f"pi-v{version}.jsonl") is Format(f"pi-v{version}")

    def test_what_it_holds(self, version: int) -> None:
        report = audit_file(DATA / f"pi-v{version}.jsonl")
        assert (report.messages, report.turns, report.tool_calls, report.tool_results) == (26, 11, 2, 2)
        assert (report.sessions, report.branches, report.lines, report.open_calls) == (1, 3, 31, 0)
        assert report.branched_from is None

    def test_checkpoints_are_read_with_their_places(self, version: int) -> None:
        report = audit_file(DATA / f"pi-v{version}.jsonl")
        assert _facts(report) == [
            (11, 8, 988, 349, 3, 5),
            (24, 20, 1081, 268, 3, 8),
            (29, 17, 1122, 214, 3, 8),
        ]
        assert [one.tokens_before for one in report.checkpoints] == [2006, 2278, 1274]
        assert [one.measured_before for one in report.checkpoints] == [2006, 2278, 1274]

    def test_a_place_within_a_turn_is_found(self, version: int) -> None:
        """pi cuts within a turn by design; BND-1 says where."""
        report = audit_file(DATA / f"pi-v{version}.jsonl")
        assert [(one.clause, one.line) for one in report.findings] == [
            ("BND-1", 11),
            ("BND-1", 24),
            ("BND-1", 29),
        ]
        assert exit_code(AuditReport(files=(report,))) == 1

    def test_the_summary_of_a_branch_is_the_users(self, version: int) -> None:
        """pi sends it as a user's message, so that is what it is here."""
        records = _records(f"pi-v{version}.jsonl")
        (name,) = [str(record["id"]) for record in records if record.get("type") == "branch_summary"]
        result = run(PiTreeImporter(version), records)
        node = next(stored for stored in result.nodes.values() if stored.content.id == name)
        assert isinstance(node.content, Message)
        assert node.content.role is Role.USER

    def test_parents_are_those_of_the_log(self, version: int) -> None:
        """Entries that are no messages are passed over, upwards."""
        records = _records(f"pi-v{version}.jsonl")
        parents = {record.get("id"): record.get("parentId") for record in records}
        result = run(PiTreeImporter(version), records)
        for node, stored in result.nodes.items():
            above = parents[node]
            while above is not None and above not in result.nodes:
                above = parents[above]
            assert stored.parent == above

    def test_a_fork_names_where_it_comes_from(self, version: int) -> None:
        """It is a file of its own, with the path of one branch: ids and checkpoints as they were."""
        whole = audit_file(DATA / f"pi-v{version}.jsonl")
        fork = audit_file(DATA / f"pi-v{version}-fork.jsonl")
        assert fork.branched_from == f"pi-v{version}.jsonl"
        assert (fork.messages, fork.branches) == (18, 1)
        kept = {one.node for one in whole.checkpoints}
        assert {one.node for one in fork.checkpoints} < kept


def test_both_formats_say_the_same() -> None:
    """The same program run on both releases makes the same session."""
    assert _facts(audit_file(DATA / "pi-v2.jsonl")) == _facts(audit_file(DATA / "pi-v3.jsonl"))


class TestDamage:
    """What is wrong with the links of a file is named, and the rest is read."""

    def test_a_missing_parent(self) -> None:
        records = _records("pi-v3.jsonl")
        records[8] = {**records[8], "parentId": "nowhere"}
        result = run(PiTreeImporter(3), records)
        assert [(one.clause, one.line) for one in result.findings] == [("DMG-1", 9)]
        assert "nowhere" in result.findings[0].text

    def test_a_duplicate_id(self) -> None:
        records = _records("pi-v3.jsonl")
        records[5] = {**records[5], "id": records[4]["id"]}
        result = run(PiTreeImporter(3), records)
        assert any("a duplicate id" in one.text and one.line == 6 for one in result.findings)

    def test_a_place_that_does_not_exist(self) -> None:
        records = _records("pi-v3.jsonl")
        records[10] = {**records[10], "firstKeptEntryId": "nowhere"}
        result = run(PiTreeImporter(3), records)
        assert [(one.clause, one.line) for one in result.findings] == [("DMG-1", 11)]

    def test_a_later_format_is_refused_in_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "later.jsonl"
        path.write_text('{"type":"session","version":4,"id":"x"}\n', encoding="utf-8")
        with pytest.raises(UnusableError, match="another format version, 4"):
            detect(path)

    @given(random=st.randoms(use_true_random=False))
    def test_whatever_is_lost_or_moved_the_rest_is_read(self, random: Random) -> None:
        """Entries are dropped, repeated, moved, or lose a field: the importer names it and goes on."""
        records = _records("pi-v3.jsonl")
        for _ in range(random.randint(1, 6)):
            index = random.randrange(len(records))
            match random.randrange(4):
                case 0:
                    del records[index]
                case 1:
                    records.insert(index, random.choice(records))
                case 2:
                    records.insert(random.randrange(len(records)), records.pop(index))
                case _:
                    fields = dict(records[index])
                    if fields:
                        del fields[random.choice(list(fields))]
                    records[index] = fields
        result = run(PiTreeImporter(3), records)
        assert all(finding.text for finding in result.findings)
