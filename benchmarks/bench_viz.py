"""What a picture of a large program costs: folded as it is drawn by default, and whole."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb
from examples.gallery.programs import tower


@pytest.fixture(scope="module", params=[40, 450])
def program(request: pytest.FixtureRequest) -> xb.Module:
    return tower(request.param)


@pytest.mark.parametrize("boxes", [300, 10**6])
def test_draw(benchmark: Any, program: xb.Module, boxes: int) -> None:
    instructions = sum(len(computation.instructions) for computation in program.computations)
    benchmark.extra_info["instructions"] = instructions
    svg = benchmark.pedantic(lambda: str(xb.viz(program, "svg", max_nodes=boxes)), rounds=3, iterations=1)
    assert svg.endswith("</svg>\n")
