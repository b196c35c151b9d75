"""What must hold when a plan comes back, each condition on its own (CMT).

`CommitConditions` is the one list of it. Each condition is a function of `CommitFacts`, so that
a store can be given one wrong condition and the specification be shown to notice.
"""

import sqlite3
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias, assert_never

from attrs import frozen

from tailmark.declarations import Readings
from tailmark.identifiers import NodeId, Tokens
from tailmark.messages import Reasoning, Text, ToolCall
from tailmark.plans import (
    EditFor,
    FinishReason,
    Plan,
    SendFor,
    SummariserReply,
    SummaryAnswer,
    SummaryFailure,
    Trigger,
)
from tailmark_reference.estimate import Estimator
from tailmark_reference.store.compaction import Drawn, Wish, determine_plan
from tailmark_reference.store.process import PlanStatus, Process
from tailmark_reference.store.queries import OpenCallRow, SessionRow, node_by_id, open_calls, session_and_node
from tailmark_reference.store.sizes import scaled


@frozen(slots=False)  # the columns are read when a condition first asks for them
class CommitFacts:
    """A plan that comes back, and what the store and the process know when it does."""

    connection: sqlite3.Connection
    process: Process
    estimator: Estimator
    readings: Readings
    plan: Plan
    reply: SummariserReply | None

    @property
    def status(self) -> PlanStatus | None:
        """What became of the plan in this process."""
        return self.process.plan_status(self.plan.session, self.plan.id)

    @property
    def is_running(self) -> bool:
        """Whether an answer runs on the plan's session."""
        return self.process.running(self.plan.session) is not None

    @property
    def first_id(self) -> NodeId:
        """The id that the checkpoint gets, if nothing has it."""
        return NodeId(f"checkpoint:{self.plan.id}")

    @cached_property
    def _looked_up(self) -> tuple[SessionRow | None, int | None]:
        return session_and_node(self.connection, self.plan.session, self.first_id)

    @property
    def known_session(self) -> SessionRow | None:
        """The plan's session as it is now."""
        return self._looked_up[0]

    @property
    def is_first_id_taken(self) -> bool:
        """Whether a node has the checkpoint's first id."""
        return self._looked_up[1] is not None

    @property
    def session(self) -> SessionRow:
        """As `known_session`, once it was found to exist."""
        session = self.known_session
        assert session is not None
        return session

    @cached_property
    def open_calls(self) -> tuple[OpenCallRow, ...]:
        """The calls that are open at the end of the branch now."""
        return open_calls(self.connection, self.session.leaf, self.session.open_since)

    @property
    def begun(self) -> Plan | None:
        """The plan as this process answered it."""
        return self.process.begun(self.plan.session, self.plan.id)

    @cached_property
    def drawn(self) -> Drawn | None:
        """The plan that this state determines for the wishes in the plan that came back, and how (CMT-4)."""
        wish = Wish(
            plan=self.plan.id,
            trigger=self.plan.trigger,
            model=self.plan.model,
            budgets=self.plan.budgets,
            purpose=self.plan.purpose,
            draft=self.plan.draft,
            instructions=self.plan.instructions,
        )
        drawn = determine_plan(self.connection, self.estimator, self.session, wish, self.readings)
        return drawn if isinstance(drawn, Drawn) else None

    @property
    def determined(self) -> Plan | None:
        """As `drawn`, the plan alone."""
        return None if self.drawn is None else self.drawn.plan

    def scaled(self, tokens: int) -> int:
        """An estimate with the plan's ratio."""
        return scaled(tokens, self.plan.occupancy, self.readings.measure)

    @cached_property
    def summary_size(self) -> Tokens:
        """What the summary that came back costs."""
        return self.estimator.summary(summary_of(self))

    @property
    def fitted(self) -> bool:
        """Whether the plan's request fitted without a compaction."""
        used = self.plan.occupancy.tokens + self.scaled(self.plan.draft)
        return used <= self.plan.budgets.safe

    @property
    def lands(self) -> bool:
        """Whether the next request would fit behind the new checkpoint."""
        plan = self.plan
        after = plan.budgets.overhead + self.summary_size + plan.tokens_after + plan.draft
        return self.scaled(after) <= plan.budgets.safe


def _answer_text(reply: SummaryAnswer) -> str:
    return "\n\n".join(part.text for part in reply.parts if isinstance(part, Text))


