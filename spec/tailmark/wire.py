"""The wire: how an implementation in another process is driven. JSON-RPC 2.0, one message a line (docs/wire.md).

Parameters and results are values of the vocabulary in their JSON form. An implementation leaves out what it declares as
hidden: `observed` puts something in its place that means nothing.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from attrs import frozen

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.declarations import Declaration, Field
from tailmark.identifiers import SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Outcome
from tailmark.views import Change, Observation

PROTOCOL: Final = 1
"""The version of the protocol. Both sides name theirs in `initialize`, and they must be the same."""

LONGEST_LINE: Final = 64 * 1024 * 1024
"""The most that a line may have, in bytes, its end included."""


@frozen(kw_only=True)
class Initialize:
    """Parameters of ``initialize``: the first call to a process. ``suite`` names who asks, with its version."""

    protocol: int
    suite: str


@frozen(kw_only=True)
class Initialized:
    """Result of ``initialize``."""

    protocol: int
    declaration: Declaration


@frozen(kw_only=True)
class Reset:
    """Parameters of ``reset``: forget everything and start from an empty store with these empty sessions.

    ``store_dir`` is an empty folder for durable state; what stands there outlives the process. Result: `Accepted`.
    """

    sessions: tuple[SessionId, ...]
    model: Model
    settings: Settings = Settings()
    store_dir: str


@frozen(kw_only=True)
class Reopen:
    """Parameters of ``reopen``: a new process goes on with the durable state of a folder that an earlier one had. Result: `Accepted`."""

    store_dir: str


@frozen(kw_only=True)
class Perform:
    """Parameters of ``perform``: do one operation."""

    operation: Operation


@frozen(kw_only=True)
class Performed:
    """Result of ``perform``. Bad input is an outcome, never an error of the wire."""

    outcome: Outcome


@frozen(kw_only=True)
class Observe:
    """Parameters of ``observe``: show everything as it is now. ``fresh``: as a process sees it that opens the durable state now."""

    fresh: bool = False


@frozen(kw_only=True)
class Observed:
    """Result of ``observe``: all of it, or what differs from the last observation that was not ``fresh`` since ``reset`` or ``reopen``."""

    observation: Observation | None = None
    change: Change | None = None


@frozen(kw_only=True)
class Shutdown:
    """Parameters of ``shutdown``: the last call. The process ends behind its answer. Result: `Accepted`."""


@frozen(kw_only=True)
class Accepted:
    """It is done, and there is nothing to say."""


METHODS: Final[Mapping[str, tuple[type, type]]] = {
    "initialize": (Initialize, Initialized),
    "reset": (Reset, Accepted),
    "reopen": (Reopen, Accepted),
    "perform": (Perform, Performed),
    "observe": (Observe, Observed),
    "shutdown": (Shutdown, Accepted),
}
"""Each method with the types of its parameters and of its result."""


def applied(before: Observation, change: Change) -> Observation:
    """The observation that a change leads to from another. What is new stands behind what was there."""
    sessions = {view.session: view for view in before.sessions}
    sessions.update((view.session, view) for view in change.sessions)
    nodes = {node.content.id: node for node in before.nodes}
    nodes.update((node.content.id, node) for node in change.nodes)
    for session in change.sessions_gone:
        sessions.pop(session, None)
    for node in change.nodes_gone:
        nodes.pop(node, None)
    return Observation(
        sessions=tuple(sessions.values()),
        nodes=tuple(nodes.values()),
        store=change.store if change.store is not None else before.store,
    )


_OF_SESSION: Final[Mapping[Field, tuple[str, object]]] = {
    Field.REVISION: ("revision", 0),
    Field.BRANCH: ("branch", []),
    Field.OPEN_CALLS: ("open_calls", []),
    Field.RUNNING: ("running", None),
    Field.CHECKPOINT: ("checkpoint", None),
    Field.PROJECTION: ("projection", []),
    Field.MODEL: ("model", {"name": "hidden"}),
    Field.SETTINGS: ("settings", {}),
    Field.BUDGETS: ("budgets", {}),
    Field.OCCUPANCY: ("occupancy", {"tokens": 0, "added": 0}),
    Field.METADATA: ("metadata", {}),
}
"""What stands in a view, in JSON, where an implementation that cannot show a field leaves it out."""

MAY_BE_HIDDEN: Final = frozenset(name for name, _ in _OF_SESSION.values())
"""The fields of a view that may be left out."""


def observed(plain: object, hidden: Collection[Field]) -> Observed:
    """The result of ``observe`` from its JSON, in which hidden fields may be left out. Raises `JsonFormError`."""
    if hidden and isinstance(plain, Mapping):
        plain = {
            name: _filled(part, hidden) if name in ("observation", "change") else part
            for name, part in plain.items()
        }
    result = json_form.structure(plain, Observed)
    if (result.observation is None) == (result.change is None):
        raise json_form.JsonFormError(
            (json_form.Problem(path="$", text="expected either observation or change"),)
        )
    return result


def _filled(part: object, hidden: Collection[Field]) -> object:
    in_view = dict(_OF_SESSION[field] for field in hidden if field in _OF_SESSION)
    in_item: Mapping[str, object] = {"estimate": 0} if Field.ESTIMATE in hidden else {}

    def view(value: object) -> object:
        return _with_each(_with(value, in_view), "projection", lambda item: _with(item, in_item))

    return _with_each(_with_each(part, "sessions", view), "nodes", lambda node: _with(node, in_item))


def _with(value: object, defaults: Mapping[str, object]) -> object:
    return {**defaults, **value} if isinstance(value, dict) else value


def _with_each(value: object, name: str, change: Callable[[object], object]) -> object:
    # What has another form stays as it is: reading it says what is wrong.
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        return value
    return {**value, name: [change(one) for one in value[name]]}
