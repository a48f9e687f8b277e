"""Laws that hold for some signs and exponents alone, and integers in floats that do not hold them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter.fields.probes import POOLS, SIMPLE, combination_table, combinations, rows_of
from interpreter.fields.variants import integers_as_floats
from shape_inference.types import primitive_type
from xbuild.properties.elementwise import wider

f = xb.f32
V = f[4]
BOTH = {0: "positive", 1: "positive"}
Function = Callable[..., Any]
Law = tuple[Function, Function, Mapping[int, Any]]


def power(x: Any, y: Any) -> Any:
    return xb.power(x, y)


LAWS: dict[str, Law] = {
    "power of a power, one half": (lambda x, y: power(power(x, y), 0.5), lambda x, y: power(x, y * 0.5), BOTH),
    "power of a power, two": (lambda x, y: power(power(x, y), 2.0), lambda x, y: power(x, 2.0 * y), BOTH),
    "power of a power": (lambda x, y, z: power(power(x, y), z), lambda x, y, z: power(x, y * z), BOTH),
    "root of a power": (lambda x, y: xb.sqrt(power(x, y)), lambda x, y: power(x, y * 0.5), BOTH),
    "power of a root": (lambda x, y: power(xb.sqrt(x), y), lambda x, y: power(x, 0.5 * y), BOTH),
    "square of a power": (lambda x, y: power(x, y) * power(x, y), lambda x, y: power(x, y + y), BOTH),
    "power of a square": (lambda x, y: power(x * x, y), lambda x, y: power(x, y + y), BOTH),
    "product of powers": (lambda x, y, z: power(x, y) * power(x, z), lambda x, y, z: power(x, y + z), BOTH),
    "quotient of powers": (lambda x, y, z: power(x, y) / power(x, z), lambda x, y, z: power(x, y - z), BOTH),
    "power of a product": (lambda x, y, z: power(x * z, y), lambda x, y, z: power(x, y) * power(z, y),
                           {**BOTH, 2: "positive"}),
    "one power more": (lambda x, y: power(x, y) * x, lambda x, y: power(x, y + 1.0), BOTH),
    "power by exp": (power, lambda x, y: xb.exp(y * xb.log(x)), BOTH),
    "log of a power": (lambda x, y: xb.log(power(x, y)), lambda x, y: y * xb.log(x), BOTH),
    "root of a product": (lambda x, y: xb.sqrt(x) * xb.sqrt(y), lambda x, y: xb.sqrt(x * y), BOTH),
    "root of a quotient": (lambda x, y: xb.sqrt(x) / xb.sqrt(y), lambda x, y: xb.sqrt(x / y), BOTH),
    "rsqrt of a product": (lambda x, y: xb.rsqrt(x) * xb.rsqrt(y), lambda x, y: xb.rsqrt(x * y), BOTH),
    "root of three": (lambda x, y, z: xb.sqrt(x) * xb.sqrt(y) * xb.sqrt(z), lambda x, y, z: xb.sqrt(x * y * z),
                      {**BOTH, 2: "positive"}),
    "root of a square": (lambda x, y: xb.sqrt(x * x) + y, lambda x, y: x + y, BOTH),
    "log of a product": (lambda x, y: xb.log(x * y), lambda x, y: xb.log(x) + xb.log(y), BOTH),
    "log of a quotient": (lambda x, y: xb.log(x / y), lambda x, y: xb.log(x) - xb.log(y), BOTH),
    "log of a square": (lambda x, y: xb.log(x * x) + y, lambda x, y: 2.0 * xb.log(x) + y, BOTH),
    "exp of log": (lambda x, y: xb.exp(xb.log(x)) + y, lambda x, y: x + y, BOTH),
    "exp of half a log": (lambda x, y: xb.exp(xb.log(x * x) * 0.5) + y, lambda x, y: x + y, BOTH),
    "size and sign": (lambda x, y: power(xb.abs(x), y), power, BOTH),
    "root by choice": (lambda x, y: xb.sqrt(x * x * y), lambda x, y: x * xb.sqrt(y), BOTH),
}  # fmt: skip
"""Laws that hold on a domain alone."""

EVERYWHERE: dict[str, tuple[Function, Function]] = {
    "power of an inverse": (lambda x, y: power(1.0 / x, y), lambda x, y: power(x, -y)),
    "power of an exponential": (lambda x, y: power(xb.exp(x), y), lambda x, y: xb.exp(x * y)),
    "root of a square": (lambda x, y: xb.sqrt(x * x) + y, lambda x, y: xb.abs(x) + y),
    "log of a size": (lambda x, y: xb.log(x * x) + y, lambda x, y: 2.0 * xb.log(xb.abs(x)) + y),
    "cube roots": (lambda x, y: xb.cbrt(x) * xb.cbrt(y), lambda x, y: xb.cbrt(x * y)),
    "integer power of a product": (lambda x, y: power(x * y, 3.0), lambda x, y: power(x, 3.0) * power(y, 3.0)),
    "integer power of a power": (lambda x, y: power(power(x, 2.0), 3.0) + y, lambda x, y: power(x, 6.0) + y),
    "an odd function of two": (lambda x, y: xb.atan2(x, xb.exp(y)), lambda x, y: -xb.atan2(-x, xb.exp(y))),
}


def programs(pair: tuple[Function, Function], names: int, shape: Any) -> list[Any]:
    return [xb.computation(*[shape] * names)(each) for each in pair]


def count(function: Function) -> int:
    return 2 if function is power else function.__code__.co_argcount


@pytest.mark.parametrize("shape", [V, xb.f32[()], xb.f64[2, 3], xb.bf16[4]], ids=str)
@pytest.mark.parametrize("name", LAWS)
def test_laws_of_positive_numbers_are_equal_on_these_alone(name: str, shape: Any) -> None:
    one, other, domain = LAWS[name]
    pair = programs((one, other), max(count(one), count(other)), shape)
    for seed in range(3):
        found = xb.equivalent(*pair, seed=seed)
        assert found.kind == "different", str(found)
        left, right = (np.asarray(xb.evaluate(each, *found.example.arguments[0])) for each in pair)
        assert not np.array_equal(left, right, equal_nan=True)
    if shape is V:
        found = xb.equivalent(*pair, domain=domain)
        assert found, str(found)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_laws_that_hold_for_all_numbers_are_equal(name: str) -> None:
    found = xb.equivalent(*programs(EVERYWHERE[name], 2, V))
    assert found, str(found)


@pytest.mark.parametrize("name", [name for name in LAWS if name not in ("exp of half a log",)])
def test_a_sum_does_not_hide_them(name: str) -> None:
    def total(function: Function) -> Function:
        return lambda *given: xb.reduce(function(*given), 0.0, xb.add)

    one, other, _ = LAWS[name]
    pair = [xb.computation(*[V] * max(count(one), count(other)))(lambda *given, f=f_: total(f)(*given))
            for f_ in (one, other)]  # fmt: skip
    assert xb.equivalent(*pair).kind == "different"


def test_an_element_that_a_start_chooses() -> None:
    def at(start: Callable[[Any], Any]) -> Function:
        return lambda x: xb.dynamic_slice(
            xb.clamp(-1.0, x, 2.0), [start(xb.convert(xb.floor(x[0] * 2.0), xb.s32))], [1]
        )

    pair = [xb.computation(V)(at(each)) for each in (lambda n: n, lambda n: n + 1)]
    for seed in range(5):
        assert xb.equivalent(*pair, seed=seed, domain={0: "nonpositive"}).kind == "different"


INTEGERS = ("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
DIGITS = {"f8e4m3fn": 4, "f8e5m2": 3, "f16": 11, "bf16": 8, "f32": 24, "f64": 53}


def holds(integer: str, through: str) -> bool:
    """Whether a float type has every value of an integer type."""
    dtype = primitive_type(integer)
    return dtype.bits - (dtype.kind == "signed") <= DIGITS[through]


@pytest.mark.parametrize(("integer", "through"), [*itertools.product(INTEGERS, FLOATS)])
def test_integers_by_way_of_floats(integer: str, through: str) -> None:
    dtype, middle = primitive_type(integer), primitive_type(through)
    two = dtype[4], dtype[4]

    def through_float(x: Any) -> Any:
        return xb.convert(xb.convert(x, middle), dtype)

    direct = xb.computation(*two)(lambda x, y: x - y)
    after = xb.computation(*two)(lambda x, y: through_float(x - y))
    found = xb.equivalent(direct, after)
    assert found.kind == ("equal" if holds(integer, through) else "different"), str(found)
    before = xb.computation(*two)(
        lambda x, y: xb.convert(xb.subtract(xb.convert(x, middle), xb.convert(y, middle)), dtype)
    )
    found = xb.equivalent(direct, before)  # which wraps in one, and is cut off in the other
    assert found.kind == "different", str(found)
    left, right = (np.asarray(xb.evaluate(each, *found.example.arguments[0])) for each in (direct, before))
    assert not np.array_equal(left, right)


def test_products_of_integers_that_a_float_rounds() -> None:
    wide = xb.computation(xb.s8[4], xb.s8[4])(lambda x, y: xb.convert(x, xb.s32) * xb.convert(y, xb.s32))
    for dtype, kind in ((xb.bf16, "different"), (xb.f32, "equal"), (xb.f16, "different")):
        rounds = xb.computation(xb.s8[4], xb.s8[4])(
            lambda x, y, t=dtype: xb.convert(xb.convert(x, t) * xb.convert(y, t), xb.s32)
        )
        assert xb.equivalent(wide, rounds).kind == kind


def test_comparisons_of_integers_in_floats() -> None:
    direct = xb.computation(xb.s32[4], xb.s32[4])(lambda x, y: x < y)
    for dtype, kind in ((xb.f32, "different"), (xb.bf16, "different"), (xb.f64, "equal")):
        rounds = xb.computation(xb.s32[4], xb.s32[4])(lambda x, y, t=dtype: xb.convert(x, t) < xb.convert(y, t))
        assert xb.equivalent(direct, rounds).kind == kind


def test_floats_that_integers_become_may_have_any_width() -> None:
    for one, other in itertools.combinations((xb.bf16, xb.f16, xb.f32, xb.f64), 2):
        pair = [
            xb.computation(xb.s32[4], V)(lambda n, x, t=t: x * xb.convert(xb.convert(n, t) * 0.5, xb.f32))
            for t in (one, other)
        ]
        assert xb.equivalent(*pair), (one, other)


def test_which_floats_are_integers() -> None:
    program = xb.computation(xb.s32[3], V)(lambda n, x: (xb.convert(n, f) * 2.0 - 1.0, xb.convert(n, f) * 0.5, x + 1.0))
    found = [each.opcode for each in integers_as_floats(xb.Module("m", program))]
    assert found == ["convert", "broadcast", "multiply", "broadcast", "subtract", "convert", "broadcast"]


def test_a_table_has_all_combinations() -> None:
    shapes = [f[6], f[6], xb.pred[6], f[6]]
    rows = rows_of(shapes)
    probe, random = combination_table([each.dtype[rows] for each in shapes], 0), np.random.default_rng(0)
    for _ in range(2):
        columns = [probe.draw(each.dtype[rows], random) for each in shapes]
        assert len({*zip(*(each.tolist() for each in columns), strict=True)}) == len(SIMPLE) ** 3 * 2
    assert rows_of([f[2]] * 9) == 4096
    assert rows_of([]) == rows_of([f[3]])


def test_any_two_arrays_meet_with_all_kinds_of_numbers() -> None:
    shapes, random = [f[5]] * 3, np.random.default_rng(0)
    kinds = {frozenset(pool): number for number, pool in enumerate(POOLS)}
    met: set[tuple[int, int, int, int]] = set()
    for probe in combinations(shapes):
        drawn = [{*probe.draw(each, random).tolist()} for each in shapes]
        own = [[kinds[pool] for pool in kinds if values <= pool] for values in drawn]
        met |= {(a, b, i, j) for a, b in itertools.combinations(range(3), 2) for i in own[a] for j in own[b]}
    assert len(met) == 3 * len(POOLS) ** 2


def test_programs_on_more_elements() -> None:
    def function(x: Any, y: Any) -> Any:
        inner = xb.call((x,), lambda v: xb.exp(v) * 2.0)
        return xb.select(x > 0.5, inner, xb.reshape(y, new_sizes=(2, 2)) + xb.reshape(x, new_sizes=(2, 2)))

    program = xb.computation(f[2, 2], f[4])(function)
    many = wider(xb.Module("m", program), 12)
    assert many is not None
    x, y = np.linspace(-2, 2, 12, dtype=np.float32), np.arange(12, dtype=np.float32)
    found = np.asarray(xb.evaluate(many.entry, x, y)).reshape(3, 4)
    for n in range(3):
        part = slice(4 * n, 4 * n + 4)
        assert np.array_equal(found[n], np.asarray(xb.evaluate(program, x[part].reshape(2, 2), y[part])).reshape(-1))


@pytest.mark.parametrize("function", [
    lambda x: xb.reduce(x, 0.0, xb.add), lambda x: xb.reverse(x, dimensions=[0]), lambda x: x * np.arange(4, dtype="f"),
    lambda x: xb.slice_in_dim(x, 0, 1, 1, 0), lambda x: xb.sort(x),
    lambda x: x + xb.iota(x.builder, f[4], 0),
], ids=range(6))  # fmt: skip
def test_programs_of_which_elements_depend_on_others_are_not_widened(function: Any) -> None:
    assert wider(xb.Module("m", xb.computation(V)(function)), 8) is None
