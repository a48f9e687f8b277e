"""`xb.diff` matches instructions that were renamed, reordered or fused, or that follow a new layer."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

from .corpus_programs import MODULES, read
from .known_pairs import KINDS, KnownPair

PAIRS = 20
LARGE = [file for file in MODULES if sum(len(each.instructions) for each in read(file).computations) >= 25]


def pairs_of(kind: str) -> list[KnownPair]:
    found = []
    for seed in range(PAIRS):
        random = np.random.default_rng(seed)
        found.append(KINDS[kind](read(LARGE[random.integers(len(LARGE))]), random))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_known_pairs_are_matched(kind: str) -> None:
    """95 % of the instructions of 20 pairs, whose names say nothing."""
    right = count = 0
    for pair in pairs_of(kind):
        matched = dict(row for each in xb.diff(pair.before, pair.after).computations for row in each.matched)
        for each in xb.diff(pair.before, pair.after).computations:
            matched |= {row.before: row.after for row in each.moved}
        count += len(pair.truth)
        right += sum(matched.get(old) is new for old, new in pair.truth.items())
    assert count > 400
    assert right >= 0.95 * count


@pytest.mark.parametrize("kind", ["renamed", "reordered"])
def test_programs_of_one_structure_differ_in_names_alone(kind: str) -> None:
    for pair in pairs_of(kind):
        for each in xb.diff(pair.before, pair.after).computations:
            assert not each.added
            assert not each.removed
            assert not each.moved
            assert all(change.what in ("name", "place") for row in each.changed for change in row.changes)


PLAIN = """ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] add(x, y)
  t = f32[4] tanh(a)
  m = f32[4] multiply(t, y)
  ROOT r = f32[4] negate(m)
}"""
FUSED = """fused {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] add(p, q)
  t = f32[4] tanh(a)
  ROOT m = f32[4] multiply(t, q)
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  f = f32[4] fusion(x, y), kind=kLoop, calls=fused
  ROOT r = f32[4] negate(f)
}"""


def test_a_fusion_moves_instructions_and_changes_none() -> None:
    before, after = map(xb.parse_hlo, (PLAIN, FUSED))
    assert str(xb.diff(before, after)).splitlines() == [
        "different: 3 instructions moved, 3 added",
        "fused: computation added, 2 instructions, and 3 moved here",
        "  > a = f32[4] add(p, q)  (was a in main)",
        "  > t = f32[4] tanh(a)  (was t in main)",
        "  > m = f32[4] multiply(t, q)  (was m in main)",
        "main: 3 matched, 1 added",
        "  + f = f32[4] fusion(x, y), kind=kLoop, calls=fused",
    ]
    rows = xb.diff(before, after).to_dict()["computations"]
    assert [each["before"] for each in rows[0]["moved"]] == ["a", "t", "m"]
    back = xb.diff(after, before)
    assert [row.after.name for each in back.computations for row in each.moved] == ["a", "t", "m"]


def test_an_instruction_with_a_new_name_and_a_new_opcode_is_changed() -> None:
    """One that is in its place: with its operands and shape, and with users of the same opcodes."""
    text = "ENTRY e {{ x = f32[4] parameter(0) y = f32[4] parameter(1) {0} = f32[4] {1} ROOT {0}1 = f32[4] {2}({0}) }}"
    before = xb.parse_hlo(text.format("a", "add(x, y)", "tanh"))
    found = str(xb.diff(before, xb.parse_hlo(text.format("q", "subtract(x, y)", "tanh"))))
    assert "  ~ q = f32[4] subtract(x, y)  (was a)\n      opcode: add -> subtract\n" in found
    for other in (text.format("q", "subtract(y, x)", "tanh"), text.format("q", "subtract(x, y)", "sine")):
        assert "  + q = " in str(xb.diff(before, xb.parse_hlo(other)))


def test_a_change_inside_a_fusion_is_seen() -> None:
    """The operand of an instruction in a fusion is another value than it was outside."""
    found = xb.diff(xb.parse_hlo(PLAIN), xb.parse_hlo(FUSED.replace("multiply(t, q)", "multiply(t, p)")))
    assert "  > m = f32[4] multiply(t, p)  (was m in main)\n      operand rhs: y -> p" in str(found)


def test_what_a_fusion_returns_in_a_tuple_is_followed() -> None:
    fused = FUSED.replace(
        "ROOT m = f32[4] multiply(t, q)", "m = f32[4] multiply(t, q)\n  ROOT b = (f32[4], f32[4]) tuple(m, t)"
    )
    fused = (
        fused.replace("f = f32[4] fusion", "f = (f32[4], f32[4]) fusion")
        .replace("negate(f)", "negate(g)")
        .replace("  ROOT r", "  g = f32[4] get-tuple-element(f), index=0\n  ROOT r")
    )
    found = xb.diff(xb.parse_hlo(PLAIN), xb.parse_hlo(fused))
    assert [row.after.name for each in found.computations for row in each.moved] == ["a", "t", "m"]
    assert not any(each.changed for each in found.computations)
