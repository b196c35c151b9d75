"""Audits recorded sessions: imports them, judges every step, and answers one report value.

Which finding comes from where: damage (DMG-1) comes from reading and importing, everything else from the
predicates that judge live implementations. A predicate is asked only where a log is evidence for its clause:
`OBSERVABLE` lists these clauses. The others are `not-observed`, because the importer itself fills in what they speak of.

Memory: `MEMORY_BASE`, what `memory_of` answers, and the line that is being read: 3 times its length where texts make
it long, 30 times at worst. An audit stops where `MOST_MEMORY` would be passed, and says so.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from attrs import define, field, frozen

from tailmark.identifiers import ClauseId, NodeId
from tailmark.judge import PREDICATES, Judge, Judgement, StepVerdict
from tailmark_conformance.recorded.detect import IMPORTERS, detect
from tailmark_conformance.recorded.importing import (
    DAMAGE,
    AbandonedCall,
    CheckpointFacts,
    Finding,
    Format,
    Imported,
    ImportedStep,
    Importer,
    RequestFacts,
    TakenOver,
    Tally,
)
from tailmark_conformance.recorded.reading import BadLine, Progress, UnusableError, read_records
from tailmark_conformance.recorded.records import clean

MEMORY_BASE = 80 * 1024**2
"""Bytes that an audit takes with nothing read."""
MOST_MEMORY = 1024**3
"""Bytes that what was read may take."""
MOST_FINDINGS = 10_000
"""So many findings of a file are kept; the others are counted."""


def memory_of(tally: Tally) -> int:
    """Bytes that what was counted takes at most, however long the texts are."""
    heavy = tally.messages + tally.tool_calls + tally.tool_results
    return 1024 * heavy + 320 * tally.other_records


OBSERVABLE: frozenset[ClauseId] = frozenset(
    ClauseId(clause) for clause in ("TREE-11", "BND-1", "BND-2", "BND-7", "BND-8", "TRG-14", "CMT-3")
)
"""The clauses for which a log is evidence: which results the agent took, and where and when it made its checkpoints."""


class AuditVerdict(StrEnum):
    """What a file says of a clause."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_OBSERVED = "not-observed"
    """The log cannot tell, or nothing happened in it to which the clause applies."""


@frozen(kw_only=True)
class ClauseReport:
    """One clause and the steps of a file: on how many it held, was violated, or could not be seen."""

    clause: ClauseId
    verdict: AuditVerdict
    holds: int
    violated: int
    hidden: int


@frozen(kw_only=True)
class FileReport:
    """What one file says.

    ``problem`` is why it was not judged, or not to its end. Without a ``format`` nothing could be read, and all else is empty.

    ``messages``, ``tool_calls`` and ``tool_results`` count what the log holds; ``turns`` those that were opened;
    ``branches`` the ends of its tree; ``sessions`` its conversations, subagents included. ``other_records`` say
    nothing of a conversation. ``abandoned`` are calls that never got a result. ``findings`` are by line; ``more_findings``
    were made beyond `MOST_FINDINGS`.
    """

    path: str
    format: Format | None
    problem: str | None
    lines: int
    damaged_lines: int
    other_records: int
    branched_from: str | None
    sessions: int
    messages: int
    tool_calls: int
    tool_results: int
    turns: int
    branches: int
    open_calls: int
    abandoned: tuple[AbandonedCall, ...]
    checkpoints: tuple[CheckpointFacts, ...]
    requests: tuple[RequestFacts, ...]
    findings: tuple[Finding, ...]
    more_findings: int
    clauses: tuple[ClauseReport, ...]


@frozen(kw_only=True)
class AuditReport:
    """What an audit found, in the order in which the files were named."""

    files: tuple[FileReport, ...]


def exit_code(report: AuditReport) -> int:
    """0: nothing was found. 1: something was. 2: a file could not be read as a session."""
    if any(file.problem is not None for file in report.files):
        return 2
    return 1 if any(file.findings for file in report.files) else 0


def audit_files(paths: Sequence[Path], progress: Progress | None = None) -> AuditReport:
    """Audit each file. ``progress`` is told the bytes done and the bytes in all; errors are values in the report."""
    sizes = [_size(path) for path in paths]
    total = sum(sizes)
    reports = []
    for number, path in enumerate(paths):
        before = sum(sizes[:number])
        reports.append(audit_file(path, _part_of(progress, before, total)))
    return AuditReport(files=tuple(reports))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except (OSError, ValueError):  # the audit of this file says what is wrong with it
        return 0


