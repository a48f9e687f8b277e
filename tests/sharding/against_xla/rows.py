"""A row of the comparison, and the rows of programs, made in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[3]


@frozen
class Row:
    """A program, its mesh, what is wrong, and for each partitioner the bytes that a device sends.

    `scattered` are the bytes of Shardy's program if all-reduces of which devices keep a slice were reduce-scatters;
    `work` is a device's FLOPs here over those there. `gspmd` is None where GSPMD does not take the program, or gives
    other results.
    """

    name: str
    mesh: dict[str, int]
    fault: str | None
    ours: float = 0
    shardy: float = 0
    gspmd: float | None = None
    scattered: float = 0
    work: float = 1
    our_collectives: str = ""
    shardy_collectives: str = ""
    gspmd_collectives: str = ""
    seconds: float = 0

    @property
    def ratio(self) -> float:
        """Our bytes over those of Shardy."""
        return ratio(self.ours, self.shardy)


def ratio(ours: float, theirs: float) -> float:
    """1 where neither sends anything, infinite where they send nothing."""
    return ours / theirs if theirs else 1.0 if not ours else float("inf")


def rows(*words: str, exact: bool = False, has_gspmd: bool = True) -> list[Row]:
    """The rows of the programs whose names contain one of the words, or with `exact` are one of them.

    XLA ends its process on some programs: another one goes on with those that have no row yet.
    """
    found: dict[str, Row] = {}
    options = ["--exact"] * exact + ["--only-shardy"] * (not has_gspmd)
    while True:
        done = _process([*options, *(f"--done={name}" for name in found), *words])
        told = [Row(**json.loads(line)) for line in done.stdout.splitlines()]
        found |= {row.name: row for row in told}
        if not done.returncode:
            return list(found.values())
        assert told, done.stderr[-3000:]


def _process(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.against_xla.measuring", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
