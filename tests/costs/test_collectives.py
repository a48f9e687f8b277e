"""Laws of collectives by algorithm, and of axes that are inferred from device groups."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from xbuild.costs.collectives import LinesOfCollectives, algorithms, axes_of_mesh, digits_of, infer_axes

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_broadcast", "collective_permute")
MESHES = st.lists(st.integers(2, 5), min_size=1, max_size=4).map(
    lambda sizes: xb.Mesh(dict(zip("abcd", sizes, strict=False)))
)


@given(st.sampled_from(KINDS), st.integers(1, 600), st.integers(0, 1 << 40))
def test_no_link_carries_more_than_all_links(kind: str, size: int, payload: int) -> None:
    for each in algorithms(kind, size, payload):
        assert 0 <= each.link_bytes <= each.total_bytes <= 2 * size * payload
        assert (each.steps == 0) == (size == 1)


@given(st.integers(2, 600), st.integers(0, 1 << 30))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(size: int, part: int) -> None:
    payload = part * size
    whole, *halves = (
        {each.name: each for each in algorithms(kind, size, payload)}
        for kind in ("all_reduce", "reduce_scatter", "all_gather")
    )
    for name in halves[0]:
        for figure in ("steps", "link_bytes", "total_bytes"):
            assert getattr(whole[name], figure) == sum(getattr(half[name], figure) for half in halves)


@given(st.integers(1, 10), st.integers(0, 1 << 30))
def test_halving_and_doubling_takes_fewer_steps_than_a_ring(levels: int, payload: int) -> None:
    found = {each.name: each for each in algorithms("all_gather", 2**levels, payload)}
    assert found["halving-doubling"].steps == levels <= found["ring"].steps == 2**levels - 1


@given(MESHES, st.data())
def test_groups_along_axes_are_named_by_them(mesh: xb.Mesh, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(mesh.axes), min_size=1, unique=True))
    digits = digits_of(mesh.groups(names))
    assert math.prod(size for size, _ in digits or ()) == mesh.size(names)
    ordered = [name for name in mesh.axes if name in names]
    assert axes_of_mesh(mesh).named(digits, mesh.size(names)).partition(" ")[2] == ", ".join(ordered)


@given(MESHES)
def test_a_mesh_is_inferred_from_the_groups_of_its_axes(mesh: xb.Mesh) -> None:
    found = infer_axes([d for name in mesh.axes if (d := digits_of(mesh.groups(name)))], mesh.num_devices)
    assert found.mesh == mesh


@pytest.mark.parametrize(
    "groups", [((0, 1), (2,)), ((0, 3), (1, 2)), ((1, 2), (3, 0)), ((0, 1, 3), (2, 4, 5))], ids=str
)
def test_groups_that_are_no_grid_have_no_axes(groups: tuple[tuple[int, ...], ...]) -> None:
    assert digits_of(groups) is None


def test_groups_that_cross_have_no_mesh() -> None:
    found = infer_axes([((2, 1), (3, 2)), ((4, 1),)], 12)
    assert found.mesh is None
    assert found.named(((4, 1),), 4) == "4 devices"


def test_the_report_names_each_collective_with_all_its_lines() -> None:
    text = """
HloModule step, num_partitions=8
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  up = f32[64,16] parameter(0)
  down = f32[16,64] parameter(1)
  state = f32[8,8] parameter(2)
  new = f32[8,8] negate(state), metadata={op_name="jit(step)/neg" source_file="t.py" source_line=30}
  both = (f32[64,16], f32[16,64]) all-reduce(up, down), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=add, metadata={op_name="jit(step)/transpose(jvp())/dot" source_file="t.py" source_line=14}
  one = f32[64,16] get-tuple-element(both), index=0, metadata={op_name="jit(step)/transpose(jvp())/dot" source_file="t.py" source_line=14}
  other = f32[16,64] get-tuple-element(both), index=1, metadata={op_name="jit(step)/jvp()/dot" source_file="t.py" source_line=12}
  whole = f32[64,8] all-gather(new), channel_id=2, replica_groups=[1,8]<=[8], use_global_device_ids=true, dimensions={0}
  ROOT r = (f32[64,16], f32[16,64], f32[64,8]) tuple(one, other, whole)
}"""  # noqa: E501
    combined = xb.parse_hlo(text, origins=True)
    lines = xb.cost(combined).table().partition("largest collectives (2 of 2)\n")[2].splitlines()[:4]
    assert [line.split()[:2] for line in lines[1:4:2]] == [["both", "all-reduce"], ["whole", "all-gather"]]
    assert "f32[64,16], f32[16,64]" in lines[1]
    assert lines[1].endswith("(backward)")
    places = LinesOfCollectives.of_program(combined)
    both, whole = (each for each in combined.entry.instructions if each.name in ("both", "whole"))
    backward, forward = places.of(both)
    assert [each.partition(" ")[0] for each in (backward, forward)] == ["t.py:14", "t.py:12"]
    assert [each.endswith(" (backward)") for each in (backward, forward)] == [True, False]
    assert [each.partition(" ")[0] for each in places.of(whole)] == ["t.py:30"]
