"""What all reports of a check say in the same words."""

from collections.abc import Iterator

from tailmark.catalogue import clauses
from tailmark.identifiers import ClauseId
from tailmark.operations import Save
from tailmark.traces import Trace
from tailmark_conformance.baseline import KnownFailure
from tailmark_conformance.examination import CheckReport, ClauseReport
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.explorers.runs import CRASH, HANG, MODEL, ORACLES, PROTOCOL
from tailmark_conformance.reports.drawing import draw_tree, scene_of
from tailmark_conformance.reports.story import tell_model, tell_node, tell_operation, tell_outcome
from tailmark_conformance.verdicts import Verdict

_PSEUDO = {
    MODEL: "The model, a second oracle, follows each step and does not admit this one.",
    CRASH: "An operation is answered with an outcome; bad input is an outcome too, never an exception.",
    HANG: "Every call is answered within the time that --timeout gives.",
    PROTOCOL: "Every request is answered by one line, a JSON-RPC response with its id and a result of the vocabulary (docs/wire.md).",
    ORACLES: "Predicates and model must agree about the reference.",
}


def clause_text(clause: ClauseId) -> str:
    """The clause in its own words."""
    return _PSEUDO[clause] if clause in _PSEUDO else clauses()[clause].text


def found_lines(found: Found, *, label: str) -> Iterator[str]:
    """A fault: the clause, its text, the story of its trace, expected and seen, and the tree."""
    yield f"── {found.fault.clause}: {label} (run {found.example}) ──"
    yield clause_text(found.fault.clause)
    yield ""
    trace = found.run.trace
    if trace is not None:
        yield from story_lines(trace)
    for number, operation in enumerate(found.run.unanswered, start=found.run.steps + 1):
        yield f"  {number}. {tell_operation(operation)}"
        yield "     → no answer"
    yield f"  ✗ {found.fault.text}"
    if trace is not None and trace.start.sessions:
        yield ""
        yield from (f"  {line}" for line in draw_tree(scene_of(trace)).splitlines())


def story_lines(trace: Trace) -> Iterator[str]:
    """A trace as a story: each operation and its outcome."""
    yield f"  Sessions {', '.join(trace.sessions)} on {tell_model(trace.model)}."
    for number, step in enumerate(trace.steps, start=1):
        yield f"  {number}. {tell_operation(step.operation)}"
        if isinstance(step.operation, Save):
            yield from (f"     · {tell_node(node)}" for node in step.operation.path)
        yield f"     → {tell_outcome(step.outcome)}"


def reason_of(clause: ClauseReport) -> str:
    """Why the clause has its verdict, in one line. Empty where the verdict says it all."""
    if clause.known is not None and clause.verdict is Verdict.KNOWN_FAILURE:
        known = clause.known
        return f"known until {known.expires}: {known.reason} ({known.link})"
    if clause.known is not None:
        return f"it was known until {clause.known.expires}: mend it, or give it another day"
    if clause.verdict is Verdict.UNTESTABLE:
        return "declared, and never exercised: a failure. More runs may reach it: --examples"
    if clause.verdict is Verdict.SUITE_ERROR and clause.found is not None:
        return f"the reference in the subject's place fails in the same way, so this is the suite's fault: {clause.found.fault.text}"
    if clause.deviation is not None:
        return f"declared as a deviation: {clause.deviation.reason} ({clause.deviation.link})"
    return clause.found.fault.text if clause.found is not None else ""


def stale_line(entry: KnownFailure) -> str:
    """What is to be done with an entry of the baseline that nothing fails with."""
    return (
        f"{entry.clause} with {entry.fingerprint} does not fail any more: take it out of the baseline"
        " (--update-baseline does)"
    )


def closing_line(report: CheckReport) -> str:
    """The last line: the verdict over all, counts, and how to repeat it."""
    word = "conforms" if report.conforms else "does not conform"
    if report.is_suite_error:
        word = "cannot be judged: the suite itself is wrong"
    counts: dict[Verdict, int] = {}
    for clause in report.clauses:
        counts[clause.verdict] = counts.get(clause.verdict, 0) + 1
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    stale = f", {len(report.stale)} stale in the baseline" if report.stale else ""
    stores = f", stores in {report.store_dir}" if report.store_dir is not None else ""
    return (
        f"{report.subject} {word}: {verdicts}{stale}"
        f" ({report.examples} runs, {report.steps} steps, profile {report.profile}, seed {report.seed},"
        f" {report.seconds:.1f} s{stores})"
    )
