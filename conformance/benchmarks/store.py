"""How much the store costs beside bare SQLite statements: appends, commits, projections, bytes.

Run it with ``uv run python conformance/benchmarks/store.py``. Every figure is a ratio of two measurements
that took turns in short rounds. In memory the fastest round of each counts, because whatever else the machine
does only makes rounds slower; on a disk, whose syncs vary by themselves, the median. ``memory`` is a folder in
main memory, where no disk hides the cost. The aim for the commit is one for disks.
"""

import gc
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

from attrs import frozen
from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.identifiers import ModelName, NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.messages import Message, Role, Text
from tailmark.operations import Append, BeginCompaction, CommitCompaction
from tailmark.outcomes import Committed, Planned
from tailmark.plans import Checkpoint, SummaryAnswer
from tailmark_reference.estimate import ESTIMATOR
from tailmark_reference.store.store import Store

SESSION = SessionId("S1")
TAIL = 20
TEXT = "The quick brown fox jumps over the lazy dog. " * 9
SUMMARY = SummaryAnswer(parts=(Text(id=PartId("summary"), text=TEXT * 4),))

_BARE_SCHEMA = (
    "PRAGMA journal_mode = WAL",
    """CREATE TABLE node (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parent INTEGER REFERENCES node (seq),
        kind INTEGER NOT NULL, place INTEGER, estimate INTEGER NOT NULL, body TEXT NOT NULL) STRICT""",
    """CREATE TABLE session (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, leaf INTEGER REFERENCES node (seq),
        revision INTEGER NOT NULL) STRICT""",
    "INSERT INTO session (id, revision) VALUES ('S1', 0)",
)

_BARE_INSERT = "INSERT INTO node (id, parent, kind, place, estimate, body) VALUES (?, ?, ?, ?, ?, ?)"

_BARE_UPDATE = "UPDATE session SET leaf = ?, revision = revision + 1 WHERE seq = ?"

_BARE_COLUMNS = """
WITH RECURSIVE up (seq, parent, kind, id, estimate) AS (
    SELECT seq, parent, kind, id, estimate FROM node WHERE seq = ?
    UNION ALL
    SELECT node.seq, node.parent, node.kind, node.id, node.estimate
    FROM up JOIN node ON node.seq = up.parent WHERE node.seq >= ?
) SELECT seq, kind, id, estimate FROM up
"""

# The walk passes the checkpoint, which says where it ends.
_BARE_PROJECTION = """
WITH RECURSIVE up (seq, parent, kind, stop, body) AS (
    SELECT seq, parent, kind, place, body FROM node WHERE seq = ?
    UNION ALL
    SELECT node.seq, node.parent, node.kind, ifnull(up.stop, node.place), node.body
    FROM up JOIN node ON node.seq = up.parent
    WHERE node.seq < up.seq AND up.seq IS NOT up.stop
) SELECT seq, kind, body FROM up
"""


def bare_connection(path: Path) -> sqlite3.Connection:
    """A connection with the store's settings and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class Bare:
    """What the store would be without anything that makes it one: two tables and the same statements."""

    def __init__(self, path: Path) -> None:
        self.connection = bare_connection(path)
        for statement in _BARE_SCHEMA:
            self.connection.execute(statement)

    def append(self, content: Message, estimate: int) -> None:
        """Write one message, in the same JSON as the store's."""
        body = json_form.dumps(content).decode()
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        seq, leaf = execute("SELECT seq, leaf FROM session WHERE id = ?", (SESSION,)).fetchone()
        made = execute(_BARE_INSERT, (content.id, leaf, 1, None, estimate, body)).lastrowid
        execute(_BARE_UPDATE, (made, seq))
        execute("COMMIT")

    def commit(self, content: Checkpoint, place: int, lowest: int) -> None:
        """Read the columns of the tail and write one checkpoint, in the same JSON as the store's."""
        body = json_form.dumps(content).decode()
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        seq, leaf = execute("SELECT seq, leaf FROM session WHERE id = ?", (SESSION,)).fetchone()
        execute(_BARE_COLUMNS, (leaf, lowest)).fetchall()
        made = execute(_BARE_INSERT, (content.id, leaf, 4, place, 100, body)).lastrowid
        execute(_BARE_UPDATE, (made, seq))
        execute("COMMIT")


def messages(random: Random, first: int, count: int) -> list[Message]:
    """Messages of about 500 bytes, questions and answers in turn."""
    return [
        Message(
            id=NodeId(f"{random.getrandbits(96):024x}"),
            role=Role.USER if number % 2 == 0 else Role.ASSISTANT,
            parts=(Text(id=PartId("p1"), text=TEXT),),
        )
        for number in range(first, first + count)
    ]


