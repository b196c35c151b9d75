"""Tells the format of a recorded session from its first records."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tailmark_conformance.recorded.claude_code import ClaudeCodeImporter
from tailmark_conformance.recorded.importing import Format, Importer
from tailmark_conformance.recorded.pi import ROLES, PiImporter
from tailmark_conformance.recorded.pi_tree import VERSIONS, PiTreeImporter
from tailmark_conformance.recorded.reading import BadLine, UnusableError, read_records
from tailmark_conformance.recorded.records import natural_at, object_at, text_at

_LOOK_AT = 1000
"""So many lines are looked at before a file is given up."""

_CLAUDE_BOOKKEEPING = frozenset({"file-history-snapshot", "queue-operation", "summary", "last-prompt"})

_KNOWN = "This reads the pi coding agent's session formats 1 to 3 and Claude Code's sessions"

IMPORTERS: Mapping[Format, Callable[[], Importer]] = {
    Format.PI_1: PiImporter,
    Format.PI_2: lambda: PiTreeImporter(2),
    Format.PI_3: lambda: PiTreeImporter(3),
    Format.CLAUDE_CODE: ClaudeCodeImporter,
}


def detect(path: Path) -> Format:
    """The format of a file. Raises `UnusableError` if it is none of those that can be read."""
    first_bad: BadLine | None = None
    is_claude = False
    records = 0
    for number, line in enumerate(read_records(path)):
        if number == _LOOK_AT:
            break
        if isinstance(line, BadLine):
            first_bad = first_bad or line
            continue
        records += 1
        found = _recognise(line.fields)
        if found is not None:
            return found
        is_claude = is_claude or line.fields.get("type") in _CLAUDE_BOOKKEEPING
    if is_claude:
        return Format.CLAUDE_CODE
    if records:
        raise UnusableError(f"holds JSON records, but is no session of a known format. {_KNOWN}")
    if first_bad is not None:
        raise UnusableError(f"is no session: {first_bad.text}. {_KNOWN}")
    raise UnusableError(f"holds blank lines only; there is nothing to judge. {_KNOWN}")


def _recognise(record: Mapping[str, object]) -> Format | None:
    kind = record.get("type")
    if text_at(record, "uuid") is not None and "parentUuid" in record:
        return Format.CLAUDE_CODE
    if kind == "session" and text_at(record, "id") is not None:
        version = natural_at(record, "version") if "version" in record else 1
        if version == 1:
            return Format.PI_1
        if version is None or version not in VERSIONS:
            raise UnusableError(f"is a pi session of another format version, {version}. {_KNOWN}")
        return VERSIONS[version]
    if kind == "message" and "id" not in record and object_at(record, "message").get("role") in ROLES:
        return Format.PI_1
    return None
