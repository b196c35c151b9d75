"""Scenarios of durable history."""

from tailmark.identifiers import ModelName, NodeId, SessionId, Tokens
from tailmark.json_form import unstructure
from tailmark.operations import SetMetadata
from tailmark.plans import Checkpoint, FinishReason, Trigger
from tailmark.views import StoredNode
from tailmark_conformance.scenarios.playing import Becomes, Play
from tailmark_conformance.scenarios.words import assistant, result, summary, tool, user


def tree_1(play: Play) -> Becomes:
    """A1 becomes a child of U1."""
    play.append(user("U1"))
    play.append(assistant("A1"))
    return Becomes(path="$.steps[1].change.nodes[0].parent", value=None)


def tree_2(play: Play) -> Becomes:
    """The retried answer stays stored."""
    play.turn(1)
    play.retry()
    return Becomes(path="$.steps[2].change.nodes_gone", value=["A1"])


def _compact(play: Play) -> None:
    play.turn(1)
    play.turn(2)
    play.commit(play.begin(), summary("the summary"))


def tree_3(play: Play) -> Becomes:
    """The checkpoint is the one new node."""
    _compact(play)
    return Becomes(path="$.steps[5].change.nodes_gone", value=["U1"])


def tree_4(play: Play) -> Becomes:
    """The summarised turn is shown behind a compaction and a restart."""
    _compact(play)
    play.restart()
    return Becomes(path="$.steps[5].change.sessions[0].branch", value=["U2", "A2", "checkpoint:P1"])


def tree_5(play: Play) -> Becomes:
    """The result of c1 is put into the message that made the call."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.settle("A1", result("c1"))
    return Becomes(path="$.steps[2].change.nodes[0].content.parts[0].text", value="another answer")


def tree_6(play: Play) -> Becomes:
    """The second save finds everything durable."""
    play.save(user("U1"), assistant("A1"))
    play.save(user("U1"), assistant("A1"))
    return Becomes(path="$.steps[1].change.sessions", value=[{**play.view(), "revision": 2}])


def tree_7(play: Play) -> Becomes:
    """The checkpoint in the path is passed over."""
    foreign = Checkpoint(
        id=NodeId("C1"),
        summary="a summary from elsewhere",
        first_kept=NodeId("U1"),
        old_first_kept=None,
        previous=None,
        first_excluded=None,
        last_excluded=None,
        trigger=Trigger.MANUAL,
        model=ModelName("model"),
        refresh=False,
        instructions=None,
        finish=FinishReason.STOP,
        tokens_before=Tokens(10),
        tokens_after=Tokens(5),
    )
    play.save(user("U1"), foreign, assistant("A1"))
    stored = StoredNode(parent=NodeId("U1"), content=foreign, estimate=Tokens(5))
    written = play.trace.steps[0].change.nodes
    nodes = [unstructure(node) for node in (*written, stored)]
    return Becomes(path="$.steps[0].change.nodes", value=nodes)


def tree_8(play: Play) -> Becomes:
    """T shares A1 with S, and stays there when S goes on."""
    play.turn(1)
    play.fork("A1", "T")
    play.append(user("U2"))
    value = [play.view(), {**play.view("T"), "leaf": "U2"}]
    return Becomes(path="$.steps[3].change.sessions", value=value)


def tree_9(play: Play) -> Becomes:
    """A title is no change of the branch."""
    play.append(user("U1"))
    play.perform(SetMetadata(session=SessionId("S"), key="title", value="On trees"))
    return Becomes(path="$.steps[1].change.sessions[0].revision", value=2)


def tree_10(play: Play) -> Becomes:
    """The id U1 is taken."""
    play.append(user("U1"))
    play.append(user("U1", "another question"))
    return Becomes(path="$.steps[1].outcome", value={"kind": "done"})


def tree_11(play: Play) -> Becomes:
    """c1 is settled when its second result comes."""
    play.append(user("U1"))
    play.append(assistant("A1", calls=("c1",)))
    play.append(tool("T1", "c1"))
    play.append(tool("T2", "c1"))
    return Becomes(path="$.steps[3].outcome", value={"kind": "done"})


def tree_12(play: Play) -> Becomes:
    """The second writer did not see A1."""
    play.append(user("U1"))
    play.append(assistant("A1"), follows="U1")
    play.append(assistant("A2"), follows="U1")
    return Becomes(path="$.steps[2].outcome", value={"kind": "done"})
