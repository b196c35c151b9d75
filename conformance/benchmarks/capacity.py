"""How often conversations compact, by the size of their turns and by how far our estimate is from the provider's count.

Run ``uv run python conformance/benchmarks/capacity.py > docs/capacity-trials.md``. Nothing in it is random.
"""

from tailmark.declarations import MeasureReading
from tailmark_conformance.explorers.trials import Counts, Trial, tried

RATIOS = (50, 70, 100, 130, 150, 200)
TURNS = (1, 2, 5, 10, 15, 20, 30, 40)

INTRODUCTION = """# How often it compacts

A simulated conversation of 60 questions in a window of 2,000 tokens, against the reference's model. The provider counts from half to twice our
estimate of the same text; a turn takes from 1 % to 40 % of the window by its count. A summary takes half of its budget. The page is written by
`conformance/benchmarks/capacity.py`, and `model_tests/test_trials.py` holds the bounds that it shows.

A cell says how many compactions there were. No request was above the provider's window in any of these conversations.
"""

READING = """
## What to read from it

- The finer the turns, the fewer the compactions: each frees what stands before the tail, a quarter of the safe limit or more.
- Where the estimate is right or too high, both readings are the same. Where the provider counts more than we estimate, `calibrated` measures the tail in the
  provider's tokens and keeps less of it; `plain` keeps a tail that is larger than it thinks, and compacts more often.
- A turn of a third of the window fills it with the next one: then nearly every answer compacts, whatever the reading. That is what the window
  holds, not a loop: each compaction takes in a turn that was new.
- While the summariser is down nothing is lost and nothing is sent that does not fit: drafts come back until it answers again.
"""


def _row(turn: int, measure: MeasureReading) -> str:
    counts = [tried(Trial(turn=turn, ratio=ratio, measure=measure)) for ratio in RATIOS]
    return f"| {turn} % | " + " | ".join(str(one.compactions) for one in counts) + " |"


def _down(turn: int) -> str:
    counts = [tried(Trial(turn=turn, ratio=ratio, summariser_is_up=False)) for ratio in RATIOS]
    return f"| {turn} % | " + " | ".join(_answered(one) for one in counts) + " |"


def _answered(counts: Counts) -> str:
    return f"{counts.answers} / {counts.refused}"


def _table(title: str, rows: list[str]) -> str:
    heads = " | ".join(f"{ratio / 100:g}" for ratio in RATIOS)
    return "\n".join((f"\n## {title}\n", f"| turn | {heads} |", "|---|" + "---|" * len(RATIOS), *rows))


def main() -> None:
    """Print the page."""
    print(INTRODUCTION)
    print("The columns are what the provider counts for one token of our estimate.")
    for measure in MeasureReading:
        print(_table(f"Compactions under the reading {measure}", [_row(turn, measure) for turn in TURNS]))
    print(_table("Answers and refused drafts while the summariser is down", [_down(turn) for turn in TURNS]))
    print(READING)


if __name__ == "__main__":
    main()
