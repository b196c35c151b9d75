"""How soon each wrong rule and each missing condition is caught, as the table in ``docs/bites.md``.

Run ``uv run python conformance/benchmarks/bites.py > docs/bites.md``. The same seed gives the same table.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import cyclopts

from tailmark.subjects import Subject
from tailmark_conformance.mutants.hunting import Catch, hunt
from tailmark_conformance.mutants.wrong_conditions import CONDITIONS, store_without
from tailmark_conformance.mutants.wrong_rules import WRONG_RULES
from tailmark_reference.model.subject import ModelSubject

INTRODUCTION = """# What the suite catches

Each row is an implementation with one fault. It is explored with generated operations until both oracles have caught it: the
predicates, by the clauses named, and the model. "Operations" counts up to the first fault that either of them saw, over traces of fifty operations
from seed 0. `model_tests/test_wrong_rules.py` holds the suite to it; this page is written by `conformance/benchmarks/bites.py`.
"""


def main(*, traces: int = 400, steps: int = 50) -> None:
    """Hunt every wrong implementation and print the page.

    Parameters
    ----------
    traces
        At most so many traces for each.
    steps
        Operations in a trace.
    """
    print(INTRODUCTION)
    print("## The model with one wrong rule\n")
    print("| wrong rule | what it does | operations | clauses |\n|---|---|---|---|")
    for wrong in WRONG_RULES:
        catch = _caught(ModelSubject(wrong.rules), traces, steps)
        print(f"| {wrong.id} | {wrong.sentence} | {_cells(catch)} |")
    print("\n## The store without one condition of its commit\n")
    print("| condition | operations | clauses |\n|---|---|---|")
    for condition, subject in _stores():
        catch = _caught(subject, traces, steps)
        print(f"| {condition} | {_cells(catch)} |")


def _caught(subject: Subject, traces: int, steps: int) -> Catch:
    catch = hunt(subject, seed=0, traces=traces, steps=steps)
    subject.close()
    return catch


def _stores() -> Iterator[tuple[str, Subject]]:
    for condition in CONDITIONS:
        with tempfile.TemporaryDirectory() as folder:
            yield condition, store_without(condition, Path(folder))


def _cells(catch: Catch) -> str:
    clauses = ", ".join(sorted(catch.clauses)) or ("it crashes" if catch.crashed else "none")
    return f"{catch.first_step} | {clauses}"


if __name__ == "__main__":
    cyclopts.run(main)
