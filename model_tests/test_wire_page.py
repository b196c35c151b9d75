"""What the page of the wire shows is what happens."""

import json
import re
from typing import Final

import pytest
from jsonschema import Draft202012Validator

from checkout import text_of
from tailmark.json_schema import wire_schema
from tailmark.wire import LONGEST_LINE, METHODS
from tailmark_conformance.subjects.serving import Server
from tailmark_conformance.subjects.stdio import SECONDS, STARTING
from tailmark_conformance.subjects.targets import served

PAGE: Final = text_of("docs/wire.md")
BLOCKS: Final = re.findall(r"^```wire\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES: Final = "".join(BLOCKS).splitlines()


def test_the_reference_answers_as_shown() -> None:
    """Each request of the page, one after the other, gets the answer that stands behind it."""
    server = Server(served("reference:model"))
    assert len(LINES) >= 20
    for asked, answered in zip(LINES[::2], LINES[1::2], strict=True):
        assert asked.startswith("> ")
        assert answered == "< " + server.answer(asked.removeprefix("> ").encode()).decode()
    assert server.is_over


@pytest.mark.parametrize("line", [line[2:] for line in LINES if '"error"' not in line])
def test_the_lines_fit_the_schema(line: str) -> None:
    """All but those that are shown as wrong."""
    wrong = [
        asked[2:] for asked, answered in zip(LINES[::2], LINES[1::2], strict=True) if '"error"' in answered
    ]
    assert Draft202012Validator(wire_schema()).is_valid(json.loads(line)) != (line in wrong)


def test_the_table_has_every_method() -> None:
    """And no other."""
    table = PAGE.partition("## Methods")[2].partition("###")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(METHODS)


def test_the_figures_are_those_in_force() -> None:
    """Seconds and bytes."""
    assert f"A call may take {SECONDS:g} seconds, the first one {SECONDS * STARTING:g}" in PAGE
    assert f"at most {LONGEST_LINE // 2**20} MiB long" in PAGE
