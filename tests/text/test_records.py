"""Annotations are read into records: meshes, iotas, shardings, aliases; a text that is none of them is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from xbuild.sharding.hlo_text import mesh_text
from xbuild.sharding.shardy_text import shardy_mesh_text
from xbuild.text.header import stated_aliases, stated_donors
from xbuild.text.meshes import AxisPart, DeviceIota, StatedMesh, read_iota, read_mesh, read_shardy_mesh
from xbuild.text.scanner import Fault, Scanner
from xbuild.text.shardings import ShardGroup, StatedSharding, sharded_devices, stated_sharding


@st.composite
def meshes(draw: Any) -> xb.Mesh:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    mesh = xb.Mesh({f"a{n}": size for n, size in enumerate(sizes)})
    return xb.Mesh(dict(mesh.sizes), device_ids=draw(st.permutations(range(mesh.num_devices))))


@given(meshes(), st.data())
def test_groups_of_a_stated_mesh_are_those_of_the_mesh(mesh: xb.Mesh, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(mesh.axes), unique=True, min_size=1))
    stated = StatedMesh(mesh.sizes, mesh.device_ids)
    assert stated.count == mesh.num_devices
    assert stated.groups([AxisPart(axis) for axis in axes]) == mesh.groups(axes)
    whole = [AxisPart(axis, 1, mesh.size(axis)) for axis in axes]
    assert stated.groups(whole) == mesh.groups(axes)


@given(meshes())
def test_both_spellings_of_a_mesh_are_read_back(mesh: xb.Mesh) -> None:
    stated = StatedMesh(mesh.sizes, mesh.device_ids)
    assert read_mesh(Scanner(mesh_text(mesh).removeprefix("mesh"))) == stated
    assert read_shardy_mesh(Scanner(shardy_mesh_text(mesh))) == stated


@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.data())
def test_an_iota_counts_along_its_transposed_dimensions(dims: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(dims))))
    text = f"[{','.join(map(str, dims))}]T({','.join(map(str, order))})"
    iota = read_iota(Scanner(text))
    assert iota == DeviceIota(tuple(dims), tuple(order))
    as_groups = xb.parse_hlo(
        f"HloModule m, num_partitions={iota.ids.size}\nadd {{ a = f32[] parameter(0) b = f32[] parameter(1)\n"
        f"ROOT c = f32[] add(a, b) }}\nENTRY e {{ x = f32[4] parameter(0)\nROOT y = f32[4] all-reduce(x), channel_id=1,"
        f" replica_groups=[1,{iota.ids.size}]<={text}, use_global_device_ids=true, to_apply=add }}"
    )
    assert as_groups.entry.root.attributes.replica_groups == (tuple(iota.ids.tolist()),)


SHARDINGS = [
    ("{replicated}", StatedSharding("{replicated}", "replicated"), 1),
    ("{maximal device=3}", StatedSharding("{maximal device=3}", "maximal", 3), 1),
    ("{single_device[device_id=3]}", StatedSharding("{single_device[device_id=3]}", "maximal", 3), 1),
    (
        '{maximal_mesh[device_id=3], metadata={op_name="a"}}',
        StatedSharding('{maximal_mesh[device_id=3], metadata={op_name="a"}}', "maximal", 3),
        1,
    ),
    (
        "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate shard_as 7}",
        StatedSharding(
            "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate shard_as 7}",
            tiles=(2, 1, 4),
            devices=DeviceIota((4, 2), (1, 0)), subgroups=("replicated",), group=ShardGroup("shard_as", 7),
        ),
        8,
    ),
    (
        "{devices=[2,2]0,1,2,3 last_tile_dims={manual}}",
        StatedSharding(
            "{devices=[2,2]0,1,2,3 last_tile_dims={manual}}", tiles=(2, 2), devices=(0, 1, 2, 3), subgroups=("manual",)
        ),
        4,
    ),
    ("{mesh['a'=2,'b'=3], [{'a'}]}", StatedSharding("{mesh['a'=2,'b'=3], [{'a'}]}", named=True), 6),
]  # fmt: skip


@pytest.mark.parametrize(("text", "record", "devices"), SHARDINGS, ids=[text for text, _, _ in SHARDINGS])
def test_a_sharding_is_a_record(text: str, record: StatedSharding, devices: int) -> None:
    assert stated_sharding(text) == record
    assert sharded_devices(text) == record.num_devices == devices


def test_the_shardings_of_a_tuple_are_records_with_their_texts() -> None:
    texts = [text for text, _, _ in SHARDINGS]
    found = stated_sharding(f"{{ {', '.join(texts)} }}")
    assert isinstance(found, tuple)
    assert [each.text for each in found] == texts
    assert stated_sharding("{}") == ()
    assert sharded_devices(f"{{{', '.join(texts)}}}") == 8


def test_a_text_that_is_no_sharding_names_no_devices() -> None:
    with pytest.raises(Fault):
        stated_sharding("{devices=[4]}")
    assert sharded_devices("{devices=[4]}") == 1


def test_one_sharding_of_a_tuple_of_one_element_is_not_taken_apart() -> None:
    sharding = "{devices=[1,2]<=[2] last_tile_dims={manual}}"
    module = xb.parse_hlo(
        "HloModule m, num_partitions=2\nENTRY e { x = f32[4] parameter(0)\n"
        f"ROOT t = (f32[4]) tuple(x), sharding={sharding} }}"
    )
    assert "{manual}" not in module.to_stablehlo().replace(sharding, "")


def test_aliases_and_donors_are_records() -> None:
    given = {
        "input_output_alias": "{ {0}: (1, {}, must-alias), /* the rest */ {1,0}: (0, {2}) }",
        "buffer_donor": "{ (3, {0}) }",
    }
    first, second = stated_aliases(given)
    assert (first.output, first.number, first.index, first.kind) == ((0,), 1, (), "must-alias")
    assert (second.output, second.number, second.index, second.kind) == ((1, 0), 0, (2,), "")
    assert [each.text for each in (first, second)] == ["{0}: (1, {}, must-alias)", "{1,0}: (0, {2})"]
    (donor,) = stated_donors(given)
    assert (donor.number, donor.index, donor.text) == (3, (0,), "(3, {0})")


@pytest.mark.parametrize("text", ["", "{ 0 }", "{ {0}: (1) }", "{ {0}: (1, {}) } more", "none"])
def test_another_text_states_no_aliases(text: str) -> None:
    assert stated_aliases({"input_output_alias": text}) == stated_donors({"buffer_donor": text}) == ()
