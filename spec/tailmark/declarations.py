"""What an implementation says of itself before it is judged."""

from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import ClauseId


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


@frozen(kw_only=True)
class Readings:
    """Which of the allowed behaviours the implementation has. The defaults are the reference's."""

    refresh: RefreshReading = RefreshReading.REWRITTEN
    advance: AdvanceReading = AdvanceReading.REFRESHES
    tail: TailReading = TailReading.KEEPS_TURNS


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
    """An implementation's own description. ``hidden`` are fields whose content in views means nothing."""

    implementation: str
    capabilities: tuple[Capability, ...]
    readings: Readings = Readings()
    hidden: tuple[Field, ...] = ()
    deviations: tuple[Deviation, ...] = ()
