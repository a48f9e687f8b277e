"""Meshes: devices in row-major order, groups in the order of the axes given, what is refused."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from xbuild.properties.mesh import Mesh

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)
MESHES = SIZES.map(lambda sizes: Mesh(dict(zip("ijkl", sizes, strict=False))))


@pytest.mark.parametrize(
    ("axes", "groups"),
    [
        ("i", ((0, 2), (1, 3))),
        ("j", ((0, 1), (2, 3))),
        (("i", "j"), ((0, 1, 2, 3),)),
        (("j", "i"), ((0, 2, 1, 3),)),
        ((), ((0,), (1,), (2,), (3,))),
    ],
)
def test_groups_of_the_document(axes: Any, groups: Any) -> None:
    assert xb.Mesh(i=2, j=2).groups(axes) == groups


def test_pairs_in_every_group() -> None:
    assert xb.Mesh(i=2, j=2).pairs("j", [(0, 1), (1, 0)]) == ((0, 1), (1, 0), (2, 3), (3, 2))


@given(MESHES)
def test_devices_count_row_by_row(mesh: Mesh) -> None:
    places = [mesh.coordinates(device) for device in range(mesh.num_devices)]
    assert places == sorted(places, key=lambda place: tuple(place.values()))
    assert [mesh.device(**place) for place in places] == list(range(mesh.num_devices))
    assert mesh.num_devices == math.prod(mesh.shape) == mesh.size(mesh.axes)


@given(MESHES, st.data())
def test_groups_part_the_devices(mesh: Mesh, data: st.DataObject) -> None:
    axes = tuple(data.draw(st.permutations(mesh.axes)))[: data.draw(st.integers(0, len(mesh.axes)))]
    groups = mesh.groups(axes)
    assert sorted(device for group in groups for device in group) == list(range(mesh.num_devices))
    assert {len(group) for group in groups} == {mesh.size(axes)}
    for group in groups:
        inside = [tuple(mesh.coordinates(device)[axis] for axis in axes) for device in group]
        assert inside == sorted(inside)
        assert len({tuple(mesh.coordinates(d)[a] for a in mesh.axes if a not in axes) for d in group}) == 1
    found = mesh.axes_of(groups)
    assert found is not None
    assert sorted(mesh.groups(found)) == sorted(groups)


def test_groups_that_no_axes_make() -> None:
    assert xb.Mesh(i=2, j=2).axes_of(((0, 3), (1, 2))) is None
    assert xb.Mesh(i=4).axes_of(((0, 1), (2, 3))) is None
    assert xb.Mesh(i=2, j=3).axes_of(()) == ("i", "j")


@given(MESHES)
def test_a_mesh_is_a_value(mesh: Mesh) -> None:
    again = Mesh(dict(mesh.sizes))
    assert again == mesh == Mesh.read(mesh.spelled()) == pickle.loads(pickle.dumps(mesh)) == copy.copy(mesh)
    assert hash(again) == hash(mesh)
    assert eval(repr(mesh)) == mesh
    assert mesh != Mesh({**dict(mesh.sizes), "z": 1})


def test_the_order_of_axes_counts() -> None:
    assert xb.Mesh(i=2, j=4) != xb.Mesh(j=4, i=2)
    assert xb.Mesh(i=2, j=4).ordered({"j", "i"}) == ("i", "j")


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: xb.Mesh(), "invalid_attribute", "expected at least 1 axis"),
        (lambda: xb.Mesh(i=0), "non_positive", "the size of axis i must be at least 1, got 0"),
        (lambda: xb.Mesh(i=2.5), "invalid_attribute", "size of axis i, got 2.5"),  # type: ignore[arg-type]
        (lambda: xb.Mesh({"a b": 2}), "invalid_attribute", "'a b'"),
        (lambda: xb.Mesh(i=2).groups("k"), "unbound_axis", "Mesh\\(i=2\\) has no axis 'k'"),
        (lambda: xb.Mesh(i=2, j=2).groups(("i", "i")), "duplicate_dimension", "twice"),
        (lambda: xb.Mesh(i=2).coordinates(2), "index_out_of_range", "device 2"),
        (lambda: xb.Mesh(i=2).device(i=2), "index_out_of_range", "i=2"),
        (lambda: Mesh.read("i=2;j"), "invalid_attribute", "i=2;j"),
    ],
)
def test_what_is_no_mesh_is_refused(make: Any, kind: str, words: str) -> None:
    with pytest.raises(xb.XbuildError, match=words) as caught:
        make()
    assert caught.value.kind == kind
