"""Denormal numbers: flushed as real XLA does, or kept; the mode of the thread after a run is that before it."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Stopped, evaluate, execute, trace
from interpreter.compiler.facts import product_facts
from interpreter.kernels.products import Settled
from interpreter.rules import denormals
from interpreter.runtime import run
from shape_inference.ops import elementwise
from tests.oracle import Failure, Job, Oracle
from tests.oracle.deviations import OF_DENORMALS
from tests.support.measured import require_measured_jaxlib
from xbuild.cli import main

Array = np.ndarray[Any, Any]

LEAST = np.float32(1e-39)


def halving() -> xb.Computation:
    """Made anew, since a computation keeps its plan."""
    return xb.computation(xb.f32[2])(lambda x: x * 0.5)


HALVE = halving()


def own_mode() -> bool:
    """Whether this thread flushes."""
    return not (np.array([2], np.uint32).view(np.float32) * np.float32(0.5)).view(np.uint32).any()


@pytest.fixture(params=["mode", "arrays"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the processor's mode, and as where there is none."""
    if request.param == "mode" and not denormals.HAS_MODE:
        pytest.skip("this platform has no mode that is known")
    if request.param == "arrays":
        monkeypatch.setattr(run, "HAS_MODE", False)
        monkeypatch.setattr("interpreter.runtime.ends.with_mode", lambda own, flush: own)
        monkeypatch.setattr("interpreter.runtime.run.with_mode", lambda own, flush: own)
        monkeypatch.setattr("interpreter.runtime.run._FREE", [])
    return str(request.param)


def operands(dtype: Any) -> Array:
    """Zeros, denormal numbers to the largest, the least normal ones, ordinary ones, of both signs."""
    about = ml_dtypes.finfo(dtype)
    tiny = float(about.tiny)
    row = np.array([0, float(about.smallest_subnormal), tiny / 2, tiny, tiny * 1.5, 0.75, 1, 3], dtype)
    return np.concatenate([row, -row])


IN_HALF = {"asin", "asinh", "acos", "acosh", "atanh", "cosh", "sinh"}
"""What XLA:CPU has in bf16 alone."""

INTEGRAL = {"and", "count_leading_zeros", "mulhi", "not", "or", "popcnt", "xor"}
UNARY = sorted(name for name in elementwise.UNARY if name not in INTEGRAL)
BINARY = sorted(name for name in elementwise.BINARY if name not in INTEGRAL and not name.startswith("shift"))
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
FOLDS = {"add": -0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def programs(dtype: xb.PrimitiveType) -> dict[str, tuple[Any, list[Array]]]:
    """Each op as a function and its operands."""
    x = operands(dtype.dtype)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    names = [name for name in UNARY if dtype is xb.bf16 or name not in IN_HALF]
    found: dict[str, tuple[Any, list[Array]]] = {name: (getattr(xb.ops, name), [x]) for name in names}
    found |= {name: (getattr(xb.ops, name), [a, b]) for name in BINARY}
    for direction, order in itertools.product(DIRECTIONS, (None, "TOTALORDER")):
        compare = lambda p, q, d=direction, o=order: xb.ops.compare(p, q, direction=d, type=o)  # noqa: E731
        found[f"compare {direction} {order}"] = compare, [a, b]
    for other in (xb.f64, xb.f32, xb.bf16, xb.f16, xb.s32, xb.pred):
        found[f"convert to {other}"] = lambda p, to=other: xb.ops.convert(p, new_element_type=to), [x]
    found["select"] = lambda p, q: xb.select(xb.gt(p, 0.5), p, q), [a, b]
    found["select of compare"] = lambda p, q: xb.select(xb.lt(p, q), p, q), [a, b]
    found["clamp"] = xb.ops.clamp, [a, b, a[::-1].copy()]
    found["reverse"] = lambda p: xb.reverse(p, dimensions=[0]), [x]
    for fold, init in FOLDS.items():
        found[f"reduce {fold}"] = _reduced(fold, init), [np.stack([a, b])]
        found[f"reduce-window {fold}"] = _windowed(fold, init), [np.stack([a, b])]
    precedes = xb.computation(dtype, dtype)(xb.lt)
    in_order = lambda p: xb.sort([p], comparator=precedes, dimension=0, is_stable=True)  # noqa: E731
    found["sort"] = in_order, [x[4:13]]
    found["sort of more"] = in_order, [x]
    found["dot"] = lambda p, q: xb.dot(p, q), [a.reshape(16, 16), (b * dtype.dtype.type(2)).reshape(16, 16)]
    found["cholesky"] = lambda p: xb.cholesky(p, lower=True), [np.array([[[1, x[2]], [x[2], 1]]], dtype.dtype)]
    return found


def _reduced(fold: str, init: float) -> Any:
    return lambda p: xb.reduce(p, init, to_apply=getattr(xb.ops, fold), dimensions=[0])


def _windowed(fold: str, init: float) -> Any:
    return lambda p: xb.reduce_window(
        p, init, to_apply=getattr(xb.ops, fold), window_dimensions=[2, 1], window_strides=[1, 1], padding=[(0, 0)] * 2
    )


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [xb.f16, xb.bf16, xb.f32, xb.f64], ids=str)
def test_as_real_xla(dtype: xb.PrimitiveType, way: str) -> None:
    require_measured_jaxlib()
    wrong = set()
    with np.errstate(all="ignore"):
        cases = programs(dtype)
    with Oracle() as oracle:
        for name, (function, given) in cases.items():
            made = xb.computation(*(dtype[each.shape] for each in given))(function)
            theirs = oracle.run(Job(xb.Module("m", made).to_hlo(), [given]))
            assert not isinstance(theirs, Failure), (name, theirs)
            if _apart(np.asarray(evaluate(made, *given)), theirs[0][0], has_signs=name != "dot"):
                wrong.add(name)
    assert wrong == {name for name, row in OF_DENORMALS.items() if dtype.name in row.types}


