"""Node for the tests that need it: they are skipped where there is none, but not where ``CI`` is set."""

import os
import shutil

import pytest


def needs_node() -> str:
    """The path of the program ``node``. Skips the test where there is none; fails it if the environment has ``CI``."""
    node = shutil.which("node")
    if node is None:
        told = "there is no program node: install Node 20 or later"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return node
