"""What can be seen of a store: sessions, branches, projections, nodes. Reads only."""

import sqlite3
from functools import lru_cache

from attrs import evolve, frozen

from tailmark import json_form
from tailmark.declarations import Readings
from tailmark.identifiers import NodeId, Tokens
from tailmark.messages import Message, Role
from tailmark.plans import Checkpoint
from tailmark.projections import Marking, ProjectionItem
from tailmark.views import Observation, OpenCall, RunningAnswer, SessionView, StoredNode
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.audit import is_readable
from tailmark_reference.store.audits import Audits
from tailmark_reference.store.bodies import (
    projected_digest,
    to_checkpoint,
    to_content,
    to_projected,
    to_summary,
)
from tailmark_reference.store.findings import findings
from tailmark_reference.store.history import calls_at_end
from tailmark_reference.store.occupancy import occupancy_of, tail_of
from tailmark_reference.store.process import Process
from tailmark_reference.store.queries import (
    SessionRow,
    branch,
    projected,
    session_metadata,
    session_rows,
    session_sizes,
)
from tailmark_reference.store.schema import NodeKind
from tailmark_reference.store.sizes import sizes

_ROLES: dict[int, Role] = {
    NodeKind.USER: Role.USER,
    NodeKind.ASSISTANT: Role.ASSISTANT,
    NodeKind.TOOL: Role.TOOL,
}

# Looking after every step structures the same content again and again; equal text is equal content.
_content = lru_cache(maxsize=4096)(to_content)
_digest = lru_cache(maxsize=4096)(projected_digest)
_summary_digest = lru_cache(maxsize=256)(lambda body: json_form.digest(to_summary(body)))


def projection(connection: sqlite3.Connection, session: SessionRow) -> tuple[ProjectionItem, ...]:
    """What the session's next request carries, by digest (PROJ)."""
    rows = projected(connection, session.leaf)
    items = [
        ProjectionItem(
            node=row.id,
            role=_ROLES[row.kind],
            marking=Marking.VERBATIM,
            digest=_digest(row.body),
            estimate=Tokens(row.estimate),
        )
        for row in rows.messages
    ]
    if rows.checkpoint is not None:
        summary = ProjectionItem(
            node=rows.checkpoint.id,
            role=Role.USER,
            marking=Marking.CONTEXT,
            digest=_summary_digest(rows.checkpoint.body),
            estimate=Tokens(rows.checkpoint.estimate),
        )
        items.insert(0, summary)
    return tuple(items)


def projected_content(
    connection: sqlite3.Connection, session: SessionRow
) -> tuple[Checkpoint | None, tuple[Message, ...]]:
    """The content that the session's next request is made from: the checkpoint in force, and the tail."""
    rows = projected(connection, session.leaf)
    checkpoint = None if rows.checkpoint is None else to_checkpoint(rows.checkpoint.body)
    return checkpoint, tuple(to_projected(row.body) for row in rows.messages)


def session_view(
    connection: sqlite3.Connection,
    process: Process,
    session: SessionRow,
    estimator: Estimator,
    readings: Readings,
) -> SessionView:
    """Everything that a session shows."""
    running = process.running(session.id)
    nodes = branch(connection, session.leaf)
    checkpoints = [node.id for node in nodes if node.kind == NodeKind.CHECKPOINT]
    known = sizes(*session_sizes(connection, session))
    tail = tail_of(connection, session.leaf, session.checkpoint)
    return SessionView(
        session=session.id,
        leaf=session.leaf_id,
        revision=session.revision,
        branch=tuple(node.id for node in nodes),
        open_calls=tuple(
            OpenCall(call=call.call, message=call.message, approval_pending=call.approval)
            for call in calls_at_end(connection, session)
        ),
        running=None if running is None else RunningAnswer(follows=running.follows_id),
        checkpoint=checkpoints[-1] if checkpoints else None,
        projection=projection(connection, session),
        model=known.model,
        settings=known.settings,
        budgets=known.budgets,
        occupancy=occupancy_of(connection, estimator, tail, known.model, known.budgets, readings.measure),
        metadata=session_metadata(connection, session),
    )


_NODES = """
SELECT node.seq, parent.id, node.kind, CAST(node.body AS BLOB), node.estimate
FROM node LEFT JOIN node AS parent ON parent.seq = node.parent ORDER BY node.seq
"""


def stored_nodes(connection: sqlite3.Connection, unreadable: frozenset[int]) -> tuple[StoredNode, ...]:
    """All nodes that can be read, on and off the branches, in the order in which they were written."""
    rows: list[tuple[int, NodeId | None, int, bytes, int]] = connection.execute(_NODES).fetchall()
    # What SQLite's own pages have wrong shows in rows that no walk meets.
    return tuple(
        StoredNode(parent=parent, content=_content(kind, body.decode()), estimate=Tokens(estimate))
        for seq, parent, kind, body, estimate in rows
        if seq not in unreadable and is_readable(body, kind)
    )


@frozen
class Look:
    """Who looks: the process, what it knows of damage, what it works with, and whether its file cannot be written."""

    process: Process
    audits: Audits
    estimator: Estimator
    readings: Readings
    read_only: bool


def _view(connection: sqlite3.Connection, look: Look, session: SessionRow) -> SessionView:
    damaged = look.audits.of(connection, session)
    if damaged is not None:
        connection, part = damaged.of_part(connection)
        view = session_view(connection, look.process, part, look.estimator, look.readings)
        found = findings(connection, part.leaf)
        return evolve(view, leaf=session.leaf_id, read_only=True, damage=damaged.damage, findings=found)
    view = session_view(connection, look.process, session, look.estimator, look.readings)
    found = findings(connection, session.leaf) if session.checkpoint is not None else ()
    if not found and not look.read_only:
        return view
    return evolve(view, read_only=look.read_only, findings=found)


def observation(connection: sqlite3.Connection, look: Look) -> Observation:
    """Everything but the digest. Its cost grows with the whole store."""
    return Observation(
        sessions=tuple(_view(connection, look, row) for row in session_rows(connection)),
        nodes=stored_nodes(connection, look.audits.unreadable(connection)),
    )
