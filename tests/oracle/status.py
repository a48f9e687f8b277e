"""`docs/op_status.md`: for each op and element type how many instances were compared with real XLA, or why none was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shape_inference import PRIMITIVES
from xbuild.core.op import OPS

from .chance import UNRUN
from .deviations import DEVIATIONS
from .record import Record
from .tolerances import ROWS

FILE = Path(__file__).parents[2] / "docs" / "op_status.md"

HEAD = """# Ops against real XLA

Instances of every op in every element type, drawn at random, with the corner cases of each type, computed here and by
XLA:CPU ({versions}). A number counts the instances that were compared; nothing is left unexplained. A dot: the op does
not take the type, and xbuild refuses it. A letter: XLA:CPU cannot run it, for the reason below. `python -m
tests.oracle.campaign --probe` finds out what it runs, `--keep` adds a campaign's counts, and `python -m
tests.oracle.status` writes this page from them.

f6e2m3fn and f6e3m2fn have no column: XLA's parser reads and prints them, its CPU backend does not compile them, and
its literals end the process; the tests compare them with ml_dtypes. NaNs count as equal here whatever their bits. Of
conversions and of what is computed in f8e5m2 the bits are XLA:CPU's, but where XLA:CPU itself has several: where a
constant is folded a NaN of f16 stays signalling, maximum(x, x) is x, and a select in f8e5m2 gives
its NaNs as what is computed.

{total:,} instances: {equal:,} equal within the tolerances, {apart:,} apart for a reason that is known.
"""


def page(record: Record) -> str:
    counts, reasons = record.total(), _reasons(record)
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
    apart = counts.total() - counts["equal"]
    parts = [
        HEAD.format(versions=versions, total=counts.total(), equal=counts["equal"], apart=apart),
        *_table(record, reasons),
        "\n## What XLA:CPU cannot run\n\n| | reason |\n|---|---|",
        *(f"| {letter} | {_escaped(reason)} |" for reason, letter in reasons.items()),
        "\n## Where the two are apart\n\n| | instances | ops | XLA:CPU | what is right |\n|---|---|---|---|---|",
        *_deviations(counts),
        "\n## Tolerances\n\nIn units in the last place (of the largest element where it says so); all else is compared "
        "bit for bit.\n\n| ops | f8, f4 | f16, bf16 | f32, f64 | complex | reason |\n|---|---|---|---|---|---|",
        *map(_tolerance, ROWS),
    ]
    return "\n".join(parts) + "\n"


def _reasons(record: Record) -> dict[str, str]:
    """A letter for each reason of XLA's, in the order of the table."""
    found = [cell["unable"] for row in record.cells.values() for cell in row.values() if "unable" in cell]
    unique = list(dict.fromkeys(found))
    return {reason: _letters(number) for number, reason in enumerate(unique)}


def _letters(number: int) -> str:
    return (_letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def _table(record: Record, reasons: dict[str, str]) -> Iterator[str]:
    names = [name for name in PRIMITIVES if name not in UNRUN]
    yield f"| op | {' | '.join(names)} | all |"
    yield f"|---|{'---|' * (len(names) + 1)}"
    for opcode in sorted(OPS):
        row = record.cells.get(opcode, {})
        cells = [_cell(row.get(name), reasons) for name in names]
        yield f"| {opcode} | {' | '.join(cells)} | {sum(map(_count, row.values()))} |"


def _cell(cell: dict[str, Any] | None, reasons: dict[str, str]) -> str:
    if cell is None:
        return ""
    if "refused" in cell:
        return "."
    return reasons[cell["unable"]] if "unable" in cell else str(_count(cell) or "")


def _count(cell: dict[str, Any]) -> int:
    return sum(n for n in cell.values() if isinstance(n, int))


def _deviations(counts: Any) -> Iterator[str]:
    subnormals = "subnormal numbers of bf16, f32, f64 and complex types are zeros", "left open by StableHLO"
    rows = {"subnormals": ("all", *subnormals)}
    for name, each in DEVIATIONS.items():
        ops = "all" if len(each.opcodes) >= len(OPS) else ", ".join(sorted(each.opcodes))
        rows[name] = (ops, each.what, each.says)
    for name, (ops, what, says) in rows.items():
        yield f"| {name} | {counts[name]} | {ops} | {what} | {says} |"


def _tolerance(row: tuple[str, dict[str, Any], str]) -> str:
    opcodes, types, reason = row
    ulps = [f"{types[name].ulps:g}" for name in ("f8e5m2", "f16", "f32", "c64")]
    largest = " of the largest" * types["f32"].is_of_largest
    return f"| {', '.join(opcodes.split())} | {' | '.join(f'{each}{largest}' for each in ulps)} | {reason} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    FILE.write_text(page(Record.read()))
    sys.stdout.write(f"{FILE}\n")
