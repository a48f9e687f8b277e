"""Campaign: shapes of programs with and without a fault, inferred here and by real XLA; differences are listed.

Real XLA's word is the shape that its parser infers where the text tells none, and then the verifiers on the way to
StableHLO and through its compiler.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from shape_inference import PRIMITIVES
from xbuild.core.op import OPS

from ..chance import UNRUN, Chance
from ..draw import DRAWS
from .changes import slipped
from .known import explanation
from .program import Program, program

BATCH = 1000

UNABLE = re.compile(
    r"^UNIMPLEMENTED|is not supported by XLA:CPU|mhlo\.unknown|must be [^(]*\d-bit|must have backend|no such type|"
    r"dynamic_padder|dynamic_dimension_inference|AllToAll|must have static shapes|async_start' op|can't be translated|"
    r"Async tuple|nsupported fusion kind|Dot fusion|custom element sizes|Unsupported stochastic|cannot be zero|"
    r"after float-normalization|Unable to parse module assembly|bitcast operation seen|SPMD partitioner|"
    r"minor_to_major field|requires a single operand|unsupported shape"
)
"""What XLA:CPU, or StableHLO on the way to it, lacks: ops, types, dynamic dimensions, halves of ops."""


AGREED = (
    "the same shape",
    "XLA refuses, refused here",
    "XLA refuses, the check refuses here",
    "refused here, and XLA was asked no further",
)


@frozen
class Answer:
    """How far real XLA came, the shape of the result once the text was read, and what it said."""

    stage: str
    shape: str
    message: str

    @property
    def is_refused(self) -> bool:
        return bool(self.message)

    @property
    def is_unable(self) -> bool:
        """Whether the shapes were read, and XLA:CPU, or StableHLO on the way to it, lacks the op or the type."""
        return (self.stage != "" and bool(UNABLE.search(self.message))) or self.message.startswith("died")


def draw(seed: int, number: int, opcode: str) -> Program:
    """The program of this number: right as often as not."""
    chance = Chance(seed, number, zlib.crc32(opcode.encode()))
    names = (
        ("f32", "f32", "s32", "pred", "bf16", "u8", "c64")
        if chance.odds(0.6)
        else tuple(name for name in PRIMITIVES if name not in UNRUN)
    )
    with np.errstate(all="ignore"):
        found = program(DRAWS[opcode](chance, PRIMITIVES[chance.one(names)]))
        for _ in range(chance.one((0, 1, 1, 2))):
            found = printable(slipped(chance, found), found)
    return found


def printable(slip: Program, before: Program) -> Program:
    """The slip, unless HLO text has no words for it: bounds of unequal number, a dimension without a role."""
    try:
        slip.text()
    except (ArithmeticError, AssertionError, AttributeError, IndexError, ValueError):
        return before
    return slip


def asked(programs: Sequence[Program], *, is_read_only: bool = False) -> list[Answer]:
    """What real XLA says of each."""
    return answered([(each.text(), each.num_replicas, each.num_partitions, is_read_only) for each in programs])


def answered(rows: Sequence[tuple[str, int, int, bool]]) -> list[Answer]:
    """What real XLA says of each text with its counts of replicas and partitions; the last: whether it is only read."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    command = [sys.executable, "-m", "tests.oracle.shapes.xla"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = (json.loads(line) for line in done.stdout.splitlines())
    return [Answer("", "", each) if isinstance(each, str) else Answer(*each) for each in answers]


def compared(ours: Program, theirs: Answer) -> str:
    """The outcome in words; what the scheduler refuses, as groups that miss a device, counts as refused."""
    if theirs.is_unable and not ours.refusal:
        return "XLA:CPU is unable, accepted here"
    if ours.refusal and theirs.stage == "read" and not theirs.is_refused:
        return "refused here, and XLA was asked no further"
    if theirs.is_refused and not ours.refusal and ours.is_refused_whole:
        return "XLA refuses, the check refuses here"
    if ours.refusal or theirs.is_refused:
        here, there = "refused" if ours.refusal else "accepted", "refuses" if theirs.is_refused else "accepts"
        return f"XLA {there}, {here} here"
    mine = str(ours.computation.root.shape.plain())
    return "the same shape" if mine == re.sub(r"\{[^{}]*\}", "", theirs.shape) else "another shape"


def drawn(seed: int, first: int, opcodes: Sequence[str]) -> Iterator[tuple[str, Program]]:
    number = first
    while True:
        for opcode in opcodes:
            yield f"{opcode}:{seed}:{number}", draw(seed, number, opcode)
        number += 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first programs")
    parser.add_argument("--only", nargs="*", default=list(OPS), metavar="OPCODE")
    parser.add_argument("--out", type=Path, help="a file to which each disagreement is added, as a line of JSON")
    parser.add_argument("--read-only", action="store_true", help="XLA infers, a hundred times faster, and no more")
    chosen = parser.parse_args(arguments)
    end, counts = time.monotonic() + chosen.seconds, Counter[str]()
    rows = drawn(chosen.seed, chosen.first, chosen.only)
    while time.monotonic() < end:
        some = [next(rows) for _ in range(5 * BATCH if chosen.read_only else BATCH)]
        answers = asked([each for _, each in some], is_read_only=chosen.read_only)
        for (name, ours), theirs in zip(some, answers, strict=True):
            note(name, ours, theirs, counts, chosen.out)
    print("\n".join(f"{outcome:100} {count:8}" for outcome, count in sorted(counts.items())))
    return 1 if counts["unexplained"] else 0


def note(name: str, ours: Program, theirs: Answer, counts: Counter[str], out: Path | None) -> None:
    """Count the outcome, and the reason of a disagreement; one without a reason is printed."""
    outcome = compared(ours, theirs)
    counts[outcome] += 1
    if outcome in AGREED or theirs.is_unable:
        return
    refusal = f"{ours.refusal.kind}: {ours.refusal}" if ours.refusal else str(ours.computation.root.shape)
    why = explanation(ours, theirs.message, outcome)
    counts[f"  {outcome}: {why}" if why else "unexplained"] += 1
    if not why:
        print(f"{name} {outcome}, {ours.change}: {refusal} | {theirs.shape} | {theirs.message[:200]!r}", flush=True)
    if out:
        row = [name, outcome, ours.change, refusal, theirs.stage, theirs.shape, theirs.message, ours.text()]
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