@frozen
class Measured:
    """One line of the report. ``aim`` is the largest ratio that is good enough, if one was set."""

    what: str
    where: str
    bare: str
    ours: str
    ratio: float
    aim: float | None


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _of_rounds(where: str, rounds: list[float]) -> float:
    return median(rounds) if where == "disk" else min(rounds)


def _microseconds(value: float) -> str:
    return f"{value * 1e6:.1f} µs"


def _line(what: str, where: str, bare: float, ours: float, aim: float | None) -> Measured:
    return Measured(what, where, _microseconds(bare), _microseconds(ours), ours / bare, aim)


@contextmanager
def _store(folder: Path, budget: int | None = None) -> Iterator[Store]:
    store = Store.open(folder / "store.sqlite")
    store.add_session(SESSION, Model(name=ModelName("model")), Settings(tail=_tokens(budget)))
    try:
        yield store
    finally:
        store.close()


def _tokens(budget: int | None) -> Tokens | None:
    return None if budget is None else Tokens(budget)


def _checkpoint(store: Store) -> Checkpoint:
    content = store.content(SESSION)
    assert content is not None
    assert content[0] is not None
    return content[0]


def measure_append(folder: Path, where: str, rounds: int) -> Measured:
    """Append beside the bare statements that write the same JSON."""
    random, bare, each = Random(1), Bare(folder / "bare.sqlite"), 20
    bare_rounds: list[float] = []
    our_rounds: list[float] = []
    with _store(folder) as store:
        for number in range(rounds):
            batch = messages(random, number * each, each)
            operations = [Append(session=SESSION, message=message) for message in batch]

            def ours(operations: list[Append] = operations) -> None:
                for operation in operations:
                    store.perform(operation)

            def theirs(batch: list[Message] = batch) -> None:
                for message in batch:
                    bare.append(message, 110)

            our_rounds.append(seconds(ours) / each)
            bare_rounds.append(seconds(theirs) / each)
    bare.connection.close()
    return _line("append", where, _of_rounds(where, bare_rounds), _of_rounds(where, our_rounds), 1.5)


def measure_commit(folder: Path, where: str, rounds: int) -> Measured:
    """The commit of a compaction beside bare statements that also read the tail's columns."""
    random, bare = Random(2), Bare(folder / "bare.sqlite")
    budget = TAIL * ESTIMATOR.message(messages(random, 0, 1)[0])
    bare_rounds: list[float] = []
    our_rounds: list[float] = []
    with _store(folder, budget) as store:
        for number in range(rounds):
            for message in messages(random, 0, TAIL * 2 if number == 0 else TAIL):
                store.perform(Append(session=SESSION, message=message))
                bare.append(message, 110)
            planned = store.perform(BeginCompaction(session=SESSION, plan=PlanId(f"plan:{number}")))
            assert isinstance(planned, Planned)
            plan = planned.plan
            operation = CommitCompaction(plan=plan, reply=SUMMARY)
            before = len(plan.excluded)
            (leaf,) = bare.connection.execute("SELECT leaf FROM session").fetchone()
            # From the old place to the end, as the store reads it.
            lowest = leaf - TAIL - before + 1 - (1 if number > 0 else 0)

            def ours(operation: CommitCompaction = operation) -> None:
                outcome = store.perform(operation)
                assert isinstance(outcome, Committed)

            our_rounds.append(seconds(ours))
            checkpoint = _checkpoint(store)

            def theirs(checkpoint: Checkpoint = checkpoint, leaf: int = leaf, lowest: int = lowest) -> None:
                bare.commit(checkpoint, leaf - TAIL + 1, lowest)

            bare_rounds.append(seconds(theirs))
    bare.connection.close()
    aim = 1.5 if where == "disk" else None
    bare_time, our_time = _of_rounds(where, bare_rounds), _of_rounds(where, our_rounds)
    return _line("commit of a compaction", where, bare_time, our_time, aim)


def _history(nodes: int) -> Iterator[tuple[object, ...]]:
    random = Random(3)
    pair = [(message.id, json_form.dumps(message).decode()) for message in messages(random, 0, 2)]
    for seq in range(1, nodes + 1):
        node = f"{random.getrandbits(96):024x}"
        kind = 1 + (seq + 1) % 2
        first, body = pair[kind - 1]
        yield (node, seq - 1 or None, kind, None, 110, body.replace(first, node))


