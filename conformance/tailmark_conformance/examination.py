"""Turns what an exploration saw into a verdict for each clause, and into one report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from tailmark.catalogue import Level, clauses
from tailmark.declarations import Capability, Declaration, Deviation
from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES
from tailmark_conformance.baseline import KnownFailure
from tailmark_conformance.explorers.generated import Exploration, Found
from tailmark_conformance.explorers.runs import CRASH, HANG, MODEL, ORACLES, PROTOCOL, Selection
from tailmark_conformance.verdicts import Verdict
from tailmark_reference.model.admits import can_follow

_NO_ANSWER = {CRASH: Verdict.CRASH, HANG: Verdict.HANG, PROTOCOL: Verdict.PROTOCOL_ERROR}


@frozen(kw_only=True)
class ClauseReport:
    """One clause: its verdict, how often it was exercised, and the fault if there is one. ``known`` is the baseline's entry for it.

    `MODEL` and `CRASH`, `HANG` and `PROTOCOL` stand in the list as well, with the level MUST and without a capability.
    """

    id: ClauseId
    level: Level
    capability: Capability | None
    verdict: Verdict
    exercised: int
    found: Found | None = None
    deviation: Deviation | None = None
    known: KnownFailure | None = None


@frozen(kw_only=True)
class CheckReport:
    """What a check has to say. ``seconds`` is all that differs between two checks of the same code with the same seed.

    ``complete``: every run of the profile was made, by every clause. ``stale`` are entries of the baseline that nothing fails with any more.
    """

    subject: str
    profile: str
    declaration: Declaration
    seed: int
    examples: int
    steps: int
    seconds: float
    store_dir: Path | None
    clauses: tuple[ClauseReport, ...]
    disagreements: tuple[Found, ...]
    witnesses: Mapping[str, int]
    complete: bool = True
    stale: tuple[KnownFailure, ...] = ()

    @property
    def conforms(self) -> bool:
        """Whether no clause says otherwise, the oracles agree, and the baseline is up to date."""
        return not self.disagreements and not self.stale and not self.wrong

    @property
    def wrong(self) -> tuple[ClauseReport, ...]:
        """The clauses that make the check fail."""
        return tuple(clause for clause in self.clauses if not clause.verdict.conforms)

    @property
    def is_suite_error(self) -> bool:
        """Whether all that is wrong is the suite's own fault."""
        return (
            bool(self.wrong)
            and not self.disagreements
            and not self.stale
            and all(clause.verdict is Verdict.SUITE_ERROR for clause in self.wrong)
        )


def selection_of(chosen: Sequence[ClauseId] = ()) -> Selection:
    """What to judge by: everything, or the chosen clauses (`MODEL` may be among them)."""
    return Selection(
        clauses=tuple(clause for clause in PREDICATES if not chosen or clause in chosen),
        model=not chosen or MODEL in chosen,
    )


def examine(
    exploration: Exploration,
    selection: Selection,
    *,
    subject: str,
    profile: str,
    seconds: float,
    store_dir: Path | None,
    complete: bool = True,
) -> CheckReport:
    """The report of an exploration. ``complete`` says whether it was a profile's, by every clause."""
    found = {one.fault.clause: one for one in exploration.found if one.fault.clause != ORACLES}
    reports = [_clause_report(clause, exploration, found.get(clause)) for clause in selection.clauses]
    if selection.model:
        reports.append(_model_report(exploration, found.get(MODEL)))
    reports.extend(
        ClauseReport(
            id=one.fault.clause,
            level=Level.MUST,
            capability=None,
            verdict=_broken(one, _NO_ANSWER[one.fault.clause]),
            exercised=0,
            found=one,
        )
        for one in exploration.found
        if one.fault.clause in _NO_ANSWER
    )
    return CheckReport(
        subject=subject,
        profile=profile,
        declaration=exploration.declaration,
        seed=exploration.effort.seed,
        examples=exploration.effort.examples,
        steps=exploration.steps,
        seconds=seconds,
        store_dir=store_dir,
        clauses=tuple(reports),
        disagreements=tuple(one for one in exploration.found if one.fault.clause == ORACLES),
        witnesses=dict(sorted(exploration.witnesses.items())),
        complete=complete and exploration.complete,
    )


def _broken(found: Found, verdict: Verdict) -> Verdict:
    if not found.repeats:
        return Verdict.FLAKY
    return Verdict.SUITE_ERROR if found.on_reference else verdict


def _model_report(exploration: Exploration, found: Found | None) -> ClauseReport:
    exercised = exploration.holds[MODEL]
    if not can_follow(exploration.declaration):
        # What is declared in part is judged by the clauses alone.
        verdict, found = Verdict.NOT_DECLARED, None
    elif found is not None:
        verdict = _broken(found, Verdict.FAIL)
    else:
        verdict = Verdict.PASS if exercised else Verdict.UNTESTABLE
    return ClauseReport(
        id=MODEL, level=Level.MUST, capability=None, verdict=verdict, exercised=exercised, found=found
    )


def _clause_report(clause: ClauseId, exploration: Exploration, found: Found | None) -> ClauseReport:
    known = clauses()[clause]
    declaration = exploration.declaration
    deviation = next((one for one in declaration.deviations if one.clause == clause), None)
    exercised = exploration.holds[clause]
    if known.capability not in declaration.capabilities:
        verdict, found = Verdict.NOT_DECLARED, None
    elif found is not None and deviation is not None:
        verdict = Verdict.DEVIATES
    elif found is not None and known.level is Level.SHOULD:
        verdict = Verdict.DEPARTS
    elif found is not None:
        verdict = _broken(found, Verdict.FAIL)
    elif exercised:
        verdict = Verdict.PASS
    elif clause in exploration.hidden or declaration.lacks:
        # What it lacks is never asked, and so a clause may be out of reach.
        verdict = Verdict.NOT_DECLARED
    else:
        verdict = Verdict.UNTESTABLE
    return ClauseReport(
        id=clause,
        level=known.level,
        capability=known.capability,
        verdict=verdict,
        exercised=exercised,
        found=found,
        deviation=deviation,
    )
