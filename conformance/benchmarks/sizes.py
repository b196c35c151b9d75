"""Our estimates beside what providers counted, for every request of recorded sessions, as a page, a picture and a table.

Run ``uv run python conformance/benchmarks/sizes.py SESSION… --folder docs``. It writes ``sizes.md``, ``sizes.svg`` and ``sizes.csv`` there.
"""

import csv
from pathlib import Path
from xml.sax.saxutils import escape

import cyclopts

from tailmark_conformance.recorded.audit import FileReport, audit_file
from tailmark_conformance.recorded.importing import CheckpointFacts, RequestFacts

WINDOWS = {"claude": 200_000, "gpt-4o": 128_000, "gpt-5": 400_000, "gemini": 1_048_576}
"""Context windows in tokens by the beginning of a model's name, as their providers publish them. Options that change a window are not known to a log."""

WIDTH, HEIGHT, LEFT, GAP = 900, 220, 70, 50

INTRODUCTION = """# Estimates beside usage

For every request of the recorded sessions that `tailmark audit` was tried on: our estimate of the projection beside the input that the provider counted. A
log does not hold the instructions and the tool schemas, so the estimate of the projection alone lies below the count by that overhead. The texts of these
samples were replaced by filler of the same length, which has words where the originals had code, JSON and paths: real tokenizers make
more tokens of those, so here the estimate is lower than it would be on prose.

*Measured* is what the reference goes by: the usage of the answer before, and our estimate of what came since, brought to the
provider's measure (OCC-2, OCC-15). It is prudent where it is 100 % or more. Each line of the picture is in [sizes.csv](sizes.csv); the page is
written by `conformance/benchmarks/sizes.py`.

![Tokens of each request: counted, measured, estimated](sizes.svg)
"""


def _percent(values: list[int]) -> str:
    if not values:
        return "none"
    values = sorted(values)
    tenth = values[len(values) // 10]
    return f"{values[len(values) // 2]} % ({tenth} to {values[len(values) * 9 // 10]} %)"


def _told(report: FileReport) -> list[RequestFacts]:
    return [one for one in report.requests if one.reported > 0]


def _name(report: FileReport) -> str:
    return Path(report.path).name.removesuffix(".gz").removesuffix(".jsonl")


def _summary(report: FileReport) -> str:
    told = _told(report)
    estimates = [100 * one.estimated // one.reported for one in told]
    measured = [100 * one.measured // one.reported for one in told if one.measured is not None]
    prudent = sum(one >= 100 for one in measured)
    return (
        f"| {_name(report)} | {len(told)} | {_percent(estimates)} | {_percent(measured)} | "
        f"{prudent} of {len(measured)} |"
    )


def _window(report: FileReport, checkpoint: CheckpointFacts) -> tuple[str, int | None]:
    before = [one for one in report.requests if one.line < checkpoint.line]
    model = before[-1].model if before else ""
    known = next((window for start, window in WINDOWS.items() if model.startswith(start)), None)
    return model or "unknown", known


def _fired(report: FileReport, checkpoint: CheckpointFacts) -> str:
    model, window = _window(report, checkpoint)
    size = checkpoint.tokens_before or checkpoint.measured_before or checkpoint.estimated_before
    share = f"{100 * size // window} % of {window:,}" if window is not None else "unknown"
    trigger = checkpoint.trigger.value if checkpoint.trigger is not None else "not told"
    told = f"{checkpoint.tokens_before:,}" if checkpoint.tokens_before is not None else "not told"
    measured = f"{checkpoint.measured_before:,}" if checkpoint.measured_before is not None else "no base"
    return (
        f"| {_name(report)} | {checkpoint.line} | {trigger} | {told} | {measured} | {checkpoint.estimated_before:,} | "
        f"{checkpoint.estimated_after:,} | {model} | {share} |"
    )


def _line(points: list[tuple[int, int]], left: float, top: float, most: int, count: int, colour: str) -> str:
    place = " ".join(
        f"{left + x * (WIDTH - LEFT - 20) / max(1, count - 1):.1f},{top + HEIGHT - y * HEIGHT / most:.1f}"
        for x, y in points
    )
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{place}"/>'


def picture(reports: list[FileReport]) -> str:
    """The picture as SVG: a panel for each session, requests from left to right, tokens upwards."""
    colours = {"counted": "#1f77b4", "measured": "#2ca02c", "estimated": "#ff7f0e"}
    whole = len(reports) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{whole}" fill="white"/>',
    ]
    for number, name in enumerate(colours):
        parts.append(f'<text x="{LEFT + number * 110}" y="20" fill="{colours[name]}">{name}</text>')
    for number, report in enumerate(reports):
        told, top = _told(report), GAP + number * (HEIGHT + GAP)
        most = max((max(one.reported, one.measured or 0) for one in told), default=1)
        parts.append(f'<text x="{LEFT}" y="{top - 6}">{escape(_name(report))}: {len(told)} requests</text>')
        for share in (0, 1, 2):
            y = top + HEIGHT - share * HEIGHT / 2
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{most * share // 2:,}</text>')
        series = {
            "counted": [(x, int(one.reported)) for x, one in enumerate(told)],
            "measured": [(x, int(one.measured)) for x, one in enumerate(told) if one.measured is not None],
            "estimated": [(x, int(one.estimated)) for x, one in enumerate(told)],
        }
        parts += [_line(points, LEFT, top, most, len(told), colours[name]) for name, points in series.items()]
    return "\n".join((*parts, "</svg>", ""))


def page(reports: list[FileReport]) -> str:
    """The page as Markdown."""
    rows = [
        INTRODUCTION,
        "## How far, and in which direction\n",
        "Percentages of the provider's count: the median, and in brackets the tenth and the ninetieth percentile.\n",
        "| session | requests | estimate of the projection | measured by the usage before | prudent |",
        "|---|---|---|---|---|",
        *(_summary(report) for report in reports),
        "",
        "Measured figures far above 100 % are requests that went back to a short branch, or that a subagent made: the answer before them was another's.",
        "",
        "## When compactions fired\n",
        "| session | line | trigger | tokens before, as logged | measured | estimated | estimated after | model | share of its window |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_fired(report, one) for report in reports for one in report.checkpoints),
        "",
    ]
    return "\n".join(rows)


def main(*sessions: Path, folder: Path) -> None:
    """Write the page, the picture and the table of all requests.

    Parameters
    ----------
    sessions
        Recorded sessions.
    folder
        Where the three files are written.
    """
    reports = [audit_file(path) for path in sessions]
    (folder / "sizes.md").write_text(page(reports), encoding="utf-8")
    (folder / "sizes.svg").write_text(picture(reports), encoding="utf-8")
    with (folder / "sizes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("session", "line", "model", "estimated", "measured", "counted", "output"))
        for report in reports:
            for one in _told(report):
                measured = one.measured if one.measured is not None else ""
                table.writerow(
                    (_name(report), one.line, one.model, one.estimated, measured, one.reported, one.output)
                )


if __name__ == "__main__":
    cyclopts.run(main)
