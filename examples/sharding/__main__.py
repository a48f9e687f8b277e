"""A transformer block and its training step under four shardings: what each sends, stores and computes, and why."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from examples.sharding import block, training

SHARDINGS = ("data", "tensor", "sequence", "full")
MACHINE = "h100"


@frozen
class Sharded:
    """A program under one sharding: its partition, and its cost on the machine."""

    name: str
    told: str
    parts: xb.shard.Partitioned
    laid: xb.Timeline

    @property
    def bytes_by_axis(self) -> Counter[str]:
        """The bytes that a device sends over each axis."""
        found = Counter[str]()
        for each in self.parts.communications:
            found[",".join(dict.fromkeys(axis.name for axis in each.axes))] += each.bytes
        return found


def main() -> int:
    """Print tables and reasons, and draw pictures; exit status 1 if a partition differs from the one-device program."""
    parser = argparse.ArgumentParser(prog="python -m examples.sharding", description=main.__doc__)
    parser.add_argument("--pictures", type=Path, default=Path("sharding_pictures"))
    options = parser.parse_args()
    wrong = 0
    for program in (block, training):
        found = [sharded(program, name) for name in SHARDINGS]
        print(f"{(program.__doc__ or '').splitlines()[0]}\n")
        print(*table(found), sep="\n")
        for each in found:
            is_same, said = verified(each)
            wrong += not is_same
            print(f"\n{each.told}\n  {said}")
            print(*reasons(each.parts), sep="\n")
        print()
    for path in draw(options.pictures):
        print(f"drawn: {path}")
    return 1 if wrong else 0


def sharded(program: ModuleType, name: str) -> Sharded:
    """A program of this example under the named sharding."""
    made = getattr(program, name)
    parts = xb.shard.partition(made())
    return Sharded(name, made.__doc__ or "", parts, xb.timeline(parts.module, MACHINE))


def table(found: list[Sharded]) -> Iterator[str]:
    """The table with a column for each sharding and a row for each cost per device."""
    axes = sorted({axis for each in found for axis in each.bytes_by_axis})
    yield _row("of a device", [each.name for each in found])
    yield _row("collectives", [len(each.parts.communications) for each in found])
    for axis in axes:
        yield _row(f"bytes over {axis}", [each.bytes_by_axis[axis] for each in found])
    yield _row(f"us exposed on {MACHINE}", [f"{each.laid.exposed * 1e6:.3g}" for each in found])
    yield _row("bytes at the peak", [each.laid.cost.peak_memory for each in found])
    yield _row("FLOPs", [each.laid.cost.flops for each in found])


def _row(title: str, cells: list[Any]) -> str:
    return f"  {title:20}" + "".join(f"{cell:>12,}" if isinstance(cell, int) else f"{cell:>12}" for cell in cells)


def verified(given: Sharded) -> tuple[bool, str]:
    """Compare the partitioned program with the one-device program by the check, in prime fields, and in a run."""
    whole = given.parts.whole
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(each.shape.dims).astype(np.float32) / 4 for each in whole.entry.parameters]
    one, several = xb.evaluate(whole.entry, *arrays), given.parts.run(*arrays)
    pairs = zip(*(each if isinstance(each, tuple) else (each,) for each in (one, several)), strict=True)
    away = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)
    verdict, same = xb.check(given.parts.module).kind, xb.equivalent(whole, given.parts).kind
    said = f"check {verdict}; prime fields: {same}; a run on four devices is {away:.0e} away from a run on one"
    return verdict == "ok" and same == "equal" and away < 1e-5, said


def reasons(parts: xb.shard.Partitioned) -> Iterator[str]:
    """The reason for each collective."""
    for each in parts.communications:
        text = f"{each.name}, {each.bytes:,} bytes: {each.reason}"
        yield textwrap.fill(text, 112, initial_indent="  ", subsequent_indent="      ")
    if not parts.communications:
        yield "  no collective: each device computes its examples from what it has"


def draw(folder: Path) -> Iterator[Path]:
    """Pictures of the block before and after partitioning, and of how a value is sharded."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARDINGS:
        parts = xb.shard.partition(getattr(block, name)())
        for what, drawn in (("block", parts), ("heads", xb.shard.tiling(parts, "heads"))):
            path = folder / f"{what}_{name}.svg"
            xb.viz(drawn, path)
            yield path


if __name__ == "__main__":
    raise SystemExit(main())
