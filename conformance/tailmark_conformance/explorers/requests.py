"""How requests, settings and damage are drawn."""

from random import Random

from attrs import evolve

from tailmark.budgets import Model
from tailmark.damage import DamageKind
from tailmark.identifiers import NodeId, PartId, SessionId, Tokens
from tailmark.messages import Message, Role, Text
from tailmark.operations import InflictDamage, Operation, Send, SetModel, SetSettings
from tailmark.plans import Checkpoint
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.appends import follows
from tailmark_conformance.explorers.known import Known, chance, pick


def draft(known: Known, random: Random, session: SessionId) -> Message:
    """A user's message: small, about as large as what is left of the window, or far too large."""
    budgets = known.scene.budgets(session)
    left = max(0, budgets.safe - known.scene.occupancy(session).tokens)
    # What a message of one text costs beyond its text, as the last such message shows.
    around = _around(known)
    if budgets.safe > 5000:
        return contents.user_message(known, random)
    size = pick(random, {"small": 8, "threshold": 3, "left": 4, "window": 1, "hopeless": 1})
    tokens = {
        "small": random.randint(1, 8),
        "threshold": max(
            0, budgets.threshold - budgets.safe + left - around + random.choice((-1, 0, 0, 0, 1))
        ),
        "left": max(0, left + random.randint(-12, 6)),
        "window": max(0, budgets.safe + random.randint(-12, 2)),
        "hopeless": budgets.safe + 20,
    }[size]
    return Message(
        id=NodeId(known.name("U")),
        role=Role.USER,
        parts=(Text(id=PartId("text"), text="x" * (4 * tokens)),),
    )


def _around(known: Known) -> int:
    for node in reversed(known.nodes[-6:]):
        stored = known.scene.node(node)
        content = stored.content if stored is not None else None
        if stored is None or not isinstance(content, Message) or len(content.parts) != 1:
            continue
        (part,) = content.parts
        if isinstance(part, Text) and part.text.isascii():
            return stored.estimate - -(-len(part.text) // 4)
    return 6


def send(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A draft is asked."""
    return Send(
        session=session, message=draft(known, random, session), follows=follows(known, random, session)
    )


def send_wrongly(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A draft that cannot be asked: its id is known, it is not the user's, or it may not be stored."""
    user = contents.user_message(known, random)
    match random.randrange(3):
        case 0 if known.nodes:
            return Send(session=session, message=evolve(user, id=random.choice(known.nodes)))
        case 1:
            return Send(session=session, message=contents.assistant_message(known, random, session, calls=0))
        case _:
            twice = (Text(id=PartId("text"), text="a"), Text(id=PartId("text"), text="b"))
            return Send(session=session, message=evolve(user, parts=twice))


def set_settings(known: Known, random: Random, session: SessionId) -> Operation | None:
    """Other settings, at times some that contradict the model."""
    old = known.scene.settings(session)
    window = known.scene.model(session).window
    match pick(random, {"new": 4, "automatic": 3, "head": 3, "overhead": 3, "figure": 4, "large": 3}):
        case "new":
            new = contents.settings(random)
        case "automatic":
            new = evolve(old, automatic=not old.automatic)
        case "head":
            new = evolve(old, head=known.name("head "))
        case "overhead":
            share = random.choice((0, window // 10, window // 3, window // 2, window, window * 2))
            new = evolve(old, overhead=Tokens(share))
        case "figure":
            figure = Tokens(random.choice((0, 1, window // 10, window // 2, window, window + 1)))
            name = random.choice(("reserve", "threshold", "tail"))
            new = evolve(old, **{name: figure})  # type: ignore[arg-type]  # one of three fields of one type
        case _:
            new = evolve(old, reserve=None, threshold=None, tail=None, overhead=Tokens(0))
    return SetSettings(session=session, settings=new)


def set_model(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """Another model: of any size, or one that cannot be."""
    model = contents.model(random)
    if chance(random, 0.1):
        model = evolve(model, window=Tokens(random.randint(0, 15)))
    elif chance(random, 0.05):
        model = evolve(model, max_output=Tokens(0))
    return SetModel(session=session, model=model)


def smaller_model(known: Known, random: Random, session: SessionId) -> Model:
    """A model that the present projection nearly fills, or does not fit."""
    used = known.scene.occupancy(session).tokens
    window = max(16, used * random.choice((110, 125, 140, 160, 60)) // 100)
    present = known.scene.model(session)
    return evolve(present, window=Tokens(window))


def inflict_damage(known: Known, random: Random, session: SessionId) -> Operation | None:
    """Something is wrong with a node from now on; most often on the session's branch."""
    branch = known.branch(session)
    on_branch = bool(branch) and chance(random, 0.85)
    if not known.nodes:
        return None
    node = random.choice(branch).id if on_branch else random.choice(known.nodes)
    # A cycle is what the most depends on, and a node without a parent has none.
    damage = pick(random, {kind: 2 if kind is DamageKind.CYCLE else 1 for kind in DamageKind})
    leaf = known.scene.leaf(session)
    if damage is DamageKind.MISSING_LEAF and leaf is not None:
        node = leaf
    if damage is DamageKind.PLACE_NO_ANCESTOR:
        checkpoints = [one.id for one in branch if isinstance(one, Checkpoint)]
        node = random.choice(checkpoints) if checkpoints else node
    if damage is DamageKind.DANGLING_RESULT:
        tools = [one.id for one in branch if isinstance(one, Message) and one.role is Role.TOOL]
        node = random.choice(tools) if tools else node
    return InflictDamage(session=session, damage=damage, node=node)
