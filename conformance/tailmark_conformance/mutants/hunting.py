"""How long a wrong implementation survives, and which of the oracles catches it."""

from random import Random

from attrs import define, field

from tailmark.identifiers import ClauseId
from tailmark.judge import PREDICATES
from tailmark.subjects import Subject
from tailmark_conformance.explorers.runs import CRASH, MODEL, ORACLES, SHOULDS, Selection, walk


@define(kw_only=True)
class Catch:
    """What was found in one implementation.

    ``clauses`` are those whose predicates were violated. ``first_step`` counts the steps up to the first
    fault of any oracle, from 1; ``None`` if there was none.
    """

    clauses: set[ClauseId] = field(factory=set)
    by_model: bool = False
    crashed: bool = False
    steps: int = 0
    first_step: int | None = None

    @property
    def by_predicate(self) -> bool:
        """Whether a predicate caught it."""
        return bool(self.clauses)


def hunt(subject: Subject, *, seed: int, traces: int, steps: int) -> Catch:
    """Explore until both oracles have caught the subject, or until that many traces are done.

    Clauses that say SHOULD catch nothing.
    """
    catch = Catch()
    selection = Selection(clauses=tuple(PREDICATES))
    for number in range(traces):
        run = walk(subject, Random(f"{seed}/{number}"), steps, selection)
        for fault in run.faults.values():
            if fault.clause in SHOULDS or fault.clause == ORACLES:
                continue
            at = catch.steps + fault.step + 1
            catch.first_step = at if catch.first_step is None else min(at, catch.first_step)
            match fault.clause:
                case clause if clause == MODEL:
                    catch.by_model = True
                case clause if clause == CRASH:
                    catch.crashed = True
                case clause:
                    catch.clauses.add(clause)
        catch.steps += run.steps
        if catch.crashed or (catch.by_model and catch.by_predicate):
            break
    return catch
