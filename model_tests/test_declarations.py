"""What a declaration says is kept to: what a subject lacks is not asked, and what it hides is not read."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve
from typing_extensions import override

from tailmark import json_form
from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability, Declaration, Field, Lack
from tailmark.identifiers import CallId, ModelName, NodeId, PartId, PlanId, SessionId, Tokens
from tailmark.judge import PREDICATES
from tailmark.messages import Message, ResultStatus, Role, Text, ToolCall, ToolResult
from tailmark.operations import Append, BeginCompaction, CommitCompaction, Edit, Operation, Send
from tailmark.outcomes import Outcome, Planned, RefusalCode, Refused, Skipped, Stale
from tailmark.plans import SummaryAnswer
from tailmark.views import Observation
from tailmark.wire import MAY_BE_HIDDEN, Observed, Performed, result_of
from tailmark_conformance.explorers.fragments import FRAGMENTS
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.offered import lacks_nothing
from tailmark_conformance.explorers.runs import Run, Selection, replay, run, walk
from tailmark_conformance.explorers.scripts import Script
from tailmark_reference.model.subject import CAPABILITIES, ModelSubject

EVERYTHING = Selection(clauses=tuple(PREDICATES))
SESSION = SessionId("S1")
STEPS = 40


class _Declared(ModelSubject):
    """The model under another declaration. It keeps what it was asked and what it answered."""

    def __init__(
        self,
        *,
        lacks: tuple[Lack, ...] = (),
        hidden: tuple[Field, ...] = (),
        capabilities: tuple[Capability, ...] = CAPABILITIES,
    ) -> None:
        super().__init__()
        self._said = evolve(super().declaration, lacks=lacks, hidden=hidden, capabilities=capabilities)
        self.asked: list[Operation] = []
        self.appended: list[tuple[Message, int]] = []
        """Appended messages, and how many calls were open before each."""
        self.answered: list[Outcome] = []

    @property
    @override
    def declaration(self) -> Declaration:
        return self._said

    @override
    def perform(self, operation: Operation) -> Outcome:
        self.asked.append(operation)
        if isinstance(operation, Append | Send | Edit):
            views = {view.session: view for view in super().observe().sessions}
            view = views.get(operation.session)
            self.appended.append((operation.message, len(view.open_calls) if view is not None else 0))
        self.answered.append(super().perform(operation))
        return self.answered[-1]


def _runs(subject: _Declared, count: int) -> list[Run]:
    names = tuple(FRAGMENTS)
    return [
        walk(subject, Random(number), STEPS, EVERYTHING, first=names[number % len(names)])
        for number in range(count)
    ]


@pytest.mark.parametrize("lack", Lack)
def test_what_is_lacking_is_not_asked(lack: Lack) -> None:
    """A subject is asked nothing that it lacks, much else, and is not found wrong for it."""
    subject = _Declared(lacks=(lack,))
    for one in _runs(subject, 8):
        assert not one.faults
    assert all(lacks_nothing(operation, (lack,)) for operation in subject.asked)
    assert len(subject.asked) > 8 * STEPS // 2


def test_what_would_be_refused_is_the_callers_to_avoid() -> None:
    """Where refusals are lacking, nothing is asked that the rules refuse, skip or call stale."""
    offered = tuple(one for one in CAPABILITIES if one is not Capability.DURABILITY)
    subject = _Declared(lacks=(Lack.REFUSALS,), capabilities=offered)
    for one in _runs(subject, 2 * len(FRAGMENTS)):
        assert not one.faults
    codes = {one.code for one in subject.answered if isinstance(one, Refused)}
    # Which settings contradict each other is decided by figures that are the implementation's own, and a
    # plan that was good may be so no more when they changed.
    assert codes <= {RefusalCode.SETTINGS, RefusalCode.PLAN}
    assert not any(isinstance(one, Stale | Skipped) for one in subject.answered)


def test_what_is_asked_goes_on_without_most_of_it() -> None:
    """Where nearly everything is lacking, messages are appended and compactions run all the same."""
    operations = tuple(lack for lack in Lack if lack is not Lack.REFUSALS)
    subject = _Declared(lacks=(*operations, Lack.REFUSALS), capabilities=(Capability.VIEW,))
    runs = _runs(subject, 12)
    assert not any(one.faults for one in runs)
    assert {operation.kind for operation in subject.asked} >= {
        "append",
        "begin-compaction",
        "commit-compaction",
    }


def _stripped(plain: Any, hidden: tuple[Field, ...]) -> Any:  # Any: plain JSON values
    """A result without what may be left out, as far as reading it without is possible."""
    for names in MAY_BE_HIDDEN.values():
        for name in sorted(names):
            plain = _without(plain, name, hidden)
    return plain


def _without(plain: Any, name: str, hidden: tuple[Field, ...]) -> Any:  # Any: plain JSON values
    method = "observe" if "outcome" not in plain else "perform"

    def left_out(value: Any) -> Any:  # Any: plain JSON values
        if isinstance(value, dict) and "parts" in value:
            return value  # A message, of which all is shown.
        if isinstance(value, dict):
            return {key: left_out(part) for key, part in value.items() if key != name}
        return [left_out(part) for part in value] if isinstance(value, list) else value

    shorter = left_out(plain)
    try:
        result_of(method, shorter, hidden)
    except json_form.JsonFormError:
        return plain
    return shorter


class _Stripped(_Declared):
    """The model behind the wire, which leaves out what it does not show."""

    @override
    def perform(self, operation: Operation) -> Outcome:
        plain = json_form.unstructure(Performed(outcome=super().perform(operation)))
        result = result_of("perform", _stripped(plain, self.declaration.hidden), self.declaration.hidden)
        assert isinstance(result, Performed)
        return result.outcome

    @override
    def observe(self) -> Observation:
        return self._shown(super().observe())

    @override
    def observe_fresh(self) -> Observation:
        return self._shown(super().observe_fresh())

    def _shown(self, observation: Observation) -> Observation:
        plain = json_form.unstructure(Observed(observation=observation))
        result = result_of("observe", _stripped(plain, self.declaration.hidden), self.declaration.hidden)
        assert isinstance(result, Observed)
        assert result.observation is not None
        return result.observation


def test_nothing_interrupts_an_open_call() -> None:
    """Where interruptions are lacking, nothing but results comes while a call is open."""
    subject = _Declared(lacks=(Lack.INTERRUPTIONS,))
    for one in _runs(subject, 8):
        assert not one.faults
    assert any(open_calls for _, open_calls in subject.appended)
    assert all(message.role is Role.TOOL for message, open_calls in subject.appended if open_calls)


def test_a_summary_is_brought_where_one_is_asked_for() -> None:
    """Where refusals are lacking, a commit brings a reply if and only if the plan has a request."""
    subject = _Declared(lacks=(Lack.REFUSALS,), capabilities=(Capability.VIEW, Capability.HISTORY))
    _runs(subject, 8)
    commits = [operation for operation in subject.asked if isinstance(operation, CommitCompaction)]
    assert commits
    assert all((commit.reply is None) == (commit.plan.request is None) for commit in commits)


def test_a_script_is_asked_again_as_it_may_be_asked() -> None:
    """What a shorter script would ask that the subject lacks is left out: here a result whose call went missing."""
    call = ToolCall(id=PartId("call"), call=CallId("c1"), name="look", input="{}")
    result = ToolResult(id=PartId("result"), call=CallId("c1"), status=ResultStatus.OUTPUT, text="")
    asks = Append(session=SESSION, message=Message(id=NodeId("A1"), role=Role.ASSISTANT, parts=(call,)))
    answers = Append(session=SESSION, message=Message(id=NodeId("T1"), role=Role.TOOL, parts=(result,)))
    model = Model(name=ModelName("m"))
    for entries, asked in (((asks, answers), 2), ((answers,), 0)):
        subject = _Declared(lacks=(Lack.REFUSALS,))
        script = Script(sessions=(SESSION,), model=model, entries=entries)
        assert replay(subject, script, EVERYTHING).steps == len(subject.asked) == asked


def _three_turns(known: Known) -> Iterator[Operation]:
    """Two short turns are compacted, a long one follows, and the place advances to it."""
    for name, text in (("U1", "hi"), ("U2", "hi"), ("U3", "word " * 40)):
        if name == "U3":
            (plan,) = known.plans_of(SESSION)
            reply = SummaryAnswer(parts=(Text(id=PartId("text"), text="a summary"),))
            yield CommitCompaction(plan=plan, reply=reply)
        message = Message(id=NodeId(name), role=Role.USER, parts=(Text(id=PartId("text"), text=text),))
        yield Append(session=SESSION, message=message)
        if name != "U1":
            yield BeginCompaction(session=SESSION, plan=PlanId(f"P-{name}"))


def test_where_budgets_are_hidden_no_place_is_expected_for_their_sake() -> None:
    """A subject that cannot show its tail budget may advance its place (TRG-4)."""
    subject = _Declared(hidden=(Field.BUDGETS,), capabilities=(Capability.VIEW, Capability.HISTORY))
    settings = Settings(tail=Tokens(60))
    seen = run(subject, (SESSION,), Model(name=ModelName("m")), settings, _three_turns, EVERYTHING)
    last = subject.answered[-1]
    assert isinstance(last, Planned)
    assert last.plan.first_kept == "U3"
    assert not seen.faults
    assert "TRG-4" in seen.hidden


@pytest.mark.parametrize("field", Field)
def test_what_is_hidden_is_not_read(field: Field) -> None:
    """A subject that leaves out what it declares hidden is not found wrong for it."""
    subject = _Stripped(hidden=(field,), capabilities=(Capability.VIEW, Capability.HISTORY, Capability.TREE))
    for one in _runs(subject, 4):
        assert not one.faults, next(iter(one.faults.values()))


def test_what_may_be_left_out_is_left_out() -> None:
    """Every field that may be hidden can be left out, and is there again, meaning nothing."""
    subject = _Stripped(hidden=tuple(Field))
    subject.reset((SessionId("S1"),), Model(name=ModelName("m")), Settings())
    assert not any(one.faults for one in _runs(subject, 4))
