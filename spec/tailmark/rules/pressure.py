"""How full the window is when a compaction may be tried that nobody asked for, and what could be gained by it.

There are two such moments: an automatic compaction may begin behind a step, and a request goes through preflight. Sizes are the
implementation's own estimates in the measure that it shows itself; nothing is estimated here.
"""

from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from tailmark.budgets import Budgets, Occupancy
from tailmark.declarations import Declaration, Field, Parameters
from tailmark.identifiers import NodeId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Role, Text
from tailmark.operations import Edit, EndAnswer, Retry, Send, SetModel, SetSettings
from tailmark.outcomes import Done, Planned, Sent, TooLarge
from tailmark.plans import EditFor, Purpose, RetryFor, SendFor, Trigger
from tailmark.rules.compactions import (
    Chosen,
    Terms,
    allowed_places,
    base_of,
    between,
    cost_of,
    ratio_of,
    scaled,
    would_choose,
)
from tailmark.rules.memory import state_key
from tailmark.rules.scene import HiddenFieldError, Mark, Scene
from tailmark.rules.verdicts import HOLDS, Result, Seen, Violated


@frozen(kw_only=True, eq=False)
class Pressure:
    """What speaks for and against a compaction that nobody asked for.

    ``tokens`` is the size of the request, draft included; ``draft`` is the estimate of that alone, ``ratio`` what estimates are measured with. ``chosen`` is what a place is chosen from, ``None`` on an empty branch. ``places`` are those that the clauses of level MUST leave to it. ``switched_on``: automatic
    compactions are wanted and have room. ``undone`` and ``attempted``: this process remembers an undo of the session, or an attempt on this very state.
    """

    session: SessionId
    tokens: int
    draft: Tokens
    ratio: tuple[Tokens | None, Tokens]
    budgets: Budgets
    chosen: Chosen | None
    places: tuple[int, ...]
    declaration: Declaration
    switched_on: bool
    undone: bool
    attempted: bool

    def scaled(self, tokens: int) -> Tokens:
        """An estimate in the measure of the budgets (OCC-15)."""
        return scaled(tokens, *self.ratio)

    @property
    def above_limit(self) -> bool:
        """Whether the request cannot be sent as it is."""
        return self.tokens > self.budgets.safe

    @property
    def presses(self) -> bool:
        """Whether the request reaches the threshold."""
        return self.tokens >= self.budgets.threshold

    def advances(self, place: int) -> bool:
        """Whether a place is before an opener behind the present place: neither a refresh nor the end of the branch under a draft."""
        chosen = self.chosen
        if chosen is None:
            return False
        open_end = chosen.trigger is Trigger.PREFLIGHT and place == chosen.branch.messages
        return place != chosen.present and not open_end

    def is_worth_it(self, place: int) -> bool:
        """Whether a compaction to a place frees the declared share of the safe limit, a whole summary budget taken off (TRG-5B)."""
        chosen = self.chosen
        if chosen is None:
            return False
        freed: int = cost_of(chosen.scene, between(chosen.branch, chosen.present or 0, place))
        if chosen.previous is not None:
            freed += chosen.scene.estimate(chosen.previous.id)
        share = self.budgets.safe // max(1, self.declaration.parameters.worth_divisor)
        return chosen.scaled(freed) - self.budgets.summary >= share

    @property
    def may_gain(self) -> bool:
        """Whether every place that may be chosen advances and is worth it, so that only the other conditions can stand against it."""
        return bool(self.places) and all(
            self.advances(place) and self.is_worth_it(place) for place in self.places
        )

    @property
    def is_wanted(self) -> bool:
        """Whether nothing but the size decides: automatic compactions are on, and neither an undo nor an attempt is remembered."""
        return self.switched_on and not self.undone and not self.attempted


def _pressure(
    seen: Seen,
    scene: Scene,
    session: SessionId,
    base: Mark | None,
    occupancy: Occupancy,
    trigger: Trigger,
    terms: Terms,
) -> Pressure:
    budgets = terms.budgets
    ratio = ratio_of(seen, occupancy.figure, occupancy.covered)
    chosen = would_choose(scene, base, trigger, terms, ratio) if base is not None else None
    readings = seen.declaration.readings
    return Pressure(
        session=session,
        tokens=occupancy.tokens + scaled(terms.draft, *ratio),
        draft=terms.draft,
        ratio=ratio,
        budgets=budgets,
        chosen=chosen,
        places=allowed_places(chosen, budgets.tail, readings) if chosen is not None else (),
        declaration=seen.declaration,
        switched_on=scene.settings(session).automatic and budgets.margin > 0,
        undone=session in seen.memory.undone,
        attempted=seen.memory.attempts.get(session) == state_key(scene, session),
    )


# Automatic compactions -----------------------------------------------------------------------------------


def is_automatic_moment(seen: Seen) -> bool:
    """Whether an operation is one behind which an automatic compaction is judged (TRG-5)."""
    if not isinstance(seen.outcome, Done):
        return False
    match seen.operation:
        case EndAnswer(end=end):
            return end is AnswerEnd.FINAL
        case SetModel(session=session) | SetSettings(session=session):
            if not seen.before.knows_session(session) or not seen.after.knows_session(session):
                return False
            leaf = seen.after.end(session)
            message = leaf.message if leaf is not None else None
            settled = message is not None and message.role is Role.ASSISTANT
            changed = state_key(seen.before, session) != state_key(seen.after, session)
            return settled and changed
        case _:
            return False


