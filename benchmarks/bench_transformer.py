"""The cost of reading, checking, planning and running a transformer step of 10,000 instructions, against XLA."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from benchmarks.conftest import Row
from interpreter import execute
from interpreter.engines import compare

transformer = pytest.importorskip("benchmarks.transformer")
jax = pytest.importorskip("jax")

SIZES = transformer.Sizes()
ROUNDS = 5


def test_stages(rows: list[Row]) -> None:
    """Each of our stages against XLA's; the results are compared before anything is reported."""
    lowered = transformer.lowered(SIZES)
    text = lowered.as_text(dialect="hlo", debug_info=True)
    hlo = pytest.importorskip("jaxlib._hlo")
    read, module = _timed(lambda: xb.parse_hlo(text))
    read_by_xla, _ = _timed(lambda: hlo.hlo_module_from_text(text))
    check, verdict = _timed(lambda: xb.check(module))
    assert verdict.kind == "ok"
    given = transformer.leaves(SIZES)
    first, ours = _once(lambda: execute(module, [given]))
    run, _ = _timed(lambda: execute(module, [given]))
    compiling, compiled = _once(lowered.compile)
    arguments = transformer.arguments(SIZES)
    run_by_xla, theirs = _timed(lambda: jax.block_until_ready(compiled(*arguments)))
    leaves = tuple(map(np.asarray, jax.tree.leaves(theirs)))
    assert [each for each in compare(ours, [leaves], [module.entry.root.shape]) if not each.same] == []
    count = sum(len(computation.instructions) for computation in module.computations)
    name = f"transformer of {count} instructions: "
    rows += [
        Row(f"{name}read", read, read_by_xla),
        Row(f"{name}check", check),
        Row(f"{name}compile (ours: plan)", first - check - run, compiling),
        Row(f"{name}run", run, run_by_xla),
        Row(f"{name}from text to result", read + first, read_by_xla + compiling + run_by_xla),
    ]


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The minimum of a few rounds, and the last result."""
    found = [_once(call) for _ in range(ROUNDS)]
    return min(seconds for seconds, _ in found), found[-1][1]


def _once(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
