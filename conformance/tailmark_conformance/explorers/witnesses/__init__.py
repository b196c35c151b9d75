"""Situations that must be reached sometimes, or a passing check says little.

A witness looks at one step: the state before, the operation, the outcome, the state after, and the plans
begun so far. A test demands that a standard run on the model reaches every one.
"""

from collections.abc import Collection, Mapping

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
    Operation,
    Restart,
    Retry,
    Save,
    Settle,
    StartAnswer,
    Undo,
)
from tailmark.outcomes import Refused
from tailmark.traces import Step
from tailmark_conformance.explorers.forging import FORGED_FIELDS
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.witnesses import answers, branching, calls, compactions, saving
from tailmark_conformance.explorers.witnesses.moments import Kinds, Moment, Witness, session_of
from tailmark_conformance.explorers.witnesses.requests import REQUESTS

_ANY: tuple[type[Operation], ...] = (*answers.OF_SESSIONS, Restart, InflictDamage)
_WRITES: tuple[type[Operation], ...] = (Append, Save)
_SETTLES: tuple[type[Operation], ...] = (Append, Save, Settle)
_FOLLOWS: tuple[type[Operation], ...] = (Append, Abandon, StartAnswer, Retry, Edit, Undo)

WITNESSES: Mapping[str, tuple[Kinds, Witness]] = {
    **answers.outcomes(),
    "parallel calls": (_WRITES, calls.parallel_calls),
    "results out of order": (_SETTLES, calls.out_of_order),
    "a late result": (_SETTLES, calls.late_result),
    "results in both styles": (_SETTLES, calls.both_styles),
    "a preliminary result": (Settle, calls.preliminary_result),
    "a preliminary result is replaced": (Settle, calls.preliminary_replaced),
    "a message with its results in it": (_WRITES, calls.settled_at_birth),
    "an approval": (_WRITES, calls.approval),
    "a denial": (Settle, calls.denied),
    "results by a second append": (Append, calls.settled_by_append),
    "results by a save": (Save, calls.settled_by_save),
    "a call id returns": (_WRITES, calls.returning_call),
    "calls abandoned": (Abandon, calls.abandoned),
    "calls abandoned by an answer's end": (EndAnswer, calls.abandoned_by_end),
    "an answer ends and its calls stay open": (EndAnswer, calls.final_with_open_calls),
    "a restart ends an answer": (Restart, calls.answer_died),
    "steering while calls are open": (Append, calls.steering_on_calls),
    "steering while an answer runs": (Append, calls.steering_on_answer),
    "an oversized turn last": (BeginCompaction, calls.oversized_last),
    "an oversized turn in the middle": (BeginCompaction, calls.oversized_middle),
    "a tail of several turns": (BeginCompaction, calls.keeps_several_turns),
    "a first checkpoint": (CommitCompaction, compactions.first_checkpoint),
    "a checkpoint that advances": (CommitCompaction, compactions.advancing_checkpoint),
    "a refresh": (CommitCompaction, compactions.refresh),
    "three checkpoints on a branch": (CommitCompaction, compactions.third_checkpoint),
    "instructions": (CommitCompaction, compactions.instructed),
    "a compaction after an undo": (CommitCompaction, compactions.compacted_after_undo),
    "stale by another leaf": (CommitCompaction, compactions.stale_by_leaf),
    "stale by another revision on the same leaf": (CommitCompaction, compactions.stale_by_revision),
    "stale on an unstable branch": (CommitCompaction, compactions.stale_over_other_answers),
    "two plans on one state": (CommitCompaction, compactions.stale_of_two),
    "an answer starts between begin and commit": (CommitCompaction, compactions.answer_between),
    "a restart between begin and commit": (CommitCompaction, compactions.forgotten_plan),
    "another model between begin and commit": (CommitCompaction, compactions.undisturbed),
    "a cancel after the end": (CancelCompaction, compactions.cancelled_too_late),
    "a reply is missing": (CommitCompaction, compactions.reply(missing=True)),
    **{
        f"a plan with a forged {field}": (CommitCompaction, compactions.forged(field))
        for field in FORGED_FIELDS
    },
    "the same path saved": (Save, saving.saved_again),
    "a prefix saved": (Save, saving.saved_prefix),
    "an extension saved": (Save, saving.saved_extension),
    "a path with checkpoints saved": (Save, saving.saved_checkpoints),
    "a path with other checkpoints saved": (Save, saving.saved_changed_checkpoint),
    "a known message appended again": (Append, saving.appended_again),
    "a message from off the branch appended": (Append, saving.known_elsewhere),
    "follows behind a checkpoint": (_FOLLOWS, saving.right_follows),
    "a checkpoint as what is followed": (_FOLLOWS, saving.checkpoint_as_follows),
    "a retry across checkpoints": (Retry, branching.leaves_checkpoints),
    "an edit across checkpoints": (Edit, branching.leaves_checkpoints),
    "a retry behind a checkpoint": (Retry, branching.keeps_checkpoint),
    "an edit behind a checkpoint": (Edit, branching.keeps_checkpoint),
    "a retry leaves steering messages": (Retry, branching.leaves_steering),
    "an edit leaves steering messages": (Edit, branching.leaves_steering),
    "a retry without an answer": (Retry, branching.unanswered_retry),
    "a second answer to a question": (Append, branching.answered_anew),
    "a fork before a checkpoint": (Fork, branching.fork_before_checkpoint),
    "a fork behind a checkpoint": (Fork, branching.fork_behind_checkpoint),
    "a fork from off all branches": (Fork, branching.fork_off_branch),
    "a fork of what is being generated": (Fork, branching.fork_of_running_answer),
    "a shared beginning": (Append, branching.shared_nodes_grow),
    "an undo": (Undo, branching.undo_done),
    "an undo down to another checkpoint": (Undo, branching.undo_of_refresh),
    "an undo too late, with a way": (Undo, branching.undo_shows_way),
    "an undo without a way": (Undo, branching.undo_shows_none),
    **REQUESTS,
}
"""Every witness by its name, and the kinds of operations at which it looks."""


class Watch:
    """Looks at one run's steps for the witnesses of the given names, and adds those reached to ``reached``."""

    def __init__(self, known: Known, names: Collection[str], reached: set[str]) -> None:
        self._known = known
        self._reached = reached
        self._by_kind: dict[type[Operation], dict[str, Witness]] = {kind: {} for kind in _ANY}
        for name in names:
            kinds, witness = WITNESSES[name]
            for kind in kinds if isinstance(kinds, tuple) else (kinds,):
                self._by_kind[kind][name] = witness

    def feed(self, step: Step) -> None:
        """Look at a step, and then let what is known take it over."""
        wanted = self._by_kind[type(step.operation)]
        plans = tuple(begun.plan for begun in self._known.plans) if wanted else ()
        before = self._known.scene
        self._known.feed(step)
        session = session_of(step.operation)
        if (
            session is not None
            and not before.knows_session(session)
            and not isinstance(step.outcome, Refused)
        ):
            # A session that is not there can only be refused, and clauses say so.
            return
        if not wanted:
            return
        moment = Moment(before=before, step=step, after=self._known.scene, plans=plans)
        for name, witness in list(wanted.items()):
            if witness(moment):
                self._reached.add(name)
                del wanted[name]
