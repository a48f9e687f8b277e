"""`xb.explain`: place, line, users, what a value depends on, its type on a mesh, its value before the run."""

from __future__ import annotations

import pytest

import xbuild as xb
from examples import transformer_step
from shape_inference import XbuildError

LOOP = """
HloModule loop, replica_count=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT sum = f32[] add(a, b) }
less { s = (s32[], f32[2]) parameter(0)  n = s32[] get-tuple-element(s), index=0  three = s32[] constant(3)
       ROOT on = pred[] compare(n, three), direction=LT }
next { s = (s32[], f32[2]) parameter(0)  n = s32[] get-tuple-element(s), index=0
       v = f32[2] get-tuple-element(s), index=1
       one = s32[] constant(1)  m = s32[] add(n, one)  total = f32[2] all-reduce(v), to_apply=add
       ROOT state = (s32[], f32[2]) tuple(m, total) }
ENTRY main { x = f32[2] parameter(0)  unused = f32[2] parameter(1)  zero = s32[] constant(0)
       two = s32[] constant(2)  four = s32[] add(two, two)  id = u32[] replica-id()  device = u32[] add(id, id)
       state = (s32[], f32[2]) tuple(zero, x)
       loop = (s32[], f32[2]) while(state), condition=less, body=next
       ROOT result = f32[2] get-tuple-element(loop), index=1 }
"""


@pytest.fixture(scope="module")
def loop() -> xb.Module:
    return xb.parse_hlo(LOOP)


def names(instructions: list[xb.Instruction]) -> list[str]:
    return [each.name for each in instructions]


def test_what_a_result_depends_on(loop: xb.Module) -> None:
    (part,) = xb.explain(loop, "result").parts
    assert names(part.cone.parameters()) == ["x"]
    assert names(part.cone.communication()) == ["total"]


def test_the_way_up_through_callers(loop: xb.Module) -> None:
    (part,) = xb.explain(loop, "v").parts
    assert names(part.cone.parameters()) == ["x"]
    assert names(part.called_by) == ["loop"]
    assert part.users == ["total"]


def test_a_name_of_several_computations(loop: xb.Module) -> None:
    assert len(xb.explain(loop, "s").parts) == 2
    (part,) = xb.explain(loop, "%next/s").parts
    assert part.home.name == "next"


def test_values_before_the_run(loop: xb.Module) -> None:
    assert xb.explain(loop, "four").parts[0].values == ("known before the run on each device: 4",)
    assert xb.explain(loop, "device").parts[0].values == ("known before the run:", "device 0: 0", "device 1: 2")
    assert xb.explain(loop, "result").parts[0].values == ()


def test_a_constant_whose_elements_are_left_out_has_no_value() -> None:
    module = xb.parse_hlo("HloModule m\nENTRY e { c = f32[4] constant({...})  ROOT n = f32[4] negate(c) }")
    assert xb.explain(module, "n").parts[0].values == ()


def test_a_type_on_a_mesh() -> None:
    found = xb.explain(transformer_step.step(), "all-reduce.62").parts[0]
    assert found.variance == "{V:batch}: devices along batch may hold different values"
    assert found.equal == "equal within {0,1} {2,3} {4,5} {6,7}"
    assert "sharded_block.py" in str(xb.explain(transformer_step.step(), "dot.38"))


def test_by_value_and_by_instruction() -> None:
    builder = xb.Builder("f")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    y = xb.add(x, 1.0, name="y")
    program = builder.build(y)
    texts = {str(xb.explain(program, each)) for each in (y, y.instruction, "y", "%y")}
    assert len(texts) == 1
    assert "used by     no instruction: it is the result of f" in texts.pop()


def test_no_such_instruction(loop: xb.Module) -> None:
    with pytest.raises(XbuildError, match="the program has no instruction %nothing") as refused:
        xb.explain(loop, "nothing")
    assert refused.value.kind == "undefined_name"


def test_of_a_group_each_program_by_itself() -> None:
    one, two = (xb.Module(name, xb.computation(xb.f32[2])(f)) for name, f in (("a", xb.sin), ("b", xb.cos)))
    assert len(xb.explain(xb.ModuleGroup({0: one, 1: two}), "parameter.1").parts) == 2


def test_facts_as_data(loop: xb.Module) -> None:
    (facts,) = xb.explain(loop, "total").to_dict()
    assert facts["computation"] == "next"
    assert facts["devices"] == "equal on all"
    assert facts["users"] == ["state"]
    assert facts["why"] == ["the dimensions of v, f32[2]: each participant passes such an array and receives one"]