def _apart(ours: Array, theirs: Array, has_signs: bool) -> bool:
    """Whether zeros and denormal numbers are not the same bit for bit, or others not to some units.

    Without `has_signs`, zeros of either sign are the same: where all products of a sum are flushed, the kernel that
    BLAS chooses for the processor decides the sign (Haswell's gives 0, SkylakeX's -0, as XLA).
    """
    if ours.dtype == bool or ours.dtype.kind == "i":
        return not np.array_equal(ours, theirs)
    about, bits = ml_dtypes.finfo(ours.dtype), f"u{ours.dtype.itemsize}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    small = np.minimum(abs(a), abs(b)) < float(about.tiny)
    if not has_signs:
        ours, theirs = ours + ours.dtype.type(0), theirs + theirs.dtype.type(0)
    if (ours[small].view(bits) != theirs[small].view(bits)).any():
        return True
    return not np.allclose(a[~small], b[~small], rtol=8 * float(about.eps), atol=0, equal_nan=True)


def test_kept_and_flushed(way: str) -> None:
    x = np.array([LEAST, 1], np.float32)
    halve = halving()
    assert evaluate(halve, x).tolist() == [0, 0.5]
    assert evaluate(halve, x, denormals="keep")[0] == LEAST / 2
    moved = xb.computation(xb.f32[2])(lambda x: xb.reverse(-x, dimensions=[0]))
    assert evaluate(moved, x).tolist() == [-1, -LEAST]


def test_large_products_are_flushed_on_every_thread() -> None:
    product = xb.computation(xb.f32[200, 200], xb.f32[200, 200])(xb.dot)
    x, y = np.full((200, 200), LEAST, np.float32), np.full((200, 200), 1e38, np.float32)
    assert not evaluate(product, x, y).any()
    assert evaluate(product, x, y, denormals="keep").all()
    tiny = np.full((200, 200), 1e-20, np.float32)
    assert not evaluate(product, tiny, tiny * 0.1).view(np.uint32).any()


def test_a_loop_whose_test_only_flushing_ends() -> None:
    step = xb.computation(xb.f32[()])(
        lambda x: xb.while_(x, condition=lambda v: xb.gt(v, 0.0), body=lambda v: v * np.float32(0.75))
    )
    assert evaluate(step, np.float32(1)) == 0
    with pytest.raises(Stopped):  # a denormal number times 3/4 comes to be one that stays
        evaluate(step, np.float32(1), denormals="keep", limits=Limits(trips=2000))


def test_the_mode_of_the_thread_comes_back() -> None:
    def fails(*seen: Any) -> None:
        raise KeyError(own_mode())

    assert not own_mode()
    evaluate(HALVE, [1.0, 2.0])
    assert not own_mode()
    with pytest.raises(KeyError, match="False"):  # the observer itself is the user's
        evaluate(HALVE, [1.0, 2.0], observer=fails)
    assert not own_mode()


