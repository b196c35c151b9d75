"""How saved paths are drawn: prefixes, extensions, diverging ones, with and without checkpoints."""

from random import Random

from attrs import evolve

from tailmark.identifiers import CallId, ModelName, NodeId, PartId, SessionId, Tokens
from tailmark.messages import Message, Role
from tailmark.operations import Operation, Save
from tailmark.plans import Checkpoint, Node, Trigger
from tailmark.rules.scene import settle as open_after
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known, chance, pick


def save(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A whole path: the stored one, a part of it, more than it, or something else."""
    branch = list(known.branch(session))
    kind = pick(
        random,
        {
            "same": 3,
            "prefix": 2,
            "extension": 7,
            "results": 2,
            "bad extension": 3,
            "known extension": 2,
            "changed content": 1,
            "changed checkpoint": 2,
            "diverging": 2,
            "twice": 1,
        },
    )
    path = _path(known, random, session, branch, kind)
    if path is None:
        return None
    if chance(random, 0.5):
        # Many callers hold the messages only.
        path = [node for node in path if isinstance(node, Message)]
    return Save(session=session, path=tuple(path))


def _path(
    known: Known, random: Random, session: SessionId, branch: list[Node], kind: str
) -> list[Node] | None:
    match kind:
        case "same":
            return branch
        case "prefix":
            return branch[: random.randint(0, len(branch))]
        case "extension":
            return [*branch, *extension(known, random, session)]
        case "results":
            return _with_results(known, random, session, branch)
        case "bad extension":
            return [*branch, *extension(known, random, session), _bad(known, random, session)]
        case "known extension":
            away = known.off_branch(session)
            return [*branch, known.content(random.choice(away))] if away else None
        case "changed content":
            return _changed(random, branch)
        case "changed checkpoint":
            return _changed_checkpoint(known, random, branch)
        case "diverging":
            return _diverging(known, random, session, branch)
        case "twice":
            return [*branch, random.choice(branch)] if branch else None
        case _:
            raise AssertionError(f"no such path: {kind}")


def extension(known: Known, random: Random, session: SessionId) -> list[Message]:
    """One to four messages that may follow the branch."""
    open_calls = known.scene.open_calls(session)
    new: list[Message] = []
    for _ in range(random.randint(1, 4)):
        if open_calls and chance(random, 0.6):
            message = contents.tool_message(known, random, contents.some(random, open_calls))
        elif chance(random, 0.5):
            message = contents.user_message(known, random)
        else:
            message = contents.assistant_message(known, random, session)
        new.append(message)
        open_calls = open_after(open_calls, message)
    return new


def _with_results(known: Known, random: Random, session: SessionId, branch: list[Node]) -> list[Node] | None:
    open_calls = known.scene.open_calls(session)
    if not open_calls:
        return None
    path = [
        contents.with_results(
            random,
            node,
            [one for one in open_calls if one.message == node.id],
            preliminary=chance(random, 0.2),
        )
        if isinstance(node, Message)
        else node
        for node in branch
    ]
    if chance(random, 0.5):
        path.append(contents.user_message(known, random))
    return path


def _bad(known: Known, random: Random, session: SessionId) -> Message:
    match random.randrange(3):
        case 0:
            user = contents.user_message(known, random)
            return evolve(user, parts=(*user.parts, contents.result(random, CallId("other"))))
        case 1:
            return Message(
                id=NodeId(known.name("T")), role=Role.TOOL, parts=(contents.result(random, CallId("other")),)
            )
        case _:
            message = contents.assistant_message(known, random, session, calls=1, settled=False)
            calls = [part for part in message.parts if part.kind == "tool-call"]
            return evolve(
                message, parts=(*calls, *(evolve(part, id=PartId(f"{part.id}-again")) for part in calls))
            )


def _changed(random: Random, branch: list[Node]) -> list[Node] | None:
    places = [index for index, node in enumerate(branch) if isinstance(node, Message)]
    if not places:
        return None
    place = random.choice(places)
    old = branch[place]
    assert isinstance(old, Message)
    return [*branch[:place], contents.altered(random, old), *branch[place + 1 :]]


def _changed_checkpoint(known: Known, random: Random, branch: list[Node]) -> list[Node] | None:
    if not branch:
        return None
    path: list[Node] = []
    for node in branch:
        if isinstance(node, Checkpoint):
            if chance(random, 0.5):
                path.append(evolve(node, summary="rewritten", first_kept=None))
        else:
            path.append(node)
    if chance(random, 0.5):
        path.insert(random.randint(0, len(path)), _invented(known))
    if chance(random, 0.4):
        path.append(contents.user_message(known, random))
    return path


def _invented(known: Known) -> Checkpoint:
    return Checkpoint(
        id=NodeId(known.name("K")),
        summary="invented",
        first_kept=None,
        old_first_kept=None,
        previous=None,
        first_excluded=None,
        last_excluded=None,
        trigger=Trigger.MANUAL,
        model=ModelName("model-1"),
        refresh=False,
        instructions=None,
        finish=None,
        tokens_before=Tokens(10),
        tokens_after=Tokens(5),
    )


def _diverging(known: Known, random: Random, session: SessionId, branch: list[Node]) -> list[Node] | None:
    if not branch:
        return None
    place = random.randrange(len(branch))
    match random.randrange(3):
        case 0:
            return [
                *branch[:place],
                contents.assistant_message(known, random, session, calls=0),
                *branch[place + 1 :],
            ]
        case 1:
            return [*branch[:place], *branch[place + 1 :], contents.user_message(known, random)]
        case _:
            path = list(branch)
            other = random.randrange(len(path))
            path[place], path[other] = path[other], path[place]
            return path
