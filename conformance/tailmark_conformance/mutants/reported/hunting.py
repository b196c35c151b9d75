"""What a report's sequence shows on a subject."""

from attrs import frozen

from tailmark.identifiers import ClauseId
from tailmark.judge import Judgement, StepVerdict, judge_trace
from tailmark.subjects import Subject
from tailmark.traces import Trace
from tailmark_conformance.mutants.reported.faulty import Faulty, FaultySubject
from tailmark_conformance.mutants.reported.report import Report
from tailmark_conformance.scenarios.playing import Play
from tailmark_reference.model.subject import ModelSubject


@frozen(kw_only=True)
class Played:
    """A trace and the predicates' word on it."""

    trace: Trace
    judgements: tuple[Judgement, ...]

    def clauses(self, verdict: StepVerdict) -> frozenset[ClauseId]:
        """The clauses of which that was said at some step."""
        return frozenset(one.clause for one in self.judgements if one.verdict is verdict)


def played(report: Report, subject: Subject) -> Played:
    """Play a report's sequence and judge it."""
    play = Play(subject)
    report.script(play)
    return Played(trace=play.trace, judgements=judge_trace(play.trace))


def mutant_of(report: Report) -> Subject:
    """A new subject with the reported fault."""
    if isinstance(report.mutant, Faulty):
        return FaultySubject(report.mutant)
    return ModelSubject(report.mutant.rules)
