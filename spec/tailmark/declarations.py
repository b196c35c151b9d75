"""What an implementation says of itself before it is judged."""

from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import ClauseId, Tokens


class Capability(StrEnum):
    """A group of clauses that an implementation can offer."""

    VIEW = "view"
    HISTORY = "history"
    TREE = "tree"
    COMMIT = "commit"
    CAPACITY = "capacity"
    SERIALISE = "serialise"
    DURABILITY = "durability"
    CHAT = "chat"
    BATCH = "batch"


class RefreshReading(StrEnum):
    """What a refresh does with the previous summary (CHK-6)."""

    REWRITTEN = "rewritten"
    VERBATIM = "verbatim"


class AdvanceReading(StrEnum):
    """What a manual compaction does when the tail budget's boundary stays where it is (TRG-4)."""

    REFRESHES = "refreshes"
    TO_LAST_TURN = "to-last-turn"


class TailReading(StrEnum):
    """Whether a tail is kept at all (BND-1, BND-9)."""

    KEEPS_TURNS = "keeps-turns"
    KEEPS_NOTHING = "keeps-nothing"


class OversizedReading(StrEnum):
    """What automatic and preflight compactions do with a last turn above the tail budget (BND-5)."""

    KEEP_IF_FITS = "keep-if-fits"
    OPEN = "open"


class MeasureReading(StrEnum):
    """Whether the newest usage calibrates the estimates (OCC-15)."""

    CALIBRATED = "calibrated"
    PLAIN = "plain"


class ReasoningReading(StrEnum):
    """Whether replayable reasoning is sent from behind a checkpoint (OCC-10)."""

    SENT = "sent"
    DROPPED = "dropped"


@frozen(kw_only=True)
class Readings:
    """Which of the allowed behaviours the implementation has. The defaults are the reference's."""

    refresh: RefreshReading = RefreshReading.REWRITTEN
    advance: AdvanceReading = AdvanceReading.REFRESHES
    tail: TailReading = TailReading.KEEPS_TURNS
    oversized: OversizedReading = OversizedReading.KEEP_IF_FITS
    measure: MeasureReading = MeasureReading.CALIBRATED
    reasoning: ReasoningReading = ReasoningReading.SENT


@frozen(kw_only=True)
class Parameters:
    """Declared figures of an implementation's estimate and capacity. The defaults are the reference's.

    Of the estimate, in tokens: ``per_message`` and ``per_part`` are added to text, ``per_image`` is what an image costs beyond them. ``tokenizer``: texts are counted by a
    real tokenizer, and OCC-9's floors do not hold. ``reserve_cap`` and ``tail_cap``: the most that reserve and tail budget grow
    to (CAP-3). An automatic compaction is worth it from the safe limit divided by ``worth_divisor`` on (TRG-5).
    """

    per_message: Tokens = Tokens(4)
    per_part: Tokens = Tokens(2)
    per_image: Tokens = Tokens(1000)
    tokenizer: bool = False
    reserve_cap: Tokens = Tokens(32_000)
    tail_cap: Tokens = Tokens(32_000)
    worth_divisor: int = 8


class Lack(StrEnum):
    """Something that the implementation does not have. It is not asked; clauses that only it would reach are `not-declared`.

    The first are operations, by their kinds (`answers` are those around an answer that runs); then follow forms that a message or an operation may take.
    """

    SAVE = "save"
    SETTLE = "settle"
    ABANDON = "abandon"
    ANSWERS = "answers"
    PREVIEW = "preview"
    CANCEL = "cancel-compaction"
    SEND = "send"
    RETRY = "retry"
    EDIT = "edit"
    FORK = "fork"
    UNDO = "undo"
    SET_MODEL = "set-model"
    SET_SETTINGS = "set-settings"
    SET_METADATA = "set-metadata"
    RESTART = "restart"
    GIVEN_IDS = "given-ids"
    """It names its messages itself, so that nothing can be brought a second time."""
    FOLLOWS = "follows"
    """A writer cannot say what it follows (TREE-12)."""
    REFUSALS = "refusals"
    """What would be refused, skipped or stale is the caller's to avoid."""
    INLINE_RESULTS = "inline-results"
    """Results stand in messages of their own alone."""
    JOINT_RESULTS = "joint-results"
    """A `tool` message has one result."""
    INTERRUPTIONS = "interruptions"
    """Behind an open call nothing comes but results: whoever has more to say waits for them."""
    PRELIMINARY_RESULTS = "preliminary-results"
    APPROVALS = "approvals"


class Field(StrEnum):
    """Something observable that an implementation may be unable to show."""

    REVISION = "revision"
    BRANCH = "branch"
    OPEN_CALLS = "open-calls"
    RUNNING = "running"
    CHECKPOINT = "checkpoint"
    PROJECTION = "projection"
    ESTIMATE = "estimate"
    METADATA = "metadata"
    MODEL = "model"
    PLAN = "plan"
    SIZES = "sizes"
    """What a plan says of the projection's size before and after."""
    RECORD = "record"
    """What a checkpoint records besides its summary and its place (CHK-7)."""
    SETTINGS = "settings"
    BUDGETS = "budgets"
    OCCUPANCY = "occupancy"
    DAMAGE = "damage"
    FRESH = "fresh"
    OUTCOME = "outcome"


@frozen(kw_only=True)
class Deviation:
    """A clause that the implementation breaks on purpose, and where its documentation says so."""

    clause: ClauseId
    reason: str
    link: str


@frozen(kw_only=True)
class Declaration:
    """An implementation's own description. ``hidden`` are fields whose content in what it shows means nothing; ``lacks`` is what it is never asked."""

    implementation: str
    capabilities: tuple[Capability, ...]
    readings: Readings = Readings()
    parameters: Parameters = Parameters()
    hidden: tuple[Field, ...] = ()
    lacks: tuple[Lack, ...] = ()
    deviations: tuple[Deviation, ...] = ()
