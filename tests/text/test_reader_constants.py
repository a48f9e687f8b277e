"""Constants in HLO text: each number is read exactly or refused at its place, and elided ones are known as such."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from shape_inference import PRIMITIVES, XbuildError
from tests.text.texts import fault


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        ("f32[]", "-0", np.float32("-0.0")),
        ("f32[3]", "{1, -0.5e1, 2.}", np.array([1, -5, 2], np.float32)),
        ("f32[4]", "{inf, -inf, nan, -nan}", np.array([np.inf, -np.inf, np.nan, np.nan], np.float32)),
        ("s32[2,2]", "{ { 1, 2 }, { 3, 4 } }", np.array([[1, 2], [3, 4]], np.int32)),
        ("s32[2,2]", "{{1,2,},{3,/*c*/4}}", np.array([[1, 2], [3, 4]], np.int32)),
        ("f32[2,0]", "{ {}, {} }", np.zeros((2, 0), np.float32)),
        ("f32[0,9999999999]", "{}", np.zeros((0, 9999999999), np.float32)),
        ("pred[3]", "{1, false, 2}", np.array([True, False, True])),
        ("pred[]", "true", np.bool_(True)),
        ("u64[]", "18446744073709551615", np.uint64(2**64 - 1)),
        ("s64[]", "18446744073709551615", np.int64(-1)),
        ("s4[2]", "{-8, 7}", np.array([-8, 7], ml_dtypes.int4)),
        ("c64[2]", "{(1, -2), (nan, 3)}", np.array([1 - 2j, complex(np.nan, 3)], np.complex64)),
        ("c128[]", "(-0, 1)", np.complex128(complex(-0.0, 1))),
        ("bf16[]", "0.1001", ml_dtypes.bfloat16(0.1)),
        ("f8e4m3fn[]", "449", ml_dtypes.float8_e4m3fn(448)),
    ],
)
def test_constants(shape: str, text: str, value: Any) -> None:
    (found,) = xb.parse_hlo(f"ENTRY e {{ x = {shape} constant({text}) }}").entry.instructions
    literal = found.attributes.literal
    assert (literal.dtype, literal.shape) == (value.dtype, value.shape)
    is_number = literal == literal
    assert literal[is_number].tobytes() == value[is_number].tobytes()
    assert repr(found) == f"x = {shape} constant({text})"


def test_the_payload_of_a_nan_is_kept() -> None:
    (found,) = xb.parse_hlo("ENTRY e { x = f32[2] constant({nan(0x1), -nan(0x7)}) }").entry.instructions
    assert found.attributes.literal.view(np.uint32).tolist() == [0x7F800001, 0xFF800007]


@pytest.mark.parametrize(
    ("shape", "text", "kind", "place"),
    [
        ("f32[100]", "{1, ...}", "syntax", "..."),
        ("s8[1]", "{200}", "invalid_literal", "200"),
        ("u32[]", "-1", "invalid_literal", "-1"),
        ("f32[1]", "{1e39}", "invalid_literal", "1e39"),
        ("s32[2]", "{1, 2.5}", "invalid_literal", "2.5"),
        ("f32[]", ".5", "invalid_literal", ".5"),
        ("f32[]", "1_0", "invalid_literal", "1_0"),
        ("f32[]", "{1}", "shape_mismatch", "{1}"),
        ("f32[2]", "{1, 2, 3}", "shape_mismatch", "3"),
        ("f32[2]", "{1}", "shape_mismatch", "}"),
        ("f32[2]", "{1 2}", "syntax", "2}"),
        ("f32[2]", "{1, 2", "syntax", ""),
        ("f32[9999999999999]", "{1}", "shape_mismatch", "}"),
        ("c64[]", "1", "syntax", "1"),
        ("c64[]", "(1, 2, 3)", "shape_mismatch", ""),
        ("f8e8m0fnu[]", "-1", "invalid_literal", "-1"),
        ("(f32[])", "1", "syntax", "1"),
        ("(f32[], token[])", "(1, 2)", "syntax", "2"),
    ],
)
def test_constants_that_are_none(shape: str, text: str, kind: str, place: str) -> None:
    begin = f"ENTRY e {{ x = {shape} constant("
    error = fault(f"{begin}{text}) }}")
    assert error.kind == kind, error
    if place:
        assert error.faults[0].column == len(begin) + text.index(place) + 1, error


ELIDED = "ENTRY e { x = f32[100] constant({...}) y = f32[100] constant({...}) ROOT z = add(x, y) }"


def test_an_elided_constant_is_read_checked_drawn_and_printed() -> None:
    module = xb.parse_hlo(ELIDED)
    assert xb.check(module).kind == "ok"
    assert "{...}" in str(module)
    assert xb.parse_hlo(str(module)).to_hlo() == str(module)
    assert "z" in str(xb.viz(module))
    assert xb.diff(module, xb.parse_hlo(ELIDED)).same


def test_whoever_needs_the_elements_of_an_elided_constant_is_refused_by_name() -> None:
    with pytest.raises(XbuildError, match=r"elements of %x .*f32\[100\].*--xla_dump_large_constants"):
        evaluate(xb.parse_hlo(ELIDED).entry)
    with pytest.raises(XbuildError, match="instead of the elements"):
        np.asarray(xb.parse_hlo(ELIDED).entry.instructions[0].attributes.literal)


@pytest.mark.parametrize(
    ("shape", "text", "first"), [("f32[2,3]", "1.5", 1.5), ("c64[2]", "(1, 2)", 1 + 2j), ("pred[3]", "true", True)]
)
def test_one_number_is_the_first_element_as_in_xla(shape: str, text: str, first: Any) -> None:
    (found,) = xb.parse_hlo(f"ENTRY e {{ x = {shape} constant({text}) }}").entry.instructions
    assert found.attributes.literal.reshape(-1).tolist() == [first, *[0] * (found.attributes.literal.size - 1)]
    assert found.attributes.literal.dtype == found.shape.dtype.dtype


@pytest.mark.parametrize("dtype", [t for t in PRIMITIVES.values() if t.is_float and t.bits <= 16], ids=str)
def test_every_small_float_comes_back(dtype: Any) -> None:
    bits = np.arange(1 << max(dtype.bits, 4), dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    values = bits.view(dtype.dtype)
    builder = xb.Builder("b")
    text = xb.Module("m", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    back = xb.parse_hlo(text).entry.root.attributes.literal
    number = ~np.isnan(values.astype(np.float32))
    assert back[number].tobytes() == values[number].tobytes()
    assert np.isnan(back.astype(np.float32))[~number].all()
