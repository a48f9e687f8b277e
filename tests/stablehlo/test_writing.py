"""Texts that the printer of StableHLO writes: values, types, regions, tuples, attributes, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xbuild as xb
from xbuild.stablehlo.literals import dense_text
from xbuild.stablehlo.writing.writer import type_text

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
OR = "any { a = pred[] parameter(0) b = pred[] parameter(1) ROOT s = pred[] add(a, b) }"
STEP = """
next { p = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(p), index=0 x = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1) n = s32[] add(i, one) ROOT t = (s32[], f32[2]) tuple(n, x) }
goes { p = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(p), index=0 ten = s32[] constant(10)
  ROOT c = pred[] compare(i, ten), direction=LT }
"""
BRANCHES = (
    "up { p = f32[2] parameter(0) ROOT n = f32[2] abs(p) } down { p = f32[2] parameter(0) ROOT m = f32[2] negate(p) }"
)
X, K = "x = f32[2] parameter(0)", "k = s32[] parameter(1)"

LINES = [
    (X, "ROOT y = f32[2] add(x, x)", "%y = stablehlo.add %x, %x : tensor<2xf32>"),
    (X, "ROOT y = f32[2] copy(x)", "return %x : tensor<2xf32>"),
    (X, "ROOT y = pred[2] compare(x, x), direction=GE", "%y = stablehlo.compare GE, %x, %x, FLOAT : "),
    (X, "ROOT y = f32[2,3] broadcast(x), dimensions={0}", "%y = stablehlo.broadcast_in_dim %x, dims = [0] : "),
    (X, "ROOT y = (f32[2], f32[2]) tuple(x, x)", "return %x, %x : tensor<2xf32>, tensor<2xf32>"),
    (X, "ROOT y = f32[2] erf(x)", "%y = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>"),
    (X, 'ROOT y = f32[2] abs(x), sharding={replicated}', '%y = stablehlo.abs %x {mhlo.sharding = "{replicated}"} : '),
    ("x = pred[2] parameter(0)", "ROOT y = pred[2] add(x, x)", "%y = stablehlo.or %x, %x : tensor<2xi1>"),
    ("x = s8[<=3] parameter(0)", "ROOT y = s8[<=3] negate(x)", "tensor<?xi8, #stablehlo.bounds<3>>"),
    (f"{ADD}; {X}", "z = f32[] constant(0) ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=add",
     "%y = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : "),
    (f"{OR}; x = pred[2] parameter(0)",
     "z = pred[] constant(0) ROOT y = pred[] reduce(x, z), dimensions={0}, to_apply=any", "applies stablehlo.or "),
    (f"{ADD}; {X}", "ROOT y = f32[2] all-reduce(x), replica_groups={{0,1,2},{3}}, to_apply=add",
     "replica_groups = dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>"),
    (f"{ADD}; {X}", "ROOT y = f32[2] all-reduce(x), channel_id=3, replica_groups={}, to_apply=add",
     "channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, replica_groups = dense<> : tensor<0x0xi64>"),
    (X, "ROOT y = f32[4] all-gather(x), replica_groups=[2,2]<=[4], dimensions={0}", "dense<[[0, 1], [2, 3]]>"),
    (f"{STEP}; {X} {K}", "t = (s32[], f32[2]) tuple(k, x) ROOT w = (s32[], f32[2]) while(t), condition=goes, body=next",
     "%w:2 = stablehlo.while(%iterArg = %k, %iterArg_1 = %x) : tensor<i32>, tensor<2xf32>"),
    (f"{BRANCHES}; {X} {K}", "ROOT c = f32[2] conditional(k, x, x), branch_computations={up, down}",
     '%c = "stablehlo.case"(%k) ({\n      %n = stablehlo.abs %x : tensor<2xf32>'),
    (f"{BRANCHES}; {X}", "ROOT f = f32[2] fusion(x), kind=kLoop, calls=up", "return %n : tensor<2xf32>"),
    (f"{BRANCHES}; {X}", "ROOT f = f32[2] call(x), to_apply=up", "%f = func.call @up(%x) : "),
    (X, 't = token[] after-all() o = token[] outfeed(x, t), outfeed_config="a\\"b" ROOT y = f32[2] abs(x)',
     r'<{outfeed_config = "a\22b"}>'),
    (X, 'ROOT y = f32[2] custom-call(x), custom_call_target="to-do", backend_config="c", schedule=SCHEDULE_LATEST',
     '%y = stablehlo.custom_call @"to-do"(%x) {backend_config = "c", mhlo.schedule = "SCHEDULE_LATEST"} : '),
]  # fmt: skip

REFUSED = [
    ("x = u1[2] parameter(0)", "ROOT y = u1[2] copy(x)", "parameter %x at .*: MLIR has no element type for u1"),
    (X, "s = u64[2] rng-get-and-update-state(), delta=1 ROOT y = f32[2] abs(x)", "%s at .*no such op"),
    (X, "c = f32[2] constant({...}) ROOT y = f32[2] add(x, c)", "constant %c at .*the HLO text elides its elements"),
    (
        X,
        "ROOT s = (f32[2], f32[2], u32[]) copy-start(x)",
        "copy-start %s at .*only a done op in the same computation may use this start op",
    ),
]


def written(before: str, entry: str) -> str:
    computations, _, parameters = before.rpartition(";")
    text = f"HloModule m\n{computations}\nENTRY e {{ {parameters}\n{entry} }}"
    return xb.parse_hlo(re.sub(r" (?=\w+ = |ROOT )", "\n", text)).to_stablehlo()


@pytest.mark.parametrize(("before", "entry", "line"), LINES)
def test_lines(before: str, entry: str, line: str) -> None:
    assert line in written(before, entry)


@pytest.mark.parametrize(("before", "entry", "message"), REFUSED)
def test_refusals_name_the_instruction_and_the_reason(before: str, entry: str, message: str) -> None:
    with pytest.raises(xb.StablehloError, match=message) as caught:
        written(before, entry)
    assert caught.value.kind == "not_in_stablehlo"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32([[1, 2], [3, 4]]), "dense<[[1.0, 2.0], [3.0, 4.0]]>"),
        (np.float32([1e-5, -0.0]), "dense<[1.0e-05, -0.0]>"),
        (np.float64([np.inf, np.nan]), "dense<[0x7FF0000000000000, 0x7FF8000000000000]>"),
        (np.complex64([1 + 2j, 0]), "dense<[(1.0, 2.0), (0.0, 0.0)]>"),
        (np.array([True, False]), "dense<[true, false]>"),
        (np.full((3, 5), 7, np.uint8), "dense<7>"),
        (np.arange(100, dtype=np.int8), f'dense<"0x{bytes(range(100)).hex().upper()}">'),
        (np.zeros((0, 2), np.int32), "dense<>"),
    ],
)
def test_literals(array: np.ndarray, text: str) -> None:
    assert dense_text(array) == text


def test_a_tuple_in_a_tuple_is_dissolved() -> None:
    shape = xb.parse_shape("((f32[2], s32[]), token[])")
    assert type_text(shape) == "tuple<tuple<tensor<2xf32>, tensor<i32>>, !stablehlo.token>"
    builder = xb.Builder("b")
    root = xb.get_tuple_element(xb.parameter(builder, number=0, shape=shape, name="p"), 0)
    text = builder.build(root).to_stablehlo()
    assert "@main(%p.0: tensor<2xf32>, %p.1: tensor<i32>, %p.2: !stablehlo.token)" in text
    assert "return %p.0, %p.1 : tensor<2xf32>, tensor<i32>" in text


def test_names_that_are_taken_get_a_number() -> None:
    text = written(f"{ADD}; {X}", "z = f32[] constant(0) s = f32[2] map(x, x), dimensions={0}, to_apply=add "
                   "ROOT y = f32[2] map(s, s), dimensions={0}, to_apply=add")  # fmt: skip
    names = re.findall(r"(%[\w.-]+)(?::\d+)? = ", text) + re.findall(r"(%[\w.-]+): ", text)
    assert len(set(names)) == len(names) == 10


def test_attributes_of_the_module_and_of_its_entry() -> None:
    text = xb.parse_hlo(
        "HloModule m, input_output_alias={ {1}: (0, {0}, must-alias) }, buffer_donor={ (1, {}) }, replica_count=4\n"
        "ENTRY e {\n p = (f32[2], f32[2]) parameter(0)\n q = f32[2] parameter(1), sharding={replicated}\n"
        " a = f32[2] get-tuple-element(p), index=0\n ROOT t = (f32[2], f32[2]) tuple(q, a)\n}"
    ).to_stablehlo()
    assert 'kind = "must_alias", parameter_index = array<i64>, parameter_number = 0 : i64' in text
    assert "output_index = array<i64: 1>" in text
    assert "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32" in text
    assert '%q: tensor<2xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}' in text


def test_locations_name_instructions_and_lines() -> None:
    module = xb.parse_hlo("ENTRY e {\n x = f32[2] parameter(0)\n ROOT y = f32[2] abs(x)\n}", "a.hlo")
    assert '%y = stablehlo.abs %x : tensor<2xf32> loc("y"("a.hlo":3:0))' in module.to_stablehlo(locations=True)
    assert "loc(" not in module.to_stablehlo()
