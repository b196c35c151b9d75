"""Messages: what users, models and tools said, as it is stored.

A message is an ordered list of parts. Tool results may stand in the assistant message that made the
call (the style of user interfaces) or in messages of the role ``tool`` (the style of providers); both
may be mixed on one branch.
"""

from enum import StrEnum
from typing import ClassVar, TypeAlias

from attrs import frozen

from tailmark.identifiers import CallId, ModelName, NodeId, PartId, Tokens


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ResultStatus(StrEnum):
    """How a tool call ended."""

    OUTPUT = "output"
    ERROR = "error"
    DENIED = "denied"
    """The user refused the call."""
    ABANDONED = "abandoned"
    """Nobody will answer the call any more: the answer was ended or its process died."""


class AnswerEnd(StrEnum):
    """How an answer ended."""

    FINAL = "final"
    FAILED = "failed"
    ABORTED = "aborted"


class UsageScope(StrEnum):
    """What a provider's usage figure speaks of."""

    LAST_REQUEST = "last-request"
    SUM = "sum"
    """Summed over several requests: a bill, not an occupancy."""


@frozen(kw_only=True)
class Text:
    """Plain text."""

    kind: ClassVar[str] = "text"
    id: PartId
    text: str


@frozen(kw_only=True)
class Reasoning:
    """What the model thought. ``replayable``: the provider takes it back in a later request."""

    kind: ClassVar[str] = "reasoning"
    id: PartId
    text: str
    replayable: bool = False


@frozen(kw_only=True)
class ToolCall:
    """A request to run a tool. ``input`` is the text of the arguments exactly as the model wrote them."""

    kind: ClassVar[str] = "tool-call"
    id: PartId
    call: CallId
    name: str
    input: str


@frozen(kw_only=True)
class ToolResult:
    """The answer to a call. A ``preliminary`` one settles nothing, is replaced in place and is never projected."""

    kind: ClassVar[str] = "tool-result"
    id: PartId
    call: CallId
    status: ResultStatus
    text: str
    preliminary: bool = False


@frozen(kw_only=True)
class ApprovalRequest:
    """Asks the user to allow a call. It is pending if and only if that call is open."""

    kind: ClassVar[str] = "approval-request"
    id: PartId
    call: CallId


@frozen(kw_only=True)
class Image:
    """An image. ``data`` is its content in base64; empty where it is stored elsewhere."""

    kind: ClassVar[str] = "image"
    id: PartId
    name: str
    media_type: str
    data: str = ""


@frozen(kw_only=True)
class File:
    """An attached file other than an image. ``data`` as in `Image`."""

    kind: ClassVar[str] = "file"
    id: PartId
    name: str
    media_type: str
    data: str = ""


@frozen(kw_only=True)
class Reference:
    """A bibliographic item. ``item_key``, ``title`` and ``citation`` are what must survive (SER-6)."""

    kind: ClassVar[str] = "reference"
    id: PartId
    item_key: str
    title: str
    citation: str


@frozen(kw_only=True)
class PdfPage:
    """A page of a PDF attachment. ``page`` is 1 to ``pages``."""

    kind: ClassVar[str] = "pdf-page"
    id: PartId
    attachment: str
    page: int
    pages: int


@frozen(kw_only=True)
class EpubLocation:
    """A place in an EPUB: section index from 0, href, and canonical fragment identifier."""

    kind: ClassVar[str] = "epub-location"
    id: PartId
    section_index: int
    href: str
    cfi: str


@frozen(kw_only=True)
class Annotation:
    """A mark in an attachment. ``page`` is the page's label."""

    kind: ClassVar[str] = "annotation"
    id: PartId
    annotation_key: str
    text: str
    comment: str
    page: str
    parent_item_key: str


@frozen(kw_only=True)
class Collection:
    """A collection of items."""

    kind: ClassVar[str] = "collection"
    id: PartId
    collection_id: str
    label: str


@frozen(kw_only=True)
class Tag:
    """A tag on items."""

    kind: ClassVar[str] = "tag"
    id: PartId
    tag_id: str
    label: str


Part: TypeAlias = (
    Text
    | Reasoning
    | ToolCall
    | ToolResult
    | ApprovalRequest
    | Image
    | File
    | Reference
    | PdfPage
    | EpubLocation
    | Annotation
    | Collection
    | Tag
)


@frozen(kw_only=True)
class Usage:
    """What the provider reported for an answer, in its own tokens.

    ``input`` includes the cached part. ``scope`` says whether the figures are of the last request or a sum.
    """

    input: Tokens
    cached: Tokens = Tokens(0)
    output: Tokens = Tokens(0)
    reasoning_output: Tokens = Tokens(0)
    scope: UsageScope = UsageScope.LAST_REQUEST
    model: ModelName = ModelName("")
    ended_normally: bool = True


@frozen(kw_only=True)
class Message:
    """A message as it is stored.

    An assistant message also records how its answer ended (``end``), the leaf that its last request was
    built on (``built_on``) and that request's usage.
    """

    kind: ClassVar[str] = "message"
    id: NodeId
    role: Role
    parts: tuple[Part, ...]
    end: AnswerEnd | None = None
    built_on: NodeId | None = None
    usage: Usage | None = None
