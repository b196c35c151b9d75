"""Stores with a known history, for the tests of the store."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tailmark.budgets import Model
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.messages import ApprovalRequest, Message, Part, ResultStatus, Role, Text, ToolCall, ToolResult
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Operation, SetModel
from tailmark.outcomes import Committed, Done, Outcome, Planned, Sent
from tailmark.plans import Plan, SummaryAnswer
from tailmark.views import Observation, SessionView
from tailmark_reference.store.store import Store

S1: Final = SessionId("S1")
MODEL: Final = Model(name=ModelName("model"))
SMALL: Final = Model(name=ModelName("small"), window=Tokens(128))
"""Its safe limit is 96, its threshold 90, its tail budget 24, its summary budget 12."""
REPLY: Final = SummaryAnswer(parts=(Text(id=PartId("summary"), text="What was said."),))


def text(words: str) -> Text:
    """A part of text."""
    return Text(id=PartId("text"), text=words)


def call(name: str) -> ToolCall:
    """A part that makes a call."""
    return ToolCall(id=PartId(f"call:{name}"), call=CallId(name), name="look", input="{}")


def approval(name: str) -> ApprovalRequest:
    """A part that asks the user to allow a call."""
    return ApprovalRequest(id=PartId(f"approval:{name}"), call=CallId(name))


def result(name: str, *, words: str = "found", preliminary: bool = False) -> ToolResult:
    """A part that answers a call."""
    kind = "preliminary" if preliminary else "result"
    return ToolResult(
        id=PartId(f"{kind}:{name}"),
        call=CallId(name),
        status=ResultStatus.OUTPUT,
        text=words,
        preliminary=preliminary,
    )


def message(node: str, role: Role, *parts: Part) -> Message:
    """A message of these parts."""
    return Message(id=NodeId(node), role=role, parts=parts)


def user(node: str) -> Message:
    """A user message."""
    return message(node, Role.USER, text(f"question {node}"))


def long(node: str, cost: int) -> Message:
    """A user message that is estimated at so many tokens, 7 or more."""
    return message(node, Role.USER, text("x" * (4 * (cost - 6))))


def answer(node: str, *parts: Part) -> Message:
    """An assistant message; text if no parts are given."""
    return message(node, Role.ASSISTANT, *(parts or (text(f"answer {node}"),)))


def tool(node: str, *results: ToolResult) -> Message:
    """A tool message."""
    return message(node, Role.TOOL, *results)


def new_store(path: Path) -> Store:
    """An empty store with one session."""
    store = Store.open(path)
    assert store.add_session(S1, MODEL) == Done()
    return store


def do(store: Store, *operations: Operation) -> Outcome:
    """Perform operations that must succeed. Answers the last outcome."""
    outcome: Outcome = Done()
    for operation in operations:
        outcome = store.perform(operation)
        assert isinstance(outcome, Done | Committed | Planned | Sent), (operation, outcome)
    return outcome


def add(store: Store, *messages: Message) -> None:
    """Append messages, which must succeed."""
    do(store, *(Append(session=S1, message=one) for one in messages))


def begin(store: Store, plan: str = "P1") -> Plan:
    """Begin a compaction, which must succeed."""
    outcome = do(store, BeginCompaction(session=S1, plan=PlanId(plan)))
    assert isinstance(outcome, Planned)
    return outcome.plan


def on_small_model(store: Store, *messages: Message) -> None:
    """Append messages and go on with a small model."""
    add(store, *messages)
    do(store, SetModel(session=S1, model=SMALL))


def needs_room(store: Store, request: Operation) -> Plan:
    """Ask for a request that does not fit, so that a plan is the answer."""
    outcome = do(store, request)
    assert isinstance(outcome, Planned)
    return outcome.plan


def compact(store: Store, plan: str = "P1") -> None:
    """Compact, which must succeed."""
    do(store, CommitCompaction(plan=begin(store, plan), reply=REPLY))


def view(store: Store) -> SessionView:
    """What the session shows now."""
    return store.observe().sessions[0]


def seen_anew(path: Path) -> Observation:
    """What a new process sees in a file."""
    store = Store.open(path)
    try:
        return store.observe()
    finally:
        store.close()


TABLES: Final = ("node", "call", "session", "metadata")


def rows(connection: sqlite3.Connection) -> dict[str, Iterable[tuple[object, ...]]]:
    """Every row of every table."""
    return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}  # noqa: S608  # its own names
