"""Planted faults by the hundred, and random pairs of expressions.

`python -m tests.equivalence.campaign [--seconds N] [--seed N] [--mutants N] [--by xbuild|xla]
[NAME or FOLDER of HLO texts]...`: programs on meshes with all mutants; programs of JAX, whose right partitions are to
be accepted, with some mutants of each, partitioned by xbuild or compiled by XLA, or both without `--by`; and with the
seconds that are left, random pairs that are to agree in numbers where they are found equal, and random pairs that are
to have the same verdict at smaller and at full extents.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import xbuild as xb
from interpreter.fields.draws import flat_arrays, float_array
from shape_inference import Shape
from tests.equivalence import expressions, reductions
from tests.equivalence.mutations import mutants
from tests.equivalence.partitions import Named, Partition, partitions
from tests.equivalence.partitions import judged as judged_some
from tests.equivalence.planted import Judged, apart, judged
from tests.equivalence.programs import PAIRS

Counts: TypeAlias = "Counter[str]"
NEAR = 1e-6
"""How far values of expressions that are found equal may be apart in f64."""


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
    arrays = [
        [each for value in values for each in flat_arrays(value, module.entry.root.shape)] for values in (left, right)
    ]
    return max(map(apart, *arrays))


def _drawn(shape: Any, random: np.random.Generator) -> Any:
    assert isinstance(shape, Shape)
    return float_array(shape, random)


def told(name: str, found: Iterable[Judged]) -> Counts:
    """Print what became of the mutants of a program, and each that was missed or left open."""
    begun, counts = time.perf_counter(), Counter[str]()
    for each in found:
        kind = "missed" if each.is_missed else "the same by values" if each.verdict else each.verdict.kind
        counts[kind] += 1
        counts["planted"] += 1
        if kind in ("missed", "undecided"):
            print(f"  {kind}: {each.mutant.operator}: {each.mutant.line}")
    if counts:
        print(f"{name:24} {dict(counts)} {time.perf_counter() - begun:.1f} s", flush=True)
    return counts


def of_partition(partition: Partition, count: int, seed: int) -> Counts:
    """The verdict on a right partition, and on some mutants of it."""
    begun = time.perf_counter()
    try:
        verdict = partition.verdict()
    except xb.Refused as error:
        print(f"{partition.name:24} left out: {str(error).splitlines()[0]}", flush=True)
        return Counter(["partitions left out"])
    print(f"{partition.name:24} {verdict.kind} {time.perf_counter() - begun:.1f} s {', '.join(verdict.undecided)}")
    counts = Counter([f"partitions {verdict.kind}"])

    def counted(several: Iterable[Named]) -> Iterator[Judged]:
        for each in several:
            if each.judged.verdict.kind == "different":
                counts[f"named: {each.place}"] += 1
            yield each.judged

    return counts + told(partition.name, counted(judged_some(partition, count, seed)))


def of_expressions(first: int, end: float) -> Counts:
    """Random pairs until a time: the verdicts, and how many that were found equal are not."""
    counts, seed = Counter[str](), first
    while time.monotonic() < end:
        pair = expressions.pair(seed)
        verdict, distance = pair.verdict(), pair.apart()
        kind = f"{verdict.kind}, {'apart' if distance > NEAR else 'near'}"
        counts[f"pairs by {pair.how}: {kind}"] += 1
        if verdict and distance > NEAR:
            counts["missed"] += 1
            print(f"  missed: pair {seed}: {pair}")
        seed += 1
    return counts


def of_reductions(first: int, end: float) -> Counts:
    """Random pairs at smaller and at full extents until a time: where the verdicts are not the same."""
    counts, seed = Counter[str](), first
    while time.monotonic() < end:
        found = reductions.judged(seed)
        if found is not None:
            counts[f"pairs at smaller extents: {found.small.kind}" if found.is_smaller else "pairs not reduced"] += 1
            if found.is_apart:
                counts["missed"] += 1
                print(f"  missed: reduced pair {seed}: {found.full.kind}, but {found.small.kind}")
        seed += 1
    return counts


def in_turn(several: Iterable[Callable[[], Counts]], end: float) -> Counts:
    """The sum of counts, until a time."""
    counts = Counter[str]()
    for each in several:
        if time.monotonic() < end:
            counts += each()
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Print counts by program and in all, of the named programs or of all; gives 1 where a fault was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first pair, and the choice of mutants")
    parser.add_argument("--mutants", type=int, default=8, help="how many mutants of each program of JAX")
    parser.add_argument("--by", choices=("xbuild", "xla"), help="what partitions the programs of JAX")
    parser.add_argument("chosen", nargs="*", metavar="NAME or FOLDER")
    given = parser.parse_args(arguments)
    begun, words = time.monotonic(), given.chosen
    end = begun + given.seconds
    pairs = [pair for pair in PAIRS if not words or pair.name in words]
    texts = sorted(path for each in words for path in Path(each).glob("*.hlo"))
    left = [word for word in words if word not in [pair.name for pair in PAIRS] and not Path(word).is_dir()]
    tasks: list[Callable[[], Counts]] = [lambda pair=pair: told(pair.name, judged(pair)) for pair in pairs]  # type: ignore[misc]
    tasks += [lambda path=path: _of_text(path) for path in texts]  # type: ignore[misc]
    ways = [way == "xla" for way in ("xbuild", "xla") if given.by in (None, way)] if left or not words else []
    traced = [each for by_xla in ways for each in partitions(*left, by_xla=by_xla)]
    tasks += [lambda each=each: of_partition(each, given.mutants, given.seed) for each in traced]  # type: ignore[misc]
    counts = in_turn(tasks, end)
    if not words:
        counts += of_expressions(given.seed, max(end, time.monotonic() + given.seconds / 4))
        counts += of_reductions(given.seed, time.monotonic() + given.seconds / 4)
    print(f"in all, in {time.monotonic() - begun:.0f} s:")
    print("\n".join(f"  {count:6} {name}" for name, count in sorted(counts.items())))
    return int(counts["missed"] > 0)


def _of_text(path: Path) -> Counts:
    try:
        return told(path.stem, of_text(path))
    except (xb.Refused, xb.HloParseError) as error:
        print(f"{path.stem:24} left out: {str(error).splitlines()[0]}")
        return Counter()


if __name__ == "__main__":
    sys.exit(main())
