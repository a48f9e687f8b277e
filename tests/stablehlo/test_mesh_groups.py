"""Groups by axes of a mesh: the lists that they stand for, as XLA reads them."""

from __future__ import annotations

import itertools

import pytest

import xbuild as xb
from tests.support.converter import Converter

_TEXT = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]IDS>
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        replica_groups = #stablehlo.replica_group_mesh_axes<mesh = MESH, axes = [AXES]>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}"""
_INLINE = '#stablehlo.mesh<axes = [<name = "x", size = 2>, <name = "y", size = 4>]>'


def _axis(name: str, part: str = "") -> str:
    return f'#stablehlo.axis_ref<name = "{name}"{part and f", sub_axis_info = {part}"}>'


def _text(axes: str, ids: str = "", mesh: str = "@mesh") -> str:
    return _TEXT.replace("IDS", ids).replace("MESH", mesh).replace("AXES", axes)


LISTS = [
    (_axis("x"), ((0, 4), (1, 5), (2, 6), (3, 7))),
    (f"{_axis('y')}, {_axis('x')}", ((0, 4, 1, 5, 2, 6, 3, 7),)),
    (_axis("y", "(1)2"), ((0, 2), (1, 3), (4, 6), (5, 7))),
    (f"{_axis('x')}, {_axis('y', '(2)2')}", ((0, 1, 4, 5), (2, 3, 6, 7))),
    ('#sdy<axis_ref"y":(1)2>', ((0, 2), (1, 3), (4, 6), (5, 7))),
    ("", tuple((each,) for each in range(8))),
]
REFUSED = [
    (_axis("z"), "@mesh", "the mesh has no axis 'z'"),
    (_axis("y", "(3)2"), "@mesh", "these sub-axes do not divide"),
    (f"{_axis('x')}, {_axis('x')}", "@mesh", "an axis of the mesh appears twice"),
    (_axis("x"), "@other", "undefined mesh @other"),
    (_axis("x"), _INLINE.replace("size = 4", "size = 999999999"), "a mesh must have 1 to"),
    ("1, 2", "@mesh", "expected axes written as"),
    ("#stablehlo.axis_ref<size = 2>", "@mesh", "as an axis of a mesh: "),
]


def _groups(module: xb.Module) -> tuple[tuple[int, ...], ...]:
    return module.entry.root.attributes.replica_groups  # type: ignore[no-any-return]


@pytest.mark.parametrize(("axes", "expected"), LISTS)
def test_lists(axes: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert _groups(xb.parse(_text(axes))) == expected
    assert _groups(xb.parse(_text(axes, mesh=_INLINE))) == expected
    turned = tuple(tuple(7 - each for each in group) for group in expected)
    assert _groups(xb.parse(_text(axes, f", device_ids=[{', '.join(map(str, range(7, -1, -1)))}]"))) == turned


@pytest.mark.parametrize(("axes", "mesh", "reason"), REFUSED)
def test_refused(axes: str, mesh: str, reason: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse(_text(axes, mesh=mesh))
    assert reason in caught.value.faults[0].message


@pytest.mark.oracle
def test_xla_names_the_same_groups() -> None:
    pytest.importorskip("jaxlib")
    with Converter() as converter:
        for (axes, _), ids in itertools.product(LISTS, ("", ", device_ids=[3, 1, 0, 2, 7, 6, 5, 4]")):
            text = _text(axes, ids)
            given = xb.parse_hlo(converter.hlo(text), partitions=8)
            assert _groups(given) == _groups(xb.parse(text)), axes
