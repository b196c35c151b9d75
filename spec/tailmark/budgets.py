"""Sizes: the model's window, what is set for a session, the budgets that follow, and how full the window is.

Everything here is in tokens. Estimates are the implementation's own; `Occupancy` brings them to the
provider's measure.
"""

from enum import StrEnum

from attrs import frozen

from tailmark.identifiers import ModelName, NodeId, Tokens


@frozen(kw_only=True)
class Model:
    """The active model of a session: its context window, 16 or more, and the most it puts out, 1 or more. The defaults are those of a large model."""

    name: ModelName
    window: Tokens = Tokens(1_000_000)
    max_output: Tokens = Tokens(64_000)


@frozen(kw_only=True)
class Settings:
    """What a user sets for a session.

    ``automatic`` switches automatic compactions (TRG-16). ``overhead`` is what instructions and tool schemas cost, and
    ``head`` stands for their bytes: it changes when they do (CACHE-1). ``reserve``, ``threshold`` and ``tail`` are absolute
    figures instead of those that follow from the model; ``None`` leaves that to the implementation.
    """

    automatic: bool = True
    overhead: Tokens = Tokens(0)
    head: str = ""
    reserve: Tokens | None = None
    threshold: Tokens | None = None
    tail: Tokens | None = None


class SettingName(StrEnum):
    """A figure of a model or of settings."""

    WINDOW = "window"
    MAX_OUTPUT = "max-output"
    OVERHEAD = "overhead"
    RESERVE = "reserve"
    THRESHOLD = "threshold"
    TAIL = "tail"


@frozen(kw_only=True)
class WrongSetting:
    """A figure that cannot be, or contradicts the others (CAP-7)."""

    setting: SettingName
    figure: Tokens


@frozen(kw_only=True)
class Budgets:
    """What a request may hold and what a compaction aims at (CAP).

    ``safe`` is the safe input limit, ``window - reserve``. From ``threshold`` on an automatic compaction is tried. ``tail`` is the
    most that is kept verbatim, ``None`` if that is unbounded; ``summary`` the most that a summary may cost. ``margin`` is how far below the
    threshold a compaction lands; 0 says that ``overhead`` leaves no room, and automatic compactions are off. ``scaled`` names
    the settings that do not fit this model and are replaced by what follows from it.

    An implementation without the capability `capacity` has no such figures but ``tail``, and leaves the others 0.
    """

    window: Tokens = Tokens(0)
    reserve: Tokens = Tokens(0)
    safe: Tokens = Tokens(0)
    threshold: Tokens = Tokens(0)
    margin: Tokens = Tokens(0)
    tail: Tokens | None = None
    summary: Tokens = Tokens(0)
    overhead: Tokens = Tokens(0)
    scaled: tuple[SettingName, ...] = ()


@frozen(kw_only=True)
class Occupancy:
    """How full the window is with the projection of a branch (OCC).

    ``base`` is the assistant message whose usage is used, ``figure`` what that says: input, and output as far as it is sent
    again. ``covered`` is our estimate of what the figure covers, overhead included. ``added`` is our estimate of the rest; without a base that is
    overhead and projection, and ``figure`` and ``covered`` are 0. ``tokens`` is the measure of all.

    The ratio is ``figure / covered``, at least 1, and 1 without a base or under the reading `plain` (OCC-15).
    """

    tokens: Tokens
    base: NodeId | None = None
    figure: Tokens = Tokens(0)
    covered: Tokens = Tokens(0)
    added: Tokens
