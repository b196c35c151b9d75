"""Brings a baseline's file up to date. What people wrote there, comments included, stays as it is."""

import os
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import tomlkit
from attrs import frozen
from tomlkit.items import AoT, Table

from tailmark.identifiers import ClauseId
from tailmark_conformance.baseline import BaselineError
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.gate import failing_keys, fingerprint_of

DAYS: Final = 90
"""So long a new entry lasts, in days."""

_HEAD: Final = "Known failures of `tailmark check --baseline`: each needs a reason and a link."


@frozen(kw_only=True)
class Update:
    """A baseline's new text, and how many entries came and went."""

    text: str
    added: int
    removed: int


def updated(text: str, report: CheckReport, today: date) -> Update:
    """The text of a baseline, or an empty one, with an entry for each failure of the report and for nothing else.

    The report must be complete and not be judged by a baseline yet. Entries that stay are not touched, expired ones
    neither: a person decides about those. In new entries ``reason`` and ``link`` are for people to fill in.
    """
    document = tomlkit.parse(text)
    if not text.strip():
        document.add(tomlkit.comment(_HEAD))
        document["profile"] = report.profile
        document["seed"] = report.seed
    failing = failing_keys(report.clauses)
    # Of a list in one line, or none, a list of tables is made.
    found = document.get("known")
    known = found if isinstance(found, AoT) else _tables(found)
    if known is not found:
        document.pop("known", None)
        document["known"] = known
    there = set()
    removed = 0
    for index in range(len(known) - 1, -1, -1):
        key = (ClauseId(known[index]["clause"]), str(known[index]["fingerprint"]))
        if key in failing:
            there.add(key)
        else:
            del known[index]
            removed += 1
    added = 0
    for clause in report.clauses:
        key = (clause.id, fingerprint_of(clause) or "")
        if key in failing and key not in there:
            known.append(_entry(*key, today))
            there.add(key)
            added += 1
    if not known:
        del document["known"]
    return Update(text=tomlkit.dumps(document), added=added, removed=removed)


def _tables(items: object) -> AoT:
    tables = tomlkit.aot()
    for item in items if isinstance(items, list) else ():
        table = tomlkit.table()
        table.update(item)
        tables.append(table)
    return tables


def _entry(clause: str, fingerprint: str, today: date) -> Table:
    table = tomlkit.table()
    table.trivia.indent = "\n"
    table["clause"] = clause
    table["fingerprint"] = fingerprint
    table["reason"] = ""
    table["link"] = ""
    table["expires"] = today + timedelta(days=DAYS)
    return table


def write_baseline(path: Path, text: str) -> None:
    """Put the text into the file, whole or not at all. Raises `BaselineError`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode())
        beside.replace(path)
    except OSError as error:
        raise BaselineError(
            f"--baseline {path}: it cannot be written ({error.strerror}): name another file"
        ) from None
