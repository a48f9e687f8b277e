"""Planted faults by the hundred: `python -m tests.equivalence.campaign [PROGRAM or FOLDER of HLO texts]...`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xbuild as xb
from interpreter.fields.draws import flat, number
from shape_inference import Shape
from tests.equivalence.mutations import mutants
from tests.equivalence.planted import Judged, apart, judged
from tests.equivalence.programs import PAIRS


def of_text(path: Path) -> Iterator[Judged]:
    """The mutants of a program of several devices, each against the program itself."""
    module = xb.parse_hlo(path.read_text())
    if module.num_devices == 1:
        return
    for mutant in mutants(module):
        verdict = xb.equivalent(module, mutant.module, limits=xb.Limits(trips=1000))
        yield Judged(path.stem, mutant, verdict, _distance(module, mutant.module) if verdict else 0.0)


def _distance(module: xb.Module, other: xb.Module) -> float:
    random = np.random.default_rng(0)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    rows = [[_drawn(shape, random) for shape in shapes] for _ in range(module.num_devices)]
    left, right = xb.execute(module, rows), xb.execute(other, rows)
    arrays = [[each for value in values for each in flat(value, module.entry.root.shape)] for values in (left, right)]
    return max(map(apart, *arrays))


def _drawn(shape: Any, random: np.random.Generator) -> Any:
    assert isinstance(shape, Shape)
    return number(shape, random)


def told(name: str, found: Iterator[Judged]) -> Counter[str]:
    """Print what became of the mutants of a program, and each that was missed."""
    begun, counts = time.perf_counter(), Counter[str]()
    for each in found:
        kind = "missed" if each.is_missed else "the same by values" if each.verdict else each.verdict.kind
        counts[kind] += 1
        counts["planted"] += 1
        if each.is_missed:
            print(f"  missed: {each.mutant.operator}: {each.mutant.line}")
    if counts:
        print(f"{name:24} {dict(counts)} {time.perf_counter() - begun:.1f} s", flush=True)
    return counts


def main(*chosen: str) -> int:
    """Print counts by program and in all, of the named programs or of all; gives 1 where a fault was missed."""
    pairs = [pair for pair in PAIRS if not chosen or pair.name in chosen]
    counts = sum((told(pair.name, judged(pair)) for pair in pairs), Counter[str]())
    for path in sorted(path for each in chosen for path in Path(each).glob("*.hlo")):
        try:
            counts += told(path.stem, of_text(path))
        except (xb.Refused, xb.HloParseError) as error:
            print(f"{path.stem:24} left out: {str(error).splitlines()[0]}")
    print(f"{'in all':24} {dict(counts)}")
    return int(counts["missed"] > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
