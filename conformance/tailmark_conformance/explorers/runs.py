"""One run of a subject, each step judged by the predicates and by the model."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from random import Random
from typing import Final, TypeAlias

from attrs import evolve, frozen

from tailmark.budgets import Model, Settings
from tailmark.catalogue import Level, clauses
from tailmark.declarations import Capability, Declaration
from tailmark.identifiers import ClauseId, NodeId, SessionId
from tailmark.judge import PREDICATES, Judge, StepVerdict
from tailmark.operations import Operation
from tailmark.subjects import Subject
from tailmark.traces import Step, Trace
from tailmark.views import Change
from tailmark_conformance.explorers import contents, witnesses
from tailmark_conformance.explorers.guarded import GuardedSubject, SubjectError, fault_of
from tailmark_conformance.explorers.known import Known, chance
from tailmark_conformance.explorers.offered import Offer
from tailmark_conformance.explorers.requests import inflict_damage
from tailmark_conformance.explorers.scripts import Script, entries_of, operation_of
from tailmark_conformance.explorers.walks import Walk
from tailmark_conformance.recording import Recorder
from tailmark_conformance.subjects.failures import HangError, ProtocolError
from tailmark_reference.model.admits import Follower, can_follow

MODEL: Final = ClauseId("MODEL")
"""Stands for the model where it does not admit a step."""

CRASH: Final = ClauseId("CRASH")
"""Stands for an exception of the subject, and for a process that ended."""

HANG: Final = ClauseId("HANG")
"""Stands for an answer that did not come."""

PROTOCOL: Final = ClauseId("PROTOCOL")
"""Stands for an answer that is none of the wire."""

NO_ANSWER: Final = (CRASH, HANG, PROTOCOL)
"""What ends a run, because there was no answer to judge."""

ORACLES: Final = ClauseId("ORACLES")
"""Stands for a step that one oracle admits and the other does not."""

PSEUDO_CLAUSES: Final = (MODEL, *NO_ANSWER, ORACLES)
"""What stands in the place of a clause's id without being one."""

SHOULDS: Final = frozenset(one.id for one in clauses().values() if one.level is Level.SHOULD)
"""The clauses that say SHOULD: a subject that does otherwise departs and does not fail."""


@frozen(kw_only=True)
class Selection:
    """By what steps are judged: these clauses, and the model or not. ``shoulds`` are those clauses that say SHOULD."""

    clauses: tuple[ClauseId, ...]
    model: bool = True
    shoulds: frozenset[ClauseId] = SHOULDS

    @property
    def compares(self) -> bool:
        """Whether both oracles judge everything, so that they can be compared."""
        return self.model and len(self.clauses) == len(PREDICATES)


@frozen(kw_only=True)
class Fault:
    """A clause that a step broke. ``step`` counts from 0, -1 is the start. ``signature`` tells faults of one pseudo-clause apart."""

    clause: ClauseId
    step: int
    text: str
    node: NodeId | None = None
    signature: str = ""


FaultKey: TypeAlias = tuple[ClauseId, str]
"""A fault's clause and signature."""


@frozen(kw_only=True)
class Run:
    """What one run showed. ``faults`` has the first fault of each key.

    ``trace`` is ``None`` where nothing was wrong. Behind its steps follows what was ``unanswered``: an operation that ended the run.
    """

    script: Script
    trace: Trace | None
    unanswered: tuple[Operation, ...] = ()
    steps: int
    holds: Counter[ClauseId]
    hidden: frozenset[ClauseId]
    faults: dict[FaultKey, Fault]
    witnesses: frozenset[str]


def cut(one: Run, fault: Fault) -> Run:
    """The run up to a fault. What stands behind it has no part in it."""
    steps = fault.step + 1
    trace = one.trace
    return evolve(
        one,
        script=evolve(one.script, entries=one.script.entries[:steps]),
        trace=evolve(trace, steps=trace.steps[:steps]) if trace is not None else None,
        unanswered=one.unanswered if steps > one.steps else (),
    )


