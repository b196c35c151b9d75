"""Items of a projection: what the next request carries."""

from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import NodeId, Tokens
from tailmark.messages import Role


class Marking(StrEnum):
    """How an item of a projection is presented to the model."""

    VERBATIM = "verbatim"
    CONTEXT = "context"
    """Marked as second-hand context, not as anybody's instruction (PROJ-9)."""
    UNMARKED = "unmarked"
    """A summary that looks like an ordinary message."""


@frozen(kw_only=True)
class ProjectionItem:
    """One item of the next request.

    ``node`` is the message, or the checkpoint whose summary this is, or ``None`` for something that is
    not stored. ``digest`` is `tailmark.json_form.digest` of what is sent: of the message without its
    preliminary results, or of the summary's text. ``estimate``: what it costs, in tokens of the implementation's own.
    """

    node: NodeId | None
    role: Role
    marking: Marking
    digest: str
    estimate: Tokens
