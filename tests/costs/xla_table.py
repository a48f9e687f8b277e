"""FLOPs, transcendentals and bytes against XLA's own analysis, instruction by instruction: each in a module of its own.

`python -m tests.costs.xla_table FILE...` prints the counts, and each kind of instruction that is counted otherwise.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs

import xbuild as xb
from shape_inference import XbuildError
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS
from xbuild.costs.analysis import CostAnalysis
from xbuild.properties.structure import fingerprint

from .xla_analysis import Figures, analysed

NAMES = ("flops", "transcendentals", "bytes")
_Kinds: TypeAlias = dict[Any, tuple[Instruction, int]]


class OncePerLoop(CostAnalysis):
    """The costs of a program with one trip of each loop, as XLA counts."""

    def calls(self, instruction: Instruction) -> Iterator[tuple[Computation, int, bool]]:
        return ((called, 1, True) for called, _, _ in super().calls(instruction))


def figures(module: xb.Module) -> Figures:
    """What is counted here for one trip of each loop."""
    rows = list(OncePerLoop(module.entry).rows())
    return (
        sum(row.work.flops * row.times for row in rows),
        sum(row.work.transcendentals * row.times for row in rows),
        sum(row.bytes * row.times for row in rows),
    )


def same(ours: int, theirs: int) -> bool:
    """Whether two figures are equal but for the rounding of XLA's, which are sums in numbers of 32 bits."""
    return abs(ours - theirs) <= abs(theirs) * 2**-22


def alone(instruction: Instruction) -> xb.Module:
    """A module of one instruction, whose operands are parameters."""
    operands = tuple(
        Instruction(
            "parameter", f"p{n}", each.shape, attributes=OPS["parameter"].read({"number": n, "shape": each.shape})
        )
        for n, each in enumerate(instruction.operands)
    )
    root = attrs.evolve(instruction, name="x", operands=operands, control=(), annotations={})
    return xb.Module("m", Computation("main", (*operands, root), root))


def kinds(programs: Iterable[xb.Module]) -> _Kinds:
    """The instructions that programs execute by themselves; those that are alike once, and how many they are."""
    found: _Kinds = {}
    for program in programs:
        executed = {row.computation for row in OncePerLoop(program.entry).rows()}
        for instruction in (each for computation in executed for each in computation.instructions):
            if instruction.opcode not in ("parameter", "constant"):
                key = _key(instruction)
                found[key] = (instruction, found.get(key, (None, 0))[1] + 1)
    return found


def _key(instruction: Instruction) -> Any:
    calling = instruction.attributes.calling if instruction.attributes is not None else ()
    own = {name: repr(value) for name, value in instruction.attribute_values().items() if name not in calling}
    return (
        instruction.opcode,
        repr(instruction.shape),
        tuple(repr(each.shape) for each in instruction.operands),
        tuple(own.items()),
        tuple(map(fingerprint, instruction.called)),
    )


def programs(paths: Iterable[str]) -> Iterator[xb.Module]:
    for path in map(Path, paths):
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
        try:
            yield xb.parse_hlo(text)
        except XbuildError as error:
            print(f"{path.name} is not read: {str(error).splitlines()[0]}", file=sys.stderr)


@attrs.frozen
class Compared:
    """Instructions that are alike: how many they are, and what both count; None where the analysis of XLA dies."""

    module: xb.Module
    count: int
    ours: Figures
    theirs: Figures | None

    @property
    def opcode(self) -> str:
        return self.module.entry.root.opcode

    def is_same(self, figure: str) -> bool:
        place = NAMES.index(figure)
        return self.theirs is not None and same(self.ours[place], self.theirs[place])


def compared(paths: Iterable[str]) -> list[Compared]:
    """The instructions of the programs in files, each kind once."""
    found = kinds(programs(paths))
    modules = [alone(instruction) for instruction, _ in found.values()]
    expected = analysed([str(module) for module in modules])
    return [
        Compared(module, count, figures(module), theirs)
        for (_, count), module, theirs in zip(found.values(), modules, expected, strict=True)
    ]


def share(rows: Iterable[Compared], figure: str) -> float:
    """The part of the instructions of which a figure is the same."""
    rows = list(rows)
    return sum(row.count for row in rows if row.is_same(figure)) / sum(row.count for row in rows)


def main() -> None:
    rows = compared(sys.argv[1:])
    different: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        for name in NAMES:
            if not row.is_same(name):
                different.setdefault((name, row.opcode), []).append(row)
    for (name, opcode), these in different.items():
        print(f"--- {sum(row.count for row in these)} x {name} of {opcode}, as in")
        print(f"{these[0].ours} here, {these[0].theirs} in XLA\n{these[0].module}\n")
    shares = ", ".join(f"{share(rows, name):.3%} {name}" for name in NAMES)
    print(f"{sum(row.count for row in rows)} instructions, {len(rows)} kinds: {shares}")


if __name__ == "__main__":
    main()
