"""The examples of the source, literally, on the model and on the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailmark.budgets import Settings
from tailmark.identifiers import NodeId, SessionId
from tailmark.messages import AnswerEnd
from tailmark.outcomes import Committed, Done, Failed, FailureReason, Noop, NoopReason, Sent, TooLarge
from tailmark.plans import Checkpoint, Trigger
from tailmark.subjects import Subject
from tailmark.views import SessionView, StoredNode
from tailmark_conformance.scenarios.automatic import pressed
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.requests import with_nothing_kept
from tailmark_conformance.scenarios.words import assistant, summary, user, words
from tailmark_reference.model.subject import ModelSubject
from tailmark_reference.store.subject import SqliteSubject


@pytest.fixture(params=["model", "store"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """A subject in a scenario's hands."""
    subject: Subject = ModelSubject() if request.param == "model" else SqliteSubject(tmp_path)
    yield Play(subject)
    subject.close()


def _session(play: Play, session: str = "S") -> SessionView:
    return next(view for view in play.recorder.observation.sessions if view.session == SessionId(session))


def _node(play: Play, node: NodeId) -> StoredNode:
    return next(stored for stored in play.recorder.observation.nodes if stored.content.id == node)


def _request(play: Play, session: str = "S") -> list[str | None]:
    return [item.node for item in _session(play, session).projection]


def _compact(play: Play, plan: str = "C1", text: str = "summary 1") -> NodeId:
    outcome = play.commit(play.begin(plan), summary(text))
    assert isinstance(outcome, Committed)
    return outcome.checkpoint


def _three_turns(play: Play) -> NodeId:
    """U1 → A1 → U2 → A2 → U3 → A3 → C1."""
    for number in (1, 2, 3):
        play.turn(number)
    return _compact(play)


def test_three_turns_become_a_summary_and_the_last_turn(play: Play) -> None:
    """C1 follows A3 and keeps U3; the next request is summary, U3, A3, and later U4."""
    checkpoint = _three_turns(play)
    stored = _node(play, checkpoint)
    assert stored.parent == "A3"
    assert isinstance(stored.content, Checkpoint)
    assert stored.content.first_kept == "U3"
    assert _session(play).leaf == checkpoint
    assert _request(play) == [checkpoint, "U3", "A3"]
    play.append(user("U4"))
    assert _request(play) == [checkpoint, "U3", "A3", "U4"]


def test_the_whole_chain_stays_readable(play: Play) -> None:
    """The durable history has every message and the checkpoint as a mark."""
    checkpoint = _three_turns(play)
    play.append(user("U4"))
    assert _session(play).branch == ("U1", "A1", "U2", "A2", "U3", "A3", checkpoint, "U4")


def test_a_fork_from_an_earlier_answer_has_no_checkpoint(play: Play) -> None:
    """A2 stands before C1, so a fork from there sees every message and no summary."""
    _three_turns(play)
    assert play.fork("A2", "T") == Done()
    assert _request(play, "T") == ["U1", "A1", "U2", "A2"]
    assert _session(play, "T").checkpoint is None


def test_a_fork_from_an_answer_behind_the_checkpoint_has_it(play: Play) -> None:
    """A4 stands behind C1, so a fork from there has C1 among its ancestors, and nothing is copied."""
    checkpoint = _three_turns(play)
    play.append(user("U4"))
    play.append(assistant("A4"))
    nodes = play.recorder.observation.nodes
    assert play.fork("A4", "T") == Done()
    assert _request(play, "T") == [checkpoint, "U3", "A3", "U4", "A4"]
    assert play.recorder.observation.nodes == nodes


def test_of_two_short_turns_the_first_is_summarised(play: Play) -> None:
    """Two turns suffice: the first is summarised, the second stays whole."""
    play.turn(1)
    play.turn(2)
    checkpoint = _compact(play)
    assert _request(play) == [checkpoint, "U2", "A2"]


def test_one_turn_is_a_successful_noop(play: Play) -> None:
    """A session of one turn has nothing to compact, and that is no error."""
    play.turn(1)
    assert play.ask() == Noop(reason=NoopReason.TOO_FEW_TURNS)


