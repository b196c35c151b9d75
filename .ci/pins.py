"""Keeps the pins of pyproject.toml: one plain ``name==version`` line for each package that the project can install.

``python .ci/pins.py`` writes them from uv's lock file, ``--upgrade`` after looking for newer versions.
``--check`` needs neither uv nor a network: every package of the environment that it runs in must be pinned,
at the version that is there. ``--print`` prints them, as a constraints file for pip.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_LIST = re.compile(r"^(constraint-dependencies = \[\n).*?^(\]\n)", re.MULTILINE | re.DOTALL)
_EXPORT = (
    "uv",
    "export",
    "--quiet",
    "--no-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-project",
    "--all-groups",
    "--all-extras",
)
# What the project is, and what puts it there.
_NOT_PINNED = {"tailmark", "pip", "setuptools", "wheel", "uv"}


def pinned() -> list[str]:
    """The pins that stand in pyproject.toml."""
    pins: list[str] = tomllib.loads(PYPROJECT.read_text())["tool"]["uv"]["constraint-dependencies"]
    return pins


def write(pins: list[str]) -> None:
    """Put these pins into pyproject.toml."""
    lines = "".join(f'    "{pin}",\n' for pin in pins)
    text, count = _LIST.subn(lambda found: f"{found[1]}{lines}{found[2]}", PYPROJECT.read_text())
    if count != 1:
        raise SystemExit(f"{PYPROJECT}: expected one list constraint-dependencies, found {count}")
    PYPROJECT.write_text(text)


def exported() -> list[str]:
    """What uv has resolved, for all groups and extras."""
    lines = subprocess.run(_EXPORT, cwd=PYPROJECT.parent, check=True, capture_output=True, text=True).stdout
    return sorted(line.strip().replace('"', "'") for line in lines.splitlines() if "==" in line)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def faults(pins: list[str]) -> list[str]:
    """Installed packages that are not pinned, or stand here in another version."""
    versions: dict[str, set[str]] = {}
    for pin in pins:
        name, _, version = pin.partition(";")[0].strip().partition("==")
        versions.setdefault(_normal(name), set()).add(version)
    found = []
    for distribution in distributions():
        name = _normal(distribution.metadata["Name"])
        if name in _NOT_PINNED:
            continue
        if name not in versions:
            found.append(f"{name} {distribution.version} is not pinned")
        elif distribution.version not in versions[name]:
            found.append(f"{name} {distribution.version} is pinned at {', '.join(sorted(versions[name]))}")
    return found


def main() -> int:
    """Write, print or check the pins."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with the environment that this runs in")
    what.add_argument("--print", action="store_true", dest="show", help="print the pins")
    what.add_argument("--upgrade", action="store_true", help="look for newer versions first")
    asked = parser.parse_args()
    if asked.check:
        found = faults(pinned())
        print("\n".join(found) or f"{len(pinned())} pins; every installed package is at its pin")
        return 1 if found else 0
    if asked.show:
        print("\n".join(pinned()))
        return 0
    if asked.upgrade:
        write([])
        subprocess.run(("uv", "lock", "--upgrade"), cwd=PYPROJECT.parent, check=True)
    write(exported())
    print(f"{len(pinned())} pins written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
