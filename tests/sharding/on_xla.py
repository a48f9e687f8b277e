"""Programs of the campaign on real XLA: partitioned here, run by XLA on eight CPU devices, beside the global program.

`python -m tests.sharding.on_xla --seed S --count N` has XLA in child processes. Where XLA's result is not the
interpreter's, XLA runs the global program on one device, too: if it gives the same there, the op is XLA's own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import xbuild as xb
from xbuild.sharding.partition.partitioned import _join

from .campaign import Program, _is_random, program
from .cases import difference

ROOT = Path(__file__).parents[2]
EQUAL, OWN, REFUSED, ENDED = "equal", "as the global program on XLA", "XLA does not take it", "XLA ended"


def outcomes(first: int, count: int) -> Iterator[tuple[int, str]]:
    """What came of each seed; a child that XLA ends is followed by another, which goes on behind the seed."""
    end = first + count
    while first < end:
        seed = first
        for line in _child(first, end):
            seed, word = json.loads(line)
            if word != "begun":
                yield seed, word
                first = seed + 1
        if first <= seed < end:
            yield seed, ENDED
            first = seed + 1


def _child(first: int, end: int) -> Iterator[str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.on_xla", "--here", str(first), str(end)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        try:
            yield from (line for line in child.stdout if line.startswith("["))
        finally:
            child.kill()


def _known(given: Program) -> str | None:
    """Why XLA:CPU's results are not those of the program (jaxlib 0.10.2): it scatters into one array twice at once."""
    every = (each for computation in given.module.computations for each in computation.instructions)
    several = (each.operands[: each.segments[0]] for each in every if each.opcode == "scatter" and each.segments)
    return "XLA scatters into one array twice" if any(len({*each}) < len(each) for each in several) else None


def _outcome(given: Program) -> str:
    """What XLA gives for a partitioned program."""
    from interpreter.engines import execute_here

    if _is_random(given.module):
        return "random"
    if known := _known(given):
        return known
    wanted = xb.evaluate(given.module.entry, *given.arguments)
    found = given.partitioned()
    rows = found.arguments(*given.arguments, padding=given.padding)
    try:
        came = execute_here(found.module, dict(enumerate(rows)))
        results = [came[device] for device in range(len(rows))]
    except Exception as error:
        return f"{REFUSED}: {' '.join(str(error).split())[:200]}"
    joined = _join(results, found.result, found.out_shardings)
    told = difference(wanted, joined)
    if told is None:
        return EQUAL
    alone = execute_here(xb.Module("alone", given.module.entry), {0: given.arguments})[0]
    return OWN if difference(alone, joined) is None else f"different: {told}"


def _here(first: int, end: int) -> None:
    for seed in range(first, end):
        print(json.dumps([seed, "begun"]), flush=True)
        try:
            told = _outcome(program(seed))
        except Exception as error:
            told = f"different: {type(error).__name__}: {error}"[:1000]
        print(json.dumps([seed, told]), flush=True)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--here"]:
        _here(*map(int, arguments[1:]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=240, help="after these no further program is counted")
    chosen = parser.parse_args(arguments)
    counts, end = Counter[str](), time.monotonic() + chosen.seconds
    found = itertools.takewhile(lambda _: time.monotonic() < end, outcomes(chosen.seed, chosen.count))
    for seed, word in found:
        kind, _, rest = word.partition(":")
        counts[kind] += 1
        if kind in (REFUSED, ENDED, "different"):
            print(f"seed {seed}: {kind}: {rest[:600]}", flush=True)
    for kind, number in sorted(counts.items()):
        print(f"{kind:32} {number:6}")
    return int(any(kind == "different" for kind in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
