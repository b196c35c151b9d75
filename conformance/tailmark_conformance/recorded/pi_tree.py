"""Reads sessions of the pi coding agent in the formats 2 and 3: entries that name their parents.

An entry follows the one that it names; where that is not the entry before it, somebody went back to another branch. What is
summarised of a branch that was left is a user's message there, because pi sends it as one.
"""

from collections.abc import Iterator, Mapping

from tailmark.declarations import Declaration, Readings
from tailmark.identifiers import ModelName, NodeId, PartId, Tokens
from tailmark.messages import Message, Role, Text
from tailmark_conformance.recorded.chain import LoggedCheckpoint, logged
from tailmark_conformance.recorded.importing import DAMAGE, Finding, Format, Imported, declaration_of
from tailmark_conformance.recorded.lineage import Lineage
from tailmark_conformance.recorded.pi import PiImporter
from tailmark_conformance.recorded.records import name_at, natural_at, object_at, text_at

VERSIONS: Mapping[int, Format] = {2: Format.PI_2, 3: Format.PI_3}
"""The format versions that this reads."""


class PiTreeImporter(PiImporter):
    """Reads one file. See `Importer`. ``version`` is 2 or 3; they differ in the name of one role."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self._version = version
        self._lineage = Lineage()

    @property
    def format(self) -> Format:  # type: ignore[explicit-override]  # Python 3.11 has no `override`
        return VERSIONS[self._version]

    @property
    def declaration(self) -> Declaration:  # type: ignore[explicit-override]  # Python 3.11 has no `override`
        return declaration_of(f"pi coding agent, format version {self._version}", Readings())

    def lost_line(self, line: int) -> None:  # type: ignore[explicit-override]  # as above
        self._lineage.lose(line)

    def feed(self, line: int, record: Mapping[str, object]) -> Iterator[Imported]:  # type: ignore[explicit-override]  # as above
        index = self._entries
        self._entries += 1
        if record.get("type") == "session":
            self._tally.other_records += 1
            yield from self._begin(line, record, index)
            return
        name = name_at(record, "id")
        if name is None:
            self._tally.other_records += 1
            yield Finding(clause=DAMAGE, line=line, node=None, text="an entry without an id; it is left out")
            return
        yield from self._begin(line, {}, index)
        if name in self._lineage:
            yield Finding(
                clause=DAMAGE,
                line=line,
                node=NodeId(name),
                text="a duplicate id: an earlier entry has it; this one is left out",
            )
            return
        yield from self._entry(line, index, name, record)

    def finish(self) -> Iterator[Imported]:  # type: ignore[explicit-override]  # as above
        yield from super().finish()
        yield from self._lineage.findings()

    def _entry(self, line: int, index: int, name: str, record: Mapping[str, object]) -> Iterator[Imported]:
        parent = name_at(record, "parentId")
        row = self._lineage.add(name, parent=parent, link="parent", line=line)
        above = self._lineage.row(parent) if parent != name else None
        if above is not None or parent is None:
            follows = self._lineage.node(above) if above is not None else None
            if follows != self._chain.leaf:
                yield from self._chain.move(line, follows)
        node = NodeId(name)
        match record.get("type"):
            case "message":
                yield from self._message(line, index, node, object_at(record, "message"))
            case "custom_message":
                said = {"role": "custom", "content": record.get("content")}
                yield from self._message(line, index, node, said)
            case "branch_summary":
                text = Text(id=PartId("p0"), text=text_at(record, "summary") or "")
                message = Message(id=node, role=Role.USER, parts=(text,))
                yield from self._chain.user(logged(line, message))
            case "compaction":
                yield from self._compaction(line, node, record)
            case "model_change":
                self._tally.other_records += 1
                self._chain.model = ModelName(name_at(record, "modelId") or "")
            case _:
                self._tally.other_records += 1
        self._lineage.stand(row, self._chain.leaf)

    def _compaction(self, line: int, node: NodeId, record: Mapping[str, object]) -> Iterator[Imported]:
        kept, damage = self._kept(record)
        summary = text_at(record, "summary")
        tokens = natural_at(record, "tokensBefore")
        yield from self._chain.checkpoint(
            LoggedCheckpoint(
                line=line,
                node=node,
                summary=summary or "",
                first_kept=kept,
                trigger=None,
                tokens_before=Tokens(tokens) if tokens is not None else None,
                damage=damage if summary is not None else "a checkpoint has no summary",
            )
        )

    def _kept(self, record: Mapping[str, object]) -> tuple[NodeId | None, str | None]:
        """The first message that a compaction keeps, and what is wrong with what it names."""
        name = name_at(record, "firstKeptEntryId")
        if name is None:
            return None, "a checkpoint does not say where the kept messages begin"
        row = self._lineage.row(name)
        if row is None:
            return None, f"the first kept entry {name} does not exist"
        node = NodeId(name)
        if node in self._table:
            return node, None
        # An entry that is no message, such as a change of the model: the next message of the branch is kept.
        return self._chain.message_behind(self._lineage.node(row)), None
