"""Write the tables and pictures of docs/performance.md from saved figures: `python -m benchmarks.eval.page FOLDER`.

FOLDER has workloads.json (`python -m benchmarks.eval --save`), references.json (with `--references`) and growth.json
(`python -m benchmarks.eval.growth --save`). A missing file leaves its table as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, exp, floor, log, log10
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE, PICTURES = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance"

COLORS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 620, 320, 64, 44, 16, 190

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.grid{stroke:#8883}.axis{stroke:#888}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


def main() -> None:
    folder = Path(sys.argv[1])
    text = PAGE.read_text()
    for name, write in (("workloads", workloads), ("references", references), ("growth", growth)):
        file = folder / f"{name}.json"
        if file.exists():
            text = _replaced(text, name, write(json.loads(file.read_text())))
    PAGE.write_text(text)


def _replaced(text: str, name: str, lines: Iterable[str]) -> str:
    """The page with these lines between the marks of a table."""
    before, begin, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    assert end, f"{PAGE} has no place for {name}"
    return "".join((before, begin, *(f"{line}\n" for line in lines), end, after))


# ----------------------------------------------------------------------------
# Tables


def workloads(saved: dict[str, Any]) -> list[str]:
    columns = ["/ numpy", "/ xla", "auto / numpy", "auto / xla"]
    rows = saved["rows"]
    lines = [
        "| workload | NumPy, ms | xbuild / NumPy | xbuild / XLA | auto / NumPy | auto / XLA |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        first = f"{row['numpy'] * 1e3:.3g}" if "numpy" in row else "-"
        lines.append(f"| {name} | {first} | {' | '.join(_ratio(row.get(column)) for column in columns)} |")
    several = [row for name, row in rows.items() if not name.startswith("train_")]
    means = [mean([row[column] for row in several if column in row]) for column in columns]
    lines.append(f"| **geometric mean of {len(several)}** | | {' | '.join(f'**{_ratio(each)}**' for each in means)} |")
    return lines


def references(saved: dict[str, Any]) -> list[str]:
    """How many times as long other interpreters take: above 1, xbuild is faster."""
    rows, columns = saved["rows"], ["/ stablehlo", "/ evaluator"]
    lines = [
        "| workload, small | xbuild, ms | StableHLO's interpreter / xbuild | HloEvaluator / xbuild |",
        "|---|---|---|---|",
    ]
    for name, row in rows.items():
        times = [_ratio(1 / row[column] if column in row else None) for column in columns]
        lines.append(f"| {name} | {row['xbuild'] * 1e3:.3g} | {' | '.join(times)} |")
    means = [mean([1 / row[column] for row in rows.values() if column in row]) for column in columns]
    lines.append(f"| **geometric mean** | | {' | '.join(f'**{_ratio(each)}**' for each in means)} |")
    return lines


def growth(saved: dict[str, Any]) -> list[str]:
    """A picture for each series, and the exponent of the last decade of each line."""
    lines = []
    for name, series in saved.items():
        (PICTURES / f"{name}.svg").write_text(picture(name, series))
        lines += [f"![CPU time against {name}](performance/{name}.svg)", ""]
    lines += ["| | | smallest | largest | growth |", "|---|---|---|---|---|"]
    for name, series in saved.items():
        for label, points in series.items():
            (size, first), (last_size, last) = points[0], points[-1]
            ends = f"{_time(first)} at {size:,} | {_time(last)} at {last_size:,}"
            lines.append(f"| {name} | {label} | {ends} | n^{slope(points):.2f} |")
    return lines


def slope(points: Sequence[Sequence[float]]) -> float:
    """The exponent of the growth from the middle point to the last one."""
    (size, value), (last_size, last) = points[len(points) // 2], points[-1]
    return log(last / value) / log(last_size / size)


def mean(ratios: Sequence[float]) -> float | None:
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _time(value: float) -> str:
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if value >= s), ("us", 1e-6))
    return f"{value / size:.3g} {unit}"


# ----------------------------------------------------------------------------
# Pictures with two logarithmic axes


def picture(name: str, series: dict[str, list[list[float]]]) -> str:
    """The lines as svg; both axes are logarithmic."""
    points = [point for line in series.values() for point in line]
    low, high = floor(log10(min(p[0] for p in points))), ceil(log10(max(p[0] for p in points)))
    least, most = floor(log10(min(p[1] for p in points))), ceil(log10(max(p[1] for p in points)))

    def x(size: float) -> float:
        return LEFT + (log10(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (log10(value) - least) / (most - least) * (HEIGHT - BOTTOM - TOP)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">']
    parts.append(f"<title>CPU time against {escape(name)}</title><style>{STYLE}</style>")
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(least, most + 1):
        at = y(10.0**power)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_time(10.0**power)}</text>')
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(name)}</text>')
    ends = sorted(series, key=lambda label: y(series[label][-1][1]))
    heights = dict(zip(ends, _apart([y(series[label][-1][1]) for label in ends]), strict=True))
    for color, (label, line) in zip(COLORS, series.items(), strict=False):
        path = "L".join(f"{x(size):.1f} {y(value):.1f}" for size, value in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3" fill="{color}"/>' for size, value in line]
        at = x(line[-1][0]) + 10
        parts.append(f'<text x="{at:.1f}" y="{heights[label] + 4:.1f}" style="fill:{color}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _apart(heights: Sequence[float]) -> list[float]:
    """The heights, from the top, moved down where labels would overlap."""
    found: list[float] = []
    for each in heights:
        found.append(max(each, found[-1] + 15) if found else each)
    return found


if __name__ == "__main__":
    main()
