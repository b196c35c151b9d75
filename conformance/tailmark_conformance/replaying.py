"""Runs capsules again: FIXED, STILL FAILS, or ERROR where it cannot be told."""

from enum import StrEnum

from attrs import frozen

from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark_conformance.capsules import Capsule
from tailmark_conformance.examination import selection_of
from tailmark_conformance.explorers.generated import Source
from tailmark_conformance.explorers.guarded import GuardedSubject, SubjectError
from tailmark_conformance.explorers.rerunning import replay_elsewhere
from tailmark_conformance.explorers.runs import MODEL, NO_ANSWER, ORACLES, Fault, Run
from tailmark_conformance.subjects.targets import TargetError
from tailmark_reference.model.admits import can_follow


class Result(StrEnum):
    """What a replay says. A closed list."""

    FIXED = "FIXED"
    STILL_FAILS = "STILL FAILS"
    ERROR = "ERROR"


@frozen(kw_only=True)
class Replayed:
    """A capsule that was run again. ``text`` is one line: what was seen, or why it cannot be told."""

    capsule: Capsule
    result: Result
    text: str
    run: Run | None = None
    fault: Fault | None = None


def replay_capsule(capsule: Capsule, source: Source) -> Replayed:
    """Ask the same once more, with the ids that the subject gives now, and judge by every clause."""
    try:
        with source.opened() as subject:
            untold = _untold(capsule.clause, GuardedSubject(subject))
            if untold is not None:
                return Replayed(capsule=capsule, result=Result.ERROR, text=untold)
            run = replay_elsewhere(capsule.script, capsule.trace.steps, subject, selection_of())
    except TargetError as error:
        return Replayed(capsule=capsule, result=Result.ERROR, text=f"the subject could not be run: {error}")
    return _judged(capsule, run)


def _untold(clause: ClauseId, subject: GuardedSubject) -> str | None:
    """Why this subject is not judged by the clause."""
    try:
        declaration = subject.declaration
    except SubjectError as error:
        return f"{error}"
    if clause in (MODEL, ORACLES):
        return None if can_follow(declaration) else "the model does not follow what this subject declares"
    if clause in NO_ANSWER:
        return None
    capability = clauses()[clause].capability
    if capability not in declaration.capabilities:
        return f"the subject does not declare {capability} any more, so it is not judged by {clause}"
    return None


def _judged(capsule: Capsule, run: Run) -> Replayed:
    fault = run.faults.get((capsule.clause, capsule.signature))
    if fault is not None:
        return Replayed(capsule=capsule, result=Result.STILL_FAILS, text=fault.text, run=run, fault=fault)
    others = tuple(one for one in run.faults.values() if one.clause != ORACLES)
    stopped = next((one for one in others if one.clause in NO_ANSWER), None)
    if stopped is not None and capsule.clause in NO_ANSWER:
        return Replayed(capsule=capsule, result=Result.STILL_FAILS, text=stopped.text, run=run, fault=stopped)
    if stopped is not None:
        return Replayed(
            capsule=capsule, result=Result.ERROR, text=f"the run ended early: {stopped.text}", run=run
        )
    if capsule.clause in run.hidden and not run.holds[capsule.clause]:
        return Replayed(
            capsule=capsule,
            result=Result.ERROR,
            text=f"the subject does not show any more what {capsule.clause} needs",
            run=run,
        )
    return Replayed(capsule=capsule, result=Result.FIXED, text=_told(others), run=run)


def _told(others: tuple[Fault, ...]) -> str:
    if not others:
        return "the same operations break nothing"
    return f"the same operations break something else: {', '.join(one.clause for one in others)}"
