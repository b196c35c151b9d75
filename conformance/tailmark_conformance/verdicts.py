"""What a report says of a clause: a closed list."""

from enum import StrEnum


class Verdict(StrEnum):
    """How an implementation stands to a clause."""

    PASS = "pass"  # noqa: S105  # a verdict and no password
    FAIL = "fail"
    DEPARTS = "departs"
    """A SHOULD was not followed. It never makes a check fail."""
    DEVIATES = "deviates"
    """Broken, and declared to be broken, with a reason and a link."""
    NOT_DECLARED = "not-declared"
    """The implementation does not offer the capability, or cannot show what the clause speaks of."""
    UNTESTABLE = "untestable"
    """Declared, and never exercised: a failure."""
    NOT_OBSERVED = "not-observed"
    """A recorded log cannot tell."""
    CRASH = "crash"
    """The implementation raised where it must answer."""
    HANG = "hang"
    PROTOCOL_ERROR = "protocol-error"
    FLAKY = "flaky"
    """The same operations showed it once and not again: a failure."""
    KNOWN_FAILURE = "known-failure"
    SUITE_ERROR = "suite-error"

    @property
    def conforms(self) -> bool:
        """Whether an implementation with this verdict still conforms."""
        return self in _CONFORMING


_CONFORMING = frozenset(
    {
        Verdict.PASS,
        Verdict.DEPARTS,
        Verdict.DEVIATES,
        Verdict.NOT_DECLARED,
        Verdict.NOT_OBSERVED,
        Verdict.KNOWN_FAILURE,
    }
)
