"""How long the audit of a long history takes, and what opening it costs apart from that.

Run it with ``uv run python conformance/benchmarks/audit.py``. The histories are written by plain SQL: chains of
questions, answers with calls, and tool messages, with a checkpoint before the last turns. ``sound`` has no
damage, ``cycle`` leads from the first node back to itself, ``hole`` has a node in its middle that cannot be
read. Of a damaged history the first projection copies the readable part. Times are those of the processor, so
that whatever else the machine does hardly counts; memory is the growth of the process's largest size.
"""

import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.damage import DamageKind
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, SessionId
from tailmark.messages import Message, ResultStatus, Role, Text, ToolCall, ToolResult
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Load
from tailmark.outcomes import Committed, Done, Planned
from tailmark.plans import SummaryAnswer
from tailmark_reference.store.damaging import damage_store
from tailmark_reference.store.readable import GUARDS, TABLES
from tailmark_reference.store.schema import APPLICATION_ID, SCHEMA_VERSION, NodeKind
from tailmark_reference.store.store import Store

SESSION = SessionId("S1")
TEXT = "The quick brown fox jumps over the lazy dog. " * 4
SHAPES = ("sound", "cycle", "hole")
_INSERT = (
    "INSERT INTO node (seq, id, parent, kind, open_since, estimate, body) VALUES (?, ?, ?, ?, ?, 100, ?)"
)


def _text() -> Text:
    return Text(id=PartId("text"), text=TEXT)


def _contents(seq: int) -> tuple[Message, int]:
    """The message of this number: question, answer with a call, its result, answer."""
    node = NodeId(f"N{seq}")
    call = CallId(f"C{seq - seq % 4 + 2}")
    match seq % 4:
        case 1:
            return Message(id=node, role=Role.USER, parts=(_text(),)), NodeKind.USER.value
        case 2:
            made = ToolCall(id=PartId("call"), call=call, name="look", input="{}")
            return Message(id=node, role=Role.ASSISTANT, parts=(_text(), made)), NodeKind.ASSISTANT.value
        case 3:
            found = ToolResult(id=PartId("found"), call=call, status=ResultStatus.OUTPUT, text=TEXT)
            return Message(id=node, role=Role.TOOL, parts=(found,)), NodeKind.TOOL.value
        case _:
            return Message(id=node, role=Role.ASSISTANT, parts=(_text(),)), NodeKind.ASSISTANT.value


def _rows(count: int) -> Iterator[tuple[int, str, int | None, int, int | None, str]]:
    for seq in range(1, count + 1):
        message, kind = _contents(seq)
        body = json_form.dumps(message).decode()
        yield seq, message.id, seq - 1 or None, kind, seq if seq % 4 == 2 else None, body


def build(path: Path, count: int) -> None:
    """A store with one session of about this many nodes, the last turns behind a checkpoint."""
    whole = count - count % 4
    model = json_form.dumps(Model(name=ModelName("model"))).decode()
    settings = json_form.dumps(Settings(automatic=False)).decode()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        for statement in TABLES:
            connection.execute(statement)
        connection.executemany(_INSERT, _rows(whole))
        connection.executemany(
            "INSERT INTO call (node, position, call, approval, settled) VALUES (?, 1, ?, 0, ?)",
            ((seq, f"C{seq}", seq + 1) for seq in range(2, whole + 1, 4)),
        )
        connection.execute(
            "INSERT INTO session (id, leaf, revision, model, settings) VALUES (?, ?, ?, ?, ?)",
            (SESSION, whole, whole, model, settings),
        )
        for statement in GUARDS:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    with closing(Store.open(path)) as store:
        planned = store.perform(BeginCompaction(session=SESSION, plan=PlanId("P1")))
        assert isinstance(planned, Planned)
        reply = SummaryAnswer(parts=(_text(),))
        assert isinstance(store.perform(CommitCompaction(plan=planned.plan, reply=reply)), Committed)
        question = Message(id=NodeId("last"), role=Role.USER, parts=(_text(),))
        assert isinstance(store.perform(Append(session=SESSION, message=question)), Done)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(path: Path) -> tuple[float, float, float, float]:
    """Seconds to open and project, to audit, and to project again; megabytes that the last two added."""
    begun = time.process_time()
    with closing(Store.open(path)) as store:
        store.projection(SESSION)
        opened = time.process_time() - begun
        before = _megabytes()
        begun = time.process_time()
        store.perform(Load(session=SESSION))
        audited = time.process_time() - begun
        begun = time.process_time()
        store.projection(SESSION)
        return opened, audited, time.process_time() - begun, _megabytes() - before


def _measured(path: Path) -> tuple[float, float, float, float]:
    """In a process of its own, whose largest size nothing else has raised."""
    code = "import sys; sys.path.insert(0, sys.argv[2]); import audit; from pathlib import Path; print(*audit.measure(Path(sys.argv[1])))"
    done = subprocess.run(  # noqa: S603  # this program itself
        [sys.executable, "-c", code, str(path), str(Path(__file__).parent)],
        check=True,
        capture_output=True,
        text=True,
    )
    opened, audited, projected, memory = map(float, done.stdout.split())
    return opened, audited, projected, memory


app = App(help="How long the audit of a long history takes.")


@app.default
def main(*, nodes: Annotated[tuple[int, ...], Parameter(consume_multiple=True)] = (1_000, 1_000_000)) -> None:
    """Measure histories of these sizes."""
    table = Table("nodes", "shape", "open and project", "audit", "project then", "memory")
    with tempfile.TemporaryDirectory() as folder:
        for count in nodes:
            for shape in SHAPES:
                path = Path(folder) / f"{shape}-{count}.sqlite"
                build(path, count)
                if shape == "cycle":
                    damage_store(path, SESSION, DamageKind.CYCLE, NodeId("N1"))
                if shape == "hole":
                    damage_store(path, SESSION, DamageKind.INVALID_MESSAGE, NodeId(f"N{count // 2}"))
                opened, audited, projected, memory = _measured(path)
                table.add_row(
                    f"{count:,}",
                    shape,
                    f"{opened * 1000:.1f} ms",
                    f"{audited:.2f} s",
                    f"{projected:.2f} s",
                    f"{memory:.0f} MB",
                )
                path.unlink()
    Console().print(table)


if __name__ == "__main__":
    app()
