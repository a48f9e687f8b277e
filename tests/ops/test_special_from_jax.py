"""Special functions as JAX lowers them, against real XLA and SciPy, and the sums whose products are not rounded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import xbuild as xb
from interpreter import Limits, evaluate, execute
from interpreter.compiler.facts import add_unrounded
from interpreter.runtime import run
from tests.oracle import Failure, Job, Oracle
from tests.support.compare import assert_same, shape_of
from xbuild.running import Evaluator

Array = np.ndarray[Any, Any]
FLOATS = (np.float32, np.float64)
ROW = np.random.default_rng(5).uniform(1, 2, 100)


def is_any(pred: Any) -> Any:
    return xb.reduce(pred, False, xb.or_, dimensions=[0])


def are_all(pred: Any) -> Any:
    return xb.reduce(pred, True, xb.and_, dimensions=[0])


def is_contracted(program: Callable[..., Any], is_so: bool, name: str) -> Any:
    return pytest.param(program, is_so, id=name)


# Of x, its reciprocal y, and half an ulp of 1: whether x·y is taken as if it were not rounded. Of rounded products some
# are half an ulp from 1.
SUMS = [
    is_contracted(lambda x, y, half: is_any(xb.abs(x * y - 1.0) >= half), True, "product-first"),
    is_contracted(lambda x, y, half: is_any(xb.abs(1.0 - x * y) >= half), True, "product-second"),
    is_contracted(lambda x, y, half: is_any(xb.abs(-1.0 + x * y) >= half), True, "added"),
    is_contracted(lambda x, y, half: is_any((-(x * y - 1.0) >= half) & (x > 0.0)), True, "negated-and-logic"),
    is_contracted(lambda x, y, half: xb.not_(are_all(1.0 - x * y < half)), True, "all"),
    is_contracted(lambda x, y, half: (xb.sin(x * y), is_any(xb.abs(x * y - 1.0) >= half)), True, "another-product"),
    is_contracted(lambda x, y, half: _twice(x * y, half, lambda p: p * 3.0), True, "used-by-another-kernel"),
    is_contracted(lambda x, y, half: _twice(x * y, half, lambda p: p), False, "a-result"),
    is_contracted(lambda x, y, half: _relative(x * y, half), False, "twice-in-one-kernel"),
]


def _twice(product: Any, half: Any, use: Callable[[Any], Any]) -> Any:
    return use(product), is_any(xb.abs(product - 1.0) >= half)


def _relative(product: Any, half: Any) -> Any:
    return is_any(xb.abs(product - 1.0) >= xb.broadcast_in_dim(half, (ROW.size,), ()) * product)


def reciprocals(dtype: Any) -> list[Array]:
    """Numbers, their reciprocals, and half an ulp of 1, which a product may be off after its rounding."""
    x = ROW.astype(dtype)
    y, half = 1 / x, np.array(np.finfo(dtype).epsneg)
    assert (np.abs(x * y - 1) >= half).any()
    return [x, y, half]


def program_of(function: Any, arguments: list[Array]) -> xb.Computation:
    return xb.computation(*(shape_of(argument) for argument in arguments))(function)


def last(result: Any) -> Any:
    return result[-1] if isinstance(result, tuple | list) else result


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("function", "is_so"), SUMS)
def test_a_sum_that_is_only_compared_takes_its_product_unrounded(function: Any, is_so: bool, dtype: Any) -> None:
    arguments = reciprocals(dtype)
    assert last(evaluate(program_of(function, arguments), *arguments)) == (not is_so)


@pytest.mark.parametrize("dtype", FLOATS)
def test_however_it_is_run(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observed, checked, by array operations for denormal numbers, on two devices that share what is alike."""
    arguments = reciprocals(dtype)
    program = program_of(lambda x, y, half: is_any(xb.abs(1.0 - x * y) >= half), arguments)
    seen: list[Any] = []
    assert not evaluate(program, *arguments, observer=lambda *event: seen.append(event))
    assert seen
    assert not evaluate(program, *arguments, strict=True)
    two = xb.Module("two", program, num_replicas=2)
    assert not any(execute(two, [arguments, arguments]))
    assert not any(execute(two, [arguments, [arguments[0], arguments[1], arguments[2] * 2]]))
    monkeypatch.setattr(run, "HAS_MODE", False)
    assert not evaluate(program_of(lambda x, y, half: is_any(xb.abs(1.0 - x * y) >= half), arguments), *arguments)


def test_a_product_that_is_shared_leaves_its_factors() -> None:
    """The product is computed by one device for both, the difference from what each has by each."""
    x, y, half = (np.resize(each, 2048) if each.ndim else each for each in reciprocals(np.float64))
    program = program_of(lambda x, y, one, half: is_any(xb.abs(-x * -y - one) >= half), [x, y, x, half])
    ones = [np.ones_like(x), np.ones_like(x)]
    ones[1][0] = 2
    found = execute(xb.Module("two", program, num_replicas=2), [[x, y, one, half] for one in ones])
    assert [bool(each) for each in found] == [False, True]


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_sum_is_rounded_once(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=500).astype(dtype) for _ in range(2))
    product = a * b
    c = product * (1 + rng.integers(-9, 9, 500).astype(dtype) * np.finfo(dtype).eps)
    exact = [float(_fraction(p) * _fraction(q) - _fraction(r)) for p, q, r in zip(a, b, c, strict=True)]
    assert_same(add_unrounded(product - c, product, a, b), np.array(exact).astype(dtype))


def _fraction(number: Any) -> Any:
    from fractions import Fraction

    return Fraction(float(number))


