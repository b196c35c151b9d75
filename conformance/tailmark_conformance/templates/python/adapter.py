"""The adapter: turns each request of the wire into calls of the implementation, and its state into an observation.

Run by the suite: ``tailmark check -- python adapter.py``. What has to be changed for another implementation is marked with CHANGE.
"""

from __future__ import annotations

from typing import Any

import wire
from implementation import (
    Checkpoint,
    Conversation,
    Entry,
    NothingToDoError,
    Plan,
    StaleError,
    UnstableError,
    estimate,
    id_of,
)

Json = dict[str, Any]  # Any: plain JSON values

# CHANGE: what you offer. What is not offered is neither asked nor judged; take a line away when you have it.
DECLARATION: Json = {
    "implementation": "a list of messages",
    "capabilities": ["view", "history", "batch"],
    # Costs are compared as they are estimated: it knows no usage that a provider reports.
    "readings": {"measure": "plain"},
    # What it cannot show. It may be left out of observations and plans.
    "hidden": [
        "revision",
        "model",
        "settings",
        "occupancy",
        "metadata",
        "sizes",
        "record",
        "fresh",
    ],
    # Operations that it does not have, and forms of messages that it does not know.
    "lacks": [
        "save",
        "settle",
        "abandon",
        "answers",
        "preview",
        "cancel-compaction",
        "set-model",
        "set-metadata",
        "restart",
        "given-ids",
        "follows",
        "refusals",
        "inline-results",
        "preliminary-results",
        "approvals",
    ],
}


class Adapter:
    """The methods of the wire."""

    def initialize(self, protocol: int, suite: str) -> Json:
        """The first call."""
        return {"protocol": wire.PROTOCOL, "declaration": DECLARATION}

    def reset(self, sessions: list[str], model: Json, store_dir: str, settings: Json | None = None) -> Json:
        """Forget everything, and begin with these empty sessions."""
        tail = (settings or {}).get("tail")
        # CHANGE: make your own, one for each session.
        self.sessions = {name: Conversation(tail) for name in sessions}
        self.plans: dict[tuple[str, str], Plan] = {}
        return {}

    def perform(self, operation: Json) -> Json:
        """Do one operation."""
        # A commit names its session in the plan.
        session = operation.get("session") or operation["plan"]["session"]
        conversation = self.sessions.get(session)
        if conversation is None:
            return {"outcome": {"kind": "refused", "code": "unknown-session"}}
        kind = operation["kind"]
        if kind == "append":
            return {"outcome": self.append(conversation, operation)}
        if kind == "begin-compaction":
            return {"outcome": self.begin(conversation, operation)}
        if kind == "commit-compaction":
            return {"outcome": self.commit(conversation, operation)}
        if kind == "load":
            return {"outcome": {"kind": "done"}}
        raise NotImplementedError(kind)

    def observe(self, fresh: bool = False) -> Json:
        """Show everything: each session, and each stored node."""
        views = [_view(name, conversation) for name, conversation in self.sessions.items()]
        nodes = [node for conversation in self.sessions.values() for node in _nodes(conversation)]
        return {"observation": {"sessions": views, "nodes": nodes}}

    # CHANGE: the operations. Each calls the implementation and says what came of it.

    def append(self, conversation: Conversation, operation: Json) -> Json:
        """Add a message."""
        message = operation["message"]
        conversation.append(message)
        return {"kind": "done", "written": [message["id"]]}

    def begin(self, conversation: Conversation, operation: Json) -> Json:
        """Plan a compaction. The suite writes the summary, and brings the plan back with it."""
        try:
            plan = conversation.begin()
        except NothingToDoError as error:
            return {"kind": "noop", "reason": str(error)}
        except UnstableError:
            calls = list(conversation.open_calls())
            return {"kind": "skipped", "open_calls": calls, "answer_running": False}
        self.plans[operation["session"], operation["plan"]] = plan
        return {"kind": "planned", "plan": _plan(operation, plan, conversation.tail)}

    def commit(self, conversation: Conversation, operation: Json) -> Json:
        """Write the checkpoint, if the reply is a summary."""
        asked, reply = operation["plan"], operation["reply"]
        plan = self.plans.get((asked["session"], asked["id"]))
        if plan is None or reply is None:
            return {"kind": "refused", "code": "plan"}
        summary, fault = _summary(reply)
        if fault:
            return {"kind": "failed", "reason": fault}
        try:
            checkpoint = conversation.commit(plan, summary)
        except StaleError:
            return {"kind": "stale", "leaf": id_of(conversation.entries[-1]), "revision": 0}
        return {"kind": "committed", "checkpoint": checkpoint.id}


