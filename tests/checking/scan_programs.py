"""Programs with scans whose computation communicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import Stopped, execute
from xbuild.checking import Verdict

Body = Callable[..., Any]

RING = ((0, 1), (1, 2), (2, 3), (3, 0))
PAIRS = ((0, 2), (1, 3))


def total(value: xb.Value, name: str | None = "total", **attributes: Any) -> xb.Value:
    return xb.ops.all_reduce(value, to_apply=xb.add, name=name, **attributes)


def summed(each: xb.Value, carry: xb.Value) -> Any:
    after = xb.add(each, carry)
    return total(after), after


def scanned(count: int, body: Body = summed, **attributes: Any) -> xb.Computation:
    return xb.computation(xb.f32[count, 2], xb.f32[2])(lambda x, z: xb.scan(x, z, body, name="s", **attributes))


def counted(count: int, holds: Callable[[xb.Value], Any], **attributes: Any) -> xb.Computation:
    """The slices of an iota decide in which trips the devices meet."""

    def body(number: xb.Value, each: xb.Value, carry: xb.Value) -> Any:
        met = xb.conditional(holds(number), each, total, each, lambda v: v * 2.0, name="c")
        return met, carry + met

    @xb.computation(xb.f32[count, 2], xb.f32[2])
    def program(x: xb.Value, z: xb.Value) -> Any:
        numbers = xb.iota(x.builder, shape=xb.s32[count], iota_dimension=0)
        return xb.scan((numbers, x), z, body, name="s", **attributes)

    return program


def looped(count: int) -> xb.Computation:
    """What `scanned` does, as a while."""

    def body(state: xb.Value) -> Any:
        trip, x, carry = state
        zero = xb.constant(trip.builder, literal=np.int32(0))
        each = xb.reshape(xb.dynamic_slice(x, [trip, zero], (1, 2)), (2,))
        after = each + carry
        total(after)
        return trip + 1, x, after

    def program(x: xb.Value, z: xb.Value) -> Any:
        start = [xb.constant(x.builder, literal=np.int32(0)), x, z]
        return xb.while_(start, condition=lambda state: state[0] < count, body=body, name="s")[2]

    return xb.computation(xb.f32[count, 2], xb.f32[2])(program)


def both(first: xb.Computation, second: xb.Computation) -> xb.ModuleGroup:
    return xb.ModuleGroup({0: xb.Module("first", first), 1: xb.Module("second", second)})


def inputs(program: xb.Module | xb.ModuleGroup) -> list[list[Any]]:
    module_of = (lambda _: program) if isinstance(program, xb.Module) else program.modules.__getitem__
    rng = np.random.default_rng(0)
    return [
        [rng.integers(-4, 5, p.shape.dims).astype(p.shape.dtype.dtype) for p in module_of(device).entry.parameters]
        for device in range(program.num_devices)
    ]


def ends(program: xb.Module | xb.ModuleGroup, **options: Any) -> bool:
    try:
        execute(program, inputs(program), check=False, **options)
    except Stopped:
        return False
    return True


def agreed(program: xb.Module | xb.ModuleGroup) -> Verdict:
    """The verdict, which the run bears out."""
    verdict = xb.check(program)
    assert verdict.kind != "depends"
    assert ends(program) == (verdict.kind == "ok")
    return verdict
