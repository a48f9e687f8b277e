"""Campaign: the check and strict runs on random scheduled programs, against the model that tries all interleavings."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterable

import numpy as np

import xbuild as xb

from .model import Judgement, judge
from .programs import Program, random_program, text_of

RUN_ONE_IN = 4
"""A strict run takes longer than a check."""


def failure(program: Program, judgement: Judgement, *, runs: bool) -> str | None:
    """How the check or the strict run differs from the model, or None."""
    module = xb.parse_hlo(text_of(program))
    verdict = xb.check(module)
    found = [{each.name for each in finding.instructions} for finding in verdict.findings if finding.kind == "race"]
    if judgement.truth == "right" and verdict.kind != "ok":
        return f"no race, and the verdict is {verdict}"
    if judgement.truth == "race":
        if not found:
            return f"{sorted(map(str, judgement.wrong))}, and the verdict is {verdict}"
        if not any({each.writer, each.reader} <= names for names in found for each in judgement.wrong):
            return f"{sorted(map(str, judgement.wrong))}, and the report names {found}"
    return strict_failure(program, module, judgement) if runs else None


def strict_failure(program: Program, module: xb.Module, judgement: Judgement) -> str | None:
    """How strict runs with both choices differ from the model, or None."""
    names: set[str] = set()
    for choice in (True, False):
        arguments = [[*(np.arange(4.0) for _ in program.parameters), choice]] * 2
        try:
            xb.execute(module, arguments, strict=True, check=False)
        except xb.StrictFailure as found:
            names |= {each.instruction.name for each in found.findings if each.kind == "race"}
    if judgement.truth == "right" and names:
        return f"no race, and strict runs report {sorted(names)}"
    if judgement.truth == "race" and not any({each.writer, each.reader} & names for each in judgement.wrong):
        return f"{sorted(map(str, judgement.wrong))}, and strict runs report {sorted(names)}"
    return None


def compare(seeds: Iterable[int], races: int, right: int) -> tuple[Counter[str], dict[int, str]]:
    """How many programs of each kind there were, until there are enough of both, and what was wrong with which."""
    counts, wrong = Counter[str](), {}
    wanted = {"race": races, "right": right}
    for seed in seeds:
        program = random_program(seed)
        judgement = judge(program)
        truth = "unknown" if judgement is None else judgement.truth
        if judgement is None or counts[truth] >= wanted.get(truth, 0):
            counts[f"left out: {truth}"] += 1
            continue
        counts[truth] += 1
        found = failure(program, judgement, runs=seed % RUN_ONE_IN == 0)
        if found:
            wrong[seed] = found
        if all(counts[kind] >= number for kind, number in wanted.items()):
            break
    return counts, wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--races", type=int, default=2000)
    parser.add_argument("--right", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args(arguments)
    counts, wrong = compare(itertools.count(chosen.seed), chosen.races, chosen.right)
    for name, count in sorted(counts.items()):
        print(f"{name:24} {count:8}")
    for seed, found in wrong.items():
        print(f"seed {seed}: {found}")
    print(f"{'judged wrongly':24} {len(wrong):8}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