# Several predicates ask this of one step.
@lru_cache(maxsize=1)
def automatic_pressure(seen: Seen) -> Pressure | None:
    """The pressure behind a step at which an automatic compaction is judged, on a stable branch."""
    operation = seen.operation
    if not isinstance(operation, EndAnswer | SetModel | SetSettings) or not is_automatic_moment(seen):
        return None
    scene, session = seen.after, operation.session
    if not scene.knows_session(session) or not scene.is_stable(session):
        return None
    base, budgets = scene.end(session), scene.budgets(session)
    if base is None or budgets.window == 0:
        return None
    terms = Terms(budgets=budgets)
    return _pressure(seen, scene, session, base, scene.occupancy(session), Trigger.AUTOMATIC, terms)


def is_due(pressure: Pressure) -> bool:
    """Whether an automatic compaction must begin (TRG-5A). Behind an undo it must only above the safe limit (UNDO-3)."""
    presses = pressure.above_limit if pressure.undone else pressure.presses
    return presses and pressure.may_gain and pressure.switched_on and not pressure.attempted


# Requests ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Asked:
    """A request that was allowed and goes through preflight. ``draft`` is its message, ``None`` for a retry."""

    session: SessionId
    purpose: Purpose
    base: Mark | None

    @property
    def draft(self) -> Message | None:
        """The message that waits."""
        return self.purpose.message if isinstance(self.purpose, SendFor | EditFor) else None


def asked_request(seen: Seen) -> Asked | None:
    """The request that a step makes on a stable branch of a known session."""
    purpose: Purpose
    match seen.operation:
        case Send(session=session, message=message):
            purpose = SendFor(message=message)
        case Retry(session=session):
            purpose = RetryFor()
        case Edit(session=session, target=target, message=message):
            purpose = EditFor(target=target, message=message)
        case _:
            return None
    scene = seen.before
    if not scene.knows_session(session) or not scene.is_stable(session):
        return None
    return Asked(session=session, purpose=purpose, base=base_of(scene, session, purpose))


def _occupancy_of(seen: Seen, asked: Asked) -> Occupancy | None:
    """The occupancy of the branch up to a request's base, where it is shown: before the step, in the plan, or behind a retry."""
    base = asked.base.id if asked.base is not None else None
    if seen.before.leaf(asked.session) == base:
        return seen.before.occupancy(asked.session)
    if isinstance(seen.outcome, Planned):
        return seen.plan(seen.outcome.plan).occupancy
    if seen.after.knows_session(asked.session) and seen.after.leaf(asked.session) == base:
        return seen.after.occupancy(asked.session)
    return None


def unscaled(tokens: int, figure: int | None, covered: int) -> Tokens:
    """The estimate that became ``tokens`` when it was scaled. Hidden where the ratio is."""
    if figure is None:
        raise HiddenFieldError(Field.OCCUPANCY)
    return Tokens(tokens * covered // figure if 0 < covered < figure else tokens)


def _draft_of(seen: Seen, asked: Asked, occupancy: Occupancy) -> Tokens | None:
    """What the draft costs, where it is shown: stored, in a plan, or in the answer that it is too large."""
    if asked.draft is None:
        return Tokens(0)
    match seen.outcome:
        case Planned(plan=plan):
            return seen.plan(plan).draft
        case TooLarge(draft=draft):
            return unscaled(draft, *ratio_of(seen, occupancy.figure, occupancy.covered))
        case Sent():
            stored = seen.after.node(asked.draft.id)
            return seen.after.estimate(asked.draft.id) if stored is not None else None
        case _:
            return None


# Several predicates ask this of one step.
@lru_cache(maxsize=1)
def request_pressure(seen: Seen) -> Pressure | None:
    """The pressure of a request that goes through preflight, as far as its sizes are shown."""
    asked = asked_request(seen)
    if asked is None or not isinstance(seen.outcome, Sent | Planned | TooLarge):
        return None
    scene = seen.before
    budgets = scene.budgets(asked.session)
    if budgets.window == 0:
        return None
    occupancy = _occupancy_of(seen, asked)
    draft = _draft_of(seen, asked, occupancy) if occupancy is not None else None
    if occupancy is None or draft is None:
        return None
    terms = Terms(budgets=budgets, purpose=asked.purpose, draft=draft)
    return _pressure(seen, scene, asked.session, asked.base, occupancy, Trigger.PREFLIGHT, terms)


def may_not_begin(
    seen: Seen, stands_against: Callable[[Pressure], bool], because: str, *, above_limit: bool
) -> Result:
    """Whether nothing began below the safe limit although something stands against it; ``above_limit``: an automatic one not even above it."""
    automatic = automatic_pressure(seen)
    if automatic is not None and stands_against(automatic) and (above_limit or not automatic.above_limit):
        if isinstance(seen.outcome, Done) and seen.outcome.plan is not None:
            return Violated(f"expected no automatic compaction, because {because}; saw one")
        return HOLDS if automatic.presses and automatic.may_gain else None
    request = request_pressure(seen)
    if request is None or not stands_against(request) or request.above_limit:
        return None
    if isinstance(seen.outcome, Planned):
        return Violated(f"expected a request that fits to be sent as it is, because {because}; saw a plan")
    return HOLDS if request.presses and request.may_gain else None


def text_at_most(message: Message, parameters: Parameters) -> int | None:
    """The most that a message of texts may cost: one token for a byte, and the declared constants (OCC-9); ``None`` for other messages."""
    total: int = parameters.per_message
    for part in message.parts:
        if not isinstance(part, Text):
            return None
        total += parameters.per_part + len(part.text.encode("utf-8", "replace"))
    return total


def are_owned(seen: Seen, calls_of: tuple[NodeId, ...]) -> bool:
    """Whether this process stored one of the messages that made open calls (TRG-14B)."""
    return any(message in seen.memory.owned for message in calls_of)
