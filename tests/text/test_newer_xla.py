"""What XLA writes since jaxlib 0.11: elements of tuples as operands, `order=` of compare, configs of computations."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from tests.text.real_xla import refusals

ENTRY = "HloModule m\n\nENTRY e {{\n  p = (f32[2], (f32[3], s32[])) parameter(0)\n{}\n}}\n"
BY_SUFFIX = ENTRY.format("""\
  a = f32[2] negate(p#0)
  b = f32[2] add(%p#0, f32[2] %p#0)
  c = f32[3] negate(p#1#0)
  n = s32[] negate(p# 1 #1)
  ROOT t = (f32[2], f32[2], f32[3], s32[]) tuple(a, b, c, n)""")
SPELLED_OUT = ENTRY.format("""\
  p_0 = f32[2] get-tuple-element(p), index=0
  a = f32[2] negate(p_0)
  b = f32[2] add(p_0, p_0)
  p_1 = (f32[3], s32[]) get-tuple-element(p), index=1
  p_1_0 = f32[3] get-tuple-element(p_1), index=0
  c = f32[3] negate(p_1_0)
  p_1_1 = s32[] get-tuple-element(p_1), index=1
  n = s32[] negate(p_1_1)
  ROOT t = (f32[2], f32[2], f32[3], s32[]) tuple(a, b, c, n)""")


def test_an_element_of_a_tuple_is_one_instruction_for_all_its_uses() -> None:
    module = xb.parse(BY_SUFFIX)
    assert module.to_hlo() == SPELLED_OUT
    given = (np.float32([1, 2]), (np.float32([3, 4, 5]), np.int32(6)))
    results = xb.evaluate(module.entry, given)
    expected = [[-1, -2], [2, 4], [-3, -4, -5], -6]
    assert [each.tolist() for each in results] == expected


def test_a_name_that_the_text_has_later_is_not_taken() -> None:
    module = xb.parse(
        ENTRY.format("  a = f32[2] negate(p#0)\n  p_0 = f32[2] negate(a)\n  ROOT r = f32[2] add(p_0, p#0)")
    )
    assert module.entry["p_0"].opcode == "negate"
    assert module.entry.root.operands[1] is module.entry["a"].operands[0]
    assert xb.same_structure(xb.parse(module.to_hlo()), module)


def test_an_element_of_random_bits_has_their_type() -> None:
    module = xb.parse("""ENTRY e {
      s = u64[2] parameter(0)
      r = (u64[2], s32[4]) rng-bit-generator(s), algorithm=rng_default
      ROOT n = s32[4] negate(r#1)
    }""")
    assert module.entry.root.operands[0].opcode == "get_tuple_element"


@pytest.mark.parametrize(("operand", "kind", "column"), [
    ("p#2", "index_out_of_range", 21), ("p#-1", "index_out_of_range", 21), ("p#1#0#0", "not_tuple", 21),
    ("p#", "syntax", 23), ("q#0", "undefined_name", 21), ("p#1.0", "syntax", 23),
])  # fmt: skip
def test_an_element_that_is_none_is_refused_at_its_place(operand: str, kind: str, column: int) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse(ENTRY.format(f"  a = f32[2] negate({operand})"))
    (fault,) = caught.value.faults
    assert (fault.kind, fault.line, fault.column) == (kind, 5, column)


@pytest.mark.parametrize(("dtype", "order", "type_"), [
    ("f32", "TOTAL", "TOTALORDER"), ("f32", "PARTIAL", None), ("s32", "TOTAL", None), ("s32", "PARTIAL", None),
])  # fmt: skip
def test_the_order_of_a_compare(dtype: str, order: str, type_: str | None) -> None:
    module = xb.parse(
        f"ENTRY e {{ p = {dtype}[2] parameter(0) ROOT c = pred[2] compare(p, p), direction=LT, order={order} }}"
    )
    assert module.entry.root.attributes.type == type_


@pytest.mark.parametrize(("words", "message"), [
    ("order=FLOAT", "got order=FLOAT"), ("order=TOTAL, type=FLOAT", "both specify the order"),
])  # fmt: skip
def test_an_order_that_is_none_is_refused(words: str, message: str) -> None:
    with pytest.raises(xb.HloParseError, match=message):
        xb.parse(f"ENTRY e {{ p = f32[2] parameter(0) ROOT c = pred[2] compare(p, p), direction=LT, {words} }}")


BROADCAST = (
    "ENTRY e {{ p = f32[2] parameter(0) ROOT b = f32[2] collective-broadcast(p), replica_groups={{{{0,1}}}}, {} }}"
)


def test_a_broadcast_has_a_fixed_root() -> None:
    module = xb.parse(BROADCAST.format("has_dynamic_root=false"))
    assert "has_dynamic_root" not in module.to_hlo()
    refused = "with has_dynamic_root=true, the last operand selects the sending device"
    with pytest.raises(xb.HloParseError, match=refused):
        xb.parse(BROADCAST.format("has_dynamic_root=true"))


KEPT = """HloModule m, debug_attributes={{}}, backend_config={"a":1}

f {
  ROOT x = f32[5] parameter(0)
}, backend_config={"b":2}

ENTRY e {
  p = f32[5] parameter(0)
  s = f32[5] sinh(p), result_accuracy={mode=highest}
  c = f32[5] call(s), to_apply=f
  ROOT t = (f32[3], s32[3]) topk(c), k=3, largest=true, is_stable=true
}
"""


def test_configs_and_words_for_a_compiler_are_printed_back() -> None:
    module = xb.parse(KEPT)
    assert module.to_hlo() == KEPT
    values, places = xb.evaluate(module.entry, np.float32([1, 2, 2, 1, 2]))
    assert values[0] == values[2]
    assert places.tolist() == [1, 2, 4]


@pytest.mark.oracle
def test_real_xla_reads_what_is_written() -> None:
    pytest.importorskip("jaxlib")
    assert refusals([SPELLED_OUT, xb.parse(BROADCAST.format("has_dynamic_root=false")).to_hlo()]) == ["", ""]
