"""Shardings of HLO text: what each form says by axes of a mesh, and printed back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from shape_inference import XbuildError
from xbuild.sharding.hlo_text import hlo_text, parsed, shardings, tiled_text
from xbuild.sharding.sharding import Axis, Placement, Sharding
from xbuild.sharding.stated_shardings import annotated, mesh_of_shardings, on_one_mesh, sharding_of

# Text, and what it says: the mesh, the parts of each dimension as (axis, size, pre_size), and the same by names.
TILED = [
    ("{devices=[2,1]<=[2]}", "axis_0=2", "{mesh['axis_0'=2], [{'axis_0'}, {}]}"),
    ("{devices=[4]0,1,2,3}", "axis_0=4", "{mesh['axis_0'=4], [{'axis_0'}]}"),
    (
        "{devices=[2,4]<=[8] last_tile_dim_replicate}",
        "axis_0=2,axis_1=4",
        "{mesh['axis_0'=2,'axis_1'=4], [{'axis_0'}]}",
    ),
    (
        '{devices=[4,2]<=[2,4]T(1,0) metadata={op_name="a"}}',
        "axis_0=2,axis_1=4",
        "{mesh['axis_0'=2,'axis_1'=4], [{'axis_1'}, {'axis_0'}]}",
    ),
    (
        "{devices=[1,2,4]<=[8] last_tile_dims={manual}}",
        "axis_0=2,axis_1=4",
        "{mesh['axis_0'=2,'axis_1'=4], [{}, {'axis_0'}], manual={'axis_1'}}",
    ),
    (
        "{devices=[2,2,2]<=[8] last_tile_dims={unreduced, replicated}}",
        "axis_0=2,axis_1=2,axis_2=2",
        "{mesh['axis_0'=2,'axis_1'=2,'axis_2'=2], [{'axis_0'}], unreduced={'axis_1'}}",
    ),
    ("{devices=[4]0,2,1,3}", "axis_0=2,axis_1=2", "{mesh['axis_0'=2,'axis_1'=2], [{'axis_1', 'axis_0'}]}"),
    ("{devices=[4]3,2,1,0}", "axis_0=4;3,2,1,0", "{mesh['axis_0'=4], device_ids=(3,2,1,0), [{'axis_0'}]}"),
]
NAMED = [
    "{mesh['a'=2,'b'=4], [{'a'}, {'b', ?}]}",
    "{mesh['a'=2,'b'=4], [{?}, {}], replicated={'a'}, unreduced={'b'}}",
    "{mesh['x'=8], [{'x':(1)2}, {'x':(2)4}]}",
    "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [{'x'}, {}], replicated={'y'}}",
    "{mesh['x'=2,'y'=2], [{'x'}p1, {'y', ?}p2], manual={}}".replace(", manual={}", ""),
]
WORDS = ["{replicated}", "{maximal device=3}", "{manual}", "{unreduced}", "{unknown}"]


@pytest.mark.parametrize(("text", "mesh", "by_names"), TILED)
def test_tiles_are_axes_of_an_inferred_mesh(text: str, mesh: str, by_names: str) -> None:
    found = shardings(text)
    assert isinstance(found, Sharding)
    assert (found.mesh.spelled(), hlo_text(found)) == (mesh, by_names)
    again = shardings(tiled_text(found, len(found.dims)), found.mesh)
    assert again == found


@pytest.mark.parametrize("text", [*NAMED, *WORDS, f"{{{', '.join(WORDS)}}}", "{}"])
def test_texts_are_printed_as_they_were(text: str) -> None:
    assert hlo_text(shardings(text)) == text


def test_words_are_shardings_of_a_given_mesh() -> None:
    mesh = xb.Mesh(a=2, b=2)
    every = (Axis("a", 2), Axis("b", 2))
    assert shardings("{replicated}", mesh) == Sharding(mesh)
    assert shardings("{manual}", mesh) == Sharding(mesh, manual=every)
    assert shardings("{unreduced}", mesh) == Sharding(mesh, unreduced=every)
    assert shardings("{maximal device=1}", mesh) == Placement("maximal", 1)


def test_groups_of_shardings_are_read_and_printed() -> None:
    found = parsed("{unknown shard_as 3}")
    assert not isinstance(found, tuple)
    assert found.group is not None
    assert hlo_text(Placement("unknown"), group=found.group) == "{unknown shard_as 3}"


WRONG = [
    ("{devices=[2,2]0,1}", "the list has 2 devices"),
    ("{devices=[3]<=[4]}", "3"),
    ("{devices=[2]1,3}", "omits some"),
    ("{mesh['a'=2], [{'b'}]}", "'b'"),
    ("{mesh['a'=2], [{'a'}, {'a'}]}", "twice"),
    ("{mesh['a'=4], [{'a':(1)3}]}", "3 equal parts"),
    ("{mesh['a'=2,'a'=2], []}", "twice"),
    ("{mesh['a'=6], [{'a':(1)2}, {'a':(3)2}]}", "cannot be split into parts that include both"),
    ("{mesh['a'=2], device_ids=(0,0), []}", "0..1"),
    ("{devices=[99999999999]<=[99999999999]}", "devices"),
    ("{replicated} more", "end of the sharding"),
    ("{mesh['a'=2], [{?, 'a'}]}", "last"),
]


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_a_text_that_is_no_sharding_is_refused(text: str, named: str) -> None:
    with pytest.raises(XbuildError, match=named.replace(".", r"\.")) as caught:
        shardings(text)
    assert caught.value.kind == "invalid_attribute"


@given(st.permutations([2, 3, 2, 2]), st.permutations(range(4)), st.integers(0, 4), st.booleans())
def test_any_order_of_axes_is_found_again(sizes: list[int], order: list[int], cut: int, is_iota: bool) -> None:
    places = np.arange(24).reshape(sizes).transpose(order)
    tiles = ",".join(map(str, [*places.shape[:cut], *([] if cut == 4 else [int(np.prod(places.shape[cut:]))])]))
    given_sizes, given_order = ",".join(map(str, sizes)), ",".join(map(str, order))
    devices = f"<=[{given_sizes}]T({given_order})" if is_iota else ",".join(map(str, places.reshape(-1)))
    found = shardings(f"{{devices=[{tiles}]{devices}{'' if cut == 4 else ' last_tile_dim_replicate'}}}")
    assert isinstance(found, Sharding)
    assert [dim.parts for dim in found.dims] == [*places.shape[:cut]]
    assert shardings(tiled_text(found, cut), found.mesh) == found


MODULE = """HloModule m

