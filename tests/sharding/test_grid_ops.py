"""The ops of the shard dialect: the examples of its document, laws against first principles, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import execute
from shape_inference import XbuildError
from tests.sharding.support import group_of, on_grid

GRID = xb.shard.grid([2, 2])
SQUARES = np.arange(1, 17, dtype=np.int8).reshape(4, 2, 2)
ROWS = np.array([[[1, 2, 5, 6], [3, 4, 7, 8]]] * 2 + [[[9, 10, 13, 14], [11, 12, 15, 16]]] * 2, np.int8)

# The examples of the document: op, grid, attributes, operand on each device, result on each device (None: undefined).
EXAMPLES: list[tuple[str, xb.Mesh, dict[str, Any], Any, Any]] = [
    ("all_gather", GRID, {"grid_axes": [1], "gather_axis": 1}, SQUARES, ROWS),
    ("all_slice", GRID, {"grid_axes": [1], "slice_axis": 1}, ROWS, SQUARES),
    (
        "all_to_all", xb.shard.grid([3]), {"grid_axes": [0], "split_axis": 0, "concat_axis": 0},
        [[[11, 12], [13, 14], [15, 16]], [[21, 22], [23, 24], [25, 26]], [[31, 32], [33, 34], [35, 36]]],
        [[[11, 12], [21, 22], [31, 32]], [[13, 14], [23, 24], [33, 34]], [[15, 16], [25, 26], [35, 36]]],
    ),
    (
        "broadcast", GRID, {"grid_axes": [0], "root": [0]},
        [[1, 2], [3, 4], [0, 0], [9, 9]], [[1, 2], [3, 4], [1, 2], [3, 4]],
    ),
    (
        "gather", GRID, {"grid_axes": [1], "gather_axis": 1, "root": [1]}, SQUARES,
        [None, ROWS[0], None, ROWS[2]],
    ),
    (
        "reduce_scatter", GRID, {"grid_axes": [1], "reduction": "max", "scatter_axis": 0, "result_type": xb.f64},
        SQUARES.astype(np.float32), [[[5, 6]], [[7, 8]], [[13, 14]], [[15, 16]]],
    ),
    (
        "scatter", GRID, {"grid_axes": [0], "scatter_axis": 0, "root": [1]},
        [[[0, 0], [0, 0]], [[9, 9], [9, 9]], [[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        [[[1, 2]], [[5, 6]], [[3, 4]], [[7, 8]]],
    ),
    (
        "shift", xb.shard.grid([2, 4]), {"grid_axes": [1], "shift_axis": 1, "offset": 2, "rotate": True},
        [[1], [2], [3], [4], [5], [6], [7], [8]], [[3], [4], [1], [2], [7], [8], [5], [6]],
    ),
    (
        "all_reduce", GRID, {"grid_axes": [1, 0], "reduction": "max", "result_type": xb.f64},
        np.arange(48, dtype=np.float32).reshape(4, 3, 4), [np.arange(36, 48).reshape(3, 4)] * 4,
    ),
    (
        "reduce", xb.shard.grid([4, 3]),
        {"grid_axes": [1, 0], "reduction": "max", "root": [2, 3], "result_type": xb.f64},
        np.arange(144, dtype=np.float32).reshape(12, 3, 4), [None] * 11 + [np.arange(132, 144).reshape(3, 4)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("op", "mesh", "attributes", "given", "wanted"), EXAMPLES, ids=lambda each: str(each)[:20])
def test_examples_of_the_document(op: str, mesh: xb.Mesh, attributes: Any, given: Any, wanted: Any) -> None:
    came = on_grid(lambda x: getattr(xb.shard, op)(x, mesh=mesh, **attributes), mesh, np.asarray(given))
    for one, other in zip(came, wanted, strict=True):
        if other is not None:
            np.testing.assert_array_equal(one, other)
    if "result_type" in attributes:
        assert came[0].dtype == np.float64


def test_indices_of_the_document() -> None:
    mesh = xb.shard.grid([10, 20, 30])
    builder = xb.Builder("neighbours")
    down, up = xb.shard.neighbors_linear_indices(builder, mesh=mesh, device=[1, 2, 3], split_axes=[1])
    sizes = xb.shard.grid_shape(builder, mesh=mesh, axes=[2, 0])
    assert [int(each) for each in xb.evaluate(builder.build(xb.tuple_([down, up, *sizes])))] == [633, 693, 30, 10]
    assert mesh.device(**{"0": 1, "1": 2, "2": 3}) == 3 + 30 * 2 + 20 * 30 * 1


def test_processes_know_their_place() -> None:
    mesh = xb.shard.grid([2, 3], device_ids=[5, 4, 3, 2, 1, 0])
    builder = xb.Builder("places")
    places = [xb.shard.process_linear_index(builder, mesh=mesh), *xb.shard.process_multi_index(builder, mesh=mesh)]
    places += xb.shard.process_multi_index(builder, mesh=mesh, axes=[1])
    program = xb.Module("places", builder.build(xb.tuple_(places)), num_partitions=6)
    came = [tuple(map(int, each)) for each in execute(program, [[]] * 6)]
    assert came == [(5 - d, (5 - d) // 3, (5 - d) % 3, (5 - d) % 3) for d in range(6)]


SHARDINGS = [
    (xb.shard.grid([2, 2, 4]), [[]], {}, [4, 8], [(4, 8)] * 16),
    (xb.shard.grid([2, 2, 4]), [[0]], {}, [4, 8], [(2, 8)] * 16),
    (xb.shard.grid([2, 2, 4]), [[0]], {"halo_sizes": [1, 2]}, [4, 8], [(5, 8)] * 16),
    (xb.shard.grid([4]), [[], [0]], {"sharded_dims_offsets": [0, 2, 5, 9, 14]}, [4, 14],
     [(4, 2), (4, 3), (4, 4), (4, 5)]),
    (xb.shard.grid([2, 2]), [[0], [1]], {"sharded_dims_offsets": [0, 24, 32, 0, 20, 32]}, [32, 32, 32],
     [(24, 20, 32), (24, 12, 32), (8, 20, 32), (8, 12, 32)]),
    (xb.shard.grid([4]), [[0]], {}, [14], [(3,), (3,), (4,), (4,)]),
    (xb.shard.grid([2, 2]), [[1, 0]], {}, [5], [(1,), (1,), (1,), (2,)]),
]  # fmt: skip


@pytest.mark.parametrize(("mesh", "axes", "more", "dims", "wanted"), SHARDINGS)
def test_local_shapes(mesh: xb.Mesh, axes: Any, more: Any, dims: Any, wanted: Any) -> None:
    found = xb.shard.sharding(mesh, axes, **more)
    places = [[*np.unravel_index(device, mesh.shape)] for device in range(mesh.num_devices)]
    assert [xb.shard.shard_shape(dims, found, place) for place in places] == wanted
    builder = xb.Builder("shapes")
    own = xb.shard.process_multi_index(builder, mesh=mesh)
    program = builder.build(xb.tuple_(list(xb.shard.shard_shape(dims, found, own))))
    came = execute(xb.Module("shapes", program, num_partitions=mesh.num_devices), [[]] * mesh.num_devices)
    assert [tuple(map(int, each)) for each in came] == wanted


def test_offsets_and_halos_that_say_nothing_are_dropped() -> None:
    mesh = xb.shard.grid([4])
    assert xb.shard.sharding(mesh, [[0]], sharded_dims_offsets=[0, 2, 4, 6, 8]) == xb.shard.sharding(mesh, [[0]])
    assert xb.shard.sharding(mesh, [[0]], halo_sizes=[0, 0]) == xb.shard.sharding(mesh, [[0]])


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Sizes of a grid of at most 12 devices, and some of its axes in any order."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda each: np.prod(each) <= 12))
    axes = draw(st.permutations(range(len(sizes))))
    return sizes, axes[: draw(st.integers(0, len(axes)))]


def _expected(op: str, whole: np.ndarray[Any, Any], group: list[int], place: int) -> Any:
    count = len(group)
    if op == "all_gather":
        return np.concatenate([whole[member] for member in group], 1)
    if op == "all_slice":
        return np.split(whole[group[place]], count, 0)[place]
    if op == "all_reduce":
        return sum(whole[member] for member in group)
    if op == "reduce_scatter":
        return np.split(sum(whole[member] for member in group), count, 0)[place]
    return np.concatenate([np.split(whole[member], count, 0)[place] for member in group], 1)


OPS: dict[str, dict[str, Any]] = {
    "all_gather": {"gather_axis": 1},
    "all_slice": {"slice_axis": 0},
    "all_reduce": {},
    "reduce_scatter": {"scatter_axis": 0},
    "all_to_all": {"split_axis": 0, "concat_axis": 1},
}


@pytest.mark.parametrize("op", OPS)
@settings(max_examples=12, deadline=None)
@given(case=grids())
def test_collectives_are_those_of_the_groups(op: str, case: tuple[list[int], list[int]]) -> None:
    sizes, axes = case
    mesh, count = xb.shard.grid(sizes), int(np.prod(sizes))
    whole = np.arange(count * 72, dtype=np.int32).reshape(count, 36, 2)
    came = on_grid(lambda x: getattr(xb.shard, op)(x, mesh=mesh, grid_axes=axes, **OPS[op]), mesh, whole)
    for device in range(count):
        group = group_of(sizes, axes, device)
        np.testing.assert_array_equal(came[device], _expected(op, whole, group, group.index(device)))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("halo", [(1, 1), (0, 2), (2, 1)])
def test_halos_are_parts_of_the_whole_array(rank: int, halo: tuple[int, int]) -> None:
    """Each device then holds what the padded whole array has there, but for corners at the border of the grid."""
    mesh, core = xb.shard.grid([2] * rank), 3
    whole = np.pad(np.arange(1, (2 * core) ** rank + 1).reshape([2 * core] * rank), halo).astype(np.int32)
    spans = [[place * core for place in np.unravel_index(device, mesh.shape)] for device in range(2**rank)]
    wanted = [whole[tuple(slice(b, b + core + sum(halo)) for b in span)] for span in spans]
    inner = (slice(halo[0], halo[0] + core),) * rank
    given = [np.zeros_like(each) for each in wanted]
    for one, other in zip(given, wanted, strict=True):
        one[inner] = other[inner]
    axes = [[dim] for dim in range(rank)]
    came = on_grid(
        lambda x: xb.shard.update_halo(x, mesh=mesh, split_axes=axes, halo_sizes=[*halo] * rank), mesh, given
    )
    np.testing.assert_array_equal(came, wanted)


def test_a_halo_along_several_axes() -> None:
    mesh = xb.shard.grid([2, 2])
    given = [np.array([-1, device, -1]) for device in range(4)]
    came = on_grid(lambda x: xb.shard.update_halo(x, mesh=mesh, split_axes=[[1, 0]], halo_sizes=[1, 1]), mesh, given)
    order = [0, 2, 1, 3]  # axis 1 is the outer one
    for number, device in enumerate(order):
        wanted = [order[number - 1] if number else -1, device, order[number + 1] if number < 3 else -1]
        assert came[device].tolist() == wanted


def _send_and_recv(x: xb.Value) -> xb.Value:
    xb.shard.send(x, mesh=GRID, grid_axes=[1], destination=[0])
    return xb.shard.recv(x, mesh=GRID, grid_axes=[1], source=[1])


def test_a_send_and_a_recv_by_coordinates() -> None:
    came = on_grid(_send_and_recv, GRID, [[1], [2], [3], [4]])
    assert [came[0].tolist(), came[2].tolist()] == [[2], [4]]


def test_the_other_one_of_two_is_the_source() -> None:
    def program(x: xb.Value) -> xb.Value:
        xb.shard.send(x, mesh=GRID, grid_axes=[0], destination=[1])
        return xb.shard.recv(x, mesh=GRID, grid_axes=[0])

    came = on_grid(program, GRID, [[1], [2], [3], [4]])
    assert [came[2].tolist(), came[3].tolist()] == [[1], [2]]


def _shifted(x: xb.Value) -> xb.Value:
    return xb.shard.shift(x, mesh=xb.shard.grid([4]), grid_axes=[0], shift_axis=0, offset=1)


def _rooted(x: xb.Value) -> xb.Value:
    return xb.shard.reduce(x, mesh=xb.shard.grid([4]), grid_axes=[0], root=[2])


def _gathered(x: xb.Value) -> xb.Value:
    return xb.shard.gather(x, mesh=xb.shard.grid([4]), grid_axes=[0], gather_axis=0, root=[0])


READS: list[tuple[Callable[[xb.Value], xb.Value], set[int]]] = [
    (_shifted, {0}),
    (_rooted, {0, 1, 3}),
    (_gathered, {1, 2, 3}),
]


@pytest.mark.parametrize(("make", "devices"), READS)
def test_an_undefined_value_is_told_where_it_is_used(make: Callable[[xb.Value], xb.Value], devices: set[int]) -> None:
    mesh = xb.shard.grid([4])
    on_grid(make, mesh, np.ones((4, 1)))
    on_grid(lambda x: xb.get_tuple_element(xb.tuple_([xb.copy(make(x))]), 0), mesh, np.ones((4, 1)))
    with pytest.raises(xb.StrictFailure) as caught:
        on_grid(lambda x: -make(x), mesh, np.ones((4, 1)))
    assert {finding.kind for finding in caught.value.findings} == {"undefined_read"}
    assert {finding.device for finding in caught.value.findings} == devices


def test_an_undefined_value_that_is_not_selected_is_not_used() -> None:
    mesh = xb.shard.grid([4])

    def program(x: xb.Value, start: int) -> xb.Value:
        place = xb.shard.process_linear_index(x.builder, mesh=mesh)
        return xb.select(xb.ge(place, np.int32(start)), _shifted(x), x)

    came = on_grid(lambda x: program(x, 1), mesh, np.arange(4.0))
    assert came == [0.0, 0.0, 1.0, 2.0]
    with pytest.raises(xb.StrictFailure, match="undefined on this device"):
        on_grid(lambda x: program(x, 0), mesh, np.arange(4.0))


def test_a_collective_reads_what_is_undefined_on_its_members() -> None:
    mesh = xb.shard.grid([4])
    with pytest.raises(xb.StrictFailure, match="undefined on this device"):
        on_grid(lambda x: xb.shard.all_reduce(_shifted(x), mesh=mesh, grid_axes=[0]), mesh, np.ones((4, 1)))
    on_grid(lambda x: xb.shard.broadcast(_shifted(x), mesh=mesh, grid_axes=[0], root=[1]), mesh, np.ones((4, 1)))


def on_vector(function: Callable[..., Any], grid: list[int], **attributes: Any) -> Callable[[], Any]:
    x = xb.parameter(xb.Builder("refused"), number=0, shape=xb.f32[4, 6])
    return lambda: function(x, mesh=xb.shard.grid(grid), **attributes)


shard = xb.shard
REFUSALS: list[tuple[Callable[[], Any], str, str]] = [
    (on_vector(shard.all_gather, [2, 4], grid_axes=[2], gather_axis=0), "grid_axis_out_of_range", "rank 2"),
    (on_vector(shard.all_gather, [2, 4], grid_axes=[1, 1], gather_axis=0), "grid_axes_duplicate", "1"),
    (on_vector(shard.all_gather, [2, 4], grid_axes=[-1], gather_axis=0), "grid_axis_negative", "-1"),
    (on_vector(shard.all_gather, [2, 4], grid_axes=[1], gather_axis=2), "dimension_out_of_range", r"\[0, 2\)"),
    (on_vector(shard.all_slice, [3], grid_axes=[0], slice_axis=0), "divisibility", "4 is not divisible"),
    (on_vector(shard.all_to_all, [4], grid_axes=[0], split_axis=1, concat_axis=0), "divisibility", "6"),
    (on_vector(shard.scatter, [3], grid_axes=[0], scatter_axis=0, root=[0]), "divisibility", "3"),
    (on_vector(shard.reduce_scatter, [3], grid_axes=[0], scatter_axis=0), "divisibility", "3"),
    (on_vector(shard.broadcast, [3, 2], grid_axes=[0], root=[3]), "device_index_out_of_range", r"\[0, 2\]"),
    (on_vector(shard.broadcast, [3, 2], grid_axes=[0], root=[0, 1]), "device_index_size", "size 2, expected 1"),
    (on_vector(shard.send, [3, 2], grid_axes=[0], destination=[3]), "device_index_out_of_range", r"\[0, 2\]"),
    (on_vector(shard.recv, [3, 2], grid_axes=[0], source=[0]), "missing_send", "no send"),
    (on_vector(shard.shift, [3, 2], grid_axes=[0], shift_axis=1, offset=1), "shift_axis_not_in_group", "axis 1"),
    (on_vector(shard.all_reduce, [2], grid_axes=[0], reduction="generic"), "bad_reduction", "generic"),
    (on_vector(shard.all_reduce, [2], grid_axes=[0], reduction="bitwise_or"), "element_type_unsupported", "f32"),
    (on_vector(shard.update_halo, [2], split_axes=[[0]], halo_sizes=[3, 1]), "dimension_mismatch", "0 elements"),
    (on_vector(shard.update_halo, [2], split_axes=[[0]], halo_sizes=[1]), "halo_count", "expected 2"),
    (lambda: shard.grid([]), "grid_rank_zero", "positive"),
    (lambda: shard.grid([2, 0]), "non_positive", "0"),
    (lambda: shard.sharding(GRID, [[0], [0]]), "grid_axis_duplicated", "0 is listed twice"),
    (lambda: shard.sharding(GRID, [[-1]]), "grid_axis_negative", "-1"),
    (lambda: shard.sharding(GRID, [[2]]), "grid_axis_out_of_range", "2"),
    (lambda: shard.sharding(GRID, [[0]], halo_sizes=[1, 1], sharded_dims_offsets=[0, 1, 2]),
     "halo_and_offsets_exclusive", "exclusive"),
    (lambda: shard.sharding(GRID, [[0], [1]], halo_sizes=[1, 2]), "halo_count", "expected 4"),
    (lambda: shard.sharding(GRID, [[0]], halo_sizes=[1, -2]), "negative_size", "-2"),
    (lambda: shard.sharding(GRID, [[0], [1]], sharded_dims_offsets=[0, 2, 4, 0, 2]), "offsets_wrong_size", "6"),
    (lambda: shard.sharding(GRID, [[0]], sharded_dims_offsets=[0, 3, 2]), "offsets_decreasing", "non-decreasing"),
    (lambda: shard.shard_shape([4], shard.sharding(GRID, [[], [1]]), [0, 0]), "rank_mismatch", "dimension 1"),
    (lambda: shard.shard_shape([4], shard.sharding(GRID, [[0]], sharded_dims_offsets=[0, 1, 5]), [0, 0]),
     "dimension_mismatch", "end at 5"),
    (lambda: shard.shard_shape([4], shard.sharding(GRID, [[0]]), [0]), "device_index_size", "2 axes"),
    (lambda: shard.shard_shape([4], shard.sharding(GRID, [[0]]), [2, 0]), "device_index_out_of_range", r"\[0, 1\]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "named"), REFUSALS)
def test_refusals(call: Callable[[], Any], kind: str, named: str) -> None:
    with pytest.raises(XbuildError, match=named) as caught:
        call()
    assert caught.value.kind == kind


FIRST, SECOND = shard.sharding(GRID, [[0]]), shard.sharding(GRID, [[1]])
# The chains of annotations of the document: (sharding, for users, on the result of the chain or on the value itself).
CHAINS: list[tuple[list[tuple[shard.Sharding, bool, bool]], bool]] = [
    ([(FIRST, False, True)], True),
    ([(FIRST, True, True)], True),
    ([(FIRST, False, True), (SECOND, True, True), (FIRST, True, False)], True),
    ([(FIRST, False, True), (SECOND, False, True)], False),
    ([(FIRST, False, True), (SECOND, False, False)], False),
    ([(FIRST, True, True), (SECOND, True, True)], False),
    ([(FIRST, True, True), (SECOND, False, True)], False),
]


def chained(chain: list[tuple[shard.Sharding, bool, bool]]) -> None:
    value = first = xb.parameter(xb.Builder("chain"), number=0, shape=xb.f32[4, 8])
    for sharding, for_users, is_chained in chain:
        value = shard.shard(value if is_chained else first, sharding, annotate_for_users=for_users)
        assert shard.get_sharding(value) == sharding.padded(2)


@pytest.mark.parametrize(("chain", "is_right"), CHAINS)
def test_chains_of_annotations(chain: list[tuple[shard.Sharding, bool, bool]], is_right: bool) -> None:
    if is_right:
        chained(chain)
        return
    with pytest.raises(XbuildError) as caught:
        chained(chain)
    assert caught.value.kind == "sharding_conflict"
