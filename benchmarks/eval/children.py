"""Child processes controlled by lines of JSON, pinned to one core, with one BLAS thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

ROOT = Path(__file__).parents[2]
CORE = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None

_ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "JAX_PLATFORMS": "cpu",
}
DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
"""The flag that gives XLA the devices of a replicated workload; it then uses more threads."""


def environment(tree: Path, cache: Path) -> dict[str, str]:
    """The environment of a child that imports a tree; compiled files go to the folder `cache`."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **_ONE_THREAD, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(cache)}


def pin() -> None:
    """Pin this process and its children to one core, if the platform supports it."""
    if CORE is not None:
        os.sched_setaffinity(0, {CORE})


@define(eq=False)
class Child:
    """A process that runs a script on one tree, with this Python, and answers each line of JSON with one."""

    script: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    python: str = sys.executable
    process: subprocess.Popen[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.process = subprocess.Popen(
            [self.python, str(self.script), *self.arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(self.environment),
        )  # fmt: skip

    def ask(self, **what: Any) -> Any:
        """The answer of the child; RuntimeError if the child has exited."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.script.name} {' '.join(self.arguments)} ended at {what}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