def test_feeds_are_the_users() -> None:
    @xb.computation(xb.f32[()])
    def fed(x: xb.Value) -> xb.Value:
        item, _ = xb.infeed(xb.after_all(builder=x.builder), shape=xb.f32[2])
        return item

    def items() -> Any:
        assert not own_mode()
        yield [float(LEAST), 1.0]

    (found,) = execute(xb.Module("fed", fed), [[1.0]], infeed=[items()])
    assert found[0] == LEAST


def test_a_trace_is_of_the_run_it_asks_for() -> None:
    module = xb.Module("halve", HALVE)
    for how, wanted in (("flush", 0), ("keep", LEAST / 2)):
        assert trace(module, [[np.array([LEAST, 1], np.float32)]], denormals=how).results[0][0] == wanted


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="or 'keep', got 'zero'"):
        evaluate(HALVE, [1.0, 2.0], denormals="zero")  # type: ignore[arg-type]


def test_the_command_takes_it(tmp_path: Any) -> None:
    from click.testing import CliRunner

    (tmp_path / "m.hlo").write_text(xb.Module("halve", HALVE).to_hlo())
    np.savez(tmp_path / "in.npz", arg0=np.array([LEAST, 1], np.float32))
    command = ["run", str(tmp_path / "m.hlo"), "--inputs", str(tmp_path / "in.npz")]
    assert "[0. , 0.5]" in CliRunner().invoke(main, command).output
    assert "5.e-40" in CliRunner().invoke(main, [*command, "--denormals", "keep"]).output.replace("e-40,", "e-40")
    refused = CliRunner().invoke(main, [*command, "--denormals", "keep", "--engine", "xla"])
    assert refused.exit_code == 2


@pytest.mark.parametrize("dtype", [xb.f32, xb.bf16, xb.f16], ids=str)
@pytest.mark.parametrize(("fold", "init", "negative"), [("maximum", -np.inf, False), ("minimum", np.inf, True)])
def test_zeros_of_both_signs_have_one_order(dtype: xb.PrimitiveType, fold: str, init: float, negative: bool) -> None:
    """A reduction, windows and updates give +0 as the maximum of zeros, and -0 as their minimum, in any order."""
    rows = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]], dtype.dtype).T
    wanted = [negative, negative, True, False]
    for made in (_reduced(fold, init), _windowed(fold, init)):
        found = np.asarray(evaluate(xb.computation(dtype[2, 4])(made), rows)).astype(np.float32)
        assert np.signbit(found).ravel().tolist() == wanted


def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make products take the way for several threads of BLAS, on any machine."""
    monkeypatch.setattr("interpreter.kernels.products.is_single_threaded", lambda: False)
    monkeypatch.setattr("interpreter.kernels.convolving.is_single_threaded", lambda: False)


def _small(*shape: int) -> Array:
    """Numbers about the least normal one, of both signs, half of them denormal."""
    draw = np.random.default_rng(sum(shape))
    return (draw.standard_normal(shape) * np.finfo(np.float32).tiny).astype(np.float32)


N = 64  # whose products BLAS may share out to threads
OF_PRODUCTS: dict[str, Any] = {
    "parameters": lambda x, y: xb.dot(x, y),
    "sums": lambda x, y: xb.dot(x + y, y + x),
    "moved": lambda x, y: xb.dot(xb.transpose(x, [1, 0]), xb.reshape(xb.reshape(x * y, [N * N]), [N, N])),
    "functions": lambda x, y: xb.dot(xb.tanh(x), xb.tanh(x * 2.0)),
    "returned": lambda x, y: xb.tanh(xb.dot(x, y * 1e35)),
    "scaled": lambda x, y: xb.dot(x, y) * 1e20 + xb.dot(y, x),
    "chosen": lambda x, y: xb.select(xb.gt(x, y), xb.dot(x, y), xb.dot(y * 1e30, x)) * 1e20,
    "of a product": lambda x, y: xb.dot(xb.dot(x, y * 1e38), y * 1e38),
    "in a tuple": lambda x, y: xb.tuple_(xb.dot(x, y * 1e30), xb.dot(x, y) * 2.0),
    "relu": lambda x, y: xb.dot(xb.maximum(x * 3.0, 0.0), y),
}


@pytest.mark.parametrize("scale", [1.0, 1e19, 1e38])
@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_products_on_several_threads_are_those_of_one(name: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLAS's own threads keep denormal numbers; the results have the bits of one thread, which flushes them."""
    x, y = _small(N, N), (_small(N, N + 1)[:, 1:] * np.float32(scale)).astype(np.float32)
    made = lambda: xb.computation(xb.f32[N, N], xb.f32[N, N])(OF_PRODUCTS[name])  # noqa: E731
    monkeypatch.setattr("interpreter.kernels.products.is_single_threaded", lambda: True)
    limited = pytest.importorskip("threadpoolctl").threadpool_limits
    with limited(1, "blas"):
        alone = evaluate(made(), x, y)
    threaded(monkeypatch)
    for threads in (1, 2):
        with limited(threads, "blas"):
            found = evaluate(made(), x, y)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (alone, found)), strict=True):
            assert one.tobytes() == other.tobytes(), threads


