"""Partitioned programs: equal to the global ones, found ok by the check, and saying why they communicate."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.sharding.partition import Partitioned, partition
from xbuild.sharding.sharding import get_axis, shard_dims
from xbuild.sharding.stated_shardings import annotated

from .campaign import fault, program
from .cases import difference

MESH = xb.Mesh(x=2, y=2)
X, Y = get_axis(MESH, "x"), get_axis(MESH, "y")


def _partitioned(computation: xb.Computation, *dims: Any, propagate: bool = False) -> Partitioned:
    names = [parameter.name for parameter in computation.parameters]
    shardings = {name: shard_dims(MESH, each) for name, each in zip(names, dims, strict=True)}
    return partition(annotated(xb.Module("program", computation), shardings), propagate=propagate)


def _numbers(*dims: int) -> Any:
    return (np.arange(int(np.prod(dims))) % 7 - 3).reshape(dims).astype(np.float32)


def _same(computation: xb.Computation, found: Partitioned, *arrays: Any) -> None:
    assert xb.check(found.module).kind == "ok"
    assert difference(xb.evaluate(computation, *arrays), found.run(*arrays, padding=99)) is None


FOUND = (901658, 904048)
"""Programs in which campaigns found faults: dilated windows of a select-and-scatter, a convolution without results."""


@pytest.mark.parametrize("seed", [*range(120), *FOUND])
def test_random_programs_are_equal_to_the_global_ones(seed: int) -> None:
    assert fault(program(seed)) is None


def test_a_cut_contraction_is_reduced_once_with_a_reason() -> None:
    product = xb.computation(xb.f32[4, 6], xb.f32[6, 4])(xb.dot)
    found = _partitioned(product, [[X], [Y]], [[Y], []])
    (only,) = found.communications
    assert only.opcode == "all_reduce"
    assert only.axes == (Y,)
    assert only.bytes == 2 * 4 * 4
    assert re.sub(r"py:\d+", "py:0", only.reason) == (
        "dot.3 (test_partition.py:0) contracts k, dimension 1 of parameter.1 and dimension 0 of "
        "parameter.2, both sharded along `y`; each device holds a partial sum; the partial results are added here "
        "because the program returns dot.3 sharded along `x` in dimension 0 (no sharding is stated for this value)"
    )
    assert only.source is not None
    assert "test_partition.py" in str(only.source)
    _same(product, found, _numbers(4, 6), _numbers(6, 4))


def test_an_initial_value_counts_once() -> None:
    total = xb.computation(xb.f32[8], xb.f32[()])(lambda x, init: xb.ops.reduce((x,), (init,), to_apply=xb.ops.add, dimensions=(0,)))  # fmt: skip  # noqa: E501
    found = _partitioned(total, [[X, Y]], [])
    assert found.run(np.ones(8, np.float32), np.float32(100)) == 108
    (reduced,) = (each for each in found.module.entry.instructions if each.opcode == "reduce")
    assert reduced.operands[1].attributes.literal == 0  # XLA ignores any other for one row


def test_a_value_is_gathered_once_for_all_its_users() -> None:
    twice = xb.computation(xb.f32[8])(lambda x: xb.sort(x) + xb.reverse(xb.sort(-x), [0]))
    module = annotated(xb.Module("twice", twice), {"parameter.1": shard_dims(MESH, [[X, Y]])})
    found = partition(module, propagate=False)
    assert sum(each.opcode == "all_gather" for each in found.communications) <= 2
    _same(twice, found, _numbers(8))


CONVOLVED = xb.computation(xb.f32[1, 1, 8], xb.f32[1, 1, 3])(lambda x, k: xb.conv(x, k, (1,), [(1, 1)]))
SUMMED = xb.computation(xb.f32[9])(lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (3,), (1,), [(1, 1)]))
SLICED = xb.computation(xb.f32[8])(lambda x: x[1:7])
PADDED = xb.computation(xb.f32[7], xb.f32[()])(lambda x, p: xb.ops.pad(x, p, padding=[xb.PaddingDimension(2, 1, 0)]))


@pytest.mark.parametrize(
    ("computation", "dims", "arrays", "wanted"),
    [
        (CONVOLVED, ([[], [], [X, Y]], []), (_numbers(1, 1, 8), _numbers(1, 1, 3)), [[], [], [X, Y]]),
        (SUMMED, ([[X, Y]],), (_numbers(9),), [[X, Y]]),
        (SLICED, ([[X, Y]],), (_numbers(8),), [[X, Y]]),
        (PADDED, ([[X, Y]], []), (_numbers(7), np.float32(5)), [[X, Y]]),
    ],
    ids=["convolution", "reduce-window", "slice", "pad"],
)
def test_neighbours_give_what_a_device_lacks(computation: Any, dims: Any, arrays: Any, wanted: Any) -> None:
    shardings = {p.name: shard_dims(MESH, each) for p, each in zip(computation.parameters, dims, strict=True)}
    shardings[computation.root.name] = shard_dims(MESH, wanted)
    found = partition(annotated(xb.Module("program", computation), shardings), propagate=False)
    assert {each.opcode for each in found.communications} == {"collective_permute"}
    _same(computation, found, *arrays)


def test_rows_of_a_cut_table_are_looked_up_where_they_are() -> None:
    def rows(table: xb.Value, places: xb.Value) -> xb.Value:
        return xb.ops.gather(table, places, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,),
                             index_vector_dim=1, slice_sizes=(1, 4))  # fmt: skip

    looked_up = xb.computation(xb.f32[1001, 4], xb.s32[3])(rows)
    found = _partitioned(looked_up, [[X, Y], []], [])
    assert [each.opcode for each in found.communications] == ["all_reduce"]
    _same(looked_up, found, _numbers(1001, 4), np.array([1000, -5, 2000], np.int32))


def test_updates_fall_into_the_part_that_they_name() -> None:
    def updated(x: xb.Value, start: xb.Value) -> xb.Value:
        return xb.ops.dynamic_update_slice(x, xb.constant(x.builder, np.ones(3, np.float32)), [start])

    program = xb.computation(xb.f32[10], xb.s32[()])(updated)
    found = _partitioned(program, [[X, Y]], [])
    for start in (-3, 0, 2, 6, 9):
        _same(program, found, _numbers(10), np.int32(start))
    assert [each.opcode for each in found.communications] in ([], ["all_gather"])


def test_a_number_of_a_loop_that_data_give_is_one_on_all_devices() -> None:
    def looped(count: xb.Value, x: xb.Value) -> xb.Value:
        def body(state: Any) -> Any:
            number, y = state
            return number - 1, xb.dot(y, y)

        return xb.while_((count, x), lambda state: state[0] > 0, body)[1]

    program = xb.computation(xb.s32[()], xb.f32[4, 4])(looped)
    found = _partitioned(program, [], [[X], [Y]])
    _same(program, found, np.int32(2), np.eye(4, dtype=np.float32) * 2)
    assert any("all devices take the value of the first device" in each.reason for each in found.communications)


@pytest.mark.parametrize("propagate", [True, False])
def test_parts_of_an_axis_that_no_splitting_has_both_of_are_brought_together(propagate: bool) -> None:
    text = """HloModule m
    ENTRY e {
      a = f32[6,6] parameter(0), sharding={mesh['x'=6], [{'x':(1)2}, {}]}
      b = f32[6,6] parameter(1), sharding={mesh['x'=6], [{}, {'x':(3)2}]}
      ROOT c = f32[6,6] add(a, b)
    }"""
    module = xb.parse_hlo(text)
    _same(module.entry, partition(module, propagate=propagate), _numbers(6, 6), _numbers(6, 6))


def test_results_are_nested_as_those_of_the_global_program() -> None:
    program = xb.computation(xb.f32[5])(lambda x: (x, (x + 1.0, x * 2.0)))
    found = _partitioned(program, [[X]], propagate=True)
    _same(program, found, _numbers(5))
    assert isinstance(found.out_shardings, tuple)


def test_a_transfer_and_a_mesh_that_nothing_names_are_refused() -> None:
    with pytest.raises(xb.XbuildError) as error:
        partition(xb.Module("m", xb.computation(xb.f32[2])(lambda x: x + x)))
    assert error.value.kind == "invalid_attribute"

    def outfed(x: xb.Value) -> xb.Value:
        xb.outfeed(x, xb.after_all(builder=x.builder))
        return x + x

    with pytest.raises(xb.XbuildError) as error:
        partition(xb.Module("m", xb.computation(xb.f32[2])(outfed)), mesh=MESH)
    assert error.value.kind == "invalid_operand"


def test_arguments_of_other_extents_are_refused() -> None:
    found = _partitioned(xb.computation(xb.f32[4])(xb.negate), [[X]])
    with pytest.raises(xb.XbuildError) as error:
        found.run(np.zeros(3, np.float32))
    assert error.value.kind == "dimension_mismatch"
    with pytest.raises(xb.XbuildError) as error:
        found.run()
    assert error.value.kind == "arity_mismatch"


def test_many_exchanges_are_written_with_their_own_shapes() -> None:
    """An all-to-all of two dimensions is written as several instructions, whose shapes nothing else holds."""

    def turned(x: xb.Value) -> xb.Value:
        for _ in range(12):
            x = xb.sort(xb.sort(x, dimension=0), dimension=1)
        return x

    program = xb.computation(xb.f32[8, 4])(turned)
    found = _partitioned(program, [[X], [Y]])
    again = xb.parse_hlo(found.module.to_hlo())
    assert again.to_hlo() == found.module.to_hlo()
    _same(program, found, _numbers(8, 4))


CALL = """HloModule m
ENTRY main {
  a = f32[4,6]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT b = f32[4,6]{0,1} custom-call(a), custom_call_target="f", operand_layout_constraints={f32[4,6]{0,1}}, KEPT
}"""


def test_a_custom_call_keeps_its_layouts_and_the_frontend_attributes_that_are_no_shardings() -> None:
    text = CALL.replace("KEPT", 'frontend_attributes={n="1",xla.sdy.sharding_rule="([i])->([i])"}')
    found = partition(xb.parse_hlo(text), mesh=xb.Mesh(x=2)).module
    (call,) = (each for each in found.entry.instructions if each.opcode == "custom_call")
    assert str(call.shape) == "f32[4,6]{0,1}"
    assert str(call.attributes.operand_layout_constraints[0]) == "f32[4,6]{0,1}"
    noted = {each.opcode: each.annotations["frontend_attributes"] for each in found.entry.instructions
             if "frontend_attributes" in each.annotations}  # fmt: skip
    assert noted == {"custom_call": {"n": "1"}}


BITCAST = """HloModule m
ENTRY main {
  a = f32[4,6]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT b = f32[8,3]LAYOUT bitcast(a)
}"""


@pytest.mark.parametrize("layout", ["{1,0}", "{0,1}"])
def test_a_bitcast_reads_and_writes_in_the_layouts_of_the_global_program(layout: str) -> None:
    module = xb.parse_hlo(BITCAST.replace("LAYOUT", layout))
    found = partition(module, mesh=xb.Mesh(x=2))
    _same(module.entry, found, np.arange(24, dtype=np.float32).reshape(4, 6))


IN_A_SHARD = """
HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>}}
body {
  part = f32[2] parameter(0)
  ROOT doubled = f32[2] add(part, part)
}
ENTRY e {
  p = f32[8] parameter(0)
  into = f32[2] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true,
    frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>]>",
    xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\"}>"}
  inside = f32[2] call(into), to_apply=body
  ROOT out = f32[8] custom-call(inside), custom_call_target="xla.sdy.LocalToGlobalShape",
    custom_call_has_side_effect=true,
    frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\"}>",
    xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>]>"}
}
"""


def test_mesh_that_the_header_alone_names_is_that_of_the_program() -> None:
    found = partition(xb.parse_hlo(IN_A_SHARD))
    assert found.mesh == xb.Mesh(x=4)
    np.testing.assert_array_equal(found.run(_numbers(8)), 2 * _numbers(8))


def test_program_with_a_computation_of_a_shard_is_refused_on_one_device_and_told_how_it_runs() -> None:
    with pytest.raises(xb.Refused, match=r"xb\.shard\.partition\(module\)"):
        xb.evaluate(xb.parse_hlo(IN_A_SHARD).entry, _numbers(8))


PARTITIONED = """
HloModule m, num_partitions=4
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
"""


@pytest.mark.parametrize("called", [xb.shard.partition, xb.shard.propagate])
def test_program_that_is_partitioned_already_is_refused(called: Any) -> None:
    with pytest.raises(
        xb.XbuildError, match="all-reduce %r communicates between devices, so m is already partitioned"
    ) as caught:
        called(xb.parse_hlo(PARTITIONED))
    assert "\n  hint: " in str(caught.value)
