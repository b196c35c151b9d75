"""Reports of small checks of subjects that are wrong on purpose, made once."""

import io
from functools import cache

from rich.console import Console

from tailmark_conformance.checking import Profile, prepare, run_check
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.subjects.targets import default_store_dir


@cache
def report_of(subject: str) -> CheckReport:
    """The report of a smoke check of a name in `wrong_subjects`."""
    check = prepare(
        (f"wrong_subjects:{subject}",),
        seed=0,
        examples=None,
        clauses=(),
        profile=Profile.SMOKE,
        store_dir=default_store_dir(),
        workers=1,
    )
    quiet = Console(file=io.StringIO())
    return run_check(check, quiet, quiet)
