"""Regions: specs cut and join global arrays, and the exit is checked."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import StrictFailure, execute
from xbuild.variance import MeshProgram

m, P = xb.mesh, xb.P
MESH = xb.Mesh(i=2, j=2)
X = np.arange(24, dtype=np.float32).reshape(4, 6)
SPECS = [P(), P("i"), P("j"), P(None, "i"), P("i", "j"), P("j", "i"), P(("i", "j")), P(("j", "i")), P(None, ("j", "i"))]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_what_is_cut_is_joined_again(spec: xb.P) -> None:
    whole = np.arange(64, dtype=np.float32).reshape(4, 16)
    program = xb.shard_map(lambda x: x * 2.0, MESH, spec, spec)(xb.f32[4, 16])
    np.testing.assert_array_equal(program.run(whole), whole * 2)
    parts = program.arguments(whole)
    assert {np.shape(part[0]) for part in parts} == {program.typed.entry.parameters[0].shape.dims}


def test_unreduced_values_in_and_out() -> None:
    spec = P("j", unreduced={"i"})
    program = xb.shard_map(lambda x: -x, MESH, spec, spec)(xb.f32[4, 6])
    np.testing.assert_array_equal(program.run(X), -X)
    summed = xb.shard_map(lambda x: m.psum(x, "i"), MESH, spec, P("j"))
    np.testing.assert_array_equal(summed(X), X)


def test_an_invarying_value_leaves_through_a_cut_once_for_each_device() -> None:
    repeated = xb.shard_map(lambda x: x, xb.Mesh(i=2), P(), P("i"))
    np.testing.assert_array_equal(repeated(np.arange(4)), [0, 1, 2, 3, 0, 1, 2, 3])


def test_tuples_in_and_out() -> None:
    def both(pair: Any, w: xb.Value) -> Any:
        a, b = pair
        return (a + w, b), m.psum(a, ("i", "j"))

    program = xb.shard_map(both, MESH, ((P(("i", "j")), P()), P()), ((P(("i", "j")), P()), P()))
    (a, b), total = program((np.arange(8.0), np.float32(3)), np.float64(1))
    np.testing.assert_array_equal(a, np.arange(8.0) + 1)
    assert b == 3
    np.testing.assert_array_equal(total, np.arange(8.0).reshape(4, 2).sum(0))


def test_the_matrix_product_of_the_document() -> None:
    """X cut P(i,j), W cut P(j), on four devices; the gradient of the total sum."""

    def product(x: xb.Value, w: xb.Value) -> Any:
        return m.psum(xb.dot(x, w), "j")

    mapped = xb.shard_map(product, MESH, (P("i", "j"), P("j")), P("i"))
    x, w = np.arange(8, dtype=np.float32).reshape(2, 4), np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(mapped(x, w), [[28, 34], [76, 98]])

    def total(x: xb.Value, w: xb.Value) -> Any:
        return m.psum(xb.reduce(product(x, w), 0.0, xb.add), "i")

    gradient = xb.grad(xb.shard_map(total, MESH, (P("i", "j"), P("j")), P()), (0, 1))(xb.f32[2, 4], xb.f32[4, 2])
    dx, dw = gradient.run(x, w)
    np.testing.assert_array_equal(dx, [[1, 5, 9, 13]] * 2)
    np.testing.assert_array_equal(dw, [[4, 4], [6, 6], [8, 8], [10, 10]])


def test_the_exit_names_what_was_promised_and_what_is() -> None:
    def half(x: xb.Value, y: xb.Value) -> Any:
        return y, (y, m.all_gather(x, "i"))

    with pytest.raises(xb.XbuildError) as caught:
        xb.shard_map(half, MESH, (P("i"), P()), (P(), (P(), P("j"))))(xb.f32[4], xb.f32[3])
    text = str(caught.value)
    assert caught.value.kind == "out_spec_not_replicated"
    for words in ("function half", "Mesh(i=2, j=2)", "out_specs[1][1]", "P('j')", "is the same along mesh axis 'i'",
                  "inferred type is {V:i}", "mention 'i' in the out_spec", "all_gather_invariant",
                  "test_regions.py"):  # fmt: skip
        assert words in text, text


@pytest.mark.parametrize(
    ("function", "in_specs", "out_specs", "shapes", "kind", "words"),
    [
        (lambda x: x, P("i"), P("i"), [xb.f32[5]], "divisibility", "extent 5 is sharded along mesh axis 'i'"),
        (lambda x: x, P("k"), P(), [xb.f32[4]], "unbound_axis", "no axis 'k'"),
        (lambda x: x, P("i"), P("k"), [xb.f32[4]], "unbound_axis", "no axis 'k'"),
        (lambda x: x, P("i", "i"), P(), [xb.f32[4, 4]], "duplicate_dimension", "'i' twice"),
        (lambda x: x, P(None, "i"), P(), [xb.f32[4]], "rank_mismatch", "it has 2 entries, but the array has rank 1"),
        (lambda x: x, P(), P("i"), [xb.f32[()]], "rank_mismatch", "it has 1 entries, but the array has rank 0"),
        (lambda x: x, (P(), P()), P(), [xb.f32[4]], "arity_mismatch", "2 entries for 1 arguments"),
        (lambda x: (x, x), P(), (P(),), [xb.f32[4]], "arity_mismatch", "a tuple of 2"),
        (lambda x: x, "i", P(), [xb.f32[4]], "invalid_attribute", "'i'; expected a P"),
        (lambda x: m.pcast(x, "i", to="unreduced"), P("i"), P(), [xb.f32[4]], "out_spec_not_replicated", "partial sum"),
        (lambda x: x, P("i"), P(unreduced={"i"}), [xb.f32[4]], "out_spec_not_replicated", "inferred type is {V:i}"),
        (lambda x: x, P(), P(reduced={"i"}), [xb.f32[4]], "state_mismatch", "promises that the result is reduced"),
        (lambda x: m.pcast(x, "i", to="reduced"), P(), P(), [xb.f32[4]], "state_mismatch", "reduced"),
        (lambda x: x, P(), P(unreduced={"i"}), [xb.f32[4]], "state_mismatch", "unreduced"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    function: Any, in_specs: Any, out_specs: Any, shapes: Any, kind: str, words: str
) -> None:
    with pytest.raises(xb.XbuildError) as caught:
        xb.shard_map(function, MESH, in_specs, out_specs)(*shapes)
    assert caught.value.kind == kind
    assert words in str(caught.value)
    assert "test_regions.py" in str(caught.value)


def test_arguments_of_other_shapes_are_refused() -> None:
    program = xb.shard_map(lambda x: x, MESH, P("i"), P("i"))(xb.f32[4])
    with pytest.raises(xb.XbuildError, match=r"\(3,\); expected \(4,\)"):
        program.run(np.ones(3))
    with pytest.raises(xb.XbuildError, match="takes 1 arrays, got 2"):
        program.run(X, X)


@pytest.mark.parametrize("options", [{"mesh": {"i": 2}}, {"casts": "some"}, {"devices": "cores"}])
def test_options_that_are_none_are_refused(options: Any) -> None:
    given = {"mesh": MESH, **options}
    with pytest.raises(xb.XbuildError, match="shard_map: "):
        xb.shard_map(lambda x: x, given.pop("mesh"), P(), P(), **given)


def scaled() -> MeshProgram:
    function = xb.shard_map(lambda x, w: x * w, xb.Mesh(i=2), (P("i"), P()), P("i"))
    return function.program(xb.f32[4], xb.f32[2])


def test_a_strict_run_compares_what_is_stated_to_be_one_value() -> None:
    module = scaled().module
    x, w = np.ones(2, np.float32), np.ones(2, np.float32)
    execute(module, [[x, w], [x + 1, w]], strict=True)
    with pytest.raises(StrictFailure) as caught:
        execute(module, [[x, w], [x, w + 1]], strict=True)
    (finding,) = caught.value.findings
    assert (finding.kind, finding.instruction.name, finding.device) == ("variance_broken", "parameter.2", 1)
    assert "declared invarying, which promises one value along i, but device 0 holds a different value" in finding.what


FORGED = [
    ('= f32[2] multiply(parameter.1, parameter.2), frontend_attributes={xbuild.variance="{V:i}"}',
     '= f32[2] multiply(parameter.1, parameter.2), frontend_attributes={xbuild.variance="{}"}', "one value along i"),
    ('xbuild.mesh="i=2"', 'xbuild.mesh="i=4"', "4 devices"),
    ('xbuild.mesh="i=2"', 'xbuild.mesh="i"', "is not a mesh"),
    ('parameter(1), frontend_attributes={xbuild.variance="{}"}',
     'parameter(1), frontend_attributes={xbuild.variance="({},{})"}', "does not fit its shape"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), FORGED)
def test_the_check_finds_types_that_do_not_hold(old: str, new: str, words: str) -> None:
    text = scaled().module.to_hlo()
    assert old in text
    verdict = xb.check(xb.parse_hlo(text.replace(old, new)))
    assert verdict.kind == "error"
    assert verdict.findings[0].kind == "variance_broken"
    assert words in str(verdict)


def test_a_forged_coordinate_is_found() -> None:
    program = xb.shard_map(lambda x: x + xb.convert(m.axis_index("j"), xb.f32), MESH, P(("i", "j")), P(("i", "j")))
    text = program.program(xb.f32[4]).module.to_hlo()
    assert xb.check(xb.parse_hlo(text)).kind == "ok"
    forged = text.replace('axis_index(j)",xbuild.variance="{V:j}"', 'axis_index(i)",xbuild.variance="{V:i}"')
    assert forged != text
    assert xb.check(xb.parse_hlo(forged)).findings[0].kind == "variance_broken"


HOSTILE = [
    ('axis_index(j)"', 'axis_index(zz)"'),
    ('axis_index(j)"', 'axis_index"'),
    ('xbuild.variance="{V:j}"', 'xbuild.variance="{V:zz}"'),
    ('xbuild.mesh="i=2,j=2"', 'xbuild.mesh="i=999999999,j=2"'),
    ('xbuild.mesh="i=2,j=2"', 'xbuild.mesh="i=0,j=4"'),
    ('xbuild.mesh="i=2,j=2"', f'xbuild.mesh="{",".join(f"a{n}=1" for n in range(30))},i=2,j=2"'),
]


@pytest.mark.parametrize(("old", "new"), HOSTILE)
def test_no_text_of_a_stranger_does_more_than_be_wrong(old: str, new: str) -> None:
    def shifted(x: xb.Value) -> Any:
        return m.psum(x, "i") + xb.convert(m.axis_index("j"), xb.f32)

    text = xb.shard_map(shifted, MESH, P(("i", "j")), P("j")).program(xb.f32[4]).module.to_hlo()
    assert old in text
    module = xb.parse_hlo(text.replace(old, new))
    verdict = xb.check(module)
    assert verdict.kind == "ok" or verdict.findings[0].kind == "variance_broken"
    assert str(xb.viz(module, "txt"))
    assert module.to_hlo(style="typed")
    with contextlib.suppress(StrictFailure):
        execute(module, [[np.ones(1, np.float32)]] * 4, strict=True, check=False)
