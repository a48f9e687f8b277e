"""A long search for a typed program in which what is typed one value differs between devices in a run."""

from __future__ import annotations

import sys
from collections import Counter

import xbuild as xb
from interpreter import StrictFailure, execute
from xbuild.checking.dataflow.promises import declared_types
from xbuild.checking.model.program import program_of

from .random_programs import drawn


def outcome(seed: int) -> str:
    """`ok`, or how the program of this seed fails."""
    made, columns, _ = drawn(seed)
    module = made.lowered
    if found := declared_types(program_of(module)) + declared_types(program_of(made.module)):
        return f"breach: {found[0]}"
    if (verdict := xb.check(module)).refused:
        return f"refused: {verdict.findings[0].kind}"
    try:
        execute(module, [list(row) for row in zip(*columns, strict=True)], strict=True)
    except StrictFailure as failure:
        wrong = [finding for finding in failure.findings if finding.kind == "variance_broken"]
        return f"broken: {wrong[0].what}" if wrong else "ok"
    return "ok"


def main(arguments: list[str]) -> int:
    first, count = (int(each) for each in (*arguments, "0", "1000")[:2])
    counts = Counter[str]()
    for seed in range(first, first + count):
        found = outcome(seed)
        counts[found.partition(":")[0]] += 1
        if found != "ok":
            print(f"seed {seed}: {found}", flush=True)
    print(", ".join(f"{number} {name}" for name, number in counts.most_common()))
    return 0 if set(counts) == {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
