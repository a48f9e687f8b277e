"""Collectives by axis name: what each device gets, the types, and the HLO, on meshes of one and two axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.properties.variances import Variance

from .support import INVARYING, collectives, made

m = xb.mesh
Parts = list[Any]
BOTH = Variance(("i", "j"))
# name -> the collective, what the participants of a group get of their parts, from state to state, opcode.
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Parts], Parts], str, str, str]] = {
    "psum": (m.psum, lambda p: [sum(p)] * len(p), "varying", "invarying", "all_reduce"),
    "psum_of_unreduced": (m.psum, lambda p: [sum(p)] * len(p), "unreduced", "invarying", "all_reduce"),
    "psum_of_invarying": (m.psum, lambda p: [sum(p)] * len(p), "invarying", "invarying", "all_reduce"),
    "pmax": (m.pmax, lambda p: [np.max(p, 0)] * len(p), "varying", "invarying", "all_reduce"),
    "pmin": (m.pmin, lambda p: [np.min(p, 0)] * len(p), "varying", "invarying", "all_reduce"),
    "pmean": (m.pmean, lambda p: [np.mean(p, 0)] * len(p), "varying", "invarying", "all_reduce"),
    "all_gather": (m.all_gather, lambda p: [np.stack(p)] * len(p), "varying", "varying", "all_gather"),
    "all_gather_at_1": (lambda x, a: m.all_gather(x, a, axis=1), lambda p: [np.stack(p, 1)] * len(p), "varying",
                        "varying", "all_gather"),
    "all_gather_tiled": (lambda x, a: m.all_gather(x, a, axis=-1, tiled=True),
                         lambda p: [np.concatenate(p, 1)] * len(p), "varying", "varying", "all_gather"),
    "all_gather_invariant": (m.all_gather_invariant, lambda p: [np.stack(p)] * len(p), "varying", "invarying",
                             "all_gather"),
    "all_gather_reduced": (lambda x, a: m.all_gather_reduced(x, a, tiled=True), lambda p: [np.concatenate(p)] * len(p),
                           "varying", "reduced", "all_gather"),
    "psum_scatter": (lambda x, a: m.psum_scatter(x, a, tiled=True), lambda p: np.split(sum(p), len(p)), "varying",
                     "varying", "reduce_scatter"),
    "psum_scatter_of_unreduced": (lambda x, a: m.psum_scatter(x, a, tiled=True), lambda p: np.split(sum(p), len(p)),
                                  "unreduced", "varying", "reduce_scatter"),
    "pscatter": (m.pscatter, lambda p: np.split(p[0], len(p)), "invarying", "varying", ""),
    "all_to_all": (lambda x, a: m.all_to_all(x, a, 0, 1, tiled=True),
                   lambda p: [np.concatenate([np.split(each, len(p))[k] for each in p], 1) for k in range(len(p))],
                   "varying", "varying", "all_to_all"),
    "ppermute": (lambda x, a: m.ppermute(x, a, [(0, 1)]), lambda p: [0 * p[0], p[0], *(0 * each for each in p[2:])],
                 "varying", "varying", "collective_permute"),
    "pbroadcast": (lambda x, a: m.pbroadcast(x, a, 1), lambda p: [p[1]] * len(p), "varying", "varying",
                   "collective_broadcast"),
    "pvary": (m.pvary, lambda p: p, "invarying", "varying", ""),
    "to_reduced": (lambda x, a: m.pcast(x, a, to="reduced"), lambda p: p, "invarying", "reduced", ""),
    "to_unreduced": (lambda x, a: m.pcast(x, a, to="unreduced"), lambda p: p, "varying", "unreduced", ""),
    "from_reduced": (lambda x, a: m.pcast(x, a, to="varying"), lambda p: p, "reduced", "varying", ""),
    "axis_index": (lambda x, a: m.axis_index(a), lambda p: [np.int32(n) for n in range(len(p))], "invarying", "varying",
                   ""),
}  # fmt: skip
NOWHERE: Any = "invarying"
SQUARE = xb.Mesh(i=2, j=2)
MESHES = [(xb.Mesh(i=2), "i"), (xb.Mesh(i=4), ["i"]), (SQUARE, "i"), (SQUARE, "j"), (SQUARE, ("i", "j")),
          (SQUARE, ("j", "i")), (xb.Mesh(i=3, j=1, k=2), ("k", "i"))]  # fmt: skip


def values(mesh: xb.Mesh, axes: Sequence[str], state: str) -> Parts:
    """A value for each device: other numbers everywhere, but the same along axes that are invarying or reduced."""
    size = mesh.size(axes)
    own = np.random.default_rng(1).integers(0, 40, (mesh.num_devices, 2 * size, 3)).astype(np.float32)
    if state in ("invarying", "reduced"):
        first = {device: group[0] for group in mesh.groups(axes) for device in group}
        return [own[first[device]] for device in range(mesh.num_devices)]
    return list(own)


PLACES = [*((mesh, axes, True) for mesh, axes in MESHES), (SQUARE, ("j", "i"), False)]


@pytest.mark.parametrize(("mesh", "axes", "uses_partitions"), PLACES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values_and_types(name: str, mesh: xb.Mesh, axes: Any, uses_partitions: bool) -> None:
    function, expected, before, after, opcode = CASES[name]
    named = mesh.named(axes)
    rest = [axis for axis in mesh.axes if axis not in named]
    given = values(mesh, named, before)
    type_in = Variance(varying=rest).moved(named, before)
    found = made(lambda x: function(x, axes), mesh, [xb.f32[given[0].shape]], [type_in], "all", uses_partitions)
    own = [] if name == "axis_index" else rest
    assert found.type == Variance(varying=own).moved(named, after)
    results = found.run(given)
    for group in mesh.groups(named):
        for device, wanted in zip(group, expected([given[each] for each in group]), strict=True):
            np.testing.assert_allclose(results[device], wanted, rtol=1e-6)
    assert collectives(found.lowered) == [opcode] * bool(opcode)
    for instruction in found.lowered.entry.instructions:
        if instruction.opcode in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            assert instruction.attributes.replica_groups == mesh.groups(named)
            assert (instruction.attributes.channel_id is not None) == uses_partitions


def test_casts_leave_nothing_in_hlo() -> None:
    mesh = xb.Mesh(i=2)
    found = made(lambda w: m.pcast(m.pcast(w, "i", to="reduced"), "i", to="varying"), mesh, [xb.f32[2]], [INVARYING])
    assert [each.opcode for each in found.lowered.entry.instructions] == ["parameter"]
    assert [(cast.op, cast.axes, cast.reason) for cast in found.casts] == [
        ("to_reduced", ("i",), ""),
        ("to_varying", ("i",), ""),
    ]


def test_lists_numbers_and_pred() -> None:
    mesh = xb.Mesh(i=2)

    def several(x: xb.Value) -> Any:
        total, one = m.psum([x, 1], "i")
        return total, one, m.psum(x > 2.0, "i"), x * float(m.axis_size("i"))

    found = made(several, mesh, [xb.f32[2]], [Variance("i")])
    results = found.run([np.array([1, 3], np.float32), np.array([5, 2], np.float32)])
    np.testing.assert_equal(results[0], (np.array([6, 5], np.float32), 2, np.array([1, 1]), np.array([2, 6.0])))
    assert found.type == (INVARYING, INVARYING, INVARYING, Variance("i"))


def test_two_operands_of_one_all_reduce_written_by_hand_are_typed_by_their_groups() -> None:
    mesh = xb.Mesh(i=2, j=2)

    def by_hand(x: xb.Value, w: xb.Value) -> Any:
        return xb.all_reduce([x, w], xb.add, [(0, 1), (2, 3)])

    types = [BOTH, Variance("i")]
    found = made(by_hand, mesh, [xb.f32[2], xb.f32[3]], types, uses_partitions=False)
    assert found.type == (Variance("i"), Variance("i"))
    assert [cast.op for cast in found.casts] == ["pvary"]


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (lambda x: xb.all_reduce(x, xb.add, [(0, 3), (1, 2)]), BOTH),
        (lambda x: xb.all_gather(x, 0, replica_groups=[(0, 2), (1, 3)]), BOTH),
        (lambda x: xb.all_reduce(x, xb.multiply), INVARYING),
        (lambda x: xb.collective_permute(x, [(0, 1)]), BOTH),
        (lambda x: xb.all_to_all(x, 0, 0, 2, replica_groups=[(0, 1), (2, 3)]), BOTH),
        (lambda x: xb.collective_broadcast(x, [(0, 1), (2, 3)]), BOTH),
    ],
)
def test_collectives_without_names(record: Any, wanted: Variance) -> None:
    found = made(record, xb.Mesh(i=2, j=2), [xb.f32[2]], [BOTH], uses_partitions=False)
    assert found.type == wanted
    found.run([np.arange(2, dtype=np.float32) + device for device in range(4)])


@pytest.mark.parametrize(
    ("record", "state", "kind", "words"),
    [
        (lambda x: m.psum(x, "k"), "varying", "unbound_axis", "has no axis 'k'"),
        (lambda x: m.psum(x, ("i", "j")), "varying", "mixed_axis_state", "i varying, j invarying"),
        (lambda x: m.psum(x, ("i", "i")), "varying", "duplicate_dimension", "twice"),
        (lambda x: m.psum(x, ()), "varying", "invalid_attribute", "no axis"),
        (lambda x: m.psum(x, "i"), "reduced", "state_mismatch", "reduced"),
        (lambda x: m.pmax(x, "i"), "unreduced", "nonlinear_on_unreduced", "unreduced"),
        (lambda x: m.pmax(x, "j"), "unreduced", "nonlinear_on_unreduced", "not linear"),
        (lambda x: m.all_gather(x, "i"), "unreduced", "state_mismatch", "unreduced"),
        (lambda x: m.all_gather_reduced(x, "i"), "invarying", "state_mismatch", "invarying"),
        (lambda x: m.pscatter(x, "i"), "varying", "state_mismatch", "takes what is invarying"),
        (lambda x: m.psum_scatter(x, "i"), "varying", "divisibility", "extent 4"),
        (lambda x: m.psum_scatter(x[:3], "i", tiled=True), "varying", "divisibility", "extent 3"),
        (lambda x: m.all_to_all(x[:3], "i", 0, 0, tiled=True), "varying", "divisibility", "extent 3"),
        (lambda x: m.all_gather(x, "i", axis=3), "varying", "dimension_out_of_range", "axis=3"),
        (lambda x: m.ppermute(x, "i", [(0, 1), (1, 1)]), "varying", "invalid_group", "target 1 appears twice"),
        (lambda x: m.ppermute(x, "i", [(0, 2)]), "varying", "invalid_group", "target 2"),
        (lambda x: m.pbroadcast(x, "i", 2), "varying", "index_out_of_range", "source=2"),
        (lambda x: m.pvary(x, "i"), "varying", "already_varying", "varying to varying"),
        (lambda x: m.pvary(x, "i"), "unreduced", "unsupported_cast", "unreduced to varying"),
        (lambda x: m.pcast(x, "i", to="reduced"), "varying", "unsupported_cast", "varying to reduced"),
        (lambda x: m.pcast(x, "i", to="unreduced"), "invarying", "unsupported_cast", "invarying to unreduced"),
        (lambda x: m.pcast(x, "i", to=NOWHERE), "varying", "unsupported_cast", "varying, reduced, unreduced"),
        (lambda x: m.pcast(x, ("i", "j"), to="varying"), "varying", "mixed_axis_state", "i varying, j invarying"),
    ],
)
def test_what_is_refused(record: Any, state: str, kind: str, words: str) -> None:
    with pytest.raises(xb.XbuildError, match=words) as caught:
        made(record, xb.Mesh(i=2, j=2), [xb.f32[4]], [INVARYING.moved("i", state)])
    assert caught.value.kind == kind
    assert "test_collectives.py" in str(caught.value)


def test_without_a_mesh_no_axis_has_a_name() -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    with pytest.raises(xb.XbuildError, match=r"xb\.shard_map") as caught:
        m.psum(x, "i")
    assert caught.value.kind == "unbound_axis"
