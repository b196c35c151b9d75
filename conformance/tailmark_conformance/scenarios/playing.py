"""Plays a scenario on a subject, and names the one change that would break its clause."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tailmark.budgets import Model, Settings
from tailmark.damage import DamageKind
from tailmark.examples import ABSENT, Becomes
from tailmark.identifiers import ModelName, NodeId, PlanId, SessionId, Tokens
from tailmark.json_form import unstructure
from tailmark.messages import AnswerEnd, Message, ToolResult
from tailmark.operations import (
    Abandon,
    Append,
    BeginCompaction,
    CancelCompaction,
    CommitCompaction,
    Edit,
    EndAnswer,
    Fork,
    InflictDamage,
    NextRequest,
    Operation,
    Restart,
    Retry,
    Save,
    Send,
    SetModel,
    SetSettings,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Outcome, Planned, begun_plan
from tailmark.plans import Node, Plan, SummariserReply
from tailmark.subjects import Subject
from tailmark.traces import Trace
from tailmark_conformance.recording import Recorder
from tailmark_conformance.scenarios.words import assistant, user

__all__ = ["ABSENT", "Becomes", "Play", "Scenario"]

_SESSION = SessionId("S")


class Play:
    """A subject in the hands of a scenario. Each method performs one operation and answers its outcome.

    Nothing needs to be started: without `start` there is one session ``S`` on a large model.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        """What writes the trace down."""
        if self._recorder is None:
            self.start()
        assert self._recorder is not None
        return self._recorder

    @property
    def trace(self) -> Trace:
        """Everything played so far."""
        return self.recorder.trace

    def view(self, session: str = _SESSION) -> dict[str, Any]:  # Any: plain JSON values
        """The JSON form of what a session shows now."""
        view = next(one for one in self.recorder.observation.sessions if one.session == session)
        plain: dict[str, Any] = unstructure(view)  # Any: as above
        return plain

    def start(
        self,
        *,
        sessions: tuple[str, ...] = ("S",),
        tail_budget: int | None = None,
        window: int = 1_000_000,
        max_output: int = 64_000,
        settings: Settings | None = None,
    ) -> None:
        """Begin with an empty store. ``tail_budget`` and ``window`` in tokens; ``settings`` replace what ``tail_budget`` says."""
        budget = Tokens(tail_budget) if tail_budget is not None else None
        self._recorder = Recorder(
            self._subject,
            sessions=tuple(SessionId(session) for session in sessions),
            model=model(window, max_output),
            settings=settings if settings is not None else Settings(tail=budget),
        )

    def perform(self, operation: Operation) -> Outcome:
        """Any operation."""
        return self.recorder.perform(operation).outcome

    def append(self, message: Message, *, follows: str | None = None, session: str = _SESSION) -> Outcome:
        """`Append`."""
        return self.perform(Append(session=SessionId(session), message=message, follows=_node(follows)))

    def turn(self, number: int, *, session: str = _SESSION, text: str = "answer") -> None:
        """A whole turn: the messages ``U<number>`` and ``A<number>``."""
        self.append(user(f"U{number}"), session=session)
        self.append(assistant(f"A{number}", text), session=session)

    def save(self, *path: Node, session: str = _SESSION) -> Outcome:
        """`Save`."""
        return self.perform(Save(session=SessionId(session), path=path))

    def settle(self, message: str, result: ToolResult, *, session: str = _SESSION) -> Outcome:
        """`Settle`."""
        return self.perform(Settle(session=SessionId(session), message=NodeId(message), result=result))

    def abandon(self, *, session: str = _SESSION) -> Outcome:
        """`Abandon`."""
        return self.perform(Abandon(session=SessionId(session)))

    def start_answer(self, *, follows: str | None = None, session: str = _SESSION) -> Outcome:
        """`StartAnswer`."""
        return self.perform(StartAnswer(session=SessionId(session), follows=_node(follows)))

    def next_request(self, *, session: str = _SESSION) -> Outcome:
        """`NextRequest`."""
        return self.perform(NextRequest(session=SessionId(session)))

    def end_answer(self, end: AnswerEnd = AnswerEnd.FINAL, *, session: str = _SESSION) -> Outcome:
        """`EndAnswer`."""
        return self.perform(EndAnswer(session=SessionId(session), end=end))

    def begin(self, plan: str = "P1", *, instructions: str | None = None, session: str = _SESSION) -> Plan:
        """`BeginCompaction` that must answer a plan. For other answers use `ask`."""
        outcome = self.ask(plan, instructions=instructions, session=session)
        if not isinstance(outcome, Planned):
            raise TypeError(f"expected a plan, the answer was {outcome}")
        return outcome.plan

    def ask(self, plan: str = "P1", *, instructions: str | None = None, session: str = _SESSION) -> Outcome:
        """`BeginCompaction`, whatever it answers."""
        return self.perform(
            BeginCompaction(session=SessionId(session), plan=PlanId(plan), instructions=instructions)
        )

    def commit(self, plan: Plan, reply: SummariserReply | None) -> Outcome:
        """`CommitCompaction`."""
        return self.perform(CommitCompaction(plan=plan, reply=reply))

    def cancel(self, plan: str = "P1", *, session: str = _SESSION) -> Outcome:
        """`CancelCompaction`."""
        return self.perform(CancelCompaction(session=SessionId(session), plan=PlanId(plan)))

    def retry(self, *, session: str = _SESSION) -> Outcome:
        """`Retry`."""
        return self.perform(Retry(session=SessionId(session)))

    def edit(self, target: str, message: Message, *, session: str = _SESSION) -> Outcome:
        """`Edit`."""
        return self.perform(Edit(session=SessionId(session), target=NodeId(target), message=message))

    def send(self, message: Message, *, follows: str | None = None, session: str = _SESSION) -> Outcome:
        """`Send`."""
        return self.perform(Send(session=SessionId(session), message=message, follows=_node(follows)))

    def planned(self, outcome: Outcome) -> Plan:
        """The plan that began with an answer, which must be there."""
        plan = begun_plan(outcome)
        if plan is None:
            raise TypeError(f"expected a plan, the answer was {outcome}")
        return plan

    def set_model(
        self, window: int, max_output: int = 64_000, *, name: str = "model", session: str = _SESSION
    ) -> Outcome:
        """`SetModel`."""
        return self.perform(SetModel(session=SessionId(session), model=model(window, max_output, name)))

    def set_settings(self, settings: Settings, *, session: str = _SESSION) -> Outcome:
        """`SetSettings`."""
        return self.perform(SetSettings(session=SessionId(session), settings=settings))

    def inflict(self, damage: DamageKind, node: str, *, session: str = _SESSION) -> Outcome:
        """`InflictDamage`."""
        return self.perform(InflictDamage(session=SessionId(session), damage=damage, node=NodeId(node)))

    def fork(self, target: str, new_session: str, *, session: str = _SESSION) -> Outcome:
        """`Fork`."""
        return self.perform(
            Fork(session=SessionId(session), target=NodeId(target), new_session=SessionId(new_session))
        )

    def undo(self, *, session: str = _SESSION) -> Outcome:
        """`Undo`."""
        return self.perform(Undo(session=SessionId(session)))

    def restart(self) -> Outcome:
        """`Restart`."""
        return self.perform(Restart())


Scenario: TypeAlias = Callable[[Play], Becomes]
"""Plays an example and answers the change that breaks its clause."""


def model(window: int, max_output: int = 64_000, name: str = "model") -> Model:
    """A model of this window and output, in tokens."""
    return Model(name=ModelName(name), window=Tokens(window), max_output=Tokens(max_output))


def _node(name: str | None) -> NodeId | None:
    return NodeId(name) if name is not None else None
