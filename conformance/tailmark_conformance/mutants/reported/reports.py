"""All reports, class by class."""

from tailmark_conformance.mutants.reported.boundaries import BOUNDARIES
from tailmark_conformance.mutants.reported.concurrent import CONCURRENT
from tailmark_conformance.mutants.reported.damaged import DAMAGED
from tailmark_conformance.mutants.reported.durable import DURABLE, DURABLE_NOT
from tailmark_conformance.mutants.reported.failures import FAILURES
from tailmark_conformance.mutants.reported.forks import FORKS
from tailmark_conformance.mutants.reported.measures import MEASURES, MEASURES_NOT
from tailmark_conformance.mutants.reported.repeated import REPEATED
from tailmark_conformance.mutants.reported.report import Report, Unexpressed
from tailmark_conformance.mutants.reported.requests import REQUESTS
from tailmark_conformance.mutants.reported.rewinds import REWINDS
from tailmark_conformance.mutants.reported.unstable import UNSTABLE

REPORTS: tuple[Report, ...] = tuple(
    sorted(
        (
            *BOUNDARIES,
            *UNSTABLE,
            *REPEATED,
            *DURABLE,
            *REWINDS,
            *FORKS,
            *CONCURRENT,
            *FAILURES,
            *MEASURES,
            *REQUESTS,
            *DAMAGED,
        ),
        key=lambda report: report.id,
    )
)
"""The reported faults that operations express."""

UNEXPRESSED: tuple[Unexpressed, ...] = (*DURABLE_NOT, *MEASURES_NOT)
"""Those that they do not."""
