"""The collectives of replicated computations: values against NumPy, and refusals in TensorFlow's order."""

from __future__ import annotations

import logging
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.tpu.support import F32, plain, refused

SUMMABLE = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.uint32]
OTHERS = [np.int8, np.uint8, np.int16, np.int64, np.uint64, np.complex64, np.bool_]
raw = xb.tpu.raw_ops


def of_each(call: Any, values: Any) -> list[Any]:
    return [y for (y,) in xb.tpu.replicate(call, [[value] for value in values])]


@st.composite
def partitions(draw: Any) -> list[list[int]]:
    groups, size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    ids = draw(st.permutations(range(groups * size)))
    return [list(ids[g * size : (g + 1) * size]) for g in range(groups)]


@given(partitions(), st.sampled_from(SUMMABLE))
@settings(max_examples=40)
def test_the_sum_over_each_group(groups: list[list[int]], dtype: Any) -> None:
    count = sum(map(len, groups))
    values = [np.arange(3).astype(dtype) + dtype(replica) for replica in range(count)]
    found = of_each(lambda x: xb.tpu.cross_replica_sum(x, groups), values)
    for group in groups:
        wanted = sum(values[e].astype(np.float64) for e in group).astype(dtype)
        assert all(found[d].dtype == dtype and np.array_equal(found[d], wanted) for d in group)


def test_unsigned_sums_wrap() -> None:
    assert plain(of_each(xb.tpu.cross_replica_sum, np.uint32([2**32 - 1, 2]))) == [1, 1]
    assert plain(of_each(xb.tpu.cross_replica_sum, np.int32([2**31 - 1, 1]))) == [-(2**31)] * 2


def test_the_example_of_the_document() -> None:
    groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert plain(of_each(lambda x: xb.tpu.cross_replica_sum(x, groups), F32(range(1, 9)))) == [16.0, 20.0] * 4


def test_without_groups_all_replicas_of_the_context_are_one() -> None:
    program = xb.tpu.replicate.program(xb.tpu.cross_replica_sum, [[1.0]] * 3)
    (sums,) = [i for i in program.module.entry.instructions if i.opcode == "all_reduce"]
    assert sums.attributes.replica_groups == ((0, 1, 2),)
    assert sums.attributes.channel_id is None


def test_outside_of_a_context_one_replica_is_assumed_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    with caplog.at_level(logging.WARNING, "xbuild.tpu"):
        found = xb.tpu.cross_replica_sum(x)
    assert found.instruction.attributes.replica_groups == ((0,),)
    assert "Assuming 1" in caplog.text
    assert raw.CrossReplicaSum(input=x, group_assignment=[[0, 1]]).shape == x.shape


@pytest.mark.parametrize("dtype", OTHERS)
def test_other_types_are_not_summed(dtype: Any) -> None:
    groups = [[0, 1], [0]]  # what is refused after the type
    call = lambda: xb.tpu.rewrite(lambda x: xb.tpu.cross_replica_sum(x, groups), [np.ones(2, dtype)])  # noqa: E731
    text = refused("element_type_unsupported", call, error=TypeError)
    assert f"DataType {np.dtype(dtype).name} not in list of allowed values: float16, bfloat16, float32" in text


def sum_of(groups: Any, replicas: int = 4) -> Any:
    return lambda: xb.tpu.replicate(lambda x: xb.tpu.cross_replica_sum(x, groups), [[1.0]] * replicas)


@pytest.mark.parametrize(
    ("groups", "kind", "word"),
    [
        ([[0, 1, 2], [3]], "ragged_groups", "3 ids and 1 ids"),
        ([0, 1, 2, 3], "rank_mismatch", "[4]"),
        ([[[0, 1], [2, 3]]], "rank_mismatch", "[1, 2, 2]"),
        (3, "rank_mismatch", "[]"),
        ([[], []], "invalid_group", "[2, 0]"),
        ([[0, 1], [1, 3]], "duplicate_replica", "replica 1 twice"),
        ([[0, 1, 2, 3], [0, 1, 2, 3]], "duplicate_replica", "replica 0 twice"),
        ([[0, 1], [2, 4]], "replica_out_of_range", "replica 4"),
        ([[0, 1], [2, -1]], "replica_out_of_range", "replica -1"),
        ([[0, 1]], "missing_replica", "replicas 2, 3"),
        ([[0, 1, 2]], "missing_replica", "replica 3"),
        ([[0.5, 1]], "element_type_mismatch", "float64"),
        ([["a", "b"]], "element_type_mismatch", "int32"),
        ([[0, 2**40]], "element_type_mismatch", "does not fit"),
    ],
)
def test_groups_that_are_none(groups: Any, kind: str, word: str) -> None:
    refused(kind, sum_of(groups), word)


def test_groups_are_constants() -> None:
    computed = lambda x, g: xb.tpu.cross_replica_sum(x, g)  # noqa: E731
    refused("not_concrete", lambda: xb.tpu.rewrite(computed, [1.0, np.int32([[0]])]), "compile-time constant")
    given = lambda x: xb.tpu.cross_replica_sum(x, xb.constant(x.builder, np.int32([[0, 1]])))  # noqa: E731
    assert plain(of_each(given, F32([1, 2]))) == [3.0, 3.0]
    assert plain(of_each(lambda x: xb.tpu.cross_replica_sum(x, np.array([[1, 0]])), F32([1, 2]))) == [3.0, 3.0]


def test_an_array_is_no_value_of_a_computation() -> None:
    refused("invalid_operand", lambda: raw.CrossReplicaSum(input=F32(1), group_assignment=[[0]]), error=TypeError)


