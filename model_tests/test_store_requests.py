"""Requests of the store whose compaction does not help: nothing is written, and the answer says why."""

from pathlib import Path

import pytest

from store_builders import REPLY, S1, add, long, needs_room, new_store, on_small_model
from tailmark.operations import CommitCompaction, Retry
from tailmark.outcomes import Failed, FailureReason, LargePart, TooLarge


@pytest.mark.parametrize(
    ("first", "question", "reason"),
    [
        (7, 90, FailureReason.NOT_SMALLER),  # the summary costs 10
        (12, 88, FailureReason.STILL_TOO_LARGE),  # 98 of 96 are left
    ],
)
def test_a_compaction_that_does_not_help(
    tmp_path: Path, first: int, question: int, reason: FailureReason
) -> None:
    """TRG-9: a checkpoint that makes the request no smaller, or not small enough, is not written."""
    store = new_store(tmp_path / "store.sqlite")
    add(store, long("U1", first))
    on_small_model(store, long("U2", question))
    plan = needs_room(store, Retry(session=S1))
    assert plan.first_kept == "U2"
    before = store.observe()
    outcome = store.perform(CommitCompaction(plan=plan, reply=REPLY))
    assert isinstance(outcome, TooLarge)
    assert (outcome.part, outcome.attempt) == (LargePart.REQUEST, Failed(reason=reason))
    assert (outcome.projection, outcome.limit) == (first + question, 96)
    assert store.observe() == before
    store.close()
