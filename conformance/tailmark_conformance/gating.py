"""The gate of a check: its baseline, read before the runs and applied, or brought up to date, behind them."""

from datetime import date
from pathlib import Path

from attrs import frozen

from tailmark_conformance.baseline import Baseline, BaselineError, parse_baseline, read_text
from tailmark_conformance.baseline_writing import updated, write_baseline
from tailmark_conformance.checking import Check
from tailmark_conformance.examination import CheckReport
from tailmark_conformance.gate import gated


@frozen(kw_only=True)
class Gate:
    """A baseline's file. ``text`` is what stood there at the start; ``updates``: it is brought up to date. Build it with `Gate.of`."""

    path: Path
    text: str
    updates: bool

    @classmethod
    def of(cls, check: Check, path: Path, *, updates: bool) -> "Gate":
        """The gate for a check. Raises `BaselineError` for a file that does not fit it."""
        if updates and check.is_partial:
            raise BaselineError(
                "--update-baseline: a part of a profile does not show what is fixed: leave out --clause and --examples"
            )
        text = "" if updates and not path.exists() else read_text(path)
        gate = cls(path=path, text=text, updates=updates)
        if text.strip():
            gate._check(parse_baseline(text, path, drafts=updates), check)
        elif not updates:
            raise BaselineError(f"--baseline {path}: it is empty: --update-baseline makes a new one")
        return gate

    def _check(self, baseline: Baseline, check: Check) -> None:
        if (baseline.profile, baseline.seed) != (check.profile.value, check.effort.seed):
            raise BaselineError(
                f"--baseline {self.path}: it is of --profile {baseline.profile} --seed {baseline.seed}, and this check of"
                f" --profile {check.profile.value} --seed {check.effort.seed}: other faults come up first, so use the same"
            )

    def judged(self, report: CheckReport, today: date) -> tuple[CheckReport, str | None]:
        """The report by the baseline, and a line on what was written. Raises `BaselineError`."""
        if not self.updates:
            return gated(report, parse_baseline(self.text, self.path), today), None
        if not report.complete:
            raise BaselineError(
                f"--update-baseline: the check stopped early, so nothing was written to {self.path}"
            )
        update = updated(self.text, report, today)
        write_baseline(self.path, update.text)
        line = f"{self.path}: {update.added} added, {update.removed} removed."
        if update.added:
            line += " Fill in reason and link of each new entry: until then a check refuses the file."
        return gated(report, parse_baseline(update.text, self.path, drafts=True), today), line
