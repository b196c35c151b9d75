"""Each broken adapter of the zoo gets its verdict: none hangs the suite, and none passes."""

import sys
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tailmark_conformance.cli import Exit, main
from zoo import BROKEN

ZOO: Final = Path(__file__).with_name("zoo.py")


@frozen
class Expected:
    """What a check says of a kind: the exit code, and what stands in its output."""

    exit_code: Exit
    says: str


TABLE: Final = {
    "dies_at_start": Expected(Exit.NOT_RUN, "no configuration"),
    "hangs_at_start": Expected(Exit.NOT_RUN, "initialize: nothing came for"),
    "speaks_first": Expected(Exit.NOT_RUN, "listening on stdin"),
    "does_nothing": Expected(Exit.NOT_RUN, "initialize: nothing came for"),
    "several_lines": Expected(Exit.NOT_RUN, "the line was '{'"),
    "half_a_line": Expected(Exit.NOT_RUN, "the process ended with exit code 0"),
    "batch": Expected(Exit.NOT_RUN, "expected a JSON-RPC response"),
    "null_result": Expected(Exit.NOT_RUN, "in the result"),
    "anothers_id": Expected(Exit.NOT_RUN, "expected the id 2 of the request, found 1"),
    "wrong_id": Expected(Exit.DOES_NOT, "protocol-error"),
    "no_json": Expected(Exit.DOES_NOT, "the line was 'done'"),
    "long_line": Expected(Exit.DOES_NOT, "expected lines of at most"),
    "noise": Expected(Exit.DOES_NOT, "[info]"),
    "answers_twice": Expected(Exit.NOT_RUN, "of the request, found"),
    "unknown_outcome": Expected(Exit.DOES_NOT, "expected a kind of"),
    "dies_in_the_middle": Expected(Exit.DOES_NOT, "ended with exit code 137; its stderr ends: out of memory"),
    "dies_on_one_method": Expected(Exit.DOES_NOT, "ended with exit code 1"),
    "exits_early": Expected(Exit.DOES_NOT, "ended with exit code 0"),
    "answers_errors": Expected(Exit.DOES_NOT, "KeyError: 'S1'"),
    "hangs": Expected(Exit.DOES_NOT, "hang"),
    "closes_stdout": Expected(Exit.DOES_NOT, "it closed its stdout and goes on running"),
    "answers_all": Expected(Exit.DOES_NOT, "fail"),
    "refuses_all": Expected(Exit.DOES_NOT, "fail"),
    "claims_what_it_lacks": Expected(Exit.DOES_NOT, "nothing is stored in"),
}
"""Every kind that does not conform."""

WAITS: Final = {"hangs_at_start", "does_nothing", "hangs"}
"""The kinds that are waited for in vain. To the others the machine may be as slow as it likes."""


def _checked(kind: str, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(
        ["check", "--profile", "smoke", "--workers", "1", *options, "--", sys.executable, str(ZOO), kind]
    )
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out + captured.err


def test_every_broken_kind_is_in_the_table() -> None:
    """None of the zoo goes without a verdict."""
    assert set(TABLE) == set(BROKEN)


@pytest.mark.parametrize("kind", TABLE)
def test_a_broken_adapter_does_not_conform(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It has the exit code of the table, and the output says why."""
    code, text = _checked(kind, capfd, "--examples", "16", "--timeout", "0.6" if kind in WAITS else "20")
    assert code == TABLE[kind].exit_code
    assert TABLE[kind].says in text


@pytest.mark.parametrize("kind", ["right", "hangs_at_shutdown"])
def test_a_right_adapter_conforms(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Also one that has to be ended: how it ends is not judged."""
    code, text = _checked(kind, capfd, "--examples", "10", "--clause", "TREE-1")
    assert code == Exit.CONFORMS, text
