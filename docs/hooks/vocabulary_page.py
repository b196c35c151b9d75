"""The page of the vocabulary, made from the sources of its modules: names, fields, docstrings.

The sources are read and not the classes, because the docstrings of fields and members stand there alone.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from clause_pages import linked
from tailmark import (
    budgets,
    damage,
    declarations,
    identifiers,
    messages,
    operations,
    outcomes,
    plans,
    projections,
    traces,
    views,
)

_SECTIONS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("Names", identifiers),
    ("Messages", messages),
    ("Sizes", budgets),
    ("Compactions", plans),
    ("Operations", operations),
    ("Outcomes", outcomes),
    ("Projections", projections),
    ("Views", views),
    ("Damage", damage),
    ("Traces", traces),
    ("Declarations", declarations),
)

_INTRODUCTION: Final = (
    "Every value that is asked, answered, observed or stored. Each has one JSON form: an object of its fields;"
    " what belongs to a closed union also has `kind`. A field at its default is left out."
)


def vocabulary_page() -> str:
    """The page as Markdown."""
    lines = [
        "# Vocabulary",
        "",
        _INTRODUCTION,
    ]
    for title, module in _SECTIONS:
        tree = ast.parse(inspect.getsource(module))
        lines += ["", f"## {title}", "", _text(ast.get_docstring(tree)), *_statements(tree.body)]
    return "\n".join(lines) + "\n"


def _statements(body: list[ast.stmt]) -> Iterator[str]:
    for index, statement in enumerate(body):
        match statement:
            case ast.ClassDef(name=name):
                yield from ("", f"### {name}", "", _text(ast.get_docstring(statement)), "")
                yield from _members(statement)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="NewType")) as made):
                base = ast.unparse(made.args[1])
                yield from ("", f"### {name}", "", f"`{base}`. {_docstring_behind(body, index)}")
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value
            ):
                members = " · ".join(f"[{one}](#{one.lower()})" for one in ast.unparse(value).split(" | "))
                yield from ("", f"### {name}", "", f"One of {members}.", "", _docstring_behind(body, index))
            case _:
                pass


def _members(of: ast.ClassDef) -> Iterator[str]:
    rows = []
    is_enum = False
    for index, statement in enumerate(of.body):
        match statement:
            case ast.AnnAssign(target=ast.Name(id="kind"), value=ast.Constant(value=str() as kind)):
                yield f"`kind`: `{kind!s}`"
                yield ""
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                default = f"`{ast.unparse(value)}`" if value is not None else ""
                kind_of = ast.unparse(annotation).replace("|", "\\|")
                rows.append(f"| `{name}` | `{kind_of}` | {default} |")
            case ast.Assign(targets=[ast.Name()], value=ast.Constant() as member) if isinstance(
                member.value, str
            ):
                is_enum = True
                rows.append(f"| `{member.value}` | {_docstring_behind(of.body, index)} |")
            case _:
                pass
    if rows:
        yield "| value | |\n|---|---|" if is_enum else "| field | type | default |\n|---|---|---|"
        yield from rows


def _docstring_behind(body: list[ast.stmt], index: int) -> str:
    if index + 1 < len(body):
        match body[index + 1]:
            case ast.Expr(value=ast.Constant(value=str(text))):
                return _text(inspect.cleandoc(text))
            case _:
                pass
    return ""


def _text(docstring: str | None) -> str:
    """A docstring as Markdown: two back quotes become one, and the clauses that it names become links."""
    code = re.sub(r"``([^`]+)``", r"`\1`", docstring or "")
    return linked(code.replace("|", "\\|"), "specification/")
