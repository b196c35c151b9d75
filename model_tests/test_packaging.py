"""What is in the packages and in the repository, and what is not."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from checkout import ROOT, files, text_of

PACKAGES: Final = {
    "tailmark": Path("spec/tailmark"),
    "tailmark_reference": Path("reference/tailmark_reference"),
    "tailmark_conformance": Path("conformance/tailmark_conformance"),
}
OTHERS: Final = {
    "tailmark": {"attrs", "cattrs", "orjson"},
    "tailmark_reference": {"attrs", "tailmark"},
    "tailmark_conformance": {
        "attrs",
        "cattrs",
        "cyclopts",
        "jsonschema",
        "junitparser",
        "rich",
        "tailmark",
        "tailmark_reference",
        "tomlkit",
    },
}
"""What a package may import beside the standard library and itself."""
# The specification's judge needs no disk, no database, no network, no clock and no chance.
UNWANTED: Final = {"sqlite3", "socket", "random", "time", "datetime", "subprocess", "threading", "asyncio"}

LONGEST: Final = 500

SOURCES: Final = [path for path in files() if path.suffix in (".py", ".sql", ".md", ".yml", ".mjs", ".ts")]
TEXTS: Final = [
    path
    for path in files()
    if path.suffix in (".py", ".sql", ".md", ".yml", ".mjs", ".ts", ".toml", ".json", ".jsonl", "")
    and path.name != "LICENSE"
]


def modules(package: str) -> list[Path]:
    """The source files of a package. Templates in it are programs of their own."""
    return [
        path
        for path in files()
        if path.suffix == ".py" and path.is_relative_to(PACKAGES[package]) and "templates" not in path.parts
    ]


def imported(path: Path) -> Iterator[str]:
    """The top-level names of everything that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(text_of(path))):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.ImportFrom():
                raise AssertionError(f"{path}:{node.lineno}: a relative import")
            case _:
                pass


def project() -> dict[str, Any]:  # Any: a TOML document
    """pyproject.toml."""
    return tomllib.loads(text_of("pyproject.toml"))


class TestImports:
    @pytest.mark.parametrize("package", PACKAGES)
    def test_only_what_the_package_may_need(self, package: str) -> None:
        found = {name for path in modules(package) for name in imported(path)}
        found -= set(sys.stdlib_module_names)
        assert found - {package} <= OTHERS[package]

    def test_the_specification_is_pure(self) -> None:
        found = {name for path in modules("tailmark") for name in imported(path)}
        assert not found & UNWANTED

    def test_the_accelerator_is_imported_in_one_place(self) -> None:
        assert [str(path) for path in modules("tailmark") if "orjson" in set(imported(path))] == [
            "spec/tailmark/json_text.py"
        ]

    def test_the_dependencies_are_those_that_are_imported(self) -> None:
        declared = {re.split(r"[ <>=!~;\[]", line)[0] for line in project()["project"]["dependencies"]}
        assert declared == set().union(*OTHERS.values()) - set(PACKAGES) - {"orjson"}


class TestPackages:
    @pytest.mark.parametrize("package", PACKAGES)
    def test_is_typed(self, package: str) -> None:
        assert (ROOT / PACKAGES[package] / "py.typed").is_file()

    @pytest.mark.parametrize("package", PACKAGES)
    def test_every_module_says_what_it_is(self, package: str) -> None:
        for path in modules(package):
            assert ast.get_docstring(ast.parse(text_of(path))), path

    def test_the_wheel_has_all_three(self) -> None:
        wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert wheel["packages"] == [str(path) for path in PACKAGES.values()]


class TestRepository:
    @pytest.mark.parametrize("path", SOURCES, ids=str)
    def test_no_file_is_too_long(self, path: Path) -> None:
        assert len(text_of(path).splitlines()) <= LONGEST

    def test_no_lock_files(self) -> None:
        assert not {path.name for path in files()} & {"uv.lock", "package-lock.json", "poetry.lock"}

    # Written in two pieces, so that this file does not find itself.
    @pytest.mark.parametrize(
        "pattern",
        [
            r"pypi\." + "org",
            r"files\.python" + "hosted",
            r"registry\.npm" + "js",
            r"index-" + r"url\s*=",
            r"/work" + r"/(main|shared)",
            r"/home" + r"/\w",
            r"/Users" + r"/\w",
            r"/root" + r"/\w",
        ],
    )
    def test_no_address_of_a_registry_and_no_path_of_a_machine(self, pattern: str) -> None:
        found = [str(path) for path in TEXTS if re.search(pattern, text_of(path))]
        assert found == []

    def test_pins_are_plain_versions(self) -> None:
        settings = project()["tool"]["uv"]
        assert settings["constraint-dependencies"]
        for pin in (*settings["constraint-dependencies"], *settings["build-constraint-dependencies"]):
            assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+( ; [^@]+)?", pin), pin
