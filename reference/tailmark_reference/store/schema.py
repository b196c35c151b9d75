"""The layout of a store file, and how it is told from other files."""

import sqlite3
from collections.abc import Iterator
from enum import IntEnum
from importlib import resources

APPLICATION_ID = 0x7461696C
"""Stands in the file's header: the bytes ``tail``."""

SCHEMA_VERSION = 2
"""The layout that this program reads and writes. Version 1 knew no settings and no usage; no release wrote it."""


class NodeKind(IntEnum):
    """The column ``kind`` of a node."""

    USER = 1
    ASSISTANT = 2
    TOOL = 3
    CHECKPOINT = 4


def _statements(script: str) -> Iterator[str]:
    """A trigger has semicolons inside, so only SQLite can say where a statement ends."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


SCHEMA = tuple(_statements(resources.files(__package__).joinpath("schema.sql").read_text("utf-8")))
"""The statements that make an empty store, in order."""
