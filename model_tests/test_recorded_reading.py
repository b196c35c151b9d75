"""Lines of a recorded session: whatever stands in a file, each line is a record or is named as what it is."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailmark_conformance.recorded import reading
from tailmark_conformance.recorded.reading import BadLine, Record, UnusableError, read_records

_SETTINGS = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_RECORDS = st.lists(st.dictionaries(st.text(max_size=4), _JSON, max_size=4), max_size=6)


def _texts(path: Path) -> list[str]:
    return [line.text for line in read_records(path) if isinstance(line, BadLine)]


@_SETTINGS
@given(records=_RECORDS.filter(bool), ensure_ascii=st.booleans())
def test_plain_and_gzip_give_the_same_records(
    tmp_path: Path, records: list[dict[str, object]], ensure_ascii: bool
) -> None:
    text = "".join(json.dumps(record, ensure_ascii=ensure_ascii) + "\n" for record in records)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    expected = [Record(number, record) for number, record in enumerate(records, 1)]
    assert list(read_records(plain)) == expected
    assert list(read_records(packed)) == expected


@_SETTINGS
@given(content=st.binary(min_size=1, max_size=200))
def test_any_bytes_give_records_and_bad_lines_with_rising_numbers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    lines = list(read_records(path))
    numbers = [line.number for line in lines]
    assert numbers == sorted(set(numbers))
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}\n{\xff}\n", "line 2 is no UTF-8 at byte 2 and was left out"),
        (b"{}\n{]\n", "line 2 is no JSON"),
        (b"{}\n[1]\n", "line 2 is no JSON object"),
        (b'{}\n{"a": "b', "the file ends within line 2"),
        (b"{}\n" + b"[" * 100_000 + b"\n", "line 2 is nested too deeply"),
        (b'{}\n{"a": ' + b"9" * 5000 + b"}\n", "line 2 is no JSON"),
        (b"\x00\x01\x02\x80\n", "line 1 is no UTF-8 at byte 4"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content + (b'{"last": 1}\n' if content.endswith(b"\n") else b""))
    (text,) = _texts(path)
    assert text.startswith(expected)
    if content.endswith(b"\n"):
        assert list(read_records(path))[-1] == Record(content.count(b"\n") + 1, {"last": 1})


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"b": 2}')
    assert list(read_records(path)) == [Record(1, {"a": 1}), Record(4, {"b": 2})]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 2 * 1024**2)
    path = tmp_path / "log"
    path.write_bytes(b"{}\n" + b" " * (5 * 1024**2) + b"{}\n" + b'{"a": 1}\n')
    first, bad, last = read_records(path)
    assert (first, last) == (Record(1, {}), Record(3, {"a": 1}))
    assert isinstance(bad, BadLine)
    assert bad.text.startswith("line 2 is longer than 2 MiB and was left out; split or shorten it")


def test_a_last_line_that_is_too_long_ends_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 100)
    path = tmp_path / "log"
    path.write_bytes(b"{}\n" + b" " * 101)
    assert [type(line) for line in read_records(path)] == [Record, BadLine]


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.99])
def test_gzip_that_is_cut_off_is_named_and_what_stands_before_is_read(tmp_path: Path, kept: float) -> None:
    records = [
        {"number": number, "noise": hashlib.sha256(bytes([number])).hexdigest()} for number in range(200)
    ]
    packed = gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    path = tmp_path / "log.gz"
    path.write_bytes(packed[: int(len(packed) * kept)])
    *read, bad = read_records(path)
    assert [line.fields for line in read if isinstance(line, Record)] == records[: len(read)]
    assert isinstance(bad, BadLine)
    assert bad.number == len(read) + 1
    assert bad.text.startswith(f"the gzip data ends or is broken within line {bad.number}")


def test_gzip_that_is_broken_inside_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"a": 1}\n'))
    packed[12:16] = b"\xff\xff\xff\xff"
    path = tmp_path / "log.gz"
    path.write_bytes(bytes(packed))
    (text,) = _texts(path)
    assert text.startswith("the gzip data ends or is broken within line 1")


def test_what_cannot_be_opened_says_why_and_what_to_do(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, expected in (
        (tmp_path, "is a folder; name the session files in it"),
        (tmp_path / "nowhere", "there is no such file; check the path"),
        (empty, "is empty; there is nothing to judge"),
        (pipe, "is no regular file; save the session to a file first"),
        (tmp_path / ("n" * 300), "cannot be opened (File name too long); check the path and its permissions"),
    ):
        with pytest.raises(UnusableError) as caught:
            list(read_records(path))
        assert str(caught.value) == expected
    # Each version of Python says it in its own words.
    with pytest.raises(
        UnusableError, match=r"^cannot be opened \(.*null.*\); check the path and its permissions$"
    ):
        list(read_records(Path("a\0b")))


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"a": "' + b"x" * 50 + b'"}\n' + b"{}\n" * 20_000)
    seen: list[tuple[int, int]] = []
    for _ in read_records(path, lambda done, total: seen.append((done, total))):
        pass
    size = path.stat().st_size
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (size, size)