def test_convolutions_on_several_threads_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    image, kernel = _small(2, 8, 16, 16), (_small(8, 8, 3, 3) * np.float32(1e37)).astype(np.float32)
    made = lambda: xb.computation(xb.f32[image.shape], xb.f32[kernel.shape])(  # noqa: E731
        lambda x, w: xb.conv(x, w, window_strides=[1, 1], padding="SAME")
    )
    monkeypatch.setattr("interpreter.kernels.products.is_single_threaded", lambda: True)
    monkeypatch.setattr("interpreter.kernels.convolving.is_single_threaded", lambda: True)
    limited = pytest.importorskip("threadpoolctl").threadpool_limits
    with limited(1, "blas"):
        alone = evaluate(made(), image, kernel)
    threaded(monkeypatch)
    with limited(2, "blas"):
        assert evaluate(made(), image, kernel).tobytes() == alone.tobytes()


def _known(function: Any, dtype: xb.PrimitiveType = xb.f32) -> Settled:
    """What the plan knows of the last dot of a function of two matrices."""
    made = xb.computation(dtype[N, N], dtype[N, N])(function)
    dots = [each for each in made.instructions if each.opcode == "dot"]
    return product_facts(dots[-1], made, is_observed=False)


KNOWN: dict[str, tuple[Any, Settled]] = {
    "parameters, and the result": (lambda x, y: xb.dot(x, y), Settled()),
    "sums and constants": (lambda x, y: xb.dot(x + y, xb.broadcast(xb.constant(x.builder, np.float32(2)), [N, N], [])),
                           Settled(lhs=True, rhs=True)),
    "a denormal constant": (lambda x, y: xb.dot(x, xb.broadcast(xb.constant(x.builder, LEAST), [N, N], [])), Settled()),
    "moved sums": (lambda x, y: xb.dot(xb.transpose(x + y, [1, 0]), xb.reverse(y - x, [0])), Settled(True, True)),
    "a function of a parameter": (lambda x, y: xb.dot(xb.tanh(x), xb.exp(x)), Settled()),
    "a function of a sum": (lambda x, y: xb.dot(xb.tanh(x + y), y), Settled(lhs=True)),
    "arithmetic reads it": (lambda x, y: xb.transpose(xb.dot(x, y), [1, 0]) * x, Settled(product=True)),
    "a power reads it": (lambda x, y: xb.power(xb.dot(x, y), y), Settled()),
    "a function reads it": (lambda x, y: (lambda z: xb.tanh(z) + x * z)(xb.dot(x, y)), Settled()),
    "it is a result, too": (lambda x, y: xb.tuple_(xb.dot(x, y), y), Settled()),
    "bits are read": (lambda x, y: xb.bitcast_convert(xb.dot(x, y), xb.s32), Settled()),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_plan_knows_of_denormal_numbers(name: str) -> None:
    function, known = KNOWN[name]
    assert _known(function) == known


def test_a_product_that_is_seen_is_flushed() -> None:
    made = xb.computation(xb.f32[N, N], xb.f32[N, N])(lambda x, y: xb.dot(x, y) * x)
    (dot,) = (each for each in made.instructions if each.opcode == "dot")
    assert product_facts(dot, made, is_observed=False).product
    assert not product_facts(dot, made, is_observed=True).product
