"""How the next operation is drawn from what is known, one builder for each kind of operation.

A builder answers an operation, or ``None`` if the state has no material for it. The explorer gives it a
seeded `random.Random`, the state machines give one that Hypothesis draws from: there is one set of strategies.
Whole turns, compactions with interference and other sequences are in `fragments`.
"""

from collections.abc import Mapping
from random import Random

from attrs import evolve

from tailmark.identifiers import CallId, NodeId, PlanId, SessionId
from tailmark.messages import (
    AnswerEnd,
    Message,
    Role,
    ToolCall,
    ToolResult,
)
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    Load,
    NextRequest,
    Operation,
    Preview,
    Restart,
    Retry,
    SetMetadata,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.plans import Plan, SummariserReply, Trigger
from tailmark.rules.scene import OpenAt
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.appends import (
    Builder,
    append_assistant,
    append_invalid,
    append_known_id,
    append_not_open,
    append_results,
    append_taken_call_id,
    append_tool,
    append_user,
    follows,
)
from tailmark_conformance.explorers.forging import FORGED_FIELDS, forge
from tailmark_conformance.explorers.known import Known, PlanState, chance, pick
from tailmark_conformance.explorers.requests import (
    send,
    send_wrongly,
    set_model,
    set_settings,
)
from tailmark_conformance.explorers.saves import save

# Calls and answers -----------------------------------------------------------------------------------


