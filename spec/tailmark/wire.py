"""The wire: how an implementation in another process is driven. JSON-RPC 2.0, one message a line (docs/wire.md).

Parameters and results are values of the vocabulary in their JSON form. An implementation leaves out what it declares as
hidden: `result_of` puts something in its place that means nothing.
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
from tailmark.plans import Checkpoint, Plan
from tailmark.projections import ProjectionItem
from tailmark.views import Change, Observation, SessionView, StoredNode

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

_OF_PLAN: Final[Mapping[Field, Mapping[str, object]]] = {
    Field.REVISION: {"revision": 0},
    Field.MODEL: {"model": {"name": "hidden"}},
    Field.BUDGETS: {"budgets": {}},
    Field.OCCUPANCY: {"occupancy": {"tokens": 0, "added": 0}},
    Field.SIZES: {"tokens_before": 0, "tokens_after": 0},
}
"""The same for a plan."""

_WHOLE_PLAN: Final[Mapping[str, object]] = {
    **{name: value for part in _OF_PLAN.values() for name, value in part.items()},
    "leaf": "hidden",
    "base": "hidden",
    "trigger": "manual",
    "first_kept": None,
    "old_first_kept": None,
    "previous_checkpoint": None,
    "previous_summary": None,
    "excluded": [],
    "refresh": False,
    "instructions": None,
    "request": {"previous_summary": None, "messages": []},
}
"""The same for a plan of which its id and session are shown alone."""

_RECORD: Final[Mapping[str, object]] = {
    "old_first_kept": None,
    "previous": None,
    "first_excluded": None,
    "last_excluded": None,
    "trigger": "manual",
    "model": "hidden",
    "refresh": False,
    "instructions": None,
    "finish": None,
    "tokens_before": 0,
    "tokens_after": 0,
}
"""The same for a checkpoint of which its summary and place are shown alone."""

MAY_BE_HIDDEN: Final[Mapping[type, frozenset[str]]] = {
    SessionView: frozenset(name for name, _ in _OF_SESSION.values()),
    ProjectionItem: frozenset({"estimate"}),
    StoredNode: frozenset({"estimate"}),
    Plan: frozenset(_WHOLE_PLAN),
    Checkpoint: frozenset(_RECORD),
}
"""The fields that may be left out, by their classes."""


def result_of(method: str, plain: object, hidden: Collection[Field]) -> object:
    """A method's result from its JSON. Hidden fields may be left out, and mean nothing if they are not. Raises `JsonFormError`."""
    if hidden and isinstance(plain, Mapping):
        plain = {name: _shown(name, part, hidden) for name, part in plain.items()}
    (_, target) = METHODS[method]
    result: object = json_form.structure(plain, target)
    if isinstance(result, Observed) and (result.observation is None) == (result.change is None):
        raise json_form.JsonFormError(
            (json_form.Problem(path="$", text="expected either observation or change"),)
        )
    return result


def _shown(name: str, part: object, hidden: Collection[Field]) -> object:
    match name:
        case "observation" | "change":
            return _filled(part, hidden)
        case "outcome" if isinstance(part, dict):
            shown = {**part}
            if isinstance(part.get("plan"), dict):
                # A plan travels back with its commit: what it says stays as it is.
                shown["plan"] = {**_in_plan(hidden), **part["plan"]}
            if "request" in part:
                shown["request"] = _with_each(
                    part["request"], "items", lambda item: _with(item, _in_item(hidden))
                )
            return shown
        case _:
            return part


def _in_plan(hidden: Collection[Field]) -> Mapping[str, object]:
    if Field.PLAN in hidden:
        return _WHOLE_PLAN
    return {name: value for field in hidden for name, value in _OF_PLAN.get(field, {}).items()}


def _in_item(hidden: Collection[Field]) -> Mapping[str, object]:
    return {"estimate": 0} if Field.ESTIMATE in hidden else {}


def _filled(part: object, hidden: Collection[Field]) -> object:
    in_view = dict(_OF_SESSION[field] for field in hidden if field in _OF_SESSION)
    in_item = _in_item(hidden)

    def view(value: object) -> object:
        return _with_each(_with(value, in_view), "projection", lambda item: _with(item, in_item))

    def node(value: object) -> object:
        value = _with(value, in_item)
        if Field.RECORD in hidden and isinstance(value, dict) and _is_checkpoint(value.get("content")):
            return {**value, "content": _with(value["content"], _RECORD)}
        return value

    return _with_each(_with_each(part, "sessions", view), "nodes", node)


def _is_checkpoint(content: object) -> bool:
    return isinstance(content, dict) and content.get("kind") == Checkpoint.kind


def _with(value: object, hidden: Mapping[str, object]) -> object:
    # What is hidden means nothing, also where it is shown in one place and not in another.
    return {**value, **hidden} if isinstance(value, dict) else value


def _with_each(value: object, name: str, change: Callable[[object], object]) -> object:
    # What has another form stays as it is: reading it says what is wrong.
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        return value
    return {**value, name: [change(one) for one in value[name]]}
