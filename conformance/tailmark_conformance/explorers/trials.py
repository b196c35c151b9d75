"""A simulated conversation against the model: a provider that counts otherwise than we do, and a summariser that may be down.

What is counted are compactions, drafts that were refused, and requests that the provider could not take.
"""

from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.declarations import MeasureReading, Readings
from tailmark.identifiers import ModelName, NodeId, PartId, SessionId, Tokens
from tailmark.messages import AnswerEnd, Message, Role, Text, Usage
from tailmark.operations import Append, CommitCompaction, EndAnswer, Operation, Send, StartAnswer
from tailmark.outcomes import Committed, Outcome, Sent, TooLarge, begun_plan
from tailmark.plans import Plan, SummariserReply, SummaryAnswer, SummaryFailure
from tailmark_reference.model.observe import project
from tailmark_reference.model.rules import RULES, Rules
from tailmark_reference.model.step import step
from tailmark_reference.model.world import World, empty_world

_SESSION = SessionId("S1")
_AROUND = 6
"""What the reference's estimate adds to the text of a message of one part, in tokens."""


@frozen(kw_only=True)
class Trial:
    """One conversation: ``window`` in tokens; ``turn`` is what a turn costs by the provider's count, in percent of the window; ``ratio`` is what the provider counts
    for a hundred tokens of our estimate."""

    window: int = 2000
    answers: int = 60
    turn: int
    ratio: int
    measure: MeasureReading = MeasureReading.CALIBRATED
    summariser_is_up: bool = True


@frozen(kw_only=True)
class Counts:
    """What happened: answers that were given, checkpoints, drafts refused, and requests above the provider's window."""

    answers: int
    compactions: int
    refused: int
    failed: int


class _Conversation:
    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._rules: Rules = evolve(RULES, readings=Readings(measure=trial.measure))
        model = Model(name=ModelName("model"), window=Tokens(trial.window), max_output=Tokens(trial.window))
        self._world: World = empty_world((_SESSION,), model, Settings())
        self.compactions = 0

    def do(self, operation: Operation) -> Outcome:
        self._world, outcome = step(self._world, operation, self._rules)
        attempt = outcome.attempt if isinstance(outcome, Sent | TooLarge) else outcome
        self.compactions += isinstance(attempt, Committed)
        return outcome

    def finish(self, outcome: Outcome) -> Outcome:
        """Bring the summary that an answer asks for."""
        plan = begun_plan(outcome)
        return outcome if plan is None else self.do(CommitCompaction(plan=plan, reply=self._reply(plan)))

    def _reply(self, plan: Plan) -> SummariserReply:
        if not self._trial.summariser_is_up:
            return SummaryFailure(text="no connection")
        size = max(1, plan.budgets.summary * 100 // max(100, self._trial.ratio) - _AROUND)
        return SummaryAnswer(parts=(_text(size // 2 or 1),))

    def real_size(self) -> int:
        """What the provider counts for the present projection, in its tokens."""
        items = project(self._rules, self._world.sessions[_SESSION].leaf)
        return -(-sum(item.estimate for item in items) * self._trial.ratio // 100)

    @property
    def leaf(self) -> NodeId:
        """The message that the next request is built on."""
        leaf = self._world.sessions[_SESSION].leaf
        assert leaf is not None
        return leaf.id


def _text(tokens: int) -> Text:
    return Text(id=PartId("text"), text="x" * (4 * max(1, tokens)))


def tried(trial: Trial) -> Counts:
    """Hold a conversation of so many questions, and count."""
    conversation = _Conversation(trial)
    turn = trial.window * trial.turn // trial.ratio
    question, answer = max(1, turn // 5 - _AROUND), max(1, turn * 4 // 5 - _AROUND)
    answered = refused = failed = 0
    for number in range(trial.answers):
        draft = Message(id=NodeId(f"U{number}"), role=Role.USER, parts=(_text(question),))
        outcome = conversation.finish(conversation.do(Send(session=_SESSION, message=draft)))
        if not isinstance(outcome, Sent):
            refused += 1
            continue
        conversation.do(StartAnswer(session=_SESSION))
        size = conversation.real_size()
        output = answer * trial.ratio // 100
        if size + output > trial.window:
            failed += 1
            conversation.do(EndAnswer(session=_SESSION, end=AnswerEnd.FAILED, reason="overflow"))
            continue
        usage = Usage(input=Tokens(size), output=Tokens(output), model=ModelName("model"))
        message = Message(
            id=NodeId(f"A{number}"),
            role=Role.ASSISTANT,
            parts=(_text(answer),),
            built_on=conversation.leaf,
            usage=usage,
        )
        conversation.do(Append(session=_SESSION, message=message))
        answered += 1
        conversation.finish(conversation.do(EndAnswer(session=_SESSION, end=AnswerEnd.FINAL)))
    return Counts(answers=answered, compactions=conversation.compactions, refused=refused, failed=failed)
