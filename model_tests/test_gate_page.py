"""The page about the gate is a session in a terminal: its commands are run in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from checkout import text_of
from tailmark_conformance.baseline_writing import DAYS
from tailmark_conformance.capsules import FOLDER

PAGE: Final = text_of("docs/gate.md")
LINES: Final = "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)).splitlines()


def test_every_command_ends_as_the_page_says(tmp_path: Path) -> None:
    """With the exit code behind it, 0 where there is none, and without a traceback."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if key != "TAILMARK_CAPSULES"}
    assert len(LINES) >= 10
    for line in LINES:
        command, _, said = line.partition("  # exit ")
        done = subprocess.run(  # noqa: S603  # what the page shows
            ["bash", "-c", command],  # noqa: S607  # the user's shell
            cwd=tmp_path,
            env={**environment, "PATH": path},
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == int(said or 0), f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    assert {FOLDER, "mine", "known.toml", "report.json", "report.xml", "report.md"} == {
        one.name for one in tmp_path.iterdir()
    }


def test_the_figures_are_those_in_force() -> None:
    """Days and names."""
    assert f"for {DAYS} days" in PAGE
    assert f"`{FOLDER}`" in PAGE
