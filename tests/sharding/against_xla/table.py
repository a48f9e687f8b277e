"""The rows as a table in Markdown, and their counts."""

from __future__ import annotations

from collections.abc import Sequence

from .rows import Row, ratio

TITLES = ("program", "mesh", "here", "Shardy", "GSPMD", "ratio", "collectives here", "of Shardy", "of GSPMD")


def table(found: Sequence[Row]) -> str:
    """A line for each program, those with a fault last."""
    lines = [f"| {' | '.join(TITLES)} |", "|---" * len(TITLES) + "|"]
    lines += [_line(row) for row in sorted(found, key=lambda each: each.fault is not None)]
    return "\n".join(lines)


def _line(row: Row) -> str:
    mesh = " x ".join(f"{name} {size}" for name, size in row.mesh.items())
    if row.fault is not None:
        return f"| {row.name} | {mesh} | {row.fault!r} |"
    gspmd = "fails" if row.gspmd is None else f"{row.gspmd:.0f}"
    each = [text or "none" for text in (row.our_collectives, row.shardy_collectives)]
    each.append("" if row.gspmd is None else row.gspmd_collectives or "none")
    part = "above 0" if row.ratio == float("inf") else f"{row.ratio:.2f}"
    return f"| {row.name} | {mesh} | {row.ours:.0f} | {row.shardy:.0f} | {gspmd} | {part} | {' | '.join(each)} |"


def summary(found: Sequence[Row]) -> str:
    """How many results are equal, and how many programs send no more, or little more, than each partitioner."""
    right = [each for each in found if each.fault is None]
    lines = [f"{len(right)} of {len(found)} have equal results."]
    rivals = {
        "Shardy": [(row.ours, row.shardy) for row in right],
        "Shardy with reduce-scatters": [(row.ours, row.scattered) for row in right],
        "GSPMD": [(row.ours, row.gspmd) for row in right if row.gspmd is not None],
        "the better of both": [(row.ours, min(row.shardy, row.gspmd or row.shardy)) for row in right],
    }
    for name, pairs in rivals.items():
        ratios = [ratio(*pair) for pair in pairs]
        never, little = (sum(each <= most for each in ratios) for most in (1, 1.1))
        lines.append(f"Beside {name}: {len(pairs)} compared, {never} never above, {little} at most 1.1x.")
    return "\n".join(lines)


def above(found: Sequence[Row]) -> str:
    """The programs that send more than Shardy's, the most first."""
    rows = sorted((each for each in found if each.fault is None and each.ratio > 1), key=lambda each: -each.ratio)
    return "\n".join(f"{each.name}: {each.ratio:.2f}" for each in rows)
