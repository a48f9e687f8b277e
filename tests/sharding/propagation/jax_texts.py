"""The programs of JAX as StableHLO text with their shardings, from a process that has JAX to itself.

Run as a module it prints a JSON list of [name, text]: with the shardings that are stated, or after `--open` with
arguments that no axis cuts, and results, left to propagation.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def texts(*, is_open: bool = False) -> list[tuple[str, str]]:
    """The programs, lowered in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.propagation.jax_texts", *["--open"] * is_open],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [tuple(each) for each in json.loads(done.stdout)]


def _main() -> None:
    from tests.sharding.jax_programs.listed import PROGRAMS

    found = []
    for program in PROGRAMS:
        jitted = program.opened() if "--open" in sys.argv else program.jitted()
        lowered = jitted.trace(*program.shapes).lower(lowering_platforms=("cpu",))
        found.append((program.name, lowered.as_text()))
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
