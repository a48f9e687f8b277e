"""Methods, indices and shapes of values as NumPy's arrays have them: one expression for both; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb

ARRAYS: dict[str, Any] = {
    "x": np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7,
    "m": np.array([[3, -1, 2], [0, 5, -4]], np.int32),
    "i": np.array([[2, 0], [-1, 1]], np.int32),
    "p": np.array([True, False, True]),
    "q": np.ones((1, 3, 1), np.float32),
    "b": np.array([100, 100, 100], np.int8),
    "u": np.array([200, 100], np.uint8),
}
ALIKE = [
    "x.T", "x.transpose()", "x.transpose(2, 0, 1)", "x.transpose((0, -1, 1))", "x.swapaxes(0, -1)", "x.reshape(-1, 6)",
    "x.reshape((4, -1))", "x.reshape(24)", "x.ravel()", "x.flatten()", "q.squeeze()", "q.squeeze(-1)",
    "q.squeeze((0, 2))", "x.astype(np.int32)", "x.astype('float16')", "x.sum()", "x.sum(axis=(0, -1))",
    "x.sum(1, keepdims=True)", "x.mean(axis=-1)", "m.mean()", "x.var(axis=0, ddof=1)", "x.std(axis=2, keepdims=True)",
    "x.max()", "x.min(axis=(1, 2))", "m.max(axis=0, keepdims=True)", "x.prod(axis=0)", "x.argmax()", "x.argmin(axis=1)",
    "m.argmax(axis=-1, keepdims=True)", "m.any(axis=0)", "p.all()", "p.any()", "p.max()", "p.min()", "p.sum()",
    "b.sum()", "u.sum()", "b.prod()", "x.size", "x.ndim", "len(x)", "x.shape[1]", "x.shape[-1]", "len(x.shape)",
    "x.shape == (2, 3, 4)", "x.shape != (2, 3)", "x.shape[1:]", "list(x.shape)", "(x - x.max(axis=1, keepdims=True))",
    "x[:, i]", "x[None]", "x[:, None, [0, -1], 2]", "x[..., [3, 0]]", "x[1, i, 1:3]", "x[:, :, None]",
    "x[np.array([1])]", "x[0, ..., None]", "x[:, []]", "m[-1, None]",
]  # fmt: skip
REFUSED = {
    "x.reshape(-1, -1)": ("invalid_attribute", "2 sizes of -1"),
    "x.reshape(-1, 7)": ("element_count_mismatch", "does not divide 24", "7, the product of the other sizes"),
    "x.sum(axis=3)": ("dimension_out_of_range", "axis=3", "-3..2", "rank 3"),
    "x.sum(axis=-4)": ("dimension_out_of_range", "axis=-4", "-3..2"),
    "x.sum(axis=(0, -3))": ("duplicate_dimension", "dimension 0 appears twice"),
    "x.sum(axis='rows')": ("invalid_attribute", "'rows'", "expected an int"),
    "x.squeeze(0)": ("dimension_mismatch", "dimension 0", "has extent 2; expected 1"),
    "x.swapaxes(0, 3)": ("dimension_out_of_range", "-3..2"),
    "x[:, []].max()": ("non_positive", "0 elements"),
    "x[[0, 2]]": ("index_out_of_range", "index 2", "-2..1"),
    "x[i, i]": ("invalid_attribute", "[0, 1]", "xb.gather"),
    "x[x]": ("invalid_attribute", "expected integers"),
    "x[p]": ("invalid_attribute", "xb.select(mask, x, 0.0)"),
    "xb.softmax(m)": ("element_type_unsupported", "s32", "x.astype(xb.f32)"),
    "xb.one_hot(x, 3)": ("element_type_unsupported", "expected an integer element type"),
    "xb.one_hot(m, 3, axis=3)": ("dimension_out_of_range", "-3..2"),
    "xb.expand_dims(x, 5)": ("dimension_out_of_range", "-4..3"),
    "x.cumsum()": ("not_concrete", "xb.scan"),
    "x.at[0].set(1)": ("not_concrete", "xb.dynamic_update_slice"),
    "x.item()": ("not_concrete", "xb.evaluate"),
    "xb.max(x)": ("arity_mismatch", "x.max(axis=...)"),
    "xb.min(x, axis=0)": ("arity_mismatch", "x.min(axis=...)"),
    "xb.transpose(x, axes=(0, 1, 2))": ("arity_mismatch", "use permutation= instead of axes="),
}


def value_of(expression: str) -> Any:
    """The expression on values of the arrays: a number of Python, or the result of a run."""
    builder = xb.Builder("b")
    names = {
        name: xb.parameter(builder, number=number, shape=xb.primitive_type(array.dtype)[array.shape], name=name)
        for number, (name, array) in enumerate(ARRAYS.items())
    }
    found = eval(expression, {**names, "np": np, "xb": xb})
    return builder.build(found)(*ARRAYS.values()) if isinstance(found, xb.Value) else found


@pytest.mark.parametrize("expression", ALIKE)
def test_a_value_is_as_an_array(expression: str) -> None:
    wanted = eval(expression, {**ARRAYS, "np": np})
    given = value_of(expression)
    np.testing.assert_allclose(given, wanted, rtol=1e-6, atol=0)
    if isinstance(given, np.generic | np.ndarray) and wanted.dtype.itemsize < 8:
        assert given.dtype == wanted.dtype


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_refused_says_why_and_what_to_type(expression: str) -> None:
    kind, *facts = REFUSED[expression]
    with pytest.raises(xb.XbuildError) as caught:
        value_of(expression)
    assert caught.value.kind == kind
    assert [fact for fact in facts if fact not in str(caught.value)] == []


NARROW = [xb.f8e4m3fn, xb.f8e5m2, xb.f8e4m3b11fnuz, xb.f6e2m3fn, xb.f4e2m1fn, xb.bf16, xb.f16]
ROUNDED_ONCE = [
    xb.softmax, xb.log_softmax, xb.logsumexp, xb.gelu, xb.silu, xb.elu, xb.softplus, xb.log_sigmoid, xb.sum, xb.mean,
    xb.var, xb.std,
]  # fmt: skip


@pytest.mark.parametrize("function", ROUNDED_ONCE, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_floats_are_computed_in_f32_and_rounded_once(function: Any, dtype: xb.PrimitiveType) -> None:
    array = np.linspace(-3, 3, 12).reshape(3, 4).astype(dtype.dtype)
    given = xb.computation(dtype[3, 4])(function)(array)
    wide = xb.computation(xb.f32[3, 4])(function)(array.astype(np.float32))
    assert given.dtype == dtype.dtype
    np.testing.assert_array_equal(np.asarray(given, np.float32), wide.astype(dtype.dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", [*NARROW, xb.s8, xb.u16, xb.f64], ids=str)
def test_extrema_begin_beyond_every_number(dtype: xb.PrimitiveType) -> None:
    least = np.array([-3 if dtype.kind != "unsigned" else 3, -2 if dtype.kind != "unsigned" else 4]).astype(dtype.dtype)
    entry = xb.computation(dtype[2])(lambda x: (x.max(), x.min(), x.argmax(), x.argmin()))
    assert [float(each) for each in entry(least)] == [float(least[1]), float(least[0]), 1.0, 0.0]


def test_nan_is_an_extremum_and_the_first_of_them_its_place() -> None:
    entry = xb.computation(xb.f32[4])(lambda x: (x.max(), x.min(), x.argmax(), x.argmin(), xb.relu(x)))
    most, least, place, other, rectified = entry([1.0, np.nan, 5.0, np.nan])
    assert np.isnan([most, least, rectified[1]]).all()
    assert (place, other) == (1, 1)


def test_a_mean_over_a_dynamic_dimension_counts_what_is_there() -> None:
    @xb.computation(xb.f32[4])
    def entry(x: xb.Value) -> xb.Value:
        return xb.set_dimension_size(x, 3, 0).mean()

    assert entry([1.0, 2.0, 6.0, 100.0]) == 3.0


def test_a_shape_with_a_dynamic_dimension_is_no_sequence() -> None:
    with pytest.raises(TypeError, match="get_dimension_size"):
        xb.parse_shape("f32[<=4]")[0]  # type: ignore[index]
    assert xb.parse_shape("f32[<=4]") != (4,)