ENTRY e {
  a = f32[8,8] parameter(0), sharding={devices=[2,4]<=[8]}
  b = f32[8,8] parameter(1), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  c = f32[8,8] add(a, b), sharding={replicated}
  ROOT t = (f32[8,8], f32[8,8]) tuple(c, b), sharding={{devices=[2,1,4]<=[8] last_tile_dim_replicate}, {replicated}}
}
"""


def test_the_shardings_of_a_program_share_a_mesh() -> None:
    module = xb.parse_hlo(MODULE)
    mesh = mesh_of_shardings(module)
    assert mesh == xb.Mesh(axis_0=2, axis_1=2, axis_2=2)
    found = on_one_mesh(module).entry
    assert found["a"].annotations["sharding"].endswith("[{'axis_0'}, {'axis_1', 'axis_2'}]}")
    assert found["b"].annotations["sharding"].endswith("[{'axis_0', 'axis_1'}, {}]}")
    assert sharding_of(found["c"]) == Sharding(mesh).padded(2)
    whole = sharding_of(found.root)
    assert isinstance(whole, tuple)
    assert [type(each) for each in whole] == [Sharding, Sharding]
    assert found.instructions[2].operands == found.instructions[:2]
    assert xb.parse_hlo(on_one_mesh(module).to_hlo()).entry["a"].annotations == found["a"].annotations


def test_annotating_a_program() -> None:
    module = xb.parse_hlo(MODULE)
    mesh = xb.Mesh(x=2, y=4)
    sharding = shardings("{mesh['x'=2,'y'=4], [{'x'}, {'y'}]}")
    assert sharding_of(annotated(module, {"c": sharding}).entry["c"]) == sharding
    with pytest.raises(XbuildError, match="no instruction 'd'"):
        annotated(module, {"d": sharding})
    with pytest.raises(XbuildError, match="3 entries"):
        annotated(module, {"c": Sharding(mesh).padded(3)})
