"""Padding: which dimensions, to which size, with which true sizes; results that are told apart by their true size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from tests.tpu.support import F32, plain, refused

AUTO, POWER = xb.tpu.PaddingSpec.AUTO, xb.tpu.PaddingSpec.POWER_OF_TWO


def padded(rows: Any, maximum: Any = None, spec: Any = None) -> Any:
    found, dims = xb.tpu.pad_replica_inputs([[row] for row in rows], maximum, spec)
    return plain(found), [(dim.arg_index, dim.shape_index, dim.padding_arg_index) for dim in dims]


def unknown(value: Any) -> Any:
    return xb.tpu.placeholder_with_default(value, [None] * np.ndim(value))


@pytest.mark.parametrize(
    ("rows", "maximum", "spec", "wanted"),
    [
        ([[1, 2, 3], [1, 2, 3, 4, 5]], None, AUTO, [[[1, 2, 3, 0, 0], 3], [[1, 2, 3, 4, 5], 5]]),
        ([[1, 2, 3], [1, 2, 3, 4, 5]], None, POWER, [[[1, 2, 3, 0, 0, 0, 0, 0], 3], [[1, 2, 3, 4, 5, 0, 0, 0], 5]]),
        ([[1, 2, 3], [1, 2, 3, 4]], None, POWER, [[[1, 2, 3, 0], 3], [[1, 2, 3, 4], 4]]),
        ([[1, 2], [1, 2, 3]], [[8]], AUTO, [[[1, 2, 0, 0, 0, 0, 0, 0], 2], [[1, 2, 3, 0, 0, 0, 0, 0], 3]]),
        ([[1, 2], [1, 2, 3]], [[5]], POWER, [[[1, 2, 0, 0, 0], 2], [[1, 2, 3, 0, 0], 3]]),
        ([[], [7]], None, AUTO, [[[0, 0], 0], [[7, 0], 1]]),
        ([[], [7]], [[1]], AUTO, [[[0, 0], 0], [[7, 0], 1]]),
        ([[1, 2, 3], [4, 5, 6]], None, AUTO, [[[1, 2, 3]], [[4, 5, 6]]]),
        ([[1, 2, 3], [4, 5, 6]], [[9]], POWER, [[[1, 2, 3]], [[4, 5, 6]]]),
        ([[1, 2, 3]], [[9]], POWER, [[[1, 2, 3]]]),
    ],
)
def test_sizes(rows: Any, maximum: Any, spec: Any, wanted: Any) -> None:
    found, dims = padded([np.int32(row) for row in rows], maximum, spec)
    assert found == wanted
    assert dims == ([(0, 0, 1)] if len(wanted[0]) > 1 else [])


def test_what_is_not_known_before_the_run_is_padded() -> None:
    assert padded([unknown([7]), unknown([7])])[0] == [[[7, 0], 1], [[7, 0], 1]]
    assert padded([unknown([7])])[0] == [[[7]]]
    assert padded([unknown([1, 2, 3]), unknown([1, 2, 3])], None, POWER)[0] == [[[1, 2, 3, 0], 3]] * 2
    refused("shape_mismatch", lambda: xb.tpu.placeholder_with_default([1, 2], [3]))


def test_each_dimension_is_looked_at_by_itself() -> None:
    """TensorFlow keeps a lexicographic maximum: [2, 9] after [3, 1] would be lost."""
    found, dims = xb.tpu.pad_replica_inputs([[np.ones((3, 1))], [np.ones((2, 9))]])
    assert found[0][0].shape == found[1][0].shape == (3, 9)
    assert [(d.shape_index, d.padding_arg_index) for d in dims] == [(0, 1), (1, 2)]
    assert [plain(row[1:]) for row in found] == [[3, 1], [2, 9]]


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=5), st.sampled_from([AUTO, POWER]), st.none() | st.integers(9, 20)
)
def test_padding_keeps_the_elements(sizes: list[int], spec: Any, maximum: int | None) -> None:
    rows = [np.arange(1, size + 1, dtype=np.float32) for size in sizes]
    found, dims = xb.tpu.pad_replica_inputs([[row] for row in rows], None if maximum is None else [[maximum]], spec)
    lengths = {len(row[0]) for row in found}
    assert len(lengths) == 1
    assert bool(dims) == (len(set(sizes)) > 1)
    for row, each, size in zip(found, rows, sizes, strict=True):
        assert np.array_equal(row[0][:size], each)
        assert not row[0][size:].any()
        assert not dims or row[1] == size
    if dims and maximum is None:
        (length,) = lengths
        assert length >= max(*sizes, 2)
        assert spec is AUTO or length & (length - 1) == 0
        assert length < 2 * max(*sizes, 2)


def test_a_maximum_that_is_too_small() -> None:
    text = refused("maximum_too_small", lambda: padded([F32([1]), F32([1, 2, 3])], [[2]]))
    assert "has extent 2 in dimension 0, but the input of replica 1 has extent 3" in text
    refused("rank_mismatch", lambda: padded([F32([1]), F32([1, 2, 3])], [[2, 2]]))
    refused("shape_mismatch", lambda: padded([F32(1), F32([1, 2, 3])]), "0 dimensions on replica 0")


def test_results_have_their_true_sizes() -> None:
    rows = [[F32([1, 2, 3])], [F32([1, 2, 3, 4, 5])]]
    shapes = []

    def computation(x: Any) -> Any:
        shapes.append(x.shape)
        return x + 1.0, xb.reduce(x, 0.0, xb.add)

    found = xb.tpu.replicate(computation, rows, maximum_shapes=[[None]], padding_spec=POWER)
    assert plain(found) == [[[2.0, 3.0, 4.0], 6.0], [[2.0, 3.0, 4.0, 5.0, 6.0], 15.0]]
    assert str(shapes[0]) == "f32[<=8]"


def test_without_the_dynamic_padder_the_padding_is_seen() -> None:
    rows = [[F32([1, 2, 3])], [F32([1, 2, 3, 4, 5])]]
    options = xb.tpu.XLAOptions(enable_xla_dynamic_padder=False)
    found = xb.tpu.replicate(lambda x: x + 1.0, rows, maximum_shapes=[[None]], xla_options=options)
    assert plain(found) == [[[2.0, 3.0, 4.0, 1.0, 1.0]], [[2.0, 3.0, 4.0, 5.0, 6.0]]]


def test_sizes_stand_after_all_inputs() -> None:
    rows = [[F32([1]), F32([1, 2])], [F32([1, 2]), F32([1])]]
    program = xb.tpu.replicate.program(lambda x, y: (x, y), rows, maximum_shapes=[[None], [None]])
    assert [str(p.shape) for p in program.module.entry.parameters] == ["f32[2]", "f32[2]", "s32[]", "s32[]"]
    assert plain(program.run()) == [[[1.0], [1.0, 2.0]], [[1.0, 2.0], [1.0]]]


def test_an_input_without_a_maximum_is_not_padded() -> None:
    rows = [[F32([1]), F32([1, 2])], [F32([1, 2]), F32([3, 4])]]
    found = xb.tpu.replicate(lambda x, y: (x, y), rows, maximum_shapes=[[4], None])
    assert plain(found) == [[[1.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]]
    call = lambda: xb.tpu.replicate(lambda x, y: (x, y), rows, maximum_shapes=[None, [4]])  # noqa: E731
    refused("shape_mismatch", call, "input 0 is f32[1] on replica 0, but f32[2] on replica 1")


def test_extents_that_are_not_known_matter_to_padding_alone() -> None:
    rows = [[unknown(F32([7]))], [unknown(F32([8]))]]
    assert plain(xb.tpu.replicate(lambda x: x, rows)) == [[[7.0]], [[8.0]]]
    program = xb.tpu.replicate.program(lambda x: x, rows, maximum_shapes=[[None]])
    assert [str(p.shape) for p in program.module.entry.parameters] == ["f32[2]", "s32[]"]
    assert plain(program.run()) == [[[7.0]], [[8.0]]]


def test_the_policies_are_numbers() -> None:
    assert [*xb.tpu.PaddingSpec] == [0, 1]
