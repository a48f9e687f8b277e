"""A computation that is called several times has one order: levels that need two of it are a conflict, not `ok`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import Stopped

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
MEET = "all-reduce({}), to_apply=add, replica_groups={{{{0,1}}}}"


def chain(name: str, order: str) -> str:
    """A computation in which each collective depends on the one before it."""
    lines = [f" {letter} = f32[] {MEET.format(before)}" for before, letter in zip(f"p{order}", order, strict=False)]
    return f"{name} {{ p = f32[] parameter(0)\n" + "\n".join(lines) + f"\n ROOT r = f32[] negate({order[-1]}) }}\n"


def free(name: str, order: str = "xy") -> str:
    """A computation whose collectives may run in any order, recorded in this one."""
    lines = [f" {letter} = f32[] {MEET.format('p')}" for letter in order]
    lines.append(f" t = (f32[]{', f32[]' * (len(order) - 1)}) tuple({', '.join(sorted(order))})")
    return (
        f"{name} {{ p = f32[] parameter(0)\n" + "\n".join(lines) + "\n ROOT r = f32[] get-tuple-element(t), index=0 }\n"
    )


def calling(computations: str, *callees: str) -> xb.Module:
    calls = [f" c{n + 1} = f32[] call(c{n}), to_apply={callee}" for n, callee in enumerate(callees)]
    body = "\n".join([" c0 = f32[] parameter(0)", *calls])
    return xb.parse_hlo(
        f"HloModule m\n{ADD}{computations}ENTRY e {{\n{body}\n ROOT r = f32[] negate(c{len(callees)}) }}"
    )


@pytest.mark.parametrize("orders", [*itertools.product(["xy", "yx"], repeat=2)], ids="-".join)
@pytest.mark.parametrize("is_shared", [True, False])
def test_a_computation_that_is_called_twice_has_one_order(orders: tuple[str, str], is_shared: bool) -> None:
    fixed = calling(chain("f", orders[0]) + chain("g", orders[1]), "f", "g")
    other = calling(free("h") + free("i"), "h", "h" if is_shared else "i")
    group = xb.ModuleGroup({0: fixed, 1: other})
    verdict = xb.check(group)
    inputs = [[np.float32(1)], [np.float32(2)]]
    if is_shared and orders[0] != orders[1]:
        assert verdict.kind == "error"
        assert verdict.findings[0].kind == "companion_conflict"
        assert "give each call of h its own copy of the computation" in str(verdict)
        with pytest.raises(Stopped):
            xb.execute(group, inputs, check=False)
    else:
        assert verdict.kind == "ok", verdict
        first, second = xb.execute(group, inputs)
        assert np.isfinite([first, second]).all()


ORDERS = ["".join(letters) for letters in itertools.permutations("xyz")]
COMPUTATIONS = st.lists(st.tuples(st.booleans(), st.sampled_from(ORDERS)), min_size=1, max_size=3)
CALLS = st.lists(st.integers(0, 2), min_size=1, max_size=3)


def drawn(computations: list[tuple[bool, str]], calls: list[int]) -> xb.Module:
    texts = [(free if is_free else chain)(f"f{n}", order) for n, (is_free, order) in enumerate(computations)]
    return calling("".join(texts), *(f"f{n % len(computations)}" for n in calls))


def ends(group: xb.ModuleGroup, *, check: bool) -> bool:
    try:
        xb.execute(group, [[np.float32(1)], [np.float32(2)]], check=check)
    except Stopped:
        return False
    return True


@settings(max_examples=300)
@given(COMPUTATIONS, COMPUTATIONS, CALLS, st.data())
def test_verdicts_on_shared_computations_are_those_of_runs(
    one: list[tuple[bool, str]], other: list[tuple[bool, str]], calls: list[int], data: st.DataObject
) -> None:
    """What is `ok` runs in the orders found; what is refused does not run in the recorded orders, which are legal."""
    order = data.draw(st.lists(st.integers(0, 2), min_size=len(calls), max_size=len(calls)))
    group = xb.ModuleGroup({0: drawn(one, calls), 1: drawn(other, order)})
    verdict = xb.check(group)
    assert verdict.kind in ("ok", "deadlock", "error")
    assert ends(group, check=verdict.kind == "ok") is (verdict.kind == "ok")
