"""Shardings along the data flow: calls, loops, branches, scans, tuples, barriers, groups, constants, manual values."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.sharding.propagation.support import cuts, found, program
from xbuild.sharding.propagation import flow, propagate

LOOP = """cond { s = (s32[], f32[8,4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT }
body { t = (s32[], f32[8,4]) parameter(0)  j = s32[] get-tuple-element(t), index=0
  v = f32[8,4] get-tuple-element(t), index=1  one = s32[] constant(1)  k = s32[] add(j, one)  w = f32[8,4] tanh(v)
  ROOT r = (s32[], f32[8,4]) tuple(k, w) }"""
LOOPED = """x = f32[8,4] parameter(0)
zero = s32[] constant(0)
init = (s32[], f32[8,4]) tuple(zero, x)
loop = (s32[], f32[8,4]) while(init), condition=cond, body=body
y = f32[8,4] get-tuple-element(loop), index=1"""
RELU = """relu { p = f32[8,4] parameter(0)  q = f32[8,4] tanh(p)  ROOT o = f32[8,4] negate(q) }"""


@pytest.mark.parametrize("name", ["x", "y", "w"])
def test_a_loop_has_one_sharding_for_what_it_carries(name: str) -> None:
    result = found(LOOPED, {name: "a b"}, LOOP)
    assert cuts(result, "x", "w", "v", "y", "loop") == ["[{a}, {b}]"] * 4 + ["[]", "[{a}, {b}]"]
    assert {step.what for step in result.cause("loop", 1).steps} <= {"loop", "tanh"}


def test_branches_meet_in_the_result() -> None:
    others = """yes { p = f32[8] parameter(0)  ROOT q = f32[8] tanh(p) }
    no { r = f32[8] parameter(0)  ROOT s = f32[8] negate(r) }"""
    body = """w = pred[] parameter(0)
    x = f32[8] parameter(1)
    y = f32[8] parameter(2)
    z = f32[8] conditional(w, x, y), true_computation=yes, false_computation=no"""
    result = found(body, {"x": "a"}, others)
    assert cuts(result, "q", "z", "s", "y") == ["[{a}]"] * 4
    assert result.cause("z").steps[0].what == "branch"


def test_each_call_has_its_own_shardings() -> None:
    body = """x = f32[8,4] parameter(0)
    y = f32[8,4] parameter(1)
    u = f32[8,4] call(x), to_apply=relu
    v = f32[8,4] call(y), to_apply=relu
    z = (f32[8,4], f32[8,4]) tuple(u, v)"""
    result = found(body, {"x": "a -", "y": "- b"}, RELU)
    assert cuts(result, "u", "v", "z") == ["[{a}, {}]", "[{}, {b}]", "[{a}, {}]", "[{}, {b}]"]
    names = [each.name for each in result.module.computations]
    assert sorted(names) == ["e", "relu", "relu.call_1"]
    inside = [xb.shard.sharding_of(each.root).dim(0).axes for each in result.module.computations[:2]]  # type: ignore[union-attr]
    assert sorted(map(len, inside)) == [0, 1]
    again = xb.parse_hlo(result.module.to_hlo())
    assert again.to_hlo().splitlines()[1:] == result.module.to_hlo().splitlines()[1:]


def test_calls_of_calls_may_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST_INSTRUCTIONS", 10)
    body = """x = f32[8,4] parameter(0)
    u = f32[8,4] call(x), to_apply=relu
    v = f32[8,4] call(u), to_apply=relu
    z = f32[8,4] call(v), to_apply=relu"""
    with pytest.raises(xb.XbuildError) as caught:
        found(body, {"x": "a -"}, RELU)
    assert caught.value.kind == "overflow"


def test_fusions_propagate_through_their_bodies() -> None:
    body = "x = f32[8,4] parameter(0)\nz = f32[8,4] fusion(x), kind=kLoop, calls=relu"
    assert cuts(found(body, {"z": "a b"}, RELU), "x", "q") == ["[{a}, {b}]"] * 2


def test_scans_hand_on_carries_and_slices() -> None:
    @xb.computation(xb.f32[6, 8], xb.f32[8])
    def run(x: xb.Value, start: xb.Value) -> xb.Value:
        return xb.scan(x, start, lambda each, total: (total + each, total + each))[0]

    module = xb.Module("scan", run)
    x = module.entry.parameters[0].name
    mesh = xb.Mesh(a=2)
    result = propagate(xb.shard.annotated(module, {x: xb.shard.sharding(mesh, [[], ["a"]])}), mesh=mesh)
    assert cuts(result, x, module.entry.parameters[1].name, module.entry.root.name) == [
        "[{}, {a}]",
        "[{a}]",
        "[{}, {a}]",
    ]


def test_barriers_hand_on_each_element() -> None:
    body = """x = f32[8] parameter(0)
    y = f32[4] parameter(1)
    t = (f32[8], f32[4]) tuple(x, y)
    b = (f32[8], f32[4]) opt-barrier(t)
    z = f32[4] get-tuple-element(b), index=1"""
    assert cuts(found(body, {"x": "a", "z": "b"}), "b", "y") == ["[{a}]", "[{b}]", "[{b}]"]


def test_results_of_the_entry_are_stated_at_the_root() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] tanh(x)
    z = (f32[8,8], f32[8,8]) tuple(y, x)"""
    text = (
        program(body, {}).to_hlo().replace("tuple(y, x)", "tuple(y, x), sharding={{devices=[2,1]<=[2]}, {replicated}}")
    )
    result = propagate(xb.parse_hlo(text))
    assert cuts(result, "z", "y") == ["[{axis_0}, {}]", "[{}, {}]", "[{axis_0}, {}]"]
    assert result.cause("y").steps[-1].what == "result"


def test_values_of_a_group_have_one_sharding() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[8] parameter(0), sharding={devices=[2]<=[2] shard_as 1}
      y = f32[8] parameter(1), sharding={unknown shard_like 1}
      z = f32[8] negate(y)
      w = f32[8] tanh(x)
      ROOT t = (f32[8], f32[8]) tuple(z, w)
    }"""
    assert cuts(propagate(xb.parse_hlo(text)), "y", "z", "w") == ["[{axis_0}]"] * 3


def test_a_group_is_a_use_of_its_values() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[8,8] parameter(0), sharding={mesh['x'=2,'y'=2], [{'y'}, {'x'}]}
      n = f32[8,8] negate(x)
      k = f32[8,8] tanh(x)
      v = f32[8,8] add(n, k)GROUP
      w = f32[8,8] parameter(1), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
      ROOT z = f32[8,8] multiply(v, w)
    }"""
    alone, grouped = (text.replace("GROUP", each) for each in ("", ", sharding={unknown shard_as 1}"))
    assert cuts(propagate(xb.parse_hlo(alone)), "v") == ["[{x}, {y}]"]
    assert cuts(propagate(xb.parse_hlo(grouped)), "v") == ["[{y}, {x}]"]


def test_an_array_that_an_op_takes_twice_gives_what_it_got() -> None:
    text = """HloModule m
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    ENTRY e {
      x = f32[8] parameter(0)
      i = s32[8,1] parameter(1), sharding={mesh['x'=8], [{'x'}, {?}]}
      ROOT y = f32[8] scatter(x, i, x), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    }"""
    assert cuts(propagate(xb.parse_hlo(text)), "x", "y") == ["[{x}]", "[{x}]"]


@pytest.mark.parametrize(("parts", "is_cut"), [("'x':(2)3", True), ("'x':(3)2", False)])
def test_two_parts_of_an_axis_cut_an_array_where_one_splitting_has_both(parts: str, is_cut: bool) -> None:
    text = f"""HloModule m
    ENTRY e {{
      a = f32[6,6] parameter(0), sharding={{mesh['x'=6], [{{'x':(1)2}}, {{?}}]}}
      b = f32[6,6] parameter(1), sharding={{mesh['x'=6], [{{?}}, {{{parts}}}]}}
      ROOT c = f32[6,6] add(a, b)
    }}"""
    found_axes = propagate(xb.parse_hlo(text)).sharding("c").dims
    assert all(dim.axes for dim in found_axes) == is_cut


def test_constants_are_cut_by_each_use() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] parameter(1)
    one = f32[] constant(1)
    k = f32[8,8] broadcast(one), dimensions={}
    u = f32[8,8] add(x, k)
    v = f32[8,8] add(y, k)
    z = (f32[8,8], f32[8,8]) tuple(u, v)"""
    assert cuts(found(body, {"x": "a -", "y": "- b"}), "u", "v", "k") == ["[{a}, {}]", "[{}, {b}]", "[{}, {}]"]
    assert cuts(found(body, {"x": "a -", "y": "a -"}), "k") == ["[{a}, {}]"]


def test_manual_values_are_left_alone() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
      y = f32[8] parameter(1), sharding={manual}
      z = f32[8] add(x, y)
      ROOT w = f32[8] negate(z), sharding={manual}
    }"""
    result = propagate(xb.parse_hlo(text))
    assert (result.cause("y").kind, result.cause("y").steps) == ("fixed", ())
    assert cuts(result, "z") == ["[{axis_0}]"]
    assert "manual" in cuts(result, "w")[0]


