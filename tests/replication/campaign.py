"""At length: random programs of several devices; what is inferred to be equal has to be so in every run."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

import xbuild as xb
from xbuild.process.limits import no_collection

from .programs import Program, random_program
from .runs import compared, random_inputs
from .typed_programs import random_typed

BATCH = 200
TYPED_ONE_IN = 10
MANY = ("equal on all", "equal on some", "may differ")
Counts = Counter[str]


def judged(seed: int) -> tuple[Counts, list[str]]:
    """What is inferred of the program of a seed, and what a run of it breaches; every tenth has types on a mesh."""
    if seed % TYPED_ONE_IN:
        return _compared(random_program(seed), seed)
    try:
        module = random_typed(seed)
    except xb.XbuildError:
        return Counts({"refused as it was typed": 1}), []
    counts, wrong = _compared(Program(module), seed)
    verdict = xb.check(module)
    return counts + Counts({"programs with types": 1}), wrong or [str(verdict)] * (verdict.kind == "error")


def _compared(program: Program, seed: int) -> tuple[Counts, list[str]]:
    values = xb.replication(program.module, program.replicated)
    rows, items = random_inputs(program.module, values, seed)
    run = compared(program.module, values, rows, items)
    return Counter({"programs": 1, **_counted(program, values), **run.counts}), run.breaches


def _counted(program: Program, values: xb.Replication) -> Counts:
    """How many values are inferred to be equal, on how many devices."""
    counts = Counts({"programs of one for each device": int(isinstance(program.module, xb.ModuleGroup))})
    for part in values.parts:
        for labels in (each for found in part.labels.values() for each in found):
            several = len({*labels})
            counts[f"leaves {MANY[0 if several == 1 else 2 if several == len(labels) else 1]}"] += 1
    return counts


def judge(seeds: Iterable[int]) -> tuple[Counts, dict[int, str]]:
    counts, wrong = Counts(), dict[int, str]()
    for seed in seeds:
        try:
            with no_collection():
                more, found = judged(seed)
        except Exception:
            more, found = Counts(programs=1, raised=1), [traceback.format_exc()]
        counts += more
        if found:
            wrong[seed] = found[0]
    return counts, wrong


def _batches(first: int, count: int) -> Iterator[range]:
    for begin in range(first, first + count, BATCH):
        yield range(begin, min(begin + BATCH, first + count))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=None, help="begin no batch of programs after that")
    chosen = parser.parse_args(arguments)
    end = None if chosen.seconds is None else time.monotonic() + chosen.seconds
    counts, wrong = Counts(), dict[int, str]()
    with ProcessPoolExecutor(chosen.processes, max_tasks_per_child=20) as pool:
        batches = _batches(chosen.seed, chosen.programs)
        while wave := [*itertools.islice(batches, chosen.processes)]:
            for more, found in pool.map(judge, wave):
                counts += more
                wrong |= found
            if end is not None and time.monotonic() > end:
                break
    _print(counts, wrong)
    return 1 if wrong else 0


def _print(counts: Counts, wrong: dict[int, str]) -> None:
    for name, count in sorted(counts.items()):
        print(f"{name:48} {count:10}")
    for seed, text in sorted(wrong.items()):
        print(f"seed {seed}: {text}")
    print(f"{'programs that breach what is inferred':48} {len(wrong):10}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