def _summary(reply: Json) -> tuple[str, str]:
    """The text of a summary, and what is wrong with the reply, empty if nothing is."""
    if reply["kind"] == "summary-failure":
        return "", "summariser"
    finish, kinds = reply.get("finish", "stop"), {part["kind"] for part in reply["parts"]}
    text = "\n\n".join(part["text"] for part in reply["parts"] if part["kind"] == "text")
    if finish == "length":
        return "", "truncated"
    if finish == "tool-call" or "tool-call" in kinds or ("reasoning" in kinds and "text" not in kinds):
        return "", "not-text"
    return (text, "") if text.strip() else ("", "blank")


# CHANGE: what is shown. The vocabulary has every field: see docs/vocabulary.md of tailmark.


def _plan(operation: Json, plan: Plan, tail: int) -> Json:
    previous, instructions = plan.previous, operation.get("instructions")
    request: Json = {
        "previous_summary": previous.summary if previous else None,
        "messages": plan.excluded,
    }
    if instructions is not None:
        request["instructions"] = instructions
    return {
        "id": operation["plan"],
        "session": operation["session"],
        "leaf": plan.leaf,
        "base": plan.leaf,
        "trigger": "manual",
        "first_kept": plan.first_kept,
        "old_first_kept": previous.first_kept if previous else None,
        "previous_checkpoint": previous.id if previous else None,
        "previous_summary": previous.summary if previous else None,
        "excluded": plan.excluded,
        "refresh": plan.refresh,
        "budgets": {"tail": tail},
        "instructions": instructions,
        "request": request,
    }


def _view(name: str, conversation: Conversation) -> Json:
    branch = [id_of(entry) for entry in conversation.entries]
    latest = conversation.checkpoint()
    return {
        "session": name,
        "leaf": branch[-1] if branch else None,
        "branch": branch,
        "open_calls": [
            {"call": call, "message": message} for call, message in conversation.open_calls().items()
        ],
        "running": None,
        "checkpoint": latest.id if latest else None,
        "projection": [_item(entry) for entry in conversation.request()],
        "budgets": {"tail": conversation.tail},
    }


def _item(entry: Entry) -> Json:
    shown = {"node": id_of(entry), "estimate": estimate(entry)}
    if isinstance(entry, Checkpoint):
        return {**shown, "role": "user", "marking": "context", "digest": wire.digest(entry.summary)}
    return {**shown, "role": entry["role"], "marking": "verbatim", "digest": wire.digest(entry)}


def _nodes(conversation: Conversation) -> list[Json]:
    parents = [None, *(id_of(entry) for entry in conversation.entries)]
    return [
        {"parent": parent, "content": _content(entry), "estimate": estimate(entry)}
        for parent, entry in zip(parents, conversation.entries)
    ]


def _content(entry: Entry) -> Json:
    if isinstance(entry, Checkpoint):
        return {
            "kind": "checkpoint",
            "id": entry.id,
            "summary": entry.summary,
            "first_kept": entry.first_kept,
        }
    return entry


if __name__ == "__main__":
    adapter = Adapter()
    wire.serve(
        {
            "initialize": adapter.initialize,
            "reset": adapter.reset,
            "perform": adapter.perform,
            "observe": adapter.observe,
            "shutdown": dict,
        }
    )
