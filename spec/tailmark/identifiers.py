"""The names of things. Each is text or a whole number; the types keep them apart."""

from typing import NewType

NodeId = NewType("NodeId", str)
"""A stored message or checkpoint. Unique in a store, never used again (TREE-10)."""

SessionId = NewType("SessionId", str)
"""A session: one leaf and one revision over the shared tree."""

CallId = NewType("CallId", str)
"""A tool call, as the provider named it. May return once it is settled (TREE-11)."""

PartId = NewType("PartId", str)
"""A part of a message. Unique within its message."""

PlanId = NewType("PlanId", str)
"""One attempt at a compaction, named by whoever begins it."""

ClauseId = NewType("ClauseId", str)
"""A clause of the specification, such as ``TREE-1``."""

ModelName = NewType("ModelName", str)
"""A language model, as the session's settings name it."""

Revision = NewType("Revision", int)
"""How often a session's branch has changed, from 0 (CMT-6)."""

Tokens = NewType("Tokens", int)
"""A size in tokens, 0 or more. Whose tokens is said where it is used."""
