"""Witnesses about calls, their results, and the turns that they belong to."""

from tailmark.identifiers import CallId, SessionId
from tailmark.messages import AnswerEnd, ApprovalRequest, Message, ResultStatus, Role, ToolCall, ToolResult
from tailmark.operations import (
    Append,
    Edit,
    EndAnswer,
    Retry,
    Settle,
)
from tailmark.outcomes import (
    Done,
    Planned,
)
from tailmark.plans import Plan
from tailmark.rules.scene import Scene
from tailmark_conformance.explorers.witnesses.moments import Moment, session_of, written


def _made(message: Message) -> list[CallId]:
    return [part.call for part in message.parts if isinstance(part, ToolCall)]


def _finals(message: Message) -> list[CallId]:
    return [part.call for part in message.parts if isinstance(part, ToolResult) and not part.preliminary]


def parallel_calls(moment: Moment) -> bool:
    """A message makes several calls at once."""
    return any(len(_made(message)) > 1 for message in written(moment))


def _settled(moment: Moment) -> list[int]:
    """Which of the calls open before were settled, by their order."""
    session = session_of(moment.operation)
    if session is None or not moment.before.knows_session(session) or not isinstance(moment.outcome, Done):
        return []
    left = {(one.call, one.message) for one in moment.after.open_calls(session)}
    return [
        index
        for index, one in enumerate(moment.before.open_calls(session))
        if (one.call, one.message) not in left
    ]


def out_of_order(moment: Moment) -> bool:
    """A call is settled while one made before it is open."""
    settled = _settled(moment)
    return bool(settled) and settled[0] > 0 and not isinstance(moment.operation, Retry | Edit)


def late_result(moment: Moment) -> bool:
    """A result comes when other messages stand behind its call already."""
    session = session_of(moment.operation)
    if session is None or not moment.before.knows_session(session):
        return False
    calls = moment.before.open_calls(session)
    return any(calls[index].message != moment.before.leaf(session) for index in _settled(moment))


def _styles(scene: Scene, session: SessionId) -> set[Role]:
    return {
        message.role
        for message in scene.message_path(scene.leaf(session))
        if message.role is not Role.USER and _finals(message)
    }


def both_styles(moment: Moment) -> bool:
    """Results in assistant messages and in tool messages on one branch."""
    session = session_of(moment.operation)
    return session is not None and bool(_settled(moment)) and len(_styles(moment.after, session)) == 2


def preliminary_result(moment: Moment) -> bool:
    """A preliminary result is stored."""
    assert isinstance(moment.operation, Settle)
    return isinstance(moment.outcome, Done) and moment.operation.result.preliminary


def preliminary_replaced(moment: Moment) -> bool:
    """A result takes the place of a preliminary one."""
    assert isinstance(moment.operation, Settle)
    stored = moment.before.node(moment.operation.message)
    if not isinstance(moment.outcome, Done) or stored is None or not isinstance(stored.content, Message):
        return False
    return any(
        isinstance(part, ToolResult) and part.preliminary and part.call == moment.operation.result.call
        for part in stored.content.parts
    )


def settled_at_birth(moment: Moment) -> bool:
    """A message arrives with the results of its own calls in it."""
    return any(message.role is Role.ASSISTANT and _finals(message) for message in written(moment))


def approval(moment: Moment) -> bool:
    """A call waits for the user's approval."""
    return any(isinstance(part, ApprovalRequest) for message in written(moment) for part in message.parts)


def denied(moment: Moment) -> bool:
    """A call is denied."""
    assert isinstance(moment.operation, Settle)
    return isinstance(moment.outcome, Done) and moment.operation.result.status is ResultStatus.DENIED


def settled_by_append(moment: Moment) -> bool:
    """A known message is appended again, with results."""
    assert isinstance(moment.operation, Append)
    return moment.before.node(moment.operation.message.id) is not None and bool(_settled(moment))


def settled_by_save(moment: Moment) -> bool:
    """A saved path brings results for stored messages."""
    return bool(_settled(moment)) and any(
        moment.before.node(node.content.id) is not None for node in moment.step.change.nodes
    )


def returning_call(moment: Moment) -> bool:
    """A settled call's id is used once more on the same branch."""
    session = session_of(moment.operation)
    assert session is not None
    made = {call for message in written(moment) for call in _made(message)}
    if not made:
        return False
    return any(
        made.intersection(_made(one)) for one in moment.before.message_path(moment.before.leaf(session))
    )


def abandoned(moment: Moment) -> bool:
    """Open calls are abandoned."""
    return isinstance(moment.outcome, Done) and bool(moment.outcome.abandoned)


def abandoned_by_end(moment: Moment) -> bool:
    """An answer ends in failure and takes its open calls with it."""
    assert isinstance(moment.operation, EndAnswer)
    return abandoned(moment) and moment.operation.end is not AnswerEnd.FINAL


def final_with_open_calls(moment: Moment) -> bool:
    """An answer ends well and its calls wait for somebody else."""
    assert isinstance(moment.operation, EndAnswer)
    return (
        isinstance(moment.outcome, Done)
        and moment.operation.end is AnswerEnd.FINAL
        and bool(moment.after.open_calls(moment.operation.session))
    )


def answer_died(moment: Moment) -> bool:
    """A restart ends a running answer."""
    return any(moment.before.running(session) is not None for session in moment.before.sessions())


def steering_on_calls(moment: Moment) -> bool:
    """A user message arrives while a call is open."""
    assert isinstance(moment.operation, Append)
    return any(message.role is Role.USER for message in written(moment)) and bool(
        moment.before.open_calls(moment.operation.session)
    )


def steering_on_answer(moment: Moment) -> bool:
    """A user message arrives while an answer runs and no call is open."""
    assert isinstance(moment.operation, Append)
    session = moment.operation.session
    return (
        any(message.role is Role.USER for message in written(moment))
        and not moment.before.open_calls(session)
        and moment.before.running(session) is not None
    )


def _turn_costs(scene: Scene, plan: Plan) -> list[int]:
    """What each turn of the branch behind the present place costs, in order."""
    costs: list[int] = []
    for mark in scene.tail(plan.session):
        if mark.opens_turn or not costs:
            costs.append(0)
        costs[-1] += scene.estimate(mark.id)
    return costs


def _planned(moment: Moment) -> Plan | None:
    return moment.outcome.plan if isinstance(moment.outcome, Planned) else None


def oversized_last(moment: Moment) -> bool:
    """A compaction is planned where the last turn alone exceeds the budget."""
    plan = _planned(moment)
    if plan is None or plan.budgets.tail is None:
        return False
    costs = _turn_costs(moment.before, plan)
    return bool(costs) and costs[-1] > plan.budgets.tail


def oversized_middle(moment: Moment) -> bool:
    """A compaction is planned where a turn before the last exceeds the budget and the last does not."""
    plan = _planned(moment)
    if plan is None or plan.budgets.tail is None:
        return False
    *middle, last = _turn_costs(moment.before, plan) or [0]
    return last <= plan.budgets.tail < max(middle, default=0)


def keeps_several_turns(moment: Moment) -> bool:
    """A planned tail has more than one turn, and something is excluded."""
    plan = _planned(moment)
    if plan is None or not plan.excluded or plan.first_kept is None:
        return False
    openers = [mark.id for mark in moment.before.tail(plan.session) if mark.opens_turn]
    return plan.first_kept in openers[:-1]
