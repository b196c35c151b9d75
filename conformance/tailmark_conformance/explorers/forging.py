"""How plans are forged: the same plan with another value in one field (CMT-4)."""

from collections.abc import Sequence
from random import Random

from attrs import evolve

from tailmark.identifiers import NodeId, PlanId, Revision, SessionId, Tokens
from tailmark.messages import Message, Role
from tailmark.plans import Plan, RetryFor, SummaryRequest, Trigger
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known, chance

FORGED_FIELDS: tuple[str, ...] = (
    "id",
    "session",
    "leaf",
    "revision",
    "base",
    "trigger",
    "first_kept",
    "old_first_kept",
    "previous_checkpoint",
    "previous_summary",
    "excluded",
    "refresh",
    "model",
    "budgets",
    "occupancy",
    "purpose",
    "draft",
    "instructions",
    "request",
    "tokens_before",
    "tokens_after",
)
"""Every field of a plan."""


def forge(known: Known, random: Random, plan: Plan, name: str) -> Plan:
    """The plan with another value in the field of that name."""
    messages = known.messages(plan.session)
    nodes = [NodeId("nowhere"), *(message.id for message in messages), *known.nodes[-3:]]
    users = [message.id for message in messages if message.role is Role.USER]
    places = [None, *(users if users and chance(random, 0.6) else nodes)]
    match name:
        case "id":
            return evolve(plan, id=PlanId(known.name("X")))
        case "session":
            others = [one for one in known.scene.sessions() if one != plan.session]
            return evolve(plan, session=random.choice(others) if others else SessionId("nobody"))
        case "leaf":
            return evolve(plan, leaf=_another_node(random, nodes, plan.leaf))
        case "base":
            return evolve(plan, base=_another_node(random, nodes, plan.base))
        case "first_kept":
            return evolve(plan, first_kept=_another(random, places, plan.first_kept))
        case "old_first_kept":
            return evolve(plan, old_first_kept=_another(random, places, plan.old_first_kept))
        case "previous_checkpoint":
            return evolve(
                plan, previous_checkpoint=_another(random, [None, *nodes], plan.previous_checkpoint)
            )
        case "revision":
            return evolve(plan, revision=Revision(plan.revision + random.choice((1, 2))))
        case "trigger":
            return evolve(plan, trigger=random.choice((Trigger.AUTOMATIC, Trigger.PREFLIGHT)))
        case "previous_summary":
            return evolve(plan, previous_summary="forged")
        case "excluded":
            return evolve(plan, excluded=_other_range(random, plan.excluded, messages))
        case "refresh":
            return evolve(plan, refresh=not plan.refresh)
        case "model":
            return evolve(plan, model=evolve(contents.model(random), name=plan.model.name))
        case "budgets":
            return evolve(plan, budgets=evolve(plan.budgets, tail=Tokens(random.choice((1, 30, 10_000)) + 1)))
        case "occupancy":
            return evolve(plan, occupancy=evolve(plan.occupancy, tokens=Tokens(plan.occupancy.tokens + 1)))
        case "purpose":
            return evolve(plan, purpose=RetryFor() if plan.purpose is None else None)
        case "draft":
            return evolve(plan, draft=Tokens(plan.draft + 1))
        case "instructions":
            return evolve(plan, instructions="forged")
        case "request":
            return evolve(plan, request=_other_request(random, plan, messages))
        case "tokens_before":
            return evolve(plan, tokens_before=Tokens(plan.tokens_before + 1))
        case "tokens_after":
            return evolve(plan, tokens_after=Tokens(plan.tokens_after + 1))
        case _:
            raise AssertionError(f"a plan has no field {name}")


def with_present_state(known: Known, plan: Plan) -> Plan:
    """The plan with the session's present leaf and revision: as if the commit had read them anew."""
    leaf = known.scene.leaf(plan.session)
    if leaf is None:
        return plan
    return evolve(plan, leaf=leaf, revision=known.scene.revision(plan.session))


def _another(random: Random, choices: Sequence[NodeId | None], present: NodeId | None) -> NodeId | None:
    others = [one for one in choices if one != present]
    return random.choice(others) if others else NodeId("nowhere")


def _another_node(random: Random, choices: Sequence[NodeId], present: NodeId) -> NodeId:
    return random.choice([one for one in choices if one != present])


def _other_range(
    random: Random, excluded: tuple[NodeId, ...], messages: tuple[Message, ...]
) -> tuple[NodeId, ...]:
    options = [(*excluded, NodeId("nowhere")), tuple(message.id for message in messages) + excluded[:1]]
    if excluded:
        options += [excluded[1:], excluded[:-1]]
    if len(excluded) > 1:
        options.append(tuple(reversed(excluded)))
    return random.choice(options)


def _other_request(random: Random, plan: Plan, messages: tuple[Message, ...]) -> SummaryRequest | None:
    request = plan.request
    if request is None:
        return SummaryRequest(previous_summary=plan.previous_summary, messages=plan.excluded)
    return random.choice(
        (
            None,
            evolve(request, messages=_other_range(random, request.messages, messages)),
            evolve(request, previous_summary="forged"),
            evolve(request, instructions="forged"),
            evolve(request, summary_pass=2),
        )
    )
