"""Scenarios of retry, edit, fork and undo."""

from tailmark.json_form import unstructure
from tailmark_conformance.scenarios.automatic import WINDOW, pressed
from tailmark_conformance.scenarios.playing import ABSENT, Becomes, Play
from tailmark_conformance.scenarios.words import assistant, summary, tool, user, words


def _compact(play: Play) -> None:
    """Six steps: two turns, and a compaction that summarises the first. The commit is step 5."""
    play.turn(1)
    play.turn(2)
    play.commit(play.begin(), summary("the summary"))


def retry_1(play: Play) -> Becomes:
    """The steering message U2 leaves with the answer and is named."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(user("U2", "and be brief"))
    play.append(tool("T1", "c1"))
    play.append(assistant("A2"))
    play.retry()
    return Becomes(path="$.steps[5].outcome.left", value=[])


def retry_2(play: Play) -> Becomes:
    """The checkpoint stands behind A2, so it leaves with it."""
    _compact(play)
    play.retry()
    return Becomes(path="$.steps[6].change.sessions[0].checkpoint", value="checkpoint:P1")


def retry_3(play: Play) -> Becomes:
    """A1 stays stored, and A2 becomes its sibling."""
    play.turn(1)
    play.retry()
    play.append(assistant("A2"))
    return Becomes(path="$.steps[2].change.nodes_gone", value=["A1"])


def retry_4(play: Play) -> Becomes:
    """U1 is answered where it is."""
    play.append(user("U1"))
    play.retry()
    return Becomes(path="$.steps[1].change.sessions", value=[{**play.view(), "leaf": None}])


def retry_5(play: Play) -> Becomes:
    """c1 is open."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.retry()
    return Becomes(path="$.steps[2].outcome", value={"kind": "done"})


def retry_6(play: Play) -> Becomes:
    """The question alone exceeds the tail budget, and question and history exceed the safe limit."""
    play.start(window=WINDOW)
    play.save(user("U1"), assistant("A1", words(150)), user("U2", words(140)), assistant("A2"))
    play.retry()
    return Becomes(path="$.steps[1].outcome.plan.first_kept", value=None)


def edit_1(play: Play) -> Becomes:
    """U3 takes the place of U2 behind A1."""
    play.turn(1)
    play.turn(2)
    play.edit("U2", user("U3", "a better question"))
    return Becomes(path="$.steps[4].change.nodes[0].parent", value="U1")


def edit_2(play: Play) -> Becomes:
    """The checkpoint stands before U3."""
    _compact(play)
    play.append(user("U3"))
    play.edit("U3", user("U4", "a better question"))
    return Becomes(path="$.steps[7].change.sessions[0].checkpoint", value=None)


def edit_3(play: Play) -> Becomes:
    """The new question exceeds the safe limit."""
    play.start(window=WINDOW)
    play.turn(1)
    play.turn(2)
    play.edit("U2", user("U3", words(300)))
    return Becomes(path="$.steps[4].change.sessions", value=[{**play.view(), "leaf": "A1"}])


def fork_1(play: Play) -> Becomes:
    """Not at a user message, but at the old answer off the branch."""
    play.turn(1)
    play.retry()
    play.fork("U1", "T")
    play.fork("A1", "T")
    return Becomes(path="$.steps[4].outcome", value={"kind": "refused", "code": "unstable"})


def fork_2(play: Play) -> Becomes:
    """A2 stands before the checkpoint."""
    _compact(play)
    play.fork("A2", "T")
    return Becomes(path="$.steps[6].change.sessions[0].checkpoint", value="checkpoint:P1")


def fork_3(play: Play) -> Becomes:
    """T shows the very nodes of S."""
    play.turn(1)
    play.fork("A1", "T")
    return Becomes(path="$.steps[2].change.sessions[0].branch", value=["U1:copy", "A1:copy"])


def fork_4(play: Play) -> Becomes:
    """T counts its own changes."""
    play.turn(1)
    play.fork("A1", "T")
    return Becomes(path="$.steps[2].change.sessions[0].revision", value=2)


def undo_1(play: Play) -> Becomes:
    """Everything is sent again."""
    _compact(play)
    spoken = play.view()["projection"]
    play.undo()
    return Becomes(path="$.steps[6].change.sessions[0].projection", value=spoken)


def undo_2(play: Play) -> Becomes:
    """U3 follows the checkpoint; a fork at A2 is the way."""
    _compact(play)
    play.append(user("U3"))
    play.undo()
    return Becomes(path="$.steps[7].outcome.way", value=ABSENT)


def undo_3(play: Play) -> Becomes:
    """An automatic compaction is undone, and the next answer stores nothing."""
    plan = pressed(play)
    play.commit(plan, summary("the summary"))
    play.undo()
    play.start_answer()
    play.end_answer()
    again = {"kind": "done", "plan": unstructure(plan)}
    return Becomes(path="$.steps[7].outcome", value=again)
