"""Draws the tree as plain text: nodes from the root down, sessions at their leaves, places of checkpoints.

A line is a node. A chain stands at one indent; where a node has several children each of them starts an
indented chain of its own.
"""

from collections.abc import Iterable

from tailmark.identifiers import NodeId
from tailmark.messages import Message, ToolCall, ToolResult
from tailmark.plans import Checkpoint
from tailmark.rules.scene import Scene, checkpoint_of, empty_scene
from tailmark.traces import Trace
from tailmark.views import StoredNode
from tailmark_conformance.reports.story import quoted, role_name

MOST_NODES = 400
"""Of a larger tree only so many nodes are drawn."""


def scene_of(trace: Trace) -> Scene:
    """The state at the end of a trace."""
    scene = empty_scene().after(trace.start)
    for step in trace.steps:
        scene = scene.after(step.change)
    return scene


def draw_tree(scene: Scene) -> str:
    """All stored nodes and all sessions."""
    children: dict[NodeId | None, list[StoredNode]] = {}
    stored = list(scene.nodes())
    known = {node.content.id for node in stored}
    for node in stored:
        # A node whose parent is not stored starts a tree of its own.
        parent = node.parent if node.parent in known else None
        children.setdefault(parent, []).append(node)
    marks = _marks(scene)
    lines: list[str] = []
    # A stack and no recursion: histories are long. Each entry: node, what stands before it, before its children.
    stack = [(node, "", "") for node in reversed(children.get(None, []))]
    drawn: set[NodeId] = set()
    while stack and len(drawn) < MOST_NODES:
        node, before, behind = stack.pop()
        if node.content.id in drawn:
            continue
        drawn.add(node.content.id)
        lines.append(f"{before}{_line(node, known)}{marks.get(node.content.id, '')}")
        below = children.get(node.content.id, [])
        if len(below) == 1:
            stack.append((below[0], behind, behind))
            continue
        for child in reversed(below):
            last = child is below[-1]
            stack.append(
                (child, f"{behind}{'└─ ' if last else '├─ '}", f"{behind}{'   ' if last else '│  '}")
            )
    if len(drawn) < len(stored):
        lines.append(f"… {len(stored) - len(drawn)} more nodes, or nodes on a cycle")
    empty = [session for session in scene.sessions() if scene.leaf(session) not in known]
    lines.extend(_empty(scene, empty))
    return "\n".join(lines)


def _empty(scene: Scene, sessions: Iterable[str]) -> Iterable[str]:
    for session in scene.sessions():
        if session in sessions:
            leaf = scene.leaf(session)
            yield (
                f"({session} is empty)"
                if leaf is None
                else f"({session} has the leaf {leaf}, which is not stored)"
            )


def _line(node: StoredNode, known: set[NodeId]) -> str:
    missing = f" (its parent {node.parent} is not stored)" if node.parent not in known | {None} else ""
    content = node.content
    if isinstance(content, Checkpoint):
        return f"◆ {content.id}  {quoted(content.summary)}, {node.estimate} tokens{missing}"
    return f"{content.id}  {role_name(content)}{_calls(content)}, {node.estimate} tokens{missing}"


def _calls(message: Message) -> str:
    made = [part.call for part in message.parts if isinstance(part, ToolCall)]
    settled = [part for part in message.parts if isinstance(part, ToolResult)]
    calls = f", calls {' '.join(made)}" if made else ""
    results = " ".join(f"{part.call}{' (preliminary)' if part.preliminary else ''}" for part in settled)
    return f"{calls}, result of {results}" if results else calls


def _marks(scene: Scene) -> dict[NodeId, str]:
    marks: dict[NodeId, str] = {}
    for node in scene.nodes():
        content = node.content
        if isinstance(content, Checkpoint) and content.first_kept is not None:
            kept = content.first_kept
            marks[kept] = f"{marks.get(kept, '')}  ╌╌ verbatim from here after {content.id}"
    for session in scene.sessions():
        leaf = scene.leaf(session)
        if leaf is None:
            continue
        checkpoint = scene.checkpoint(session)
        after = f", after {checkpoint_of(checkpoint).id}" if checkpoint is not None else ""
        running = ", an answer runs" if scene.running(session) is not None else ""
        text = f"  ◄ {session}, revision {scene.revision(session)}{after}{running}"
        marks[leaf] = f"{marks.get(leaf, '')}{text}"
    return marks
