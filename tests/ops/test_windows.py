"""Gather, scatter and the window ops on random instances: against a slow reference and real XLA, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from shape_inference import primitive_type
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension, read_window, window_text
from tests.support.compare import assert_same, difference
from tests.support.random_windows import MAKERS, Instance

COUNT = 60
PER_MODULE = 30


def instances(maker: Callable[[np.random.Generator], Instance], count: int, first: int = 0) -> Iterator[Instance]:
    for seed in range(first, first + count):
        yield maker(np.random.default_rng(seed))


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_as_the_slow_reference(maker: Any) -> None:
    for instance in instances(maker, COUNT):
        with np.errstate(all="ignore"):
            expected = instance.expected()
        found = evaluate(instance.computation(), *instance.arguments)
        assert difference(found, expected, 1) is None, f"{instance.words}: {difference(found, expected, 1)}"


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_one_after_the_other_gives_the_same(maker: Any) -> None:
    for instance in instances(maker, COUNT // 2, 5000):
        computation = instance.computation()
        assert_same(
            evaluate(computation, *instance.arguments, sequential=True), evaluate(computation, *instance.arguments), 1
        )


def is_agreed(instance: Instance) -> bool:
    """Whether XLA:CPU runs it as the documents have it.

    With index vectors of no entries it applies one update of many; a select-and-scatter without a window kills it, and
    it breaks ties in an order of its own. A convolution that crops one end of a dimension and pads the other reads
    memory that nobody has written.
    """
    if instance.words.startswith("convolution"):
        (root,) = (i for i in instance.computation().instructions if i.opcode == "convolution")
        return not any(min(d.padding_low, d.padding_high) < 0 < max(d.padding_low, d.padding_high)
                       for d in root.attributes.window)  # fmt: skip
    if instance.words.startswith("scatter"):
        return bool(instance.arguments[1].size)
    if instance.words.startswith("select"):
        operand, source, _ = instance.arguments
        return bool(source.size) and len(np.unique(operand.astype(np.float64))) == operand.size
    return True


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_as_real_xla(maker: Any) -> None:
    pytest.importorskip("jaxlib")
    from tests.oracle import Failure, run

    chosen = [instance for instance in instances(maker, 4 * COUNT, 9000) if is_agreed(instance)]
    groups = [chosen[n : n + PER_MODULE] for n in range(0, len(chosen), PER_MODULE)]
    for group, outcome in zip(groups, run(map(_job, groups)), strict=True):
        assert not isinstance(outcome, Failure), outcome
        for instance, wanted in zip(group, outcome[0], strict=True):
            found = evaluate(instance.computation(), *instance.arguments)
            assert difference(found, wanted, 4) is None, f"{instance.words}: {difference(found, wanted, 4)}"


def _job(group: list[Instance]) -> Any:
    """One module that computes all instances of the group."""
    from tests.oracle import Job

    builder = xb.Builder("instances")
    arguments = [argument for instance in group for argument in instance.arguments]
    parameters = iter(
        xb.parameter(builder, number=n, shape=primitive_type(a.dtype)[a.shape]) for n, a in enumerate(arguments)
    )
    results = [instance.call(*(next(parameters) for _ in instance.arguments)) for instance in group]
    return Job(xb.Module("instances", builder.build(xb.ops.tuple_(results, builder=builder))).to_hlo(), [arguments])


def numbers(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 9, shape).astype(primitive_type(dtype).dtype)


def places(count: int, among: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, among, count).astype(np.int32)


POINT = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
ROWS = {"update_window_dims": (1,), "inserted_window_dims": (), "scatter_dims_to_operand_dims": (0,)}
SLICE = {"offset_dims": (1,), "collapsed_slice_dims": (), "start_index_map": (0,), "index_vector_dim": 1}


def own(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.maximum(a, b) + (b - b)


def first_of_equal(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.compare(a, b, direction="GE")


FRUGAL: dict[str, tuple[Callable[..., xb.Value], tuple[Any, ...]]] = {
    "pool": (lambda x: xb.reduce_window(x, 0, xb.ops.maximum, (9, 9)), (numbers("u8", 1000, 1000),)),
    "pool-own": (lambda x: xb.reduce_window(x, 0, own, (5, 5)), (numbers("u8", 1000, 1000),)),
    "pool-bf16": (lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (30, 1)), (numbers("bf16", 1000, 1000),)),
    "select": (
        lambda x, s: xb.select_and_scatter(x, first_of_equal, (2, 2), (1, 1), "VALID", s, 0, xb.ops.add),
        (numbers("u8", 2000, 1000), numbers("u8", 1999, 999)),
    ),
    "gather": (
        lambda x, i: xb.gather(x, i, slice_sizes=(8,), **SLICE),
        (numbers("u8", 1 << 20), places(1 << 20, 1 << 20)),
    ),
    "scatter": (
        lambda x, i, u: xb.scatter(x, i, u, own, index_vector_dim=1, **POINT),
        (numbers("u8", 1 << 22), places(1 << 22, 1 << 22), numbers("u8", 1 << 22)),
    ),
    "scatter-windows": (
        lambda x, i, u: xb.scatter(x, i, u, xb.ops.add, index_vector_dim=1, **ROWS),
        (numbers("u8", 1 << 20), places(1 << 19, 1 << 20), numbers("u8", 1 << 19, 8)),
    ),
    "conv-7x7": (
        lambda x, k: xb.conv(x, k, (1, 1), "SAME"),
        (numbers("f32", 1, 8, 512, 512), numbers("f32", 8, 8, 7, 7)),
    ),
    "conv-s8": (lambda x, k: xb.conv(x, k, (1, 1), "SAME"), (numbers("s8", 1, 8, 800, 800), numbers("s8", 8, 8, 3, 3))),
    "conv-dilated": (
        lambda x, k: xb.conv_general_dilated(x, k, (50,), [(1, 1)], lhs_dilation=(50,)),
        (numbers("f32", 1, 8, 100000), numbers("f32", 8, 8, 3)),
    ),
}


@pytest.mark.parametrize("name", FRUGAL)
def test_takes_little_memory(name: str) -> None:
    """No more beside operands and result than eight times their size."""
    call, arguments = FRUGAL[name]
    computation = xb.computation(*(primitive_type(a.dtype)[a.shape] for a in arguments))(call)
    result = evaluate(computation, *arguments)
    tracemalloc.start()
    evaluate(computation, *arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * (sum(a.nbytes for a in arguments) + result.nbytes)


def test_windows_are_read_back() -> None:
    window = (
        WindowDimension(3, 2, -1, 4, 5, 6, True),
        WindowDimension(1),
    )
    text = "size=3x1 stride=2x1 pad=-1_4x0_0 lhs_dilate=6x1 rhs_dilate=5x1 rhs_reversal=1x0"
    assert window_text(window) == text
    assert read_window(text) == window
    assert read_window("") == ()
    assert read_window([{"size": 3, "stride": 2}]) == (WindowDimension(3, 2),)


def test_roles_are_read_back() -> None:
    for text in ("bf_oi->bf", "b01f_01io->b01f", "2b0f1_i10o2->f0b12"):
        assert repr(ConvolutionDimensionNumbers.read(text)) == text


def test_a_long_window_adds_up_as_a_short_one_does() -> None:
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    call = lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (100,), (3,), [(20, 50)])  # noqa: E731
    expected = [x[max(p - 20, 0) : max(p + 80, 0)].astype(np.float64).sum() for p in range(0, 271, 3)]
    np.testing.assert_allclose(evaluate(xb.computation(xb.f32[300])(call), x), expected, rtol=1e-5, atol=1e-5)
