"""Predicates on requests and automatic compactions where what was remembered, or what is hidden, decides."""

from attrs import evolve

from tailmark.budgets import Settings
from tailmark.declarations import Field
from tailmark.examples import Becomes, changed
from tailmark.identifiers import ClauseId, Tokens
from tailmark.json_form import structure, unstructure
from tailmark.judge import StepVerdict, judge_trace
from tailmark.traces import Trace
from tailmark_conformance.scenarios.automatic import WINDOW, pressed
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, failure, summary, user, words
from tailmark_reference.model.subject import ModelSubject


def _verdicts(trace: Trace, clause: str, step: int) -> list[StepVerdict]:
    return [
        judgement.verdict
        for judgement in judge_trace(trace)
        if judgement.clause == ClauseId(clause) and judgement.step == step
    ]


def _without_plan(trace: Trace, step: int) -> Trace:
    plain = changed(unstructure(trace), Becomes(path=f"$.steps[{step}].outcome", value={"kind": "done"}))
    return structure(plain, Trace)


def _answer_ends(play: Play) -> int:
    """Another answer ends, of which nothing is stored; the step in which it does."""
    play.start_answer()
    play.end_answer()
    return len(play.trace.steps) - 1


def test_a_restart_forgets_the_attempt() -> None:
    """TRG-6: the memory is the process's, so TRG-5A wants a plan behind a restart."""
    play = Play(ModelSubject())
    play.commit(pressed(play), failure())
    again = _answer_ends(play)
    assert _verdicts(play.trace, "TRG-6", again) == [StepVerdict.HOLDS]
    assert _verdicts(play.trace, "TRG-5A", again) == []
    play.restart()
    fresh = _answer_ends(play)
    assert _verdicts(play.trace, "TRG-5A", fresh) == [StepVerdict.HOLDS]
    assert _verdicts(_without_plan(play.trace, fresh), "TRG-5A", fresh) == [StepVerdict.VIOLATED]


def test_other_settings_are_another_state() -> None:
    """TRG-6: branch, model and settings make the state."""
    play = Play(ModelSubject())
    play.commit(pressed(play), failure())
    play.set_settings(Settings(head="other tools"))
    step = len(play.trace.steps) - 1
    assert _verdicts(play.trace, "TRG-5A", step) == [StepVerdict.HOLDS]
    assert _verdicts(_without_plan(play.trace, step), "TRG-5A", step) == [StepVerdict.VIOLATED]


def test_an_undo_is_forgotten_when_the_user_asks() -> None:
    """UNDO-3: behind a manual plan an automatic compaction begins again."""
    play = Play(ModelSubject())
    play.commit(pressed(play), summary("the first turn"))
    play.undo()
    quiet = _answer_ends(play)
    assert _verdicts(play.trace, "UNDO-3", quiet) == [StepVerdict.HOLDS]
    play.begin("P1")
    play.cancel("P1")
    again = _answer_ends(play)
    assert _verdicts(play.trace, "UNDO-3", again) == []
    assert _verdicts(play.trace, "TRG-5A", again) == [StepVerdict.HOLDS]


def test_a_call_is_owned_by_the_process_that_stored_it() -> None:
    """TRG-14B and TRG-14C: before a restart a send is steering, behind it the call is abandoned."""
    play = Play(ModelSubject())
    play.save(user("U1"), assistant("A1", calls=("c1",)))
    play.send(user("U2"))
    assert _verdicts(play.trace, "TRG-14C", 1) == [StepVerdict.HOLDS]
    assert _verdicts(play.trace, "TRG-14B", 1) == []
    play.restart()
    play.send(user("U3"))
    assert _verdicts(play.trace, "TRG-14C", 3) == []
    assert _verdicts(play.trace, "TRG-14B", 3) == [StepVerdict.HOLDS]


def test_sizes_that_are_hidden_are_not_judged() -> None:
    """Where occupancy or budgets cannot be shown, what depends on them stays unjudged, and the rest is judged."""
    play = Play(ModelSubject())
    play.commit(pressed(play), summary("the first turn"))
    for hidden in (Field.OCCUPANCY, Field.BUDGETS, Field.SETTINGS):
        trace = evolve(play.trace, declaration=evolve(play.trace.declaration, hidden=(hidden,)))
        assert _verdicts(trace, "TRG-5A", 3) == [StepVerdict.HIDDEN]
        assert _verdicts(trace, "CHK-3", 3) == [StepVerdict.HOLDS]
        assert StepVerdict.VIOLATED not in {one.verdict for one in judge_trace(trace)}


def test_a_refresh_behind_its_checkpoint_moves_no_place() -> None:
    """TRG-10A goes before BND-5: an oversized turn of the tail stays when the long summary alone is rewritten."""
    play = Play(ModelSubject())
    play.start(window=1000, settings=Settings(tail=Tokens(150)))
    play.save(
        user("U1"),
        assistant("A1", words(100)),
        user("U2"),
        assistant("A2", words(90)),
        user("U3"),
        assistant("A3", words(10)),
    )
    play.commit(play.begin("P1"), summary(words(60)))
    play.set_settings(Settings())
    play.set_model(WINDOW)
    play.begin("P2")
    judgements = judge_trace(play.trace)
    assert [one for one in judgements if one.verdict is StepVerdict.VIOLATED] == []
    assert _verdicts(play.trace, "TRG-10A", len(play.trace.steps) - 1) == [StepVerdict.HOLDS]
