"""The rows as tables in Markdown, and their counts."""

from __future__ import annotations

from collections.abc import Sequence

from .causes import CAUSES, SLIGHT
from .rows import Row, ratio

TITLES = (
    "program", "mesh", "xbuild", "Shardy", "GSPMD", "ratio", "work", "collectives of xbuild", "collectives of Shardy",
)  # fmt: skip
ABOVE = ("program", "ratio", "why")


def table(found: Sequence[Row]) -> str:
    """A line for each program, those with a fault last."""
    return _table(TITLES, [_cells(row) for row in sorted(found, key=lambda each: each.fault is not None)])


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join([_line(titles), "|---" * len(titles) + "|", *map(_line, lines)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> list[str]:
    mesh = " x ".join(f"{name} {size}" for name, size in row.mesh.items())
    if row.fault is not None:
        return [row.name, mesh, repr(row.fault)]
    gspmd = "fails" if row.gspmd is None else f"{row.gspmd:.0f}"
    sent = [f"{row.ours:.0f}", f"{row.shardy:.0f}", gspmd, part(row.ratio), part(row.work)]
    return [row.name, mesh, *sent, row.our_collectives or "none", row.shardy_collectives or "none"]


def part(number: float) -> str:
    """A ratio to two places; one of something to nothing in words."""
    return "above 0" if number == float("inf") else f"{number:.2f}"


def right(found: Sequence[Row]) -> list[Row]:
    """The rows without a fault."""
    return [each for each in found if each.fault is None]


def above(found: Sequence[Row]) -> list[Row]:
    """The programs that send more than Shardy's, the most first."""
    return sorted((each for each in right(found) if each.ratio > 1), key=lambda each: -each.ratio)


def reasons(found: Sequence[Row]) -> str:
    """The programs that send more than Shardy's, each with its cause."""
    lines = [(row.name, part(row.ratio), CAUSES.get(row.name, "not known")) for row in above(found)]
    if lines:
        return _table(ABOVE, lines)
    return "No program that xbuild partitions sends more bytes than its version from Shardy."


def work(found: Sequence[Row]) -> str:
    """The programs in which a device does more than there, the most first."""
    rows = sorted((each for each in right(found) if each.work > SLIGHT), key=lambda each: -each.work)
    return _table(("program", "work", "bytes"), [(row.name, part(row.work), part(row.ratio)) for row in rows])


def summary(found: Sequence[Row]) -> str:
    """How many results are equal, and how many programs send no more, or little more, than each partitioner."""
    rows = right(found)
    rivals = {
        "Shardy": [(row.ours, row.shardy) for row in rows],
        "Shardy with reduce-scatters": [(row.ours, row.scattered) for row in rows],
        "GSPMD": [(row.ours, row.gspmd) for row in rows if row.gspmd is not None],
        "the better of both": [(row.ours, min(row.shardy, _or(row.gspmd, row.shardy))) for row in rows],
    }
    lines = []
    for name, pairs in rivals.items():
        ratios = [ratio(*pair) for pair in pairs]
        never, little = (sum(each <= most for each in ratios) for most in (1, SLIGHT))
        lines.append((name, str(len(pairs)), str(never), str(little), f"{sum(each < 1 for each in ratios)}"))
    return _table(
        ("compared with", "programs", "never more bytes", f"at most {SLIGHT} times the bytes", "fewer bytes"), lines
    )


def _or(number: float | None, other: float) -> float:
    return other if number is None else number