def test_dimensions_that_a_constraint_leaves_to_others_are_open() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[8,4] parameter(0), sharding={devices=[2,2]<=[4]}
      y = f32[8,4] custom-call(x), custom_call_target="Sharding", sharding={replicated}, backend_config="unspecified_dims=[1]"
      ROOT z = f32[8,4] negate(y)
    }"""  # noqa: E501
    result = propagate(xb.parse_hlo(text))
    assert cuts(result, "z") == ["[{}, {axis_1}]"]


def test_each_value_says_why() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] tanh(x)
    n = s32[] constant(4)
    z = f32[8,8] negate(y)"""
    result = found(body, {"x": "a -"})
    assert [result.cause(name).kind for name in ("x", "z", "n")] == ["stated", "propagated", "whole"]
    assert result.cause("z").source == "y"
    with pytest.raises(xb.XbuildError, match="has no value 'q'"):
        result.cause("q")
    with pytest.raises(xb.XbuildError, match="1 leaves"):
        result.cause("z", 1)


def test_explanations_lead_back_to_the_statement() -> None:
    body = """x = f32[8,16] parameter(0)
    y = f32[16,32] parameter(1)
    z = f32[8,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    w = f32[8,32] parameter(2)
    v = f32[8,32] add(z, w)
    r = f32[256] reshape(v)"""
    module = program(body, {"x": "a b", "w": "c -"})
    told = xb.shard.explain(module, "r")
    assert [reason.origin for reason in told.reasons] == ["w"]
    assert [step.source for step in told.reasons[0].steps] == ["v", "w"]
    assert "at <hlo>" in str(told)
    assert told.to_dict()["dimensions"][0]["steps"][0]["op"] == "reshape"
    clash = xb.shard.explain(module, "z")
    assert "factor i" in str(clash)
    assert str(xb.shard.explain(module, "x")).startswith("%x f32[8,16] is [{a}, {b}]: the program states this sharding")