def _fill_past_operations(connection: sqlite3.Connection, nodes: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(_BARE_INSERT, _history(nodes))
    connection.execute("UPDATE session SET leaf = ?, revision = revision + 1", (nodes,))
    connection.execute("COMMIT")


def fill(folder: Path, nodes: int) -> None:
    """Two files with the same history of that many messages, compacted once, a tail of 20 behind the place.

    The history is written in one transaction, past the operations, as they would write it.
    """
    with _store(folder, TAIL * 110) as store:
        writing = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
        _fill_past_operations(writing, nodes)
        writing.close()
        planned = store.perform(BeginCompaction(session=SESSION, plan=PlanId("plan")))
        assert isinstance(planned, Planned)
        assert isinstance(store.perform(CommitCompaction(plan=planned.plan, reply=SUMMARY)), Committed)
        checkpoint = _checkpoint(store)
    bare = Bare(folder / "bare.sqlite")
    _fill_past_operations(bare.connection, nodes)
    bare.commit(checkpoint, nodes - TAIL + 1, nodes)
    bare.connection.close()


def _size(path: Path) -> int:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def measure_opening(folder: Path, where: str, nodes: int, rounds: int) -> Measured:
    """Opening a store and structuring what the next request carries, beside a bare walk of the same file."""
    fastest_bare = fastest_ours = float("inf")
    path = folder / "store.sqlite"

    def ours() -> None:
        store = Store.open(path)
        content = store.content(SESSION)
        store.close()
        assert content is not None
        assert len(content[1]) == TAIL

    def theirs() -> None:
        connection = bare_connection(path)
        (leaf,) = connection.execute("SELECT leaf FROM session WHERE id = ?", (SESSION,)).fetchone()
        rows = connection.execute(_BARE_PROJECTION, (leaf,)).fetchall()
        content = [json.loads(body) for _, _, body in rows]
        connection.close()
        assert len(content) == TAIL + 1

    # A last connection that closes clears the log away; another one keeps it, as in daily use.
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("SELECT count(*) FROM session").fetchone()
    for _ in range(rounds):
        fastest_ours = min(fastest_ours, seconds(ours))
        fastest_bare = min(fastest_bare, seconds(theirs))
    other.close()
    return _line(f"open and project, {nodes:,} nodes", where, fastest_bare, fastest_ours, 2.0)


def measure_walk(folder: Path, rounds: int) -> float:
    """The fastest projection of an open store, in seconds."""
    store = Store.open(folder / "store.sqlite")
    fastest = min(seconds(lambda: store.projection(SESSION)) for _ in range(rounds))
    store.close()
    return fastest


def measure_history(place: Path, where: str, sizes: list[int], rounds: int) -> Iterator[Measured]:
    """What a long history costs: opening, walking to the place, bytes."""
    walks: list[float] = []
    for nodes in sizes:
        with tempfile.TemporaryDirectory(dir=place) as name:
            folder = Path(name)
            fill(folder, nodes)
            walks.append(measure_walk(folder, rounds * 5))
            yield measure_opening(folder, where, nodes, rounds)
            ours, bare = _size(folder / "store.sqlite") / nodes, _size(folder / "bare.sqlite") / nodes
            yield Measured(
                f"bytes a message, {nodes:,} nodes", where, f"{bare:.0f}", f"{ours:.0f}", ours / bare, 1.3
            )
        if nodes > sizes[0]:
            what = f"projection, {sizes[0]:,} to {nodes:,} nodes"
            yield _line(what, where, walks[0], walks[-1], 1.2)


def _report(lines: list[Measured], console: Console) -> None:
    table = Table(title="The store beside bare SQLite statements")
    for column in ("what", "where", "bare", "store", "ratio", "aim", "met"):
        table.add_column(column, justify="left" if column in ("what", "where") else "right")
    for line in lines:
        aim = "" if line.aim is None else f"≤ {line.aim:.1f}"
        met = "" if line.aim is None else "yes" if line.ratio <= line.aim else "no"
        table.add_row(line.what, line.where, line.bare, line.ours, f"{line.ratio:.2f}", aim, met)
    console.print(table)


def run(
    *,
    nodes: Annotated[int, Parameter(help="The longest history that is walked.")] = 1_000_000,
    rounds: Annotated[int, Parameter(help="Rounds of each measurement.")] = 200,
    disk: Annotated[Path, Parameter(help="A folder on a disk.")] = Path(tempfile.gettempdir()),  # noqa: B008  # read once
    memory: Annotated[Path, Parameter(help="A folder in main memory.")] = Path("/dev/shm"),  # noqa: S108  # the usual place
) -> None:
    """Measure, and print the ratios."""
    console = Console()
    places = [("disk", disk)] + ([("memory", memory)] if memory.is_dir() else [])
    lines: list[Measured] = []
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= nodes]
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=2 * len(places) + 3 * len(sizes))
        for where, place in places:
            for measure in (measure_append, measure_commit):
                with tempfile.TemporaryDirectory(dir=place) as folder:
                    gc.collect()
                    # A disk is slow and steady enough for fewer rounds.
                    lines.append(measure(Path(folder), where, rounds // 4 if where == "disk" else rounds))
                progress.advance(task)
        where, place = places[-1]
        for line in measure_history(place, where, sizes, rounds):
            lines.append(line)
            progress.advance(task)
    _report(lines, console)


if __name__ == "__main__":
    App(default_command=run)()
