"""Stories and drawings say everything, whatever the trace."""

from random import Random

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tailmark.budgets import Model
from tailmark.identifiers import ModelName, NodeId, SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.rules.scene import empty_scene
from tailmark.traces import Trace
from tailmark.views import Change
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.walks import Walk
from tailmark_conformance.recording import Recorder
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.story import quoted, tell_operation, tell_outcome
from tailmark_conformance.reports.words import story_lines
from tailmark_conformance.scenarios.playing import Play
from tailmark_conformance.scenarios.words import assistant, summary, user
from tailmark_reference.model.subject import ModelSubject


def _trace(random: Random, steps: int) -> Trace:
    recorder = Recorder(ModelSubject(), sessions=(SessionId("S1"),), model=Model(name=ModelName("m")))
    known = Known(recorder.start)
    walk = Walk(known, random)
    for _ in range(steps):
        known.feed(recorder.perform(walk.next()))
    return recorder.trace


@settings(max_examples=30)
@given(random=st.randoms(use_true_random=False))
def test_every_step_is_told_on_lines_of_its_own(random: Random) -> None:
    """Two lines or more a step, none of them with a line break in it."""
    trace = _trace(random, 40)
    lines = list(story_lines(trace))
    assert all("\n" not in line and "\r" not in line for line in lines)
    assert sum(line.startswith("     → ") for line in lines) == len(trace.steps)


@settings(max_examples=30)
@given(random=st.randoms(use_true_random=False))
def test_every_node_is_drawn_once(random: Random) -> None:
    """Each node begins one line, each session with a leaf stands at one, the others are said to be empty."""
    scene = scene_of(_trace(random, 40))
    lines = draw_tree(scene).splitlines()
    words = [line.lstrip("│├└─ ◆").split("  ")[0] for line in lines if not line.startswith("(")]
    assert sorted(words) == sorted(node.content.id for node in scene.nodes())
    text = "\n".join(lines)
    for session in scene.sessions():
        assert f"◄ {session}, revision" in text or f"({session} is empty)" in text


def test_all_kinds_are_told() -> None:
    """Many traces together hold every operation but damage, which no walk draws, and every outcome of a sound history; each has words."""
    operations: set[type[Operation]] = set()
    outcomes: set[type[Outcome]] = set()
    for number in range(40):
        for step in _trace(Random(number), 60).steps:
            operations.add(type(step.operation))
            outcomes.add(type(step.outcome))
            assert tell_operation(step.operation)
            assert tell_outcome(step.outcome)
    assert len(operations) == 21
    assert len(outcomes) == 12


def test_a_tree_with_forks_and_a_checkpoint() -> None:
    """A drawing, literally."""
    play = Play(ModelSubject())
    for number in (1, 2, 3):
        play.turn(number)
    play.commit(play.begin(), summary("the first two turns"))
    play.append(user("U4"))
    play.fork("A2", "T")
    play.append(assistant("B2", "an answer on the fork"), session="T")
    assert draw_tree(scene_of(play.trace)).splitlines() == [
        "U1  user, 8 tokens",
        "A1  assistant, 8 tokens",
        "U2  user, 8 tokens",
        "A2  assistant, 8 tokens",
        "├─ U3  user, 8 tokens  ╌╌ verbatim from here after checkpoint:P1",
        "│  A3  assistant, 8 tokens",
        "│  ◆ checkpoint:P1  'the first two turns', 11 tokens",
        "│  U4  user, 8 tokens  ◄ S, revision 8, after checkpoint:P1",
        "└─ B2  assistant, 12 tokens  ◄ T, revision 1",
    ]


def test_what_is_no_tree_is_drawn_all_the_same() -> None:
    """A missing parent is named, and a leaf that is not stored."""
    play = Play(ModelSubject())
    play.append(user("U1"))
    (node,) = play.trace.steps[0].change.nodes
    (view,) = play.trace.steps[0].change.sessions
    scene = empty_scene().after(
        Change(nodes=(evolve(node, parent=NodeId("gone")),), sessions=(evolve(view, leaf=NodeId("nowhere")),))
    )
    text = draw_tree(scene)
    assert "(its parent gone is not stored)" in text
    assert "S has the leaf nowhere, which is not stored" in text


def test_long_texts_are_cut() -> None:
    """And say so."""
    assert quoted("x" * 100) == f"'{'x' * 40}…' (100 characters)"
    assert quoted("a\nb") == r"'a\nb'"