def test_a_checkpoint_as_leaf_is_a_successful_noop(play: Play) -> None:
    """The latest checkpoint is the leaf: nothing has come since."""
    _three_turns(play)
    assert play.ask("C2") == Noop(reason=NoopReason.CHECKPOINT_IS_LEAF)


def test_summary_1_and_new_history_become_summary_2(play: Play) -> None:
    """The second summary is made from the first and what became old since; the request carries it alone."""
    play.start(tail_budget=40)
    for number in (1, 2, 3):
        play.turn(number)
    _compact(play)
    for number in (4, 5):
        play.turn(number)
    plan = play.begin("C2")
    assert plan.request is not None
    assert plan.request.previous_summary == "summary 1"
    assert plan.request.messages == plan.excluded
    first = next(n for n in play.recorder.observation.nodes if n.content.id == "checkpoint:C1").content
    assert isinstance(first, Checkpoint)
    assert plan.excluded[0] == first.first_kept
    outcome = play.commit(plan, summary("summary 2"))
    assert isinstance(outcome, Committed)
    items = _session(play).projection
    assert [item.node for item in items if item.node and item.node.startswith("checkpoint")] == [
        outcome.checkpoint
    ]


# Requests, in a window of 400 tokens: the safe limit is 300, the threshold 282 ----------------------------


def test_the_safe_limit_is_the_window_less_the_reserve(play: Play) -> None:
    """Safe input limit = context window - reserved tokens."""
    play.start(window=400)
    budgets = _session(play).budgets
    assert budgets.safe == budgets.window - budgets.reserve
    assert 0 < budgets.threshold <= budgets.safe


def test_what_stays_too_large_is_not_sent_and_the_draft_is_the_callers(play: Play) -> None:
    """If the request is too large even after the compaction, nothing goes to the provider and the draft is kept."""
    plan = play.planned(with_nothing_kept(play))
    before = play.recorder.observation
    outcome = play.commit(plan, summary(words(200)))
    assert isinstance(outcome, TooLarge)
    assert outcome.attempt == Failed(reason=FailureReason.ABOVE_BUDGET)
    assert play.recorder.observation == before


def test_a_request_waits_for_its_compaction_and_is_sent_with_it(play: Play) -> None:
    """Preflight: summary and draft fit where history and draft did not."""
    outcome = play.commit(play.planned(with_nothing_kept(play)), summary("the turn"))
    assert isinstance(outcome, Sent)
    assert [item.node for item in outcome.request.items] == list(outcome.written)
    assert outcome.written[1] == "U2"


def test_an_edit_goes_through_preflight_again(play: Play) -> None:
    """The old question leaves the branch only when the new one is sent, behind the checkpoint that it needs."""
    play.start(window=400)
    play.save(user("U1"), assistant("A1", words(150)), user("U2"), assistant("A2"))
    plan = play.planned(play.edit("U2", user("U3", words(140))))
    assert _session(play).leaf == "A2"
    outcome = play.commit(plan, summary("the turn"))
    assert isinstance(outcome, Sent)
    checkpoint, message = outcome.written
    assert message == "U3"
    assert _session(play).branch == ("U1", "A1", checkpoint, "U3")


def test_an_automatic_compaction_begins_when_a_turn_ends(play: Play) -> None:
    """Behind an answer that reaches the threshold; while it is off or below, only a request by hand compacts."""
    plan = pressed(play)
    assert plan.trigger is Trigger.AUTOMATIC
    assert plan.first_kept == "U2"
    play.start(window=400, settings=Settings(automatic=False))
    play.save(user("U1"), assistant("A1", words(196)), user("U2"))
    play.start_answer()
    play.append(assistant("A2", words(62)))
    assert play.end_answer() == Done()
    assert play.begin().trigger is Trigger.MANUAL


def test_a_providers_overflow_is_no_reason_to_compact(play: Play) -> None:
    """It is reported; nothing is compacted and sent again by itself."""
    play.start(window=400)
    play.save(user("U1"), assistant("A1", words(196)), user("U2", words(62)))
    play.start_answer()
    before = play.recorder.observation
    assert play.end_answer(AnswerEnd.FAILED) == Done()
    assert play.recorder.observation.nodes == before.nodes
