"""What is stored comes back as it was, and what is projected is what was stored."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from store_builders import (
    MODEL,
    REPLY,
    S1,
    SMALL,
    add,
    answer,
    begin,
    call,
    compact,
    do,
    long,
    needs_room,
    new_store,
    result,
    text,
    user,
    view,
)
from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.identifiers import CallId, NodeId, PartId, PlanId, SessionId
from tailmark.json_form import JsonFormError
from tailmark.messages import AnswerEnd, Message, ResultStatus, Role, Text, ToolCall, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CommitCompaction,
    EndAnswer,
    Load,
    NextRequest,
    Retry,
    Send,
    SetMetadata,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
)
from tailmark.outcomes import Done
from tailmark.plans import Checkpoint, Plan, SummaryAnswer
from tailmark.projections import Marking
from tailmark_reference.estimate import ESTIMATOR
from tailmark_reference.store import bodies
from tailmark_reference.store.store import Store
from vocabulary import TEXTS, values


@given(values(Message))
def test_a_message_comes_back(message: Message) -> None:
    """PROJ-4: with the digest that its content has anywhere."""
    body = bodies.to_body(message)
    assert bodies.to_message(body) == message
    assert json_form.digest_bytes(body.encode()) == json_form.digest(message)


@given(values(Message))
def test_a_projected_message_has_no_preliminary_result(message: Message) -> None:
    """PROJ-4, and its digest is that of what is sent."""
    body = bodies.to_body(message)
    projected = bodies.to_projected(body)
    assert not any(isinstance(part, ToolResult) and part.preliminary for part in projected.parts)
    assert {part.id for part in message.parts} - {part.id for part in projected.parts} == {
        part.id for part in message.parts if isinstance(part, ToolResult) and part.preliminary
    }
    assert bodies.projected_digest(body) == json_form.digest(projected)
    assert ESTIMATOR.message(message) == ESTIMATOR.message(projected)


@given(values(Checkpoint))
def test_a_checkpoint_comes_back(checkpoint: Checkpoint) -> None:
    """CHK-7."""
    body = bodies.to_body(checkpoint)
    assert bodies.to_checkpoint(body) == checkpoint
    assert bodies.to_summary(body) == checkpoint.summary


@given(values(Model), values(Settings))
def test_model_and_settings_come_back(model: Model, settings: Settings) -> None:
    """What a session is sized by survives."""
    assert bodies.to_model(bodies.to_body(model)) == model
    assert bodies.to_settings(bodies.to_body(settings)) == settings


def test_text_that_looks_like_a_field_is_text() -> None:
    """The mark of a preliminary result cannot be forged by what somebody writes."""
    message = user('U1"preliminary":true')
    assert bodies.to_projected(bodies.to_body(message)) == message


@given(st.lists(TEXTS, min_size=3, max_size=3, unique=True), TEXTS)
def test_ids_may_be_any_text(names: list[str], words: str) -> None:
    """Quotes, zero characters and the like: calls are settled all the same, by the store and past its triggers."""
    store = Store.open(Path(":memory:"), connection_factory=_in_memory)
    session, node, called = SessionId(names[0]), NodeId(names[1]), CallId(names[2])
    assert store.add_session(session, MODEL) == Done()
    made = ToolCall(id=PartId("c"), call=called, name=words, input=words)
    other = ToolCall(id=PartId("d"), call=CallId(names[2] + "\0x"), name="", input="")
    message = Message(id=node, role=Role.ASSISTANT, parts=(made, other))
    do(store, Append(session=session, message=message))
    final = ToolResult(id=PartId("r"), call=called, status=ResultStatus.OUTPUT, text=words)
    for one in (evolve(final, preliminary=True), final):
        do(store, Settle(session=session, message=node, result=one))
    do(store, SetMetadata(session=session, key=words, value=words))
    assert store.perform(Abandon(session=session)) == Done(abandoned=(other.call,))
    seen = store.observe()
    assert seen.sessions[0].metadata == {words: words}
    assert seen.sessions[0].open_calls == ()
    content = seen.nodes[0].content
    assert isinstance(content, Message)
    assert content.parts[2] == final
    store.close()


def _in_memory(_: str) -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def test_text_without_a_json_form_is_not_stored(tmp_path: Path) -> None:
    """A lone surrogate raises, and nothing changes."""
    store = new_store(tmp_path / "store.sqlite")
    before = store.observe()
    with pytest.raises(JsonFormError):
        store.perform(Append(session=S1, message=answer("A1", text("\ud800"))))
    with pytest.raises(UnicodeEncodeError):
        store.perform(Append(session=SessionId("\ud800"), message=user("U1")))
    assert store.observe() == before
    store.close()


def test_the_content_of_the_next_request(tmp_path: Path) -> None:
    """PROJ-2, PROJ-9: checkpoint and tail, the same by digest and by content; nothing for an unknown session."""
    store = new_store(tmp_path / "store.sqlite")
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    compact(store)
    add(store, user("U3"), answer("A3", call("a"), result("a", preliminary=True)))
    content, items = store.content(S1), store.projection(S1)
    assert content is not None
    assert items is not None
    checkpoint, messages = content
    assert checkpoint is not None
    assert items[0].marking is Marking.CONTEXT
    assert items[0].digest == json_form.digest(checkpoint.summary)
    assert [item.node for item in items] == [checkpoint.id, "U2", "A2", "U3", "A3"]
    assert [item.digest for item in items[1:]] == [json_form.digest(message) for message in messages]
    assert messages[-1].parts == (call("a"),)
    assert items == view(store).projection
    assert store.content(SessionId("unknown")) is None
    assert store.projection(SessionId("unknown")) is None
    store.close()


def test_a_summary_is_all_text_of_the_answer(tmp_path: Path) -> None:
    """CMT-15: parts of text are joined by an empty line."""
    store = new_store(tmp_path / "store.sqlite")
    add(store, user("U1"), answer("A1"), user("U2"), answer("A2"))
    reply = SummaryAnswer(parts=(text("one"), Text(id=PartId("more"), text="two\0")))
    do(store, CommitCompaction(plan=begin(store), reply=reply))
    content = store.content(S1)
    assert content is not None
    assert content[0] is not None
    assert content[0].summary == "one\n\ntwo\0"
    store.close()


def _steps(folder: Path, turns: int) -> dict[str, int]:
    """How many of SQLite's own steps some questions take behind a compacted history of that many turns."""
    path = folder / f"{turns}.sqlite"
    store = new_store(path)
    for turn in range(turns):
        add(store, user(f"U{turn}"), answer(f"A{turn}"))
    compact(store)
    add(store, user("U"), answer("A", call("a")))
    do(store, SetModel(session=S1, model=SMALL))
    store.close()
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    def counting(uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        connection.set_progress_handler(count, 1)
        return connection

    store = Store.open(path, connection_factory=counting)
    # The audit of a session reads all of it, once.
    do(store, Load(session=S1))
    questions: dict[str, Callable[[], object]] = {
        "projection": lambda: store.projection(S1),
        "append": lambda: do(store, Append(session=S1, message=user("U+"))),
        "abandon": lambda: do(store, Abandon(session=S1)),
        "begin": lambda: do(store, BeginCompaction(session=S1, plan=PlanId("P+"))),
        "start": lambda: do(store, StartAnswer(session=S1)),
        "next": lambda: do(store, NextRequest(session=S1)),
        "end": lambda: do(store, EndAnswer(session=S1, end=AnswerEnd.FINAL)),
        "settings": lambda: do(store, SetSettings(session=S1, settings=Settings(head="other"))),
        "preflight": lambda: plans.append(needs_room(store, Send(session=S1, message=long("U++", 66)))),
        "commit": lambda: do(store, CommitCompaction(plan=plans[0], reply=REPLY)),
        "retry": lambda: do(store, Retry(session=S1)),
        "send": lambda: do(store, Send(session=S1, message=user("U+++"))),
    }
    plans: list[Plan] = []
    steps = {}
    for name, ask in questions.items():
        taken = 0
        ask()
        steps[name] = taken
    store.close()
    return steps


def test_the_work_grows_with_the_tail_and_not_with_the_history(tmp_path: Path) -> None:
    """Projections, writes, answers, plans, requests and their commits read the same few rows behind any history."""
    assert _steps(tmp_path, 10) == _steps(tmp_path, 300)