def settle(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A result for an open call, put where the call was made."""
    calls = known.scene.open_calls(session)
    if not calls:
        return None
    one = random.choice(calls)
    preliminary = chance(random, 0.25)
    prefix = "partial" if preliminary else "result"
    new = contents.result(random, one.call, preliminary=preliminary, part=f"{prefix}-{one.call}")
    earlier = _preliminary(known, one)
    if earlier is not None and chance(random, 0.4):
        new = evolve(new, id=earlier.id)
        if chance(random, 0.3):
            new = earlier
    return Settle(session=session, message=one.message, result=new)


def _preliminary(known: Known, one: OpenAt) -> ToolResult | None:
    content = known.content(one.message)
    assert isinstance(content, Message)
    return next(
        (
            part
            for part in content.parts
            if isinstance(part, ToolResult) and part.call == one.call and part.preliminary
        ),
        None,
    )


def settle_wrongly(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A result for a call that is not open in that message, or under a part id that is taken."""
    calls = known.scene.open_calls(session)
    if calls and chance(random, 0.6):
        one = random.choice(calls)
        content = known.content(one.message)
        assert isinstance(content, Message)
        taken = random.choice(content.parts).id
        return Settle(
            session=session, message=one.message, result=contents.result(random, one.call, part=taken)
        )
    call = random.choice(known.calls) if known.calls else CallId("no-such-call")
    node = random.choice(known.nodes) if known.nodes and chance(random, 0.8) else NodeId("nowhere")
    makers = [
        one
        for one in known.nodes
        if isinstance(content := known.content(one), Message)
        and any(isinstance(part, ToolCall) and part.call == call for part in content.parts)
    ]
    if makers and chance(random, 0.7):
        node = random.choice(makers)
    return Settle(session=session, message=node, result=contents.result(random, call, part="late"))


def abandon(known: Known, random: Random, session: SessionId) -> Operation | None:
    """The calls of the branch will not be answered any more."""
    return Abandon(session=session, follows=follows(known, random, session))


def start_answer(known: Known, random: Random, session: SessionId) -> Operation | None:
    """An answer begins."""
    return StartAnswer(session=session, follows=follows(known, random, session))


def next_request(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """A further request of the running answer."""
    return NextRequest(session=session)


def end_answer(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """The running answer ends, in one of the three ways."""
    end = pick(random, {AnswerEnd.FINAL: 3, AnswerEnd.FAILED: 1, AnswerEnd.ABORTED: 1})
    return EndAnswer(session=session, end=end, reason="overflow" if end is AnswerEnd.FAILED else None)


# Compactions -----------------------------------------------------------------------------------------


def _asked(known: Known, random: Random, session: SessionId) -> tuple[PlanId, Trigger, str | None]:
    plan = PlanId(known.name("P"))
    begun = [one.plan.id for one in known.plans if one.plan.session == session or chance(random, 0.2)]
    if begun and chance(random, 0.08):
        plan = random.choice(begun)
    trigger = pick(random, {Trigger.MANUAL: 30, Trigger.AUTOMATIC: 1, Trigger.PREFLIGHT: 1})
    return plan, trigger, "keep the numbers" if chance(random, 0.2) else None


def begin(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A compaction begins."""
    plan, trigger, instructions = _asked(known, random, session)
    return BeginCompaction(session=session, plan=plan, trigger=trigger, instructions=instructions)


def preview(known: Known, random: Random, session: SessionId) -> Operation | None:
    """What would a compaction do?"""
    plan, trigger, instructions = _asked(known, random, session)
    return Preview(session=session, plan=plan, trigger=trigger, instructions=instructions)


def good_reply(known: Known, random: Random, plan: Plan) -> SummariserReply | None:
    """What a plan asked for: a usable summary, or nothing where it asked for none."""
    return contents.usable_reply(known, random) if plan.request is not None else None


def commit(known: Known, random: Random, session: SessionId) -> Operation | None:
    """The reply to an open plan."""
    plans = known.plans_of(session)
    if not plans:
        return None
    plan = random.choice(plans)
    return CommitCompaction(plan=plan, reply=good_reply(known, random, plan))


def commit_unusable(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A reply of which no summary can be made, a missing one, or one too many."""
    plans = known.plans_of(session)
    if not plans:
        return None
    plan = random.choice(plans)
    if chance(random, 0.2):
        return CommitCompaction(
            plan=plan, reply=None if plan.request is not None else contents.usable_reply(known, random)
        )
    return CommitCompaction(plan=plan, reply=contents.unusable_reply(random))


def commit_again(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A plan that had its answer, was cancelled, or was begun by a process that is gone."""
    over = [one.plan for one in known.plans if one.state is not PlanState.OPEN]
    own = [plan for plan in over if plan.session == session]
    if not over:
        return None
    plan = random.choice(own or over)
    return CommitCompaction(plan=plan, reply=good_reply(known, random, plan))


def commit_forged(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A plan with one field changed."""
    plans = known.plans_of(session)
    if not plans:
        return None
    plan = random.choice(plans)
    forged = forge(known, random, plan, random.choice(FORGED_FIELDS))
    return CommitCompaction(plan=forged, reply=good_reply(known, random, forged))


def cancel(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A plan is dropped: an open one, a finished one, another session's, or none."""
    plans = known.plans_of(session)
    if plans and chance(random, 0.7):
        return CancelCompaction(session=session, plan=random.choice(plans).id)
    if known.plans and chance(random, 0.7):
        return CancelCompaction(session=session, plan=random.choice(known.plans).plan.id)
    return CancelCompaction(session=session, plan=PlanId("no-such-plan"))


# Branching -------------------------------------------------------------------------------------------


def retry(known: Known, random: Random, session: SessionId) -> Operation | None:
    """The last question is to be answered anew."""
    return Retry(session=session, follows=follows(known, random, session))


def edit(known: Known, random: Random, session: SessionId) -> Operation | None:
    """The last question is replaced."""
    opener = known.scene.last_opener(session)
    if opener is None:
        return None
    return Edit(
        session=session,
        target=opener.id,
        message=contents.user_message(known, random),
        follows=follows(known, random, session),
    )


def edit_wrongly(known: Known, random: Random, session: SessionId) -> Operation | None:
    """An edit of something else than the last question, or with a message that cannot stand there."""
    opener = known.scene.last_opener(session)
    user = contents.user_message(known, random)
    match random.randrange(4):
        case 0 if known.nodes:
            return Edit(session=session, target=random.choice(known.nodes), message=user)
        case 1:
            return Edit(session=session, target=NodeId("nowhere"), message=user)
        case 2 if opener is not None:
            invalid = evolve(user, parts=(*user.parts, contents.result(random, CallId("other"))))
            taken = evolve(user, id=random.choice(known.nodes))
            return Edit(session=session, target=opener.id, message=random.choice((invalid, taken)))
        case 3 if opener is not None:
            return Edit(
                session=session,
                target=opener.id,
                message=contents.assistant_message(known, random, session, calls=0),
            )
        case _:
            return None


def fork(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A new session at an assistant message, on the branch or off it, before a checkpoint or behind it."""
    answers = [
        node
        for node in known.nodes
        if isinstance(content := known.content(node), Message) and content.role is Role.ASSISTANT
    ]
    if not answers or len(known.scene.sessions()) > 4:
        return None
    own = {message.id for message in known.messages(session)}
    if chance(random, 0.5):
        answers = [node for node in answers if (node in own) == chance(random, 0.6)] or answers
    return Fork(session=session, target=random.choice(answers), new_session=SessionId(known.name("F")))


def fork_wrongly(known: Known, random: Random, session: SessionId) -> Operation | None:
    """A fork at what is no assistant message, at nothing, or under a name that is taken."""
    target = random.choice(known.nodes) if known.nodes and chance(random, 0.75) else NodeId("nowhere")
    name = SessionId(known.name("F"))
    if chance(random, 0.25):
        name = random.choice(known.scene.sessions())
    elif len(known.scene.sessions()) > 4:
        return None
    return Fork(session=session, target=target, new_session=name)


def undo(known: Known, random: Random, session: SessionId) -> Operation | None:
    """The checkpoint that is the leaf is taken back."""
    if not known.leaf_is_checkpoint(session) and chance(random, 0.6):
        return None
    return Undo(session=session, follows=follows(known, random, session))


# What no branch sees ---------------------------------------------------------------------------------


def set_metadata(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """A title or a label."""
    return SetMetadata(
        session=session, key=random.choice(("title", "label")), value=random.choice(("a", "b", "été"))
    )


def load(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """The session is read anew."""
    return Load(session=session)


def restart(known: Known, random: Random, session: SessionId) -> Operation | None:  # noqa: ARG001
    """The process ends and another one begins."""
    return new_process(known)


def new_process(known: Known) -> Restart:
    """Most often the old one is asked to end; a kill costs a program as much as a whole run. Which it is needs no draw."""
    return Restart(killed=len(known.nodes) % 6 == 0)


def unknown_session(known: Known, random: Random, session: SessionId) -> Operation | None:
    """Any operation, asked of a session that does not exist."""
    name = random.choice([one for one in BUILDERS if one not in ("restart", "unknown_session")])
    operation = BUILDERS[name][0](known, random, session)
    match operation:
        case None | Restart():
            return None
        case CommitCompaction():
            return evolve(operation, plan=evolve(operation.plan, session=SessionId("nobody")))
        case _:
            return evolve(operation, session=SessionId("nobody"))


BUILDERS: Mapping[str, tuple[Builder, int]] = {
    "append_user": (append_user, 10),
    "append_assistant": (append_assistant, 14),
    "append_tool": (append_tool, 8),
    "append_not_open": (append_not_open, 2),
    "append_taken_call_id": (append_taken_call_id, 2),
    "append_invalid": (append_invalid, 3),
    "append_known_id": (append_known_id, 4),
    "append_results": (append_results, 4),
    "save": (save, 8),
    "settle": (settle, 8),
    "settle_wrongly": (settle_wrongly, 4),
    "abandon": (abandon, 2),
    "start_answer": (start_answer, 4),
    "next_request": (next_request, 2),
    "end_answer": (end_answer, 5),
    "begin": (begin, 10),
    "preview": (preview, 3),
    "commit": (commit, 14),
    "commit_unusable": (commit_unusable, 3),
    "commit_again": (commit_again, 3),
    "commit_forged": (commit_forged, 4),
    "cancel": (cancel, 3),
    "retry": (retry, 4),
    "edit": (edit, 4),
    "edit_wrongly": (edit_wrongly, 2),
    "fork": (fork, 4),
    "fork_wrongly": (fork_wrongly, 2),
    "undo": (undo, 5),
    "send": (send, 8),
    "send_wrongly": (send_wrongly, 2),
    "set_settings": (set_settings, 3),
    "set_model": (set_model, 3),
    "set_metadata": (set_metadata, 2),
    "load": (load, 1),
    "restart": (restart, 2),
    "unknown_session": (unknown_session, 6),
}
"""Every builder by its name, and how often it is chosen beside the others."""


def draw(known: Known, random: Random, kinds: Mapping[str, int]) -> Operation:
    """An operation of one of the kinds, as often as they weigh; a user message where none has material."""
    left = dict(kinds)
    session = known.session(random)
    while left:
        name = pick(random, left)
        operation = BUILDERS[name][0](known, random, session)
        if operation is not None:
            return operation
        del left[name]
    return Append(session=session, message=contents.user_message(known, random))
