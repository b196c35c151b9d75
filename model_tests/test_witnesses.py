"""Every interesting situation is reached: sometimes is not never."""

from collections import Counter
from random import Random

from tailmark_conformance.checking import SIZES, Profile
from tailmark_conformance.explorers.runs import Selection, walk
from tailmark_conformance.explorers.strategies import BUILDERS
from tailmark_conformance.explorers.witnesses import WITNESSES
from tailmark_reference.model.subject import ModelSubject

NOTHING = Selection(clauses=(), model=False)


def test_a_standard_run_reaches_every_witness() -> None:
    """Runs as a check of the standard profile makes them, until all are reached."""
    size = SIZES[Profile.STANDARD]
    subject = ModelSubject()
    missing = set(WITNESSES)
    for example in range(size.examples):
        run = walk(subject, Random(f"0:{example}"), size.steps, NOTHING, missing)
        missing -= run.witnesses
        if not missing:
            return
    assert missing == set()


def test_no_kind_of_operation_is_forgotten() -> None:
    """A few runs ask for every kind of operation."""
    subject = ModelSubject()
    kinds: Counter[str] = Counter()
    for example in range(60):
        script = walk(subject, Random(f"1:{example}"), 60, NOTHING).script
        kinds.update(getattr(entry, "kind", "commit-compaction") for entry in script.entries)
    assert len(kinds) == 22
    assert min(kinds.values()) > 10


def test_builders_weigh_something() -> None:
    """A builder that is never chosen is none."""
    assert all(weight > 0 for _, weight in BUILDERS.values())
