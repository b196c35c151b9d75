"""Runs what another subject failed with once more, on the reference: what fails there as well is the suite's own fault.

The ids that a subject gave differ from those that the reference gives: they are mapped by the place at which each was written.
"""

from collections.abc import Iterator

from attrs import evolve

from tailmark.budgets import Model, Settings
from tailmark.declarations import Declaration
from tailmark.identifiers import NodeId, SessionId
from tailmark.operations import Operation
from tailmark.outcomes import Committed, Done, Outcome, Sent, TooLarge
from tailmark.subjects import Subject
from tailmark.traces import Step
from tailmark_conformance.explorers.generated import Exploration, Found, Source
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.renaming import with_texts
from tailmark_conformance.explorers.runs import Run, Selection, run
from tailmark_conformance.explorers.scripts import Script, operation_of


def rerun_on(reference: Source, exploration: Exploration, selection: Selection) -> Exploration:
    """The exploration, with each fault that the reference shows too marked as ``on_reference``."""
    if not exploration.found:
        return exploration
    with reference.opened() as subject:
        found = tuple(_rerun(one, subject, selection) for one in exploration.found)
    return evolve(exploration, found=found)


def _rerun(found: Found, subject: Subject, selection: Selection) -> Found:
    if not found.repeats:
        return found
    steps = found.run.trace.steps if found.run.trace is not None else ()
    again = replay_elsewhere(found.run.script, steps, subject, selection)
    return evolve(found, on_reference=found.key in again.faults)


def replay_elsewhere(script: Script, steps: tuple[Step, ...], subject: Subject, selection: Selection) -> Run:
    """A script on another subject than the one that took these steps, with the ids that this one gives."""
    noting = _Noting(subject)

    def source(known: Known) -> Iterator[Operation]:
        ids: dict[str, str] = {}

        def here(text: str) -> str:
            return ids.get(text, text)

        for index, entry in enumerate(script.entries):
            operation = operation_of(with_texts(entry, here), known)
            if operation is None:
                continue
            before = len(noting.outcomes)
            yield operation
            if index < len(steps) and before < len(noting.outcomes):
                there = written_by(steps[index].outcome)
                # Where one wrote more than the other, the others still pair.
                ids.update(zip(there, written_by(noting.outcomes[before]), strict=False))

    return run(noting, script.sessions, script.model, script.settings, source, selection)


def written_by(outcome: Outcome) -> tuple[NodeId, ...]:
    """The ids of the nodes that an outcome says were written, in order."""
    match outcome:
        case Done(written=written):
            return written
        case Committed(checkpoint=checkpoint):
            return (checkpoint,)
        case Sent(written=written, attempt=attempt):
            return (*_of_attempt(attempt), *written)
        case TooLarge(attempt=attempt):
            return _of_attempt(attempt)
        case _:
            return ()


def _of_attempt(attempt: Outcome | None) -> tuple[NodeId, ...]:
    return (attempt.checkpoint,) if isinstance(attempt, Committed) else ()


class _Noting:
    """Passes everything on, and keeps the outcomes since the last reset."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.outcomes: list[Outcome] = []
        self.observe = subject.observe
        self.observe_fresh = subject.observe_fresh
        self.close = subject.close

    @property
    def declaration(self) -> Declaration:
        """As the subject says."""
        return self._subject.declaration

    def reset(self, sessions: tuple[SessionId, ...], model: Model, settings: Settings) -> None:
        """As the subject."""
        self.outcomes.clear()
        self._subject.reset(sessions, model, settings)

    def perform(self, operation: Operation) -> Outcome:
        """As the subject."""
        outcome = self._subject.perform(operation)
        self.outcomes.append(outcome)
        return outcome