def summary_of(facts: CommitFacts) -> str:
    """The summary that the plan's checkpoint gets."""
    match facts.reply:
        case SummaryAnswer():
            return _answer_text(facts.reply)
        case SummaryFailure():
            return facts.reply.text
        case None:
            # No reply is asked for only where the previous summary is taken over.
            assert facts.plan.previous_summary is not None
            return facts.plan.previous_summary
        case _:
            assert_never(facts.reply)


CommitCondition: TypeAlias = Callable[[CommitFacts], bool]


def not_cancelled(facts: CommitFacts) -> bool:
    """This process did not cancel the plan (CMT-8)."""
    return facts.status is not PlanStatus.CANCELLED


def same_leaf(facts: CommitFacts) -> bool:
    """The session's leaf is the plan's (CMT-1)."""
    return facts.session.leaf_id == facts.plan.leaf


def same_revision(facts: CommitFacts) -> bool:
    """The session's revision is the plan's (CMT-2)."""
    return facts.session.revision == facts.plan.revision


def no_open_call(facts: CommitFacts) -> bool:
    """No call is open at the end of the branch (CMT-3)."""
    return not facts.open_calls


def no_running_answer(facts: CommitFacts) -> bool:
    """No answer runs on the session (CMT-3)."""
    return not facts.is_running


def not_spent(facts: CommitFacts) -> bool:
    """The plan had no answer yet."""
    return facts.status is not PlanStatus.SPENT


def begun_here(facts: CommitFacts) -> bool:
    """This process began a plan of this name on this session. What compares with that plan is met where there is none."""
    return facts.status is not None


def same_state(facts: CommitFacts) -> bool:
    """The plan names the leaf and the revision that it was begun on (CMT-4, CMT-10)."""
    plan, begun = facts.plan, facts.begun
    return begun is None or (plan.leaf, plan.revision) == (begun.leaf, begun.revision)


def same_trigger(facts: CommitFacts) -> bool:
    """The plan's trigger is the one that it was begun with (CMT-4)."""
    return facts.begun is None or facts.plan.trigger is facts.begun.trigger


def same_terms(facts: CommitFacts) -> bool:
    """Model, budgets and instructions are those that the plan was begun on (CMT-4, CMT-13)."""
    plan, begun = facts.plan, facts.begun
    return begun is None or (plan.model, plan.budgets, plan.instructions) == (
        begun.model,
        begun.budgets,
        begun.instructions,
    )


def same_purpose(facts: CommitFacts) -> bool:
    """The plan makes room for the request that it was begun for (CMT-4)."""
    plan, begun = facts.plan, facts.begun
    return begun is None or (plan.purpose, plan.draft) == (begun.purpose, begun.draft)


def same_occupancy(facts: CommitFacts) -> bool:
    """The plan was measured as the state is (CMT-4)."""
    return facts.determined is not None and facts.plan.occupancy == facts.determined.occupancy


def same_base(facts: CommitFacts) -> bool:
    """The plan's base is the one that the state determines (CMT-4)."""
    return facts.determined is not None and facts.plan.base == facts.determined.base


def same_place(facts: CommitFacts) -> bool:
    """The plan's place is the one that the state determines (CMT-4)."""
    return facts.determined is not None and facts.plan.first_kept == facts.determined.first_kept


def same_present_place(facts: CommitFacts) -> bool:
    """The plan's old place is the present one (CMT-4)."""
    return facts.determined is not None and facts.plan.old_first_kept == facts.determined.old_first_kept


def same_excluded(facts: CommitFacts) -> bool:
    """The plan excludes the messages between the two places (CMT-4)."""
    return facts.determined is not None and facts.plan.excluded == facts.determined.excluded


def same_previous_checkpoint(facts: CommitFacts) -> bool:
    """The plan takes over from the latest checkpoint (CMT-4)."""
    return (
        facts.determined is not None
        and facts.plan.previous_checkpoint == facts.determined.previous_checkpoint
    )


def same_previous_summary(facts: CommitFacts) -> bool:
    """The plan carries the latest checkpoint's summary (CMT-4)."""
    return facts.determined is not None and facts.plan.previous_summary == facts.determined.previous_summary


def same_refresh(facts: CommitFacts) -> bool:
    """The plan is a refresh exactly where the place stays (CMT-4)."""
    return facts.determined is not None and facts.plan.refresh == facts.determined.refresh


def same_request(facts: CommitFacts) -> bool:
    """The summariser was asked for what the state and the plan's instructions determine (CMT-4)."""
    return facts.determined is not None and facts.plan.request == facts.determined.request


