"""The 105 programs of xla#42481: which are proved wrong, and the pass that makes them wrong.

`python -m tests.proving.miscompiled [--every N]` compiles each program in a child process, with the text after each
pass in a folder of its own, runs it, and compares the verdicts with the results. jaxlib 0.10.2 compiles 45 wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from interpreter.proving import PassProof, prove_passes
from tests.proving import ROOT

DUMPED = {
    "xla_dump_hlo_pass_re": ".*",
    "xla_dump_hlo_as_text": True,
    "xla_dump_large_constants": True,
}


@frozen
class Judged:
    """A program of the table: whether XLA compiled it wrong, and what the proof of its passes says."""

    number: int
    is_wrong: bool
    proof: PassProof
    seconds: float

    @property
    def is_missed(self) -> bool:
        """Whether the verdict, or the presence of a guilty pass, contradicts the run."""
        kind = "different" if self.is_wrong else "equal"
        return self.proof.kind != kind or (self.proof.guilty is not None) != self.is_wrong


def judged(folder: Path, numbers: list[int]) -> Iterator[Judged]:
    """The programs of these numbers, compiled and run in a child process."""
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.proving.miscompiled", "--compile", str(folder)]
    done = subprocess.run(
        [*command, *map(str, numbers)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **flags},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for line in done.stdout.splitlines():
        number, error = json.loads(line)
        begun = time.perf_counter()
        proof = prove_passes(str(folder / str(number)))
        yield Judged(number, error > 1e-4, proof, time.perf_counter() - begun)


def compile_all(folder: Path, numbers: list[int]) -> None:
    """Compile and run programs, with their dumps in folders with their numbers; prints the largest error of each."""
    from examples import miscompiled

    miscompiled.use_eight_devices()
    for number in numbers:
        lowered, arguments = miscompiled.lower(*miscompiled.COMBINATIONS[number])
        compiled = lowered.compile(compiler_options={**DUMPED, "xla_dump_to": str(folder / str(number))})
        print(json.dumps([number, miscompiled.largest_error(compiled, *arguments)]), flush=True)


def main() -> int:
    """Print each program with its pass, and the counts; gives 1 if a verdict contradicts a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every n-th program")
    parser.add_argument("--compile", nargs="+", metavar="FOLDER NUMBER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compile:
        compile_all(Path(given.compile[0]), [*map(int, given.compile[1:])])
        return 0
    counts, seconds = Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for each in judged(Path(folder), [*range(0, 105, given.every)]):
            kind = f"{'wrong' if each.is_wrong else 'right'}: {each.proof.kind}, {each.proof.guilty or 'no pass'}"
            counts[f"missed, {kind}" if each.is_missed else kind] += 1
            seconds.append(each.seconds)
            named = ", ".join(f"{one.opcode} {one.name} {one.source}" for one in each.proof.instructions)
            print(f"{each.number:3} {kind} {each.seconds:.1f} s {named}", flush=True)
    print("\n".join(f"{count:4} {kind}" for kind, count in sorted(counts.items())))
    print(f"median {sorted(seconds)[len(seconds) // 2]:.2f} s, at most {max(seconds):.2f} s")
    return int(any(kind.startswith("missed") for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
