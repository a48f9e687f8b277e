"""Programs of several devices that JAX lowers and compiles, one JSON a line: XLA is proved to keep their functions.

`python -m tests.proving.jax_suite FILE... [--mutants N]` proves each program, prints those that are not equal, and
counts. The captured results are those of the lowered program (`tests.conformance.jax`), so a verdict `different` is
wrong, or a fault that the captured arguments do not show: each is printed in full, to be looked at. With `--mutants`,
faults are planted in the compiled program, and a mutant that is called equal must have the captured results.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xbuild as xb
from interpreter.fields.draws import flat_arrays
from tests.conformance.jax import Case, array_of, cases_of
from tests.equivalence.mutations import some_mutants


class TooLong(Exception):
    """A program that takes more seconds than are allowed."""


def proved(case: Case, seconds: int) -> tuple[str, str]:
    """The verdict on a program in a word, and the reasons for it."""
    with TimeLimit(seconds):
        try:
            proof = xb.prove(xb.parse_stablehlo(case["stablehlo"]), xb.parse_hlo(case["hlo"]))
        except TooLong:
            return "too long", f"more than {seconds} s"
        except (xb.XbuildError, xb.Refused, xb.Stopped) as error:
            return "refused", str(error).partition("\n")[0]
    if proof.kind == "different":
        return "different", str(proof)
    return proof.kind, "; ".join((*proof.verdict.undecided, *proof.layouts))


def judged_mutants(case: Case, count: int, seconds: int) -> Iterator[tuple[str, str]]:
    """The verdicts on mutants of the compiled program; missed if the results for the captured arguments differ."""
    whole, compiled = xb.parse_stablehlo(case["stablehlo"]), xb.parse_hlo(case["hlo"])
    for mutant in some_mutants(compiled, count, 0):
        with TimeLimit(seconds):
            try:
                kind = xb.prove(whole, mutant.module).kind
                if kind == "equal" and _has_other_results(case, mutant.module):
                    kind = "missed"
            except TooLong:
                kind = "too long"
            except (xb.XbuildError, xb.Refused, xb.Stopped):
                kind = "refused"
        yield kind, f"{mutant.operator}: {mutant.line}"


def _has_other_results(case: Case, mutant: xb.Module) -> bool:
    """Whether a program has other results than those that were captured, if there are any."""
    values = case["values"]
    if not values:
        return False
    rows = [[array_of(each[device]) for each in values["in"]] for device in range(mutant.num_devices)]
    found = [flat_arrays(each, mutant.entry.root.shape) for each in xb.execute(mutant, rows)]
    return any(
        not _is_near(found[device][number], array_of(each[device]))
        for device in range(mutant.num_devices)
        for number, each in enumerate(values["out"])
        if each[device] is not None
    )


def _is_near(one: Any, other: Any) -> bool:
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    return bool(np.allclose(one.astype(wide), other.astype(wide), rtol=1e-2, atol=1e-2, equal_nan=True))


class TimeLimit:
    """Raises TooLong inside a block after some seconds."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._stop)
        signal.alarm(self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    def _stop(self, *_: object) -> None:
        raise TooLong


def main() -> int:
    """Print what is not equal, and counts; gives 1 if a mutant was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=0, help="how many mutants of each program")
    parser.add_argument("--seconds", type=int, default=120, help="for one proof")
    parser.add_argument("--every", type=int, default=1, help="only every n-th program")
    parser.add_argument("--first", type=int, default=0, help="the first of these")
    given = parser.parse_args()
    counts, begun = Counter[str](), time.monotonic()
    cases = [case for path in given.files for case in cases_of(path) if case["devices"] > 1 and case["hlo"]]
    for case in cases[given.first :: given.every]:
        kind, reasons = proved(case, given.seconds)
        counts[kind] += 1
        if kind != "equal" or reasons:
            counts["equal, with layouts that runs showed"] += kind == "equal"
            print(f"{case['id']} {kind}: {reasons}" if kind != "equal" else f"{case['id']} {reasons}", flush=True)
        for kind, line in judged_mutants(case, given.mutants, given.seconds) if given.mutants else ():
            counts[f"mutants {kind}"] += 1
            if kind == "missed":
                print(f"{case['id']} missed: {line}", flush=True)
    print(f"in all, in {time.monotonic() - begun:.0f} s:")
    print("\n".join(f"  {count:5} {kind}" for kind, count in sorted(counts.items())))
    return int(counts["mutants missed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
