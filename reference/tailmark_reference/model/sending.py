"""How a request becomes durable, or how it is said that it is too large (TRG-8, TRG-9)."""

from collections.abc import Callable

from attrs import evolve

from tailmark.budgets import Budgets, Occupancy
from tailmark.identifiers import NodeId, Tokens
from tailmark.outcomes import Attempt, LargePart, Outcome, Request, Sent, TooLarge
from tailmark.plans import Checkpoint, EditFor, Purpose, RetryFor, SendFor
from tailmark_reference.model.observe import project
from tailmark_reference.model.rules import Rules
from tailmark_reference.model.tree import TreeNode
from tailmark_reference.model.world import Session, World
from tailmark_reference.model.writing import bumped, write

Next = tuple[World, Outcome]


def steering_that_leaves(rules: Rules, session: Session, purpose: Purpose) -> tuple[NodeId, ...]:
    """The user messages that leave the branch with the answer (RETRY-1, EDIT-1)."""
    if isinstance(purpose, SendFor) or session.leaf is None:
        return ()
    opener = rules.last_opener(session.leaf)
    return rules.steering(rules.answer_of(session.leaf, opener)) if opener is not None else ()


def sent(
    rules: Rules,
    world: World,
    session: Session,
    purpose: Purpose,
    base: TreeNode | None,
    *,
    checkpoint: Checkpoint | None = None,
    attempt: Attempt | None = None,
) -> Next:
    """Make a request durable: the checkpoint made for it, the leaf and its message in one change (TRG-9)."""
    left = steering_that_leaves(rules, session, purpose)
    now = session.at(base, session.revision)
    written: list[NodeId] = []
    if checkpoint is not None:
        world, now = write(rules, world, now, checkpoint)
        written.append(checkpoint.id)
    match purpose:
        case SendFor(message=message) | EditFor(message=message):
            world, now = write(rules, world, now, message)
            written.append(message.id)
        case RetryFor():
            pass
    if now.leaf is not session.leaf:
        now = bumped(rules, now, len(written))
    request = request_of(rules, now)
    return sent_from(world, now, Sent(request=request, written=tuple(written), left=left, attempt=attempt))


def sent_from(world: World, session: Session, outcome: Sent) -> Next:
    """Remember that the request of this state was found to fit."""
    world = world.with_session(session)
    known = {**world.process.sent, session.id: session.key}
    return world.with_process(evolve(world.process, sent=known)), outcome


def request_of(rules: Rules, session: Session) -> Request:
    """What goes to the model from a session that has a leaf (PROJ-11)."""
    assert session.leaf is not None
    return Request(head=session.settings.head, items=project(rules, session.leaf), built_on=session.leaf.id)


def too_large(
    part: LargePart,
    occupancy: Occupancy,
    budgets: Budgets,
    scaled: Callable[[int], Tokens],
    *,
    draft: Tokens = Tokens(0),  # noqa: B008  # a whole number
    attempt: Attempt | None = None,
) -> TooLarge:
    """The answer to a request above the safe limit, with its sizes."""
    return TooLarge(
        part=part,
        projection=occupancy.tokens,
        draft=scaled(draft),
        overhead=scaled(budgets.overhead),
        limit=budgets.safe,
        attempt=attempt,
    )
