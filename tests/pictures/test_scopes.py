"""Scopes as authors name them: what JAX and TensorFlow write around the names and after them is taken off."""

from __future__ import annotations

import pytest

import xbuild as xb
from xbuild.pictures.drawing import draw, kind_of_instruction
from xbuild.pictures.picture import COLLECTIVE, CONTRACTION, ELEMENTWISE, REDUCTION, Kind, kind_of
from xbuild.properties.scopes import scopes_of


def scopes(*names: str, kind: str = "") -> list[str]:
    """The scopes of instructions with these op names."""
    extra = f' op_type="{kind}"' if kind else ""
    rows = "\n".join(
        f'v{n} = f32[2] multiply(x, x), metadata={{op_name="{name}"{extra}}}' for n, name in enumerate(names)
    )
    values = ", ".join(f"v{n}" for n in range(len(names)))
    module = xb.parse_hlo(f"ENTRY e {{ x = f32[2] parameter(0)\n{rows}\nROOT t = tuple({values}) }}")
    found = scopes_of(module)
    return [found.of(each) for each in module.entry.instructions[1:-1]]


def test_forward_and_backward_are_told_apart() -> None:
    assert scopes(
        "jit(step)/jvp(layer_0)/attention/dot_general",
        "jit(step)/transpose(jvp(layer_0))/attention/dot_general",
        "jit(step)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/rematted_computation/mlp/tanh",
        "jit(step)/update/sub",
    ) == ["forward/layer_0/attention", "backward/layer_0/attention", "backward/layer_0/recomputed/mlp", "update"]


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("jit(step)/jit(main)/decoder/while/body/closed_call/attention/mul", "decoder/attention"),
        ("jit(step)/vmap(jit(mlp))/jit(_where)/select_n", "mlp"),
        ("jit(step)/cond/branch_0_fun/shard_map/loss/psum", "loss"),
        ("jit(step)/layer_1/mul;jit(step)/layer_2/add", "layer_1"),
        ("jit(step)/bkgts,bskd->btkgd/dot_general", "bkgts,bskd->btkgd"),
        ("jit(step)/mul", "step"),
        ("params['decoder/layer']", ""),
        ("jit(step)/a(b/c", "step"),
        ("jit(step)/" + "vmap(" * 500 + "f" + ")" * 500 + "/mul", None),
    ],
)
def test_what_tracing_writes_is_taken_off(name: str, scope: str | None) -> None:
    found = scopes(name, "jit(step)/outer/mul")
    assert found[1] == "outer"
    assert scope is None or found[0] == scope


def test_names_of_others() -> None:
    assert scopes("model/dense/MatMul_1", kind="MatMul") == ["model/dense"]
    assert scopes("model/dense/multiply", "layer0/act", "loss") == ["model/dense", "layer0/act", "loss"]


def test_scopes_of_own_programs_and_of_their_derivatives() -> None:
    def f(x: xb.Value) -> xb.Value:
        with xb.scope("layer"):
            return xb.tanh(x)

    gradient = xb.grad(f)(xb.f32[()])
    found = scopes_of(gradient)
    assert {found.of(each) for each in gradient.instructions} >= {"layer", "backward/layer"}
    assert {box.scope for box in draw(gradient).all_boxes()} >= {"layer", "backward/layer"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("a = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nROOT r = tanh(a)", CONTRACTION),
        ("c = f32[] constant(0)\na = f32[4] reduce(x, c), dimensions={1}, to_apply=add\nROOT r = tanh(a)", REDUCTION),
        ("a = f32[4,4] transpose(x), dimensions={1,0}\nb = tanh(a)\nROOT r = tuple(b, a)", ELEMENTWISE),
    ],
    ids=["dot", "reduce", "tuple"],
)
def test_a_fusion_has_the_kind_of_its_main_op(body: str, kind: Kind) -> None:
    add = "add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = add(p, q) }"
    entry = "ENTRY e { y = f32[4,4] parameter(0) ROOT f = fusion(y), kind=kLoop, calls=fused }"
    shape = {CONTRACTION: "f32[4,4]", REDUCTION: "f32[4]", ELEMENTWISE: "(f32[4,4], f32[4,4])"}[kind]
    entry = entry.replace("fusion(", f"{shape} fusion(")
    module = xb.parse_hlo(f"{add}\nfused {{ x = f32[4,4] parameter(0)\n{body} }}\n{entry}")
    assert kind_of_instruction(module.entry.root) == kind
    assert next(box.kind for box in draw(module).all_boxes() if box.name == "f") == kind


def test_convolutions_are_where_the_legend_says() -> None:
    assert kind_of("convolution") is CONTRACTION
    assert kind_of("all_reduce_start") is COLLECTIVE
