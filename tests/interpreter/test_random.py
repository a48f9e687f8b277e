"""Random numbers of a run: a seed repeats them, devices have their own, and they are spread as they should be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute
from interpreter.compiler.plan import plan_source


def draw(shape: xb.Shape, form: str = "uniform") -> xb.Computation:
    scalar = shape.dtype[()]
    return xb.computation(scalar, scalar)(lambda a, b: xb.ops.rng(a, b, shape=shape, distribution=f"rng_{form}"))


def test_a_seed_repeats_a_run_and_another_does_not() -> None:
    noise = draw(xb.f32[50])
    first = evaluate(noise, 0, 1, seed=3)
    assert first.tolist() == evaluate(noise, 0, 1, seed=3).tolist()
    assert first.tolist() != evaluate(noise, 0, 1, seed=4).tolist()
    assert evaluate(noise, 0, 1).tolist() == evaluate(noise, 0, 1, seed=0).tolist()
    assert evaluate(noise, 0, 1, seed=-1).tolist() == evaluate(noise, 0, 1, seed=2**64 - 1).tolist()


def test_devices_have_numbers_of_their_own() -> None:
    module = xb.Module("noise", draw(xb.f32[5000]), num_replicas=3)
    arguments = [(np.float32(0), np.float32(1))] * 3
    results = execute(module, arguments, seed=5)
    assert len({result.tobytes() for result in results}) == 3
    again = execute(module, arguments, seed=5)
    assert [result.tobytes() for result in results] == [result.tobytes() for result in again]


def test_states_of_devices_and_seeds_never_meet() -> None:
    builder = xb.Builder("state")
    computation = builder.build(xb.ops.rng_get_and_update_state(builder, delta=1, shape=xb.u64[2]))
    module = xb.Module("state", computation, num_replicas=4)
    states = {state.tobytes() for seed in range(4) for state in execute(module, [()] * 4, seed=seed)}
    assert len(states) == 16


def test_two_draws_differ() -> None:
    twice = xb.computation(xb.f32, xb.f32)(
        lambda a, b: [xb.rng_uniform(a, b, xb.f32[9]), xb.rng_uniform(a, b, xb.f32[9])]
    )
    first, second = evaluate(twice, 0, 1)
    assert first.tolist() != second.tolist()


def test_a_region_draws_for_each_element_from_its_device() -> None:
    noisy = xb.computation(xb.f32[100])(lambda x: xb.map(x, lambda e: xb.rng_uniform(e, e + 1.0, xb.f32[()])))
    assert ".on(device)" in plan_source(noisy)
    base = np.arange(100, dtype=np.float32)
    found = evaluate(noisy, base)
    assert ((base <= found) & (found < base + 1)).all()
    assert len(set(found - base)) > 50


FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ends", [(0, 1), (-2, 3), (8, 16), (1, -1)])
def test_uniform_floats(dtype: Any, ends: tuple[float, float]) -> None:
    a, b = ends
    ends_in_type = np.array(a).astype(dtype), np.array(b).astype(dtype)
    found = evaluate(draw(xb.primitive_type(dtype)[20000]), *ends_in_type).astype(np.float64)
    inside = (a <= found) & (found < b) if a < b else (b < found) & (found <= a)
    assert inside.all()
    assert abs(found.mean() - (a + b) / 2) < 0.15 * abs(b - a)
    assert abs(found.std() - abs(b - a) / 12**0.5) < 0.06 * abs(b - a)


@pytest.mark.parametrize("name", ["s2", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_uniform_integers_reach_every_number(name: str) -> None:
    dtype = xb.primitive_type(name)
    low, high = (-2, 1) if dtype.kind == "signed" else (0, 3)
    ends = np.array(low).astype(dtype.dtype), np.array(high).astype(dtype.dtype)
    found = evaluate(draw(dtype[3000]), *ends).astype(np.int64)
    counts = [int((found == each).sum()) for each in range(low, high)]
    assert sum(counts) == 3000
    assert min(counts) > 800


def test_uniform_integers_of_the_whole_range() -> None:
    found = evaluate(draw(xb.s64[4000]), np.int64(-(2**63)), np.int64(2**63 - 1)).astype(np.float64) / 2**63
    assert found.min() < -0.99
    assert found.max() > 0.99
    assert abs(found.mean()) < 0.05


def test_uniform_floats_of_the_whole_range() -> None:
    most = np.finfo(np.float64).max
    found = evaluate(draw(xb.f64[1000]), -most, most)
    assert np.isfinite(found).all()
    assert abs((found / most).mean()) < 0.1


@pytest.mark.parametrize("dtype", FLOATS[:4])
def test_normal(dtype: Any) -> None:
    ends = np.array(3).astype(dtype), np.array(2).astype(dtype)
    found = evaluate(draw(xb.primitive_type(dtype)[20000], "normal"), *ends).astype(np.float64)
    assert abs(found.mean() - 3) < 0.1
    assert abs(found.std() - 2) < 0.1
    assert 0.66 < (abs(found - 3) < 2).mean() < 0.71
