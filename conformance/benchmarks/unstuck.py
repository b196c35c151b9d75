"""A long weighted walk on the bare model, to find a state from which no draft can be sent any more.

Run ``uv run python conformance/benchmarks/unstuck.py``. It exits with 1 if there is one.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from random import Random

import cyclopts

from tailmark_conformance.explorers.generated import processes
from tailmark_conformance.explorers.unstuck import stuck


def _walk(seed: int, steps: int, every: int) -> list[str]:
    return [
        f"walk {seed}, step {len(walked)}: {fared.outcome}"
        for walked, fared in stuck(Random(seed), steps, every)
    ]


def main(*, steps: int = 1_000_000, length: int = 100, every: int = 5) -> None:
    """Walk that many steps, in walks of a length, and try to get a draft through every few steps.

    Parameters
    ----------
    steps
        Operations in all.
    length
        Operations in one walk.
    every
        A rescue is tried behind each so many operations.
    """
    began = time.perf_counter()
    walks = range(steps // length)
    with ProcessPoolExecutor(processes()) as pool:
        found = [
            line
            for lines in pool.map(_walk, walks, [length] * len(walks), [every] * len(walks), chunksize=50)
            for line in lines
        ]
    for line in found:
        print(line)
    seconds = time.perf_counter() - began
    print(f"{len(walks) * length} steps, {len(found)} stuck states, {seconds:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    cyclopts.run(main)
