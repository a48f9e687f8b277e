"""Forms that XLA's own texts have and its printer no longer writes: each is read, and printed as what it means."""

from __future__ import annotations

import pytest

import xbuild as xb

START = """
scattered {
  p = f32[2] parameter(0)
  ROOT r = f32[1] reduce-scatter(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add
}
ENTRY e {
  x = f32[2] parameter(0)
  s = ((f32[2]), f32[1]) async-start(x), calls=scattered%s
  ROOT d = f32[1] async-done(s)%s
}
"""
ADD = "HloModule m, replica_count=2\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
OTHER = "other { p = f32[2] parameter(0) ROOT r = f32[1] slice(p), slice={[0:1]} }"


def read(text: str) -> xb.Module:
    """The module of a text, whose print reads as the same."""
    module = xb.parse_hlo(text)
    assert str(xb.parse_hlo(str(module))) == str(module)
    return module


def test_a_done_may_say_again_what_its_start_says() -> None:
    plain = read(ADD + START % ("", ""))
    for done in (
        ", calls=scattered",
        ', async_execution_thread="main"',
        ', async_execution_thread="main", calls=%scattered',
    ):
        assert str(read(ADD + START % ("", done))) == str(plain)


def test_a_done_that_says_something_else_than_its_start_is_refused() -> None:
    with pytest.raises(xb.HloParseError, match="calls=other differs from calls=scattered in 's'"):
        read(ADD + OTHER + START % ("", ", calls=other"))


def test_aliases_of_a_start_are_kept() -> None:
    module = read(ADD + START % (", output_to_operand_aliasing={{0,0}: (0, {})}", ""))
    assert "output_to_operand_aliasing={{0,0}: (0, {})}" in str(module)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ENTRY e { %x= f32[2] parameter(0) ROOT y = f32[2] negate(%x) }", "x = f32[2] parameter(0)"),
        ("HloModule comments:\nENTRY e { ROOT x = f32[2] parameter(0) }", "HloModule comments"),
        ("ENTRY e { x = f32[2] parameter(0) add = add(x, x) ROOT y = add(add, add(add, add)) }", "add(add, add.1)"),
        (
            "ENTRY e { x = f32[2,2] parameter(0) ROOT y = f32[2,2] dot(x, x), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}, operand_precision={HIGH,HIGHEST} }",
            "operand_precision={high,highest}",
        ),
    ],
    ids=["name= with %", "a colon after the module's name", "an operand of the name of its op", "capitals"],
)  # fmt: skip
def test_older_forms(text: str, line: str) -> None:
    assert line in str(read(text))


def test_each_peer_of_a_ragged_all_to_all_may_get_several_updates() -> None:
    text = """
HloModule m, replica_count=2
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  o = s32[4] parameter(2)
  ROOT r = f32[8] ragged-all-to-all(x, y, o, o, o, o), replica_groups={{0,1}}
}"""
    read(text)
    with pytest.raises(
        xb.HloParseError,
        match=r"group 0 of .* has 2 members, and 2 does not divide 3, the extent of dimension 0 of input_offsets",
    ):
        read(text.replace("s32[4]", "s32[3]"))
