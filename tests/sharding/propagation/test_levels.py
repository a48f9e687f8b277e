"""Facts of Shardy's levels: what goes along factors, what stops there, who wins, and whose turn it is."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.sharding.propagation.support import cuts, found
from xbuild.sharding.propagation import propagate

ADD = """x = f32[8,8] parameter(0)
y = f32[8,8] parameter(1)
z = f32[8,8] add(x, y)"""
DOT = """x = f32[8,16] parameter(0)
y = f32[16,32] parameter(1)
z = f32[8,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""

FACTS = [
    # What the program states, and what its values come to have.
    ("forward", ADD, {"x": "a b"}, {"y": "[{a}, {b}]", "z": "[{a}, {b}]"}),
    ("backward", ADD, {"z": "a b"}, {"x": "[{a}, {b}]", "y": "[{a}, {b}]"}),
    ("the longest common beginning", ADD, {"x": "a+b -", "y": "a+c -"}, {"z": "[{a}, {}]"}),
    ("one list ends where another goes on", ADD, {"x": "a -", "y": "a+b -"}, {"x": "[{a}, {}]", "z": "[{a, b}, {}]"}),
    ("an open dimension takes axes", ADD, {"x": "a? -", "y": "a+b -"}, {"x": "[{a, b}, {}]"}),
    ("a closed one does not", ADD, {"x": "a -", "z": "- -"}, {"y": "[{}, {}]"}),
    ("an axis is used once", ADD, {"x": "a -", "y": "- a"}, {"z": "[{a}, {}]"}),
    ("replicated axes are not used", ADD, {"x": "a b", "z": "? ? replicated=a"},
     {"z": "[{}, {b}] replicated={a}", "y": "[{}, {b}]"}),
    ("unreduced axes are not used", ADD, {"x": "a b", "z": "? ? unreduced=a"}, {"z": "[{}, {b}] unreduced={a}"}),
    ("contracted dimension", DOT, {"x": "a b"}, {"y": "[{b}, {}]", "z": "[{a}, {}]"}),
    ("two factors want one axis in a third array", DOT, {"x": "a -", "z": "- a"}, {"y": "[{}, {a}]", "x": "[{a}, {}]"}),
    ("reshape that joins", "x = f32[2,4] parameter(0)\ny = f32[8] reshape(x)", {"x": "a b"}, {"y": "[{a, b}]"}),
    ("reshape that splits", "x = f32[8] parameter(0)\ny = f32[2,4] reshape(x)", {"x": "a+b"}, {"y": "[{a}, {b}]"}),
    ("an axis in two parts", "x = f32[8] parameter(0)\ny = f32[2,4] reshape(x)", {"x": "c"},
     {"y": "[{c:(1)2}, {c:(2)2}]"}),
    ("two parts become one", "x = f32[2,4] parameter(0)\ny = f32[8] reshape(x)", {"x": "c:(1)2 c:(2)2"},
     {"y": "[{c}]"}),
    ("an update goes to the array that it updates before that array's own source",
     "x = f32[3,8] parameter(0)\nv = f32[3,8] reverse(x), dimensions={0}\nu = f32[1,8] parameter(1)\n"
     "o = s32[] constant(0)\nz = f32[3,8] dynamic-update-slice(v, u, o, o)", {"x": "- a?", "u": "- b?"},
     {"v": "[{}, {b}]", "z": "[{}, {b}]"}),
    ("a result goes to the array that is updated after that array's own source",
     "x = f32[3,8] parameter(0)\nv = f32[3,8] reverse(x), dimensions={0}\nu = f32[1,8] parameter(1)\n"
     "o = s32[] constant(0)\nz = f32[3,8] dynamic-update-slice(v, u, o, o)", {"x": "- a?", "z": "- b?"},
     {"v": "[{}, {a}]", "u": "[{}, {}]"}),
    ("an outer part grows", ADD, {"x": "c:(1)2? -", "y": "c -"}, {"x": "[{c}, {}]"}),
    ("no axis goes behind a factor that is not full", "x = f32[4,4] parameter(0)\ny = f32[16] reshape(x)",
     {"x": "a b"}, {"y": "[{a}]"}),
    ("a factor that does not divide overflows", "x = f32[6] parameter(0)\ny = f32[3,2] reshape(x)", {"x": "a"},
     {"y": "[{}, {}]"}),
    ("transpose", "x = f32[4,8] parameter(0)\ny = f32[8,4] transpose(x), dimensions={1,0}", {"x": "a b"},
     {"y": "[{b}, {a}]"}),
    ("slices cut the dimension that they keep a part of", "x = f32[8,8] parameter(0)\n"
     "y = f32[4,8] slice(x), slice={[0:4], [0:8]}", {"x": "a b"}, {"y": "[{a}, {b}]"}),
    ("dynamic slices do not", "x = f32[8,8] parameter(0)\nn = s32[] parameter(1)\n"
     "y = f32[4,8] dynamic-slice(x, n, n), dynamic_slice_sizes={4,8}", {"x": "a b"}, {"y": "[{}, {b}]"}),
    ("gathered rows", "x = f32[8,4] parameter(0)\nn = s32[6] parameter(1)\n"
     "y = f32[6,4] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
     "slice_sizes={1,4}", {"x": "a b", "n": "c:(1)2"}, {"y": "[{c:(1)2}, {b}]"}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "given", "wanted"), [fact[1:] for fact in FACTS], ids=[fact[0] for fact in FACTS])
def test_fact(body: str, given: dict[str, str], wanted: dict[str, str]) -> None:
    assert dict(zip(wanted, cuts(found(body, given), *wanted), strict=True)) == wanted


def test_basic_leaves_conflicts_and_aggressive_resolves_them() -> None:
    given = {"x": "a -", "z": "- a"}
    assert cuts(found(DOT, given, factors="basic"), "y") == ["[{}, {}]"]
    assert cuts(found(DOT, given, factors="aggressive"), "y") == ["[{}, {a}]"]
    assert cuts(found(DOT, given, factors="basic_then_aggressive"), "y") == ["[{}, {a}]"]


def test_the_larger_source_wins() -> None:
    body = """x = f32[8,64] parameter(0)
    y = f32[64,4] parameter(1)
    z = f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    assert cuts(found(body, {"x": "a -", "y": "- a"}), "z") == ["[{a}, {}]"]
    turned = """x = f32[4,64] parameter(0)
    y = f32[64,8] parameter(1)
    z = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    assert cuts(found(turned, {"x": "a -", "y": "- a"}), "z") == ["[{}, {a}]"]


def test_priorities_of_the_user_come_first() -> None:
    first, second = found(ADD, {"x": "ap1 -", "y": "bp0 -"}), found(ADD, {"x": "ap0 -", "y": "bp1 -"})
    assert (cuts(first, "z"), cuts(second, "z")) == (["[{b}, {}]"], ["[{a}, {}]"])
    assert second.cause("z").steps[0].priority == 0
    later = found(ADD, {"x": "ap1 b"})
    assert [(step.dim, step.priority) for step in later.cause("z").steps] == [(1, 0), (0, 1)]


def test_elementwise_ops_come_before_products() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] parameter(1)
    w = f32[8,8] parameter(2)
    p = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    z = f32[8,8] add(p, w)"""
    result = found(body, {"x": "a -", "w": "b -"})
    assert cuts(result, "p", "z") == ["[{b}, {}]", "[{b}, {}]"]
    (step,) = result.cause("p").steps
    assert (step.at, step.source, step.level, step.strategy) == ("z", "w", 0, "aggressive")
    (conflict,) = result.conflicts
    assert (conflict.at, conflict.factor) == ("p", "i")
    assert "dot %p has factor i in several shardings" in conflict.sentence()


def test_values_of_several_uses_wait() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] tanh(x)
    z = f32[8,8] add(y, y)"""
    assert [found(body, {"x": "a -"}).cause(name).steps[0].level for name in ("y", "z")] == [0, 1]


def test_broadcasts_hand_on_forward_last() -> None:
    body = "x = f32[8] parameter(0)\ny = f32[8,4] broadcast(x), dimensions={0}"
    forward, backward = found(body, {"x": "a"}), found(body, {"y": "a b"})
    assert [forward.cause("y").steps[0].level, backward.cause("x").steps[0].level] == [4, 2]
    assert cuts(backward, "x") == ["[{a}]"]


def test_a_program_without_shardings_needs_a_mesh() -> None:
    module = xb.parse_hlo("HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}")
    with pytest.raises(xb.XbuildError) as caught:
        propagate(module)
    assert caught.value.kind == "invalid_attribute"
    assert cuts(propagate(module, mesh=xb.Mesh(x=2)), "p") == ["[{}]"]
    with pytest.raises(xb.XbuildError, match="strategy='gspmd'"):
        propagate(module, mesh=xb.Mesh(x=2), strategy="gspmd")  # type: ignore[arg-type]
    with pytest.raises(xb.XbuildError, match="factors='bold'"):
        propagate(module, mesh=xb.Mesh(x=2), factors="bold")
    with pytest.raises(TypeError, match="expected a program"):
        propagate(3)  # type: ignore[arg-type]
