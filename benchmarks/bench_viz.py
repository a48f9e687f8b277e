"""The cost of drawing a large program: folded (the default), in full, and as an overview."""

from __future__ import annotations

import time
from typing import Any

import pytest

import xbuild as xb
from examples.gallery.programs import tower


@pytest.fixture(scope="module", params=[40, 450])
def program(request: pytest.FixtureRequest) -> xb.Module:
    return tower(request.param)


@pytest.mark.parametrize("boxes", [300, 10**6])
def test_draw(benchmark: Any, program: xb.Module, boxes: int) -> None:
    benchmark.extra_info["instructions"] = _instructions(program)
    svg = benchmark.pedantic(lambda: str(xb.viz(program, "svg", max_nodes=boxes)), rounds=3, iterations=1)
    assert svg.endswith("</svg>\n")


def _chain(length: int) -> xb.Module:
    """Without scopes."""
    builder = xb.Builder("chain")
    x = xb.parameter(builder, number=0, shape=xb.f32[8])
    for _ in range(length):
        x = xb.tanh(x)
    return xb.Module("chain", builder.build(x))


def _calls(count: int) -> xb.Module:
    """A hundred ops in each of many computations."""
    builder = xb.Builder("calls")
    x = xb.parameter(builder, number=0, shape=xb.f32[8])
    for number in range(count):
        part = xb.Builder(f"part{number}")
        y = xb.parameter(part, number=0, shape=xb.f32[8])
        for _ in range(98):
            y = xb.tanh(y)
        x = xb.call([x], to_apply=part.build(y))
    return xb.Module("calls", builder.build(x))


_LARGE = {"tower": lambda: tower(2565), "chain": lambda: _chain(100_000), "calls": lambda: _calls(1000)}


@pytest.mark.parametrize("make", _LARGE.values(), ids=_LARGE)
@pytest.mark.parametrize("form", ["svg", "txt"])
def test_a_hundred_thousand_instructions(benchmark: Any, make: Any, form: str) -> None:
    """The processor time of this process, since the machine may be shared."""
    large = make()
    benchmark.extra_info["instructions"] = _instructions(large)
    start = time.process_time()
    benchmark.pedantic(lambda: xb.viz(large, form), rounds=1, iterations=1)
    benchmark.extra_info["process_seconds"] = round(time.process_time() - start, 2)


def _instructions(program: xb.Module) -> int:
    return sum(len(computation.instructions) for computation in program.computations)
