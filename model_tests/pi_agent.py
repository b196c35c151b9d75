"""The pi coding agent for the tests that drive it: installed once, when a test first asks for it."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

import pytest

from checkout import ROOT
from node import needs_node
from tailmark.identifiers import NodeId, PartId, SessionId
from tailmark.messages import Message, Role, Text
from tailmark.operations import Append
from tailmark.plans import SummaryAnswer
from tailmark_conformance.subjects.stdio import StdioSubject

ADAPTER: Final = str(ROOT / "conformance/field/pi/adapter.mjs")
VERSIONS: Final = ("0.63.0", "0.63.1")
PATIENCE: Final = 60.0
"""Seconds that a call may take: other tests run beside these."""
S1: Final = SessionId("S1")

_INSTALL: Final = ("install", "--no-save", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")


@cache
def installed(version: str) -> Path:
    """The folder whose ``node_modules`` has this version. Skips the test where it cannot be had; fails it if the environment has ``CI``."""
    needs_node()
    npm = shutil.which("npm")
    if npm is None:
        _is_missing("there is no program npm: install Node 20 or later")
    folder = Path(tempfile.mkdtemp(prefix=f"pi-{version}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    name = f"@mariozechner/pi-coding-agent@{version}"
    done = subprocess.run(  # noqa: S603  # the version that is named above
        [npm, *_INSTALL, "--prefix", str(folder), name], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        _is_missing(f"{name} could not be installed from npm's registry: {done.stderr.strip()[-500:]}")
    return folder


def _is_missing(told: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


def command(version: str) -> tuple[str, ...]:
    """The adapter's command."""
    return (needs_node(), ADAPTER, str(installed(version)))


@contextmanager
def started(version: str, folder: Path) -> Iterator[StdioSubject]:
    """The adapter in a process, its lines held against the schemas."""
    with closing(StdioSubject(command(version), folder, PATIENCE, validate=True)) as subject:
        yield subject


def said(name: str, text: str) -> Append:
    """A message of one text. A name that begins with U is a user's."""
    role = Role.USER if name.startswith("U") else Role.ASSISTANT
    parts = (Text(id=PartId("text"), text=text),)
    return Append(session=S1, message=Message(id=NodeId(name), role=role, parts=parts))


def summary(text: str) -> SummaryAnswer:
    """What the summariser answers."""
    return SummaryAnswer(parts=(Text(id=PartId("text"), text=text),))