def test_numbers_without_an_exact_product_keep_the_rounded_sum() -> None:
    largest = np.array([np.finfo(np.float64).max, np.inf, np.nan, 0.0])
    one = np.ones(4)
    with np.errstate(all="ignore"):
        total = largest * one - largest
        assert_same(add_unrounded(total, largest * one, largest, one), total)


def test_nothing_is_said_before_a_run_where_the_rounding_shows() -> None:
    x, y, half = reciprocals(np.float64)
    program = program_of(lambda x, y, half: is_any(xb.abs(x * y - 1.0) >= half), [x, y, half])
    difference = next(i for i in program.instructions if i.opcode == "subtract")
    evaluator = Evaluator()
    assert evaluator.value(difference, [x * y, np.ones_like(x)], (0, 0)) is None
    assert_same(evaluator.value(difference, [x * 3, np.ones_like(x)], (0, 0)), x * 3 - 1)


@pytest.mark.oracle
def test_real_xla_takes_the_same_products_unrounded() -> None:
    pytest.importorskip("jaxlib")
    with Oracle() as oracle:
        arguments = reciprocals(np.float64)
        for case in SUMS:
            function, is_so = case.values
            outcome = oracle.run(Job(xb.Module("m", program_of(function, arguments)).to_hlo(), [arguments]))
            assert not isinstance(outcome, Failure), outcome
            assert bool(outcome[0][-1]) == (not is_so), case.id


PLAIN = [0, -0.0, 1, -1, 2, 0.5, -0.5, 1.5, 0.1, 0.9, 1.001, 3, 7, 20, 50, 80, -3, -10, -50, -80, 700, 1e10, -1e10,
         np.inf, -np.inf, np.nan]  # fmt: skip
ONES = ("exp1", "expi", "spence")
SHAPES = [0, 0.5, 1, 3, 0.1, 100, np.inf, np.nan, -1, -0.5]
PLACES = [0, -0.0, 1, 0.5, 0.1, 0.9, 1e-5, 0.99, 2, -1, np.inf, -np.inf, np.nan]


def edges(dtype: Any) -> list[Any]:
    """The numbers next to 1, the least normal ones, denormal ones, the largest."""
    about = np.finfo(dtype)
    return [1 + about.eps, 1 - about.epsneg, about.tiny, about.tiny / 2, about.smallest_subnormal, about.max]


def lowered(function: Any, arguments: list[Array]) -> tuple[Any, Any]:
    """What ours gives in loops of a few thousand trips, and what XLA gives."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        program = jax.jit(function).lower(*arguments)
        theirs = jax.tree.map(np.asarray, program.compile()(*arguments))
        module = xb.from_jax(program)
    (ours,) = execute(module, [arguments], limits=Limits(trips=5000))
    return ours, theirs


def differentiated(function: Any, number: int) -> Any:
    """The function and its derivative by one argument, of each element."""
    jax = pytest.importorskip("jax")
    return jax.vmap(jax.value_and_grad(function, number))


@pytest.mark.oracle
def test_betainc_ends_where_xla_does() -> None:
    """Its continued fraction goes on while any factor is not 1, up to 600 times, which the value does not survive."""
    special = pytest.importorskip("jax.scipy.special")
    a = np.linspace(0.1, 5, 37)
    arguments = [a, a[::-1].copy(), np.linspace(0.01, 0.99, 37)]
    ours, _ = lowered(special.betainc, arguments)
    np.testing.assert_allclose(ours, scipy.special.betainc(*arguments), rtol=64 * 2.0**-52)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ONES)
def test_special_values_of_one_argument(name: str, dtype: Any) -> None:
    special = pytest.importorskip("jax.scipy.special")
    function, eps = getattr(special, name), float(np.finfo(dtype).eps)
    x = np.array([*PLAIN, *edges(dtype)], dtype)
    x = x[~((np.abs(x) < 0.1) & (np.abs(x) >= np.finfo(dtype).tiny))]
    for ours, theirs in zip(*lowered(differentiated(function, 0), [x]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=16 * eps, atol=np.finfo(dtype).tiny)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_betainc(dtype: Any) -> None:
    """XLA's own logarithms are so far from the exact value; ours is nearer to it in double precision."""
    special = pytest.importorskip("jax.scipy.special")
    places = [*PLACES, *(each for each in edges(dtype) if each <= 1)]
    rows = itertools.product(SHAPES, SHAPES, places)
    arguments = [np.array(column, dtype) for column in zip(*rows, strict=True)]
    tolerance = 1024 * float(np.finfo(dtype).eps)
    for ours, theirs in zip(*lowered(differentiated(special.betainc, 2), arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.oracle
def test_a_loop_in_which_flushed_numbers_decide() -> None:
    """A continued fraction whose denominator comes to be 0 where its product with a tiny number is denormal."""
    jax = pytest.importorskip("jax")

    def body(_: Any, state: Any) -> Any:
        p, q, x, found = state
        p, q = q * x / 1e3, p * 0.5
        return p, q, x, jax.numpy.where(q != 0, q, found)

    def fraction(x: Any) -> Any:
        return jax.lax.fori_loop(0, 40, body, (jax.numpy.ones_like(x), jax.numpy.ones_like(x), x, x))[3]

    x = np.float32([1e-36, 1e-37, 1.2e-38, 1e-30, 0.5])
    ours, theirs = lowered(fraction, [x])
    assert_same(ours, theirs, 8)
    (kept,) = execute(xb.from_jax(fraction, x), [[x]], denormals="keep")
    assert (kept != theirs).any()
