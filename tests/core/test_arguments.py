"""Arguments of NumPy's default types, called computations, tracebacks, and names that `xb` has not."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xbuild as xb

PARAMETERS = {"f": xb.f32[2], "s": xb.s32[2], "u": xb.u64[2], "b": xb.bf16[2], "c": xb.c64[2], "p": xb.pred[2]}
TAKEN: list[tuple[str, Any, list[Any]]] = [
    ("f", np.array([0.1, 2.0]), [np.float32(0.1), 2.0]), ("f", np.array([np.inf, np.nan]), [np.inf, np.nan]),
    ("f", np.array([1, 2**24]), [1.0, 2.0**24]), ("s", np.array([1, -(2**31)]), [1, -(2**31)]),
    ("u", np.array([0, 2**62]), [0, 2**62]), ("b", np.array([1.0, 257.0]), [1.0, 256.0]),
    ("c", np.array([1.5, 2.0]), [1.5, 2.0]), ("c", np.array([1j, 2]), [1j, 2.0]),
    ("p", np.array([True, False]), [1, 0]),
]  # fmt: skip
REFUSED = [
    ("f", np.array([1e300, 1.0]), "1e+300 becomes infinite"), ("f", np.array([1, 2**24 + 1]), "cannot hold 16777217"),
    ("f", [2**24 + 1, 0], "cannot hold 16777217"), ("s", np.array([1.0, 2.0]), "drops fractions"),
    ("s", np.array([0, 2**31]), "cannot hold 2147483648"), ("u", np.array([0, -1]), "cannot hold -1"),
    ("b", np.array([257, 0]), "cannot hold 257"), ("f", np.array([1j, 0]), "complex128"),
    ("p", np.array([0, 1]), "int64"), ("f", np.array([1, 2], np.int32), "int32"),
    ("f", np.array([1, 2], np.float16), "float16"),
]  # fmt: skip


def entry(parameter: str) -> xb.Computation:
    return xb.computation(PARAMETERS[parameter])(lambda x: x)


@pytest.mark.parametrize(("parameter", "given", "wanted"), TAKEN)
def test_arrays_of_default_types_are_converted(parameter: str, given: Any, wanted: list[Any]) -> None:
    result = entry(parameter)(given)
    assert xb.primitive_type(result.dtype) is PARAMETERS[parameter].dtype
    np.testing.assert_array_equal(result.astype(np.complex128), np.array(wanted, np.complex128))


@pytest.mark.parametrize(("parameter", "given", "words"), REFUSED)
def test_what_would_lose_a_number_is_refused(parameter: str, given: Any, words: str) -> None:
    with pytest.raises(xb.ArgumentError) as caught:
        entry(parameter)(given)
    assert words in str(caught.value)
    assert "hint: .astype(xb." in str(caught.value)


def test_a_computation_is_called_on_values_and_on_arrays() -> None:
    double = xb.computation(xb.f32[2])(lambda x: x * 2.0)
    recorded = xb.computation(xb.f32[2])(lambda x: double(x, name="twice") + 1.0)
    assert recorded["twice"].opcode == "call"
    assert recorded([1.0, 2.0]).tolist() == [3.0, 5.0]
    assert xb.check(double).kind == "ok"
    (result,) = xb.execute(double, [[[1.0, 2.0]]])
    assert result.tolist() == [2.0, 4.0]


PROGRAM = """
import xbuild as xb
def product(x):
    return x @ x
product(xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3]))
"""


@pytest.mark.parametrize(("switch", "is_full"), [("", False), ("xb.full_tracebacks()", True)])
def test_a_traceback_ends_at_the_users_line(switch: str, is_full: bool) -> None:
    program = PROGRAM.replace("def product", f"{switch}\ndef product")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    places = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert done.returncode == 1
    assert "dimension_mismatch" in done.stderr
    assert ("product" in places[-1]) is not is_full
    assert any("builder.py" in place for place in places) is is_full


def test_no_module_but_the_namespaces_is_listed() -> None:
    listed = {name for name in dir(xb) if isinstance(getattr(xb, name), ModuleType)}
    assert listed == {"auto", "engines", "guard", "mesh", "ops", "shard", "testing", "tpu"}
    assert xb.__version__.count(".") >= 1


@pytest.mark.parametrize(("name", "words"), [
    ("float32", "xb.f32"), ("Add", "xb.add"), ("ArgMax", "xb.argmax"), ("softmx", "xb.softmax"),
    ("cond", "xb.conditional("),
    ("jit", "xb.computation("), ("zeros", "xb.broadcast("), ("BatchNormTraining", "xb.batch_norm_training"),
])  # fmt: skip
def test_names_of_others_say_what_is_here(name: str, words: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(xb, name)
    assert words in str(caught.value)


@pytest.mark.parametrize(("call", "words"), [
    (lambda x, i: i / 2, "x.astype(xb.f32) / y"), (lambda x, i: 7 / i, "xb.divide(x, y)"),
    (lambda x, i: i % 2, "xb.remainder(x, y)"), (lambda x, i: x % 2.0, "x - (x // y) * y"),
    (lambda x, i: np.ones((2, 2, 2), np.float32) % x, "xb.remainder(x, y)"), (lambda x, i: x @ x, "xb.dot(x, y)"),
    (lambda x, i: xb.max(x, 0), "x.max(axis=0)"), (lambda x, i: xb.min(x, -1), "x.min(axis=-1)"),
])  # fmt: skip
def test_where_numpy_means_something_else_a_warning_names_both_calls(call: Any, words: str) -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2, 2, 2])
    i = xb.parameter(builder, number=1, shape=xb.s32[2])
    with pytest.warns(xb.MeaningWarning) as told:
        call(x, i)
    assert words in str(told[0].message)
    assert told[0].filename == __file__


def test_a_value_captured_by_way_of_others_is_named() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    y = xb.parameter(builder, number=1, shape=xb.f32[2], name="y")
    for body in (lambda s: s + y, lambda s: y + s, lambda s: s * (y * 2.0)):
        with pytest.raises(xb.BuildError) as caught:
            xb.while_(x, lambda s: s.sum() < 1.0, body)
        assert caught.value.kind == "foreign_value"
        assert "%y (f32[2]) of builder 'b', recorded at" in str(caught.value)
