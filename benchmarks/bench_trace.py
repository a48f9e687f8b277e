"""The cost of a trace compared with its run: without values at most 1.5x for training steps, 4x for tiny ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from benchmarks.conftest import SideBySide
from examples import ring
from examples.digits import data, model
from interpreter import execute, trace
from tests.browser.pages import large
from xbuild.files.arrays import random_arguments
from xbuild.pages import write_page


def _digits() -> tuple[xb.Module, list[list[np.ndarray]]]:
    """Ten training steps of examples/digits on four replicas."""
    module = xb.Module("digits", model.train_epoch(10, data.BATCH // 4, xb.f32), num_replicas=4)
    return module, random_arguments(0, [[p.shape for p in module.entry.parameters]] * 4)


def _ring() -> tuple[xb.Module, list[list[np.ndarray]]]:
    module = ring.ring_all_reduce(4)
    return module, [[row] for row in np.arange(64, dtype=np.float32).reshape(4, -1)]


PROGRAMS = {"ten training steps": (_digits, 1.5), "tiny ops": (_ring, 4.0)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_events_alone(side_by_side: SideBySide, name: str) -> None:
    build, most = PROGRAMS[name]
    module, inputs = build()
    side_by_side(
        f"a trace without values of {name}, at most {most}x",
        lambda: trace(module, inputs, values=False),
        lambda: execute(module, inputs),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_values(side_by_side: SideBySide, name: str) -> None:
    module, inputs = PROGRAMS[name][0]()
    side_by_side(f"a trace of {name}", lambda: trace(module, inputs), lambda: execute(module, inputs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_a_folder(side_by_side: SideBySide, name: str, tmp_path: Path) -> None:
    module, inputs = PROGRAMS[name][0]()
    side_by_side(
        f"a trace of {name} in a folder",
        lambda: trace(module, inputs, folder=tmp_path),
        lambda: execute(module, inputs),
    )


def test_a_large_page(side_by_side: SideBySide, tmp_path: Path) -> None:
    found = large(10_000)
    side_by_side.alone(
        "the page of 10,000 instructions on 8 devices", lambda: write_page(found, tmp_path / "page.html")
    )