def same_size_before(facts: CommitFacts) -> bool:
    """The plan's size before is the projection's (CMT-4)."""
    return facts.determined is not None and facts.plan.tokens_before == facts.determined.tokens_before


def same_size_after(facts: CommitFacts) -> bool:
    """The plan's size after is the tail's (CMT-4)."""
    return facts.determined is not None and facts.plan.tokens_after == facts.determined.tokens_after


def reply_as_requested(facts: CommitFacts) -> bool:
    """A reply is there exactly where a request was made."""
    return (facts.reply is None) == (facts.plan.request is None)


def summariser_answered(facts: CommitFacts) -> bool:
    """The reply is no failure (CMT-14)."""
    return not isinstance(facts.reply, SummaryFailure)


def not_truncated(facts: CommitFacts) -> bool:
    """The answer was not cut off at its output cap (CMT-15)."""
    return not isinstance(facts.reply, SummaryAnswer) or facts.reply.finish is not FinishReason.LENGTH


def is_text(facts: CommitFacts) -> bool:
    """The answer is text, not a tool call or reasoning instead of it (CMT-15)."""
    if not isinstance(facts.reply, SummaryAnswer):
        return True
    kinds = {type(part) for part in facts.reply.parts}
    calls = ToolCall in kinds or facts.reply.finish is FinishReason.TOOL_CALL
    return not calls and (Text in kinds or Reasoning not in kinds)


def not_blank(facts: CommitFacts) -> bool:
    """The answer's text says something (CMT-15)."""
    return not isinstance(facts.reply, SummaryAnswer) or bool(_answer_text(facts.reply).strip())


def draft_is_new(facts: CommitFacts) -> bool:
    """Nothing has the id of the message that waits to be sent."""
    purpose = facts.plan.purpose
    return not isinstance(purpose, SendFor | EditFor) or (
        node_by_id(facts.connection, purpose.message.id) is None
    )


def within_summary_budget(facts: CommitFacts) -> bool:
    """The summary keeps its budget; a manual one may exceed it if the next request fits (SUM-6)."""
    if facts.scaled(facts.summary_size) <= facts.plan.budgets.summary:
        return True
    return facts.plan.trigger is Trigger.MANUAL and facts.lands


def makes_smaller(facts: CommitFacts) -> bool:
    """A compaction that nobody asked for makes the next request smaller (CMT-16)."""
    after = facts.summary_size + facts.plan.tokens_after
    return facts.plan.trigger is Trigger.MANUAL or after < facts.plan.tokens_before


def fits_in_the_end(facts: CommitFacts) -> bool:
    """A request that needed its compaction fits behind it (TRG-9)."""
    return facts.plan.trigger is not Trigger.PREFLIGHT or facts.fitted or facts.lands


@frozen(kw_only=True)
class CommitConditions:
    """What must hold when a plan comes back, in the order in which it is asked."""

    not_cancelled: CommitCondition = not_cancelled
    same_leaf: CommitCondition = same_leaf
    same_revision: CommitCondition = same_revision
    no_open_call: CommitCondition = no_open_call
    no_running_answer: CommitCondition = no_running_answer
    not_spent: CommitCondition = not_spent
    begun_here: CommitCondition = begun_here
    same_state: CommitCondition = same_state
    same_trigger: CommitCondition = same_trigger
    same_terms: CommitCondition = same_terms
    same_purpose: CommitCondition = same_purpose
    same_occupancy: CommitCondition = same_occupancy
    same_base: CommitCondition = same_base
    same_place: CommitCondition = same_place
    same_present_place: CommitCondition = same_present_place
    same_excluded: CommitCondition = same_excluded
    same_previous_checkpoint: CommitCondition = same_previous_checkpoint
    same_previous_summary: CommitCondition = same_previous_summary
    same_refresh: CommitCondition = same_refresh
    same_request: CommitCondition = same_request
    same_size_before: CommitCondition = same_size_before
    same_size_after: CommitCondition = same_size_after
    reply_as_requested: CommitCondition = reply_as_requested
    summariser_answered: CommitCondition = summariser_answered
    not_truncated: CommitCondition = not_truncated
    is_text: CommitCondition = is_text
    not_blank: CommitCondition = not_blank
    draft_is_new: CommitCondition = draft_is_new
    within_summary_budget: CommitCondition = within_summary_budget
    makes_smaller: CommitCondition = makes_smaller
    fits_in_the_end: CommitCondition = fits_in_the_end


COMMIT_CONDITIONS = CommitConditions()
