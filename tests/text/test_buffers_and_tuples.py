"""Types and spellings of real dumps: buffers, constants that are tuples, random bits alone, results that come later."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from shape_inference import BufferShape, compatible, f32, parse_shape
from tests.text.texts import entry, fault, root

PINNED = """  pinned = b(f32[4]{0}) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  both = (b(f32[4]{0}), f32[4]) tuple(pinned, x)
  taken = b(f32[4]{0}) get-tuple-element(both), index=0
  ROOT y = f32[4]{0} custom-call(taken), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}"""


@pytest.mark.parametrize("style", ["short", "percent", "full"])
def test_buffers_are_read_printed_and_run(style: str) -> None:
    module = entry(PINNED)
    again = xb.parse_hlo(module.to_hlo(style=style))
    assert again.to_hlo(style=style) == module.to_hlo(style=style)
    assert xb.check(module).kind == "ok"
    given = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(again.entry, given), given)


def test_a_buffer_is_no_array() -> None:
    buffer = parse_shape("b(f32[4]{0})")
    assert buffer == BufferShape(f32, (4,), layout=buffer.layout)  # type: ignore[union-attr]
    assert not compatible(buffer, f32[4])
    assert compatible(buffer, parse_shape("b(f32[4])"))
    error = fault(
        f"ENTRY e {{\n  x = f32[4] parameter(0)\n{PINNED.replace('ROOT ', '')}\n  z = f32[4] add(pinned, x)\n}}"
    )
    assert "expected an array for lhs, got b(f32[4])" in str(error)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("b(token[])", "a buffer must hold an array"),
        ("b((f32[2]))", "a buffer must hold an array"),
        ("b[4]", "expected '(', got '['"),
    ],
)
def test_buffers_are_of_arrays(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="is not a shape: ") as caught:
        parse_shape(text)
    assert why in str(caught.value)


def test_an_instruction_may_be_called_b() -> None:
    assert root("  b = f32[4] negate(x)\n  ROOT y = add(b, b)").operands[0].name == "b"


def test_a_constant_may_be_a_tuple() -> None:
    found = entry("  ROOT c = (f32[], (s32[2], pred[], c64[])) constant((1.5, ({1, 2}, true, (1, -2)))), sharding={}")
    number, (pair, flag, complex_number) = evaluate(found.entry, np.zeros(4, np.float32))
    assert (float(number), pair.tolist(), bool(flag), complex(complex_number)) == (1.5, [1, 2], True, 1 - 2j)
    assert found.entry.root.annotations["sharding"] == "{}"
    assert xb.parse_hlo(found.to_hlo()).to_hlo() == found.to_hlo()


@pytest.mark.parametrize(
    ("literal", "why"),
    [("(1)", "',' between the elements of a tuple"), ("(1, 2, 3)", "')' after the 2 elements"), ("1", "'(' before the"),
     ("(1, {2})", "braces are nested deeper"), ("(1, x)", "is not a value of s32"), ("(1, 2", "')'")],
)  # fmt: skip
def test_a_tuple_that_does_not_fit_is_refused(literal: str, why: str) -> None:
    error = fault(f"ENTRY e {{\n  ROOT c = (f32[], s32[]) constant({literal})\n}}")
    assert why in str(error)


def test_a_token_is_no_constant() -> None:
    assert "a constant can contain only arrays" in str(fault("ENTRY e { ROOT c = (f32[], token[]) constant((1, 2)) }"))


def test_random_bits_may_be_written_without_the_state() -> None:
    state = "  s = u64[2] constant({1, 2})\n"
    alone = evaluate(
        entry(f"{state}  ROOT r = u32[8] rng-bit-generator(s), algorithm=rng_three_fry").entry, np.zeros(4, np.float32)
    )
    both = f"{state}  p = (u64[2], u32[8]) rng-bit-generator(s), algorithm=rng_three_fry\n"
    np.testing.assert_array_equal(
        alone, evaluate(entry(f"{both}  ROOT r = u32[8] get-tuple-element(p), index=1").entry, np.zeros(4, np.float32))
    )


ASYNC = """negated {{ p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }}
ENTRY e {{
  x = f32[4] parameter(0)
  start = ((f32[4]), (), s32[]) async-start(x), calls=negated
  {update}
  ROOT y = f32[4] async-done({last})
}}"""


@pytest.mark.parametrize(
    ("update", "last"), [("", "start"), ("update = ((f32[4]), (), s32[]) async-update(start)", "update")]
)
def test_the_result_of_an_async_start_may_come_later(update: str, last: str) -> None:
    module = xb.parse_hlo(ASYNC.format(update=update, last=last))
    np.testing.assert_array_equal(evaluate(module.entry, np.ones(4, np.float32)), -np.ones(4, np.float32))


def test_an_update_gives_what_its_start_gave() -> None:
    text = ASYNC.format(update="update = ((f32[4]), f32[4], s32[]) async-update(start)", last="update")
    assert "the result of 'start' is ()" in str(fault(text))


TABLE = """HloModule m, origin_recovery_table={
  {"a"} : {"b"},
  "
    HloModule inner
    ENTRY e { ROOT x = f32[] parameter(0) }
  "
}
ENTRY e { ROOT x = f32[4] parameter(0) }
"""


def test_a_module_within_a_string_is_no_module_of_the_text() -> None:
    assert [each.name for each in xb.parse_hlo_modules(TABLE)] == ["m"]
    two = f'{TABLE}// ----- "a stray quote\nHloModule n\nENTRY e {{ ROOT x = f32[] parameter(0) }}\n'
    assert [each.name for each in xb.parse_hlo_modules(two)] == ["m", "n"]
