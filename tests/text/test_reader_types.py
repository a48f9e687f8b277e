"""Types in HLO text as real XLA takes them: dimensions that are whole, floats of two precisions, random bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.text.texts import fault

# dimensions set to all of their bound


@pytest.mark.parametrize(
    ("shape", "size", "dimension", "is_read"),
    [("f32[4,<=3]", 4, 0, True), ("f32[<=4,3]", 3, 1, True), ("f32[<=4,<=3]", 3, 1, True), ("f32[4,3]", 3, 1, False),
     ("f32[<=4,3]", 2, 1, False), ("f32[4,<=3]", 4, 1, False)],
)  # fmt: skip
def test_a_dimension_set_to_all_of_it_may_be_written_plainly(
    shape: str, size: int, dimension: int, is_read: bool
) -> None:
    """XLA takes the bound for removed where a constant says so (DynamicDimensionInference, HandleSetDimensionSize)."""
    text = (
        "ENTRY e {\n  x = f32[4,3] parameter(0)\n  two = s32[] constant(2)\n"
        f"  y = f32[{'<=' * (dimension == 1)}4,{'<=' * (dimension == 0)}3] set-dimension-size(x, two), "
        f"dimensions={{{1 - dimension}}}\n  n = s32[] constant({size})\n"
        f"  ROOT r = {shape} set-dimension-size(y, n), dimensions={{{dimension}}}\n}}\n"
    )
    if not is_read:
        assert fault(text).kind == "shape_mismatch"
        return
    module = xb.parse_hlo(text)
    assert str(module.entry.root.shape) == shape
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()


def test_only_a_constant_tells_that_a_dimension_is_whole() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) r = f32[4] set-dimension-size(x, n), "
    assert "f32[<=4], but the text states f32[4]" in str(fault(f"{text}dimensions={{0}} }}"))


# two precisions


MIXED = {
    "add": "f32[2] add(x, h)",
    "clamp": "bf16[2] clamp(x, h, x)",
    "concatenate": "f32[6] concatenate(x, h, x), dimensions={0}",
    "dynamic-update-slice": "f32[2] dynamic-update-slice(x, h, n)",
    "pad": "f32[2] pad(x, y), padding=0_0",
}


@pytest.mark.parametrize("spelling", MIXED)
def test_floats_of_one_instruction_have_one_precision(spelling: str) -> None:
    text = (
        "ENTRY e {\n  x = f32[2] parameter(0)\n  h = bf16[2] parameter(1)\n  y = bf16[] parameter(2)\n"
        f"  n = s32[] parameter(3)\n  ROOT r = {MIXED[spelling]}\n}}\n"
    )
    refused = "the operands have the element types bf16 and f32, but HLO text requires a single floating-point type"
    assert f"{spelling}: {refused}" in str(fault(text))


def _padded(x: xb.Value, h: xb.Value) -> xb.Value:
    return xb.pad(h, xb.constant(x.builder, literal=np.float32(0.1)), [(1, 0, 0)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, h: xb.concat_in_dim([x, h, x], 0),
        lambda x, h: xb.dynamic_update_slice(h, x, [0]),
        lambda x, h: xb.dynamic_update_slice(x, h, [0]),
        lambda x, h: xb.clamp(x, h, x),
        _padded,
    ],
    ids=["concatenate", "narrow-update", "wide-update", "clamp", "pad"],
)
def test_operands_of_two_precisions_are_converted_in_text(function: Any) -> None:
    computation = xb.computation(xb.f32[2], xb.bf16[2])(function)
    again = xb.parse_hlo(str(computation)).entry
    assert "convert" in [each.opcode for each in again.instructions]
    arguments = np.float32([0.3, 1.7]), np.array([1, 2], ml_dtypes.bfloat16)
    ours, theirs = evaluate(computation, *arguments), evaluate(again, *arguments)
    np.testing.assert_array_equal(ours, theirs, strict=True)


# random bits


BITS = """HloModule bits

ENTRY main (p: u64[2]) -> {root} {{
  p = u64[2] parameter(0)
  r = (u64[2], {dtype}[2]) rng-bit-generator(p), algorithm=rng_three_fry
  g = {dtype}[2] get-tuple-element(r), index=1
  ROOT z = {root} {line}
}}
"""


@pytest.mark.parametrize(
    ("dtype", "root", "line", "wanted"),
    [
        ("f32", "f32[2]", "copy(f32[2] g)", np.uint32([43444564, 2150618427])),
        ("f32", "f32[2]", "add(g, g)", np.uint32([86889128, 6269558])),
        ("f32", "f64[2]", "convert(f32[2] g)", np.float64([43444564, 2150618427])),
        ("f32", "s32[2]", "bitcast-convert(g)", np.uint32([43444564, 2150618427]).view(np.int32)),
        ("f32", "(f32[2], u64[2])", "tuple(g, p)", (np.uint32([43444564, 2150618427]), np.uint64([1, 2]))),
        ("s32", "s32[2]", "negate(g)", np.uint32([4251522732, 2144348869])),
        ("bf16", "bf16[2]", "copy(g)", np.uint16([59732, 54587])),
    ],
)
def test_random_bits_are_unsigned_whatever_is_written(dtype: str, root: str, line: str, wanted: Any) -> None:
    """As real XLA computes these programs, whose parser takes what is written."""
    module = xb.parse_hlo(BITS.format(dtype=dtype, root=root, line=line))
    found = evaluate(module.entry, np.uint64([1, 2]))
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (found, wanted)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert "u32" in str(module) or "u16" in str(module)


@pytest.mark.parametrize(
    ("dtype", "root", "line"),
    [
        ("f32", "f32[2]", "sqrt(g)"),
        ("f32", "f64[2]", "copy(g)"),
        ("f32", "f32[3]", "copy(g)"),
        ("pred", "pred[2]", "copy(g)"),
    ],
)
def test_random_bits_are_no_floats(dtype: str, root: str, line: str) -> None:
    with pytest.raises(xb.XbuildError):
        xb.parse_hlo(BITS.format(dtype=dtype, root=root, line=line))