class _Oracles:
    """Both oracles over one run."""

    def __init__(
        self,
        declaration: Declaration,
        sessions: tuple[SessionId, ...],
        model: Model,
        settings: Settings,
        selection: Selection,
    ) -> None:
        self._selection = selection
        # What is not declared is not judged.
        judged = {
            clause: PREDICATES[clause]
            for clause in selection.clauses
            if clauses()[clause].capability in declaration.capabilities
        }
        self._judge = Judge(declaration, judged)
        follows = selection.model and can_follow(declaration)
        self._follower = Follower(declaration, sessions, model, settings) if follows else None
        self._steps = 0
        self.holds: Counter[ClauseId] = Counter()
        self.hidden: set[ClauseId] = set()
        self.faults: dict[FaultKey, Fault] = {}

    def start(self, change: Change) -> None:
        """Take over the first observation."""
        self._judge.start(change)
        if self._follower is not None:
            admission = self._follower.start(change)
            if not admission.admitted:
                self.add(Fault(clause=MODEL, step=-1, text=admission.text))

    def feed(self, step: Step) -> None:
        """Judge one step."""
        sound = not self.faults
        violated = []
        for judgement in self._judge.feed(step):
            match judgement.verdict:
                case StepVerdict.HOLDS:
                    self.holds[judgement.clause] += 1
                case StepVerdict.HIDDEN:
                    self.hidden.add(judgement.clause)
                case StepVerdict.VIOLATED:
                    violated.append(judgement.clause)
                    self.add(
                        Fault(
                            clause=judgement.clause,
                            step=self._steps,
                            text=judgement.text,
                            node=judgement.node,
                        )
                    )
        if self._follower is not None and not self._follower.lost:
            admission = self._follower.feed(step)
            if admission.admitted:
                self.holds[MODEL] += 1
            else:
                self.add(Fault(clause=MODEL, step=self._steps, text=admission.text))
            # Behind a fault the oracles may differ in what they take over.
            if sound and self._selection.compares:
                self._compare(violated, admission.admitted, admission.text)
        self._steps += 1

    def _compare(self, violated: list[ClauseId], admitted: bool, text: str) -> None:
        musts = [clause for clause in violated if clause not in self._selection.shoulds]
        if musts and admitted:
            names = ", ".join(musts)
            self.add(
                Fault(
                    clause=ORACLES,
                    step=self._steps,
                    text=f"the predicates of {names} are violated, the model admits the step",
                    signature=names,
                )
            )
        if not violated and not admitted:
            self.add(
                Fault(
                    clause=ORACLES,
                    step=self._steps,
                    text=f"no predicate is violated, the model does not admit the step: {text}",
                    signature="model",
                )
            )

    def add(self, fault: Fault) -> None:
        """Keep a fault if it is the first of its key."""
        self.faults.setdefault((fault.clause, fault.signature), fault)


Source: TypeAlias = Callable[[Known], Iterator[Operation]]
"""Where the operations come from. What is known is fed after each."""