def test_the_dialect_visits_each_op_once_in_each_direction() -> None:
    body = """x = f32[8,8] parameter(0)
    y = f32[8,8] parameter(1)
    z = f32[8,8] add(x, y)
    r = f32[64] reshape(z)"""
    whole = found(body, {"x": "a -"}, strategy="dialect")
    assert cuts(whole, "y", "z", "r") == ["[{a}, {}]", "[{a}, {}]", "[{}]"]
    assert whole.cause("z").steps[0].strategy == "dialect"
    assert cuts(found(body, {"x": "a -", "y": "b -"}, strategy="dialect"), "z") == ["[{}, {}]"]
    assert cuts(found(body, {"x": "a -", "z": "- -"}, strategy="dialect"), "y") == ["[{}, {}]"]


def test_manual_regions_state_what_enters_and_leaves() -> None:
    text = """module @m {
      sdy.mesh @mesh = <["x"=2, "y"=4]>
      func.func public @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
        %0 = stablehlo.negate %a : tensor<8x16xf32>
        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"y"}, {"x"}]>]
            manual_axes={"x", "y"} (%b: tensor<4x4xf32>) {
          %3 = stablehlo.reshape %b : (tensor<4x4xf32>) -> tensor<2x8xf32>
          sdy.return %3 : tensor<2x8xf32>
        } : (tensor<8x16xf32>) -> tensor<8x16xf32>
        %2 = stablehlo.tanh %1 : tensor<8x16xf32>
        return %2 : tensor<8x16xf32>
      }
    }"""
    result = propagate(xb.parse_stablehlo(text))
    by_opcode = {each.opcode: each.name for each in result.instructions() if each.opcode != "custom_call"}
    assert cuts(result, by_opcode["negate"], by_opcode["tanh"]) == ["[{x}, {y}]", "[{y}, {x}]"]
    assert cuts(result, by_opcode["reshape"]) == ["[{}, {}] manual={x, y}"]


def test_shardings_of_stablehlo_propagate() -> None:
    text = """module @m {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        %0 = stablehlo.negate %a : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }"""
    result = propagate(xb.parse_stablehlo(text))
    found = {each.opcode: cuts(result, each.name)[0] for each in result.instructions()}
    assert (found["parameter"], found["custom_call"]) == ("[{x}]", "[{}]")


def test_reducers_have_no_shardings() -> None:
    add = "add { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }"
    body = "x = f32[8,4] parameter(0)\nz = f32[] constant(0)\ny = f32[4] reduce(x, z), dimensions={0}, to_apply=add"
    result = found(body, {"x": "- b"}, add)
    assert cuts(result, "y") == ["[{b}]"]
    assert "sharding" not in result.module.entry.root.attributes.to_apply.root.annotations