@given(partitions(), st.integers(0, 1), st.integers(0, 1))
@settings(max_examples=30)
def test_all_to_all(groups: list[list[int]], split: int, concat: int) -> None:
    count, size = sum(map(len, groups)), len(groups[0])
    values = [np.arange(size * 2 * size).reshape(2 * size, size).astype(np.int32) + 100 * r for r in range(count)]
    found = of_each(lambda x: xb.tpu.all_to_all(x, concat, split, size, groups), values)
    for group in groups:
        for place, member in enumerate(group):
            pieces = [np.split(values[s], size, split)[place] for s in group]
            assert np.array_equal(found[member], np.concatenate(pieces, concat))


def exchange(x: Any = None, groups: Any = ((0, 1),), concat: int = 0, split: int = 0, count: int = 2) -> Any:
    value = F32([[1, 2], [3, 4]]) if x is None else x
    call = lambda v: raw.AllToAll(  # noqa: E731
        input=v, group_assignment=groups, concat_dimension=concat, split_dimension=split, split_count=count
    )
    return lambda: xb.tpu.replicate(call, [[value]] * 2)


def test_the_checks_of_all_to_all_in_order() -> None:
    """Each call breaks one rule and all those after it that it can."""
    text = refused("ragged_groups", exchange(groups=[[0], [0, 1]], count=0))
    text = refused("non_positive", exchange(groups=[0, 1], concat=9, count=0))
    assert "split_count 0 must at least be one." in text
    text = refused("rank_mismatch", exchange(groups=[0, 1], concat=9, count=4))
    assert "group_assignment must have rank 2" in text
    text = refused("split_count_mismatch", exchange(concat=9, split=9, count=4))
    assert "split_count 4 must equal the size of the second dimension of group_assignment 2" in text
    assert "concat_dimension 9" in refused("dimension_out_of_range", exchange(concat=9, split=-1))
    assert "split_dimension -1" in refused("dimension_out_of_range", exchange(F32([[1], [2], [3]]), split=-1))
    text = refused("divisibility", exchange(F32([[1, 2]] * 3), groups=[[0, 0]], concat=1))
    assert "input dimension 3 not divisible by split_count 2" in text
    refused("duplicate_replica", exchange(groups=[[0, 0]], concat=1))
    refused("missing_replica", exchange(groups=[[0]], count=1))
    assert "XLA refuses" in refused("divisibility", exchange(F32([[1, 2]] * 3), concat=0, split=0))


def test_all_to_all_takes_preds() -> None:
    found = of_each(lambda x: xb.tpu.all_to_all(x, 0, 0, 2), [np.array([True, False]), np.array([False, True])])
    assert plain(found) == [[True, False], [False, True]]
    assert (
        "bool"
        not in refused(
            "element_type_unsupported",
            lambda: xb.tpu.rewrite(lambda x: xb.tpu.collective_permute(x, [[0, 0]]), [True]),
            "DataType bool",
            error=TypeError,
        )
        .partition("allowed values")[2]
        .partition("\n")[0]
    )


@given(st.permutations(range(5)), st.integers(0, 5))
def test_collective_permute_leaves_zeros(targets: list[int], count: int) -> None:
    pairs = [[source, targets[source]] for source in range(count)]
    found = of_each(lambda x: xb.tpu.collective_permute(x, pairs), F32([1, 2, 3, 4, 5]))
    wanted = np.zeros(5, np.float32)
    for source, target in pairs:
        wanted[target] = source + 1
    assert plain(found) == wanted.tolist()


@pytest.mark.parametrize(
    ("pairs", "kind", "word"),
    [
        ([[0, 1, 2]], "bad_pairs", "[1, 3]"),
        ([0, 1], "bad_pairs", "[2]"),
        ([[0, 1], [0, 2]], "duplicate_source", "replica 0"),
        ([[0, 1], [2, 1]], "duplicate_target", "replica 1"),
        ([[0, 4]], "replica_out_of_range", "as target"),
        ([[5, 0]], "replica_out_of_range", "as source"),
        ([[0, 1], [2]], "ragged_groups", "source_target_pairs"),
    ],
)
def test_pairs_that_are_none(pairs: Any, kind: str, word: str) -> None:
    refused(kind, lambda: xb.tpu.replicate(lambda x: xb.tpu.collective_permute(x, pairs), [[1.0]] * 4), word)


def test_no_pairs_are_zeros_everywhere() -> None:
    assert plain(of_each(lambda x: xb.tpu.collective_permute(x, []), F32([1, 2]))) == [0.0, 0.0]


def test_means_of_runs_of_replicas() -> None:
    values = F32([1, 3, 10, 20])
    assert plain(of_each(lambda x: xb.tpu.cross_replica_mean(x, 2), values)) == [2.0, 2.0, 15.0, 15.0]
    assert plain(of_each(xb.tpu.cross_replica_mean, values)) == [8.5] * 4
    assert plain(of_each(lambda x: xb.tpu.cross_replica_mean(x, 1), values)) == values.tolist()
    call = lambda size: lambda: xb.tpu.replicate(lambda x: xb.tpu.cross_replica_mean(x, size), [[1.0]] * 4)  # noqa: E731
    refused("divisibility", call(3), "4 replicas cannot be divided into groups of 3")
    refused("non_positive", call(0))


@given(st.integers(1, 4), st.integers(0, 3))
def test_the_concatenation_is_an_all_gather(replicas: int, rows: int) -> None:
    values = [np.arange(2 * rows, dtype=np.int32).reshape(rows, 2) + 10 * replica for replica in range(replicas)]
    found = of_each(xb.tpu.cross_replica_concat, values)
    assert all(np.array_equal(each, np.concatenate(values)) for each in found)


def test_a_scalar_has_nothing_to_join() -> None:
    refused("rank_too_small", lambda: xb.tpu.rewrite(xb.tpu.cross_replica_concat, [1.0]))
