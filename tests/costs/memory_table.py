"""Reserved memory against what XLA reserves, program by program: `python -m tests.costs.memory_table [FOLDER]`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

import xbuild as xb
from shape_inference import AnyShape, TupleShape
from xbuild.costs.memory import memory_of

ALIGNED = 64
"""To how many bytes XLA:CPU rounds a temporary."""

WITHIN = 1.02


@frozen
class Row:
    """A program: the bytes that XLA reserves, and those counted here, with temporaries rounded and with the tables of
    pointers of its result, which XLA counts; `pieces` is how many arrays and tuples it has."""

    name: str
    expected: int
    counted: int
    arguments: int
    xla_arguments: int
    aliased: int
    xla_aliased: int
    pieces: int

    @property
    def ratio(self) -> float:
        return self.counted / max(self.expected, 1)

    @property
    def rule(self) -> str:
        """What explains the ratio: empty if it is within WITHIN, `small` if tables of pointers, rounding and single
        bytes of temporaries make the difference."""
        if 1 / WITHIN <= self.ratio <= WITHIN:
            return ""
        return "small" if abs(self.counted - self.expected) <= min(ALIGNED * self.pieces, 1024) else "not explained"

    @property
    def explained(self) -> bool:
        return self.rule != "not explained"

    def __str__(self) -> str:
        return f"{self.ratio:.3f}  {self.counted:>9}  {self.expected:>9}  {self.name:<34} {self.rule}".rstrip()


def rows(*arguments: str) -> Iterator[Row]:
    """The rows of the programs of `memory_programs`, or of those in a folder; compiled in a child process."""
    command = [sys.executable, "-m", "tests.costs.memory_programs", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield _row(json.loads(line))


def _row(found: dict[str, Any]) -> Row:
    module = xb.parse_hlo(found["text"])
    memory = memory_of(module, ALIGNED)
    return Row(
        found["name"],
        found["argument"] + found["output"] + found["temp"] - found["alias"],
        memory.reserved + _tables(module.entry.root.shape),
        memory.arguments,
        found["argument"],
        memory.aliased,
        found["alias"],
        sum(len(each.instructions) for each in module.entry.reachable()),
    )


def _tables(shape: AnyShape) -> int:
    return sum(8 + _tables(each) for each in shape.elements) if isinstance(shape, TupleShape) else 0


def main() -> None:
    found = sorted(rows(*(str(Path(each).resolve()) for each in sys.argv[1:])), key=lambda row: row.ratio)
    print("ratio     counted        XLA  program")
    print("\n".join(map(str, found)))
    within = sum(not row.rule for row in found)
    print(
        f"{len(found)} programs, {within} within {WITHIN}, {sum(row.rule == 'small' for row in found)} small ones apart"
    )


if __name__ == "__main__":
    main()
