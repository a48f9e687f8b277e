"""Collective permutes of several operands and in place: read, printed, checked; values and derivatives of the first."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

SEVERAL = """HloModule m, replica_count=2

ENTRY e {
  a = f32[2] parameter(0)
  b = s32[] parameter(1)
  p = (f32[2], s32[]) collective-permute(a, b), source_target_pairs={{0,1}}
  s = ((f32[2], s32[]), (f32[2], s32[])) collective-permute-start(a, b), source_target_pairs={{1,0}}
  d = (f32[2], s32[]) collective-permute-done(s)
  ROOT t = ((f32[2], s32[]), (f32[2], s32[])) tuple(p, d)
}
"""
IN_PLACE = """HloModule m, replica_count=2

ENTRY e {
  a = f32[2] parameter(0)
  b = f32[4] parameter(1)
  z = s32[] constant(0)
  i = (s32[]) tuple(z)
  p = f32[4] collective-permute(a, b, i, i), source_target_pairs={{0,1}}, slice_sizes={{1}}
  s = (f32[2], f32[4], s8[], s8[]) collective-permute-start(a, p, i, i), source_target_pairs={{0,1}}, slice_sizes={{1}}
  ROOT d = f32[4] collective-permute-done(s)
}
"""
WRONG = {
    "i, i), source": ("i), source", "arity_mismatch", "got 3"),
    "f32[2] parameter(0)": ("s32[2] parameter(0)", "element_type_mismatch", "s32 and f32"),
    "f32[2] parameter(0)\n": ("f32[2,1] parameter(0)\n", "rank_mismatch", "ranks 2 and 1"),
    "a, b, i, i)": (
        "a, b, z, i)",
        "not_tuple",
        "expected a tuple of scalars for input_start_indices, one for each dimension, got s32[]",
    ),
    "slice_sizes={{1}}\n  s": (
        "slice_sizes={{1,2}}\n  s",
        "attribute_length_mismatch",
        "[1, 2] in slice_sizes [[1, 2]] has length 2",
    ),
}


@pytest.mark.parametrize("text", [SEVERAL, IN_PLACE], ids=["several operands", "in place"])
def test_the_text_is_read_printed_checked_and_drawn(text: str) -> None:
    module = xb.parse_hlo(text)
    assert str(module).strip() == text.strip()
    assert xb.check(module).kind == "ok"
    assert xb.viz(module)


def test_each_operand_is_permuted() -> None:
    (zeros, back), (sent, nothing) = xb.execute(xb.parse_hlo(SEVERAL), [[[1.0, 2.0], 3], [[4.0, 5.0], 6]])
    for found, wanted in zip((zeros, back, sent, nothing), ((0, 0), (4, 6), (1, 3), (0, 0)), strict=True):
        assert float(np.ravel(found[0])[0]) == wanted[0]
        assert int(found[1]) == wanted[1]


@pytest.mark.parametrize("given", WRONG)
def test_wrong_operands_in_place_are_refused(given: str) -> None:
    wrong, kind, words = WRONG[given]
    with pytest.raises(xb.HloParseError, match=kind) as refused:
        xb.parse_hlo(IN_PLACE.replace(given, wrong, 1))
    assert words in str(refused.value)


def test_a_permute_in_place_says_that_it_has_no_values() -> None:
    with pytest.raises(xb.XbuildError, match="in-place") as refused:
        xb.execute(xb.parse_hlo(IN_PLACE), [[[1.0, 2.0], [3.0] * 4]] * 2)
    assert "%p" in str(refused.value)
