"""Step pages of the gallery, and pictures of them if Chromium is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import xbuild as xb
from examples import pipeline, ring
from examples.deadlocks import data_parallel, infeed_loop, parameter_server
from examples.deadlocks import pipeline as crossed_pipeline
from examples.deadlocks import ring as sending_ring
from examples.digits import refusal
from examples.gallery import programs
from examples.sharding import block

FOLDER = Path(__file__).parents[2] / "docs" / "pages"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,940")


def _run_on_normal_numbers(program: xb.Module | xb.ModuleGroup, seed: int = 0, **options: bool) -> xb.Trace:
    """A run on normal numbers."""
    generator = np.random.default_rng(seed)
    modules = [program] * program.num_devices if isinstance(program, xb.Module) else list(program.modules.values())
    inputs = [
        [np.asarray(generator.standard_normal(p.shape.dims), p.shape.dtype.dtype) for p in module.entry.parameters]
        for module in modules
    ]
    return xb.trace(program, inputs, origins=True, **options)


def _ring() -> xb.Trace:
    rows = np.arange(64, dtype=np.float32).reshape(4, -1)
    return xb.trace(ring.ring_all_reduce(4), [[row] for row in rows], origins=True)


def _run_until_stuck(program: xb.Module | xb.ModuleGroup) -> xb.Trace:
    """Run a program that the check refuses until it is stuck."""
    return _run_on_normal_numbers(program, check=False)


def _unsynchronized() -> xb.Trace:
    """Replica 2 has no examples and skips the all-reduce of the gradients."""
    weights, gradient = np.zeros(3, np.float32), np.ones(3, np.float32)
    given = [[weights, gradient, np.int32(examples)] for examples in (8, 8, 0, 8)]
    return xb.trace(data_parallel.program(), given, origins=True)


def _starve() -> xb.Trace:
    """Replica 1 gets only one of two items."""
    items = [(True, [1.0, 2.0]), (False, [10.0, 20.0])]
    return xb.trace(infeed_loop.program(), [[], []], infeed=[items, items[:1]], origins=True)


def _run_block() -> tuple[xb.Trace, xb.shard.Partitioned]:
    """Run a transformer block that was written for one device, partitioned over four devices."""
    parts = xb.shard.partition(block.tensor())
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape.dims).astype(np.float32) / 4 for shape in block.SHAPES.values()]
    return xb.trace(parts.module, parts.arguments(*arrays), origins=True), parts


PAGES: dict[str, tuple[Callable[[], xb.Trace | tuple[xb.Trace, xb.shard.Partitioned]], str | None]] = {
    "ring": (_ring, "at=add.26&device=1&index=2"),
    "pipeline": (lambda: _run_on_normal_numbers(pipeline.program()), "step=8"),
    "digits_step": (lambda: _run_on_normal_numbers(refusal.train_step(4)), "at=all-reduce.55&device=2"),
    "sharded_block": (_run_block, "at=hidden&device=2"),
    "attention_grad": (lambda: _run_on_normal_numbers(programs.attention_grad()), None),
    "deadlock_ring": (lambda: _run_until_stuck(sending_ring.program()), None),
    "deadlock_pipeline": (lambda: _run_until_stuck(crossed_pipeline.program()), ""),
    "deadlock_parameter_server": (lambda: _run_until_stuck(parameter_server.program()), None),
    "deadlock_data_parallel": (_unsynchronized, None),
    "deadlock_infeed_loop": (_starve, None),
}
"""For each page the run, and the place that its picture shows, if it has a picture."""


def write_pages() -> int:
    """Write every page, and its picture if possible; returns the number of pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (run, place) in PAGES.items():
        found = run()
        trace, parts = found if isinstance(found, tuple) else (found, None)
        path = xb.write_page(trace, FOLDER / f"{name}.html", partitioned=parts)
        if place is not None:
            _take(path, place, FOLDER.parent / "pictures" / f"page_{name}.png")
    return len(PAGES)


def _take(page: Path, place: str, picture: Path) -> None:
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        return
    with tempfile.TemporaryDirectory() as profile:
        url = f"{page.as_uri()}#{place}"
        command = [chromium, *FLAGS, f"--user-data-dir={profile}", f"--screenshot={picture}", url]
        subprocess.run(command, capture_output=True, timeout=60, check=False)