def _part_of(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


def audit_file(path: Path, progress: Progress | None = None) -> FileReport:
    """Audit one file."""
    try:
        found = detect(path)
        return _Audit(IMPORTERS[found]()).run(path, progress)
    except UnusableError as error:
        return FileReport(
            path=clean(str(path)),
            format=None,
            problem=clean(f"{path}: {error}"),
            lines=0,
            damaged_lines=0,
            other_records=0,
            branched_from=None,
            sessions=0,
            messages=0,
            tool_calls=0,
            tool_results=0,
            turns=0,
            branches=0,
            open_calls=0,
            abandoned=(),
            checkpoints=(),
            requests=(),
            findings=(),
            more_findings=0,
            clauses=(),
        )


@define
class _Counts:
    holds: int = 0
    violated: int = 0
    hidden: int = 0

    def add(self, verdict: StepVerdict) -> None:
        match verdict:
            case StepVerdict.HOLDS:
                self.holds += 1
            case StepVerdict.VIOLATED:
                self.violated += 1
            case StepVerdict.HIDDEN:
                self.hidden += 1

    def verdict(self) -> AuditVerdict:
        if self.violated:
            return AuditVerdict.VIOLATED
        return AuditVerdict.HOLDS if self.holds else AuditVerdict.NOT_OBSERVED


@define
class _Audit:
    """One file under audit."""

    _importer: Importer
    _judge: Judge = field(init=False)
    _counts: dict[ClauseId, _Counts] = field(init=False)
    _findings: list[Finding] = field(factory=list)
    _more_findings: int = 0
    _damage: int = 0
    _checkpoints: list[CheckpointFacts] = field(factory=list)
    _abandoned: list[AbandonedCall] = field(factory=list)
    _requests: list[RequestFacts] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        observable = {clause: test for clause, test in PREDICATES.items() if clause in OBSERVABLE}
        self._judge = Judge(self._importer.declaration, observable)
        self._counts = {clause: _Counts() for clause in PREDICATES}

    def run(self, path: Path, progress: Progress | None) -> FileReport:
        lines = damaged = 0
        problem = None
        for line in read_records(path, progress):
            lines = line.number
            if isinstance(line, BadLine):
                damaged += 1
                self._importer.lost_line(line.number)
                self._find(Finding(clause=DAMAGE, line=line.number, node=None, text=line.text))
            else:
                self._take(self._importer.feed(line.number, line.fields))
            if memory_of(self._importer.tally) > MOST_MEMORY:
                problem = (
                    f"{path}: holds more than fits {MOST_MEMORY // 1024**2} MiB; it was judged up to "
                    f"line {line.number}; split it to have the rest judged"
                )
                break
        self._take(self._importer.finish())
        tally = self._importer.tally
        return FileReport(
            path=clean(str(path)),
            format=self._importer.format,
            problem=clean(problem) if problem is not None else None,
            lines=lines,
            damaged_lines=damaged,
            other_records=tally.other_records,
            branched_from=self._importer.branched_from,
            sessions=tally.sessions,
            messages=tally.messages,
            tool_calls=tally.tool_calls,
            tool_results=tally.tool_results,
            turns=tally.turns,
            branches=tally.branches,
            open_calls=self._importer.open_calls(),
            abandoned=tuple(self._abandoned),
            checkpoints=tuple(self._checkpoints),
            requests=tuple(self._requests),
            findings=tuple(sorted(self._findings, key=_position)),
            more_findings=self._more_findings,
            clauses=self._clauses(),
        )

    def _clauses(self) -> tuple[ClauseReport, ...]:
        damage = _Counts(holds=self._importer.tally.messages, violated=self._damage)
        counts = {**self._counts, DAMAGE: damage}
        return tuple(
            ClauseReport(
                clause=clause,
                verdict=count.verdict(),
                holds=count.holds,
                violated=count.violated,
                hidden=count.hidden,
            )
            for clause, count in counts.items()
        )

    def _take(self, imported: Iterable[Imported]) -> None:
        for one in imported:
            match one:
                case ImportedStep():
                    for judgement in self._judge.feed(one.step):
                        self._judged(one, judgement)
                case TakenOver(change=change):
                    self._judge.start(change)
                case Finding():
                    self._find(one)
                case AbandonedCall():
                    self._abandoned.append(one)
                case CheckpointFacts():
                    self._checkpoints.append(one)
                case RequestFacts():
                    self._requests.append(one)

    def _judged(self, step: ImportedStep, judgement: Judgement) -> None:
        self._counts[judgement.clause].add(judgement.verdict)
        if judgement.verdict is StepVerdict.VIOLATED:
            self._find(
                Finding(
                    clause=judgement.clause,
                    line=step.line,
                    node=judgement.node or _written(step),
                    text=judgement.text,
                )
            )

    def _find(self, finding: Finding) -> None:
        self._damage += finding.clause == DAMAGE
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(finding)
        else:
            self._more_findings += 1


def _position(finding: Finding) -> tuple[int, ClauseId]:
    return (finding.line if finding.line is not None else 0, finding.clause)


def _written(imported: ImportedStep) -> NodeId | None:
    """The node that a step wrote."""
    written = imported.step.change.nodes
    return written[-1].content.id if written else None