def run(
    subject: Subject,
    sessions: tuple[SessionId, ...],
    model: Model,
    settings: Settings,
    source: Source,
    selection: Selection,
    *,
    watched: Collection[str] = (),
    look_fresh: bool = True,
) -> Run:
    """Perform what the source says on the emptied subject, and judge each step.

    ``watched`` are the names of the witnesses to look for. ``look_fresh`` as in `Recorder`. Where the subject gives no answer, the run ends with
    one of the faults `NO_ANSWER`. Only a run with a fault keeps its trace.
    """
    oracles = _Oracles(subject.declaration, sessions, model, settings, selection)
    reached: set[str] = set()
    recorder: Recorder | None = None
    start = Change()
    operations: list[Operation] = []
    try:
        recorder = Recorder(
            GuardedSubject(subject), sessions=sessions, model=model, settings=settings, look_fresh=look_fresh
        )
        fault = fault_of("the first observation", recorder.start)
        if fault is not None:
            raise fault
        start = recorder.start
        known = Known(start)
        oracles.start(start)
        watch = witnesses.Watch(known, watched, reached)
        shown = {view.session for view in start.sessions}
        for operation in source(known) if shown.issuperset(sessions) else ():
            operations.append(operation)
            step = recorder.perform(operation)
            try:
                oracles.feed(step)
                if step.change.sessions_gone:
                    # That is broken, and of a session that nobody shows there is nothing more to judge.
                    break
                watch.feed(step)
            except Exception as error:
                # The oracles read only what the vocabulary allows. Is it the subject's fault, or theirs?
                fault = fault_of(operation.kind, step)
                if fault is None:
                    raise
                del recorder.steps[-1]
                raise fault from error
    except SubjectError as error:
        clause = _without_answer(error)
        oracles.add(Fault(clause=clause, step=len(operations) - 1, text=str(error), signature=error.name))
    steps = recorder.steps if recorder is not None else []
    # The last operation of a run that crashed has no outcome, and so no step.
    unanswered = tuple(operations[len(steps) :])
    trace = Trace(
        declaration=subject.declaration,
        sessions=sessions,
        model=model,
        settings=settings,
        start=start,
        steps=tuple(steps),
    )
    return Run(
        script=Script(
            sessions=sessions, model=model, settings=settings, entries=entries_of(steps, unanswered)
        ),
        trace=trace if oracles.faults else None,
        unanswered=unanswered,
        steps=len(steps),
        holds=oracles.holds,
        hidden=frozenset(oracles.hidden),
        faults=oracles.faults,
        witnesses=frozenset(reached),
    )


def _without_answer(error: SubjectError) -> ClauseId:
    match error.cause:
        case HangError():
            return HANG
        case ProtocolError():
            return PROTOCOL
        case _:
            return CRASH


def walk(
    subject: Subject,
    random: Random,
    steps: int,
    selection: Selection,
    watched: Collection[str] = (),
    first: str | None = None,
) -> Run:
    """A run of that many generated operations. ``first`` names the fragment to begin with."""
    # A fresh process costs a store as much as everything else of a step.
    look_fresh = chance(random, 0.5)
    sessions = (SessionId("S1"),) if chance(random, 0.5) else (SessionId("S1"), SessionId("S2"))

    offer = Offer(subject.declaration)
    offers = frozenset(subject.declaration.capabilities)
    model, settings = contents.sizes(random, offers)

    # Little more can be seen of a history once it is damaged, so that comes late.
    sound = steps * 4 // 5 if Capability.DURABILITY in offers and chance(random, 0.2) else steps

    def source(known: Known) -> Iterator[Operation]:
        path = Walk(known, random, first)
        # What is not declared is not asked. A walk may have little else to draw, so draws are bounded.
        drawn = (path.next() for _ in range(10 * steps))
        fitting = (one for one in drawn if offer.has(one, known))
        yield from islice(fitting, sound)
        for _ in range(2):
            damage = inflict_damage(known, random, known.session(random)) if sound < steps else None
            if damage is not None:
                yield damage
            yield from islice(fitting, (steps - sound) // 2)

    return run(
        subject,
        sessions,
        model,
        settings,
        source,
        selection,
        watched=watched,
        look_fresh=look_fresh,
    )


def replay(subject: Subject, script: Script, selection: Selection) -> Run:
    """A script once more. What the subject may not be asked in the state that is reached now is left out."""
    offer = Offer(subject.declaration)

    def source(known: Known) -> Iterator[Operation]:
        for entry in script.entries:
            operation = operation_of(entry, known)
            if operation is not None and offer.has(operation, known):
                yield operation

    return run(subject, script.sessions, script.model, script.settings, source, selection)
