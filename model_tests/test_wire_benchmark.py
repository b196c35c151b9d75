"""The benchmark of the wire runs, with numbers so small that they say nothing of its speed."""

import runpy
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from checkout import ROOT
from node import needs_node


@cache
def _benchmark() -> Mapping[str, Any]:  # Any: the names of a script
    return runpy.run_path(str(ROOT / "conformance" / "benchmarks" / "wire.py"))


def test_it_measures_calls_and_a_broken_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a figure for each way of calling, and one for the adapter."""
    needs_node()
    _benchmark()["main"](calls=100, rounds=1, profiles=(), kind=("answers_twice",))
    printed = capsys.readouterr().out
    for what in ("single calls, ratio", "batches of 50, ratio", "first failure told: answers_twice"):
        assert what in printed


def test_the_echo_sends_what_the_suite_sends() -> None:
    """A request of the echo is, byte for byte, the suite's line."""
    scope = _benchmark()
    appends = scope["operations"](scope["BATCH"])
    calls = [scope["call"](number, appends) for number in range(scope["BATCH"])]
    line = scope["request_line"](calls)
    assert scope["encode"](scope["plain_requests"](calls)).encode() + b"\n" == line


def test_it_names_every_broken_kind() -> None:
    """Whoever waits is among the kinds."""
    scope = _benchmark()
    assert set(scope["WAITING"]) < set(scope["kinds"]())
