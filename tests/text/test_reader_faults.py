"""Faults in HLO text: each has its kind, its place and its hint, and several are told at once."""

from __future__ import annotations

import re

import pytest

from shape_inference import KINDS
from shape_inference.kinds import TEXT_KINDS
from tests.text.texts import fault


def test_a_fault_stands_at_its_place() -> None:
    assert str(fault("HloModule m\nENTRY e {\n  y = f32[2] parameter(0)\n  ROOT r = f32[2] negat(y)\n}\n")) == (
        "model.hlo:4:19: xbuild has no op 'negat' [unknown_opcode]\n"
        "      ROOT r = f32[2] negat(y)\n"
        "                      ^\n"
        "  hint: did you mean 'negate'?"
    )


def test_a_refusal_of_an_op_tells_operands_and_attributes() -> None:
    text = "ENTRY e {\n  x = f32[2,3] parameter(0)\n  r = f32[2,3] transpose(x), dimensions={0,0}\n}\n"
    assert str(fault(text)) == (
        "model.hlo:3:16: transpose: permutation must be a permutation of the dimensions [0, 1] of operand "
        "f32[2,3], got [0, 0] [not_permutation]\n"
        "      r = f32[2,3] transpose(x), dimensions={0,0}\n"
        "                   ^\n"
        "  operand      f32[2,3]  %x\n"
        "  permutation  (0, 0)"
    )


def test_several_faults_are_told_at_once_and_who_uses_them_is_not_blamed() -> None:
    error = fault(
        "ENTRY e {\n  x = f32[2] parameter(0)\n  a = f32[2] foo(x)\n  b = f32[2] add(a, x)\n"
        "  c = f32[3] negate(x)\n  d = f32[2] negate(x), colour=3\n  ROOT r = f32[2] add(b, d)\n}\n"
    )
    assert [(each.kind, each.line) for each in error.faults] == [
        ("unknown_opcode", 3), ("shape_mismatch", 5), ("unknown_attribute", 6),
    ]  # fmt: skip
    assert error.kind == "unknown_opcode"
    assert len(re.findall(r"^ *\^$", str(error), re.MULTILINE)) == 3


@pytest.mark.parametrize(
    ("count", "told", "end"),
    [(20, 20, ""), (21, 20, "\n\nand 1 more"), (999, 20, "\n\nand 979 more"),
     (3000, 20, "\n\nand 980 more; reading stopped after 1000 faults")],
)  # fmt: skip
def test_of_many_faults_twenty_are_told(count: int, told: int, end: str) -> None:
    lines = "\n".join(f"  y{n} = f32[] foo(x)" for n in range(count))
    error = fault(f"ENTRY e {{\n  x = f32[] parameter(0)\n{lines}\n}}\n")
    assert len(error.faults) == told
    assert str(error).endswith(f"'floor'?{end}"), str(error)[-200:]


def test_faults_of_several_computations_are_told_at_once() -> None:
    error = fault(
        "HloModule m, colour=3\n\na (x: f33[]) -> f32[] {\n  x = f32[] parameter(0)\n}\n\n"
        "b {\n  x = f32[2] parameter(0)\n  c = f32[2] call(x), to_apply=a\n  y = f32[] foo(x)\n}\n\n"
        "c {\n}\n\na {\n  x = f32[] parameter(0)\n}\n\n"
        "ENTRY d {\n  x = f32[2] parameter(0)\n  y = f32[2] call(x), to_apply=b\n  ROOT z = f32[2] negate(xx)\n}\n"
    )
    assert [(each.kind, each.line) for each in error.faults] == [
        ("unknown_attribute", 1), ("syntax", 3), ("unknown_opcode", 10), ("syntax", 13), ("duplicate_name", 16),
        ("undefined_name", 23),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "place", "says"),
    [
        ("ENTRY e { x=f32[2] parameter(0) }", "syntax", "x=", "expected a space between"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(z) }", "undefined_name", "z)", "'z'"),
        ("ENTRY e { weight = f32[2] parameter(0) y = f32[2] negate(wieght) }", "undefined_name", "wieght", "'weight'"),
        ("ENTRY e { x = f32[2] parameter(0) x = f32[2] negate(x) }", "duplicate_name", "x = f32[2] negate", "line 1"),
        ("ENTRY a { x = f32[] parameter(0) }\nENTRY b { x = f32[] parameter(0) }", "syntax", "ENTRY b",
         "a module has only one ENTRY"),
        ("a { x = f32[] parameter(0) }\na { x = f32[] parameter(0) }", "duplicate_name", "a { x = f32[]", "'a'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x) }", "missing_attribute", "reverse", "dimensions"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimension={0} }", "unknown_attribute", "dimension=",
         "did you mean 'dimensions'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions={0}, dimensions={0} }",
         "duplicate_attribute", "dimensions={0} }", "twice"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] add(x) }", "arity_mismatch", "add",
         "expected 2 operands (lhs, rhs), got 1"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(f32[3] x) }", "shape_mismatch", "x) }", "f32[3]"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(0) }", "duplicate_parameter", "0) }", "parameter 0"),
        ("ENTRY e { x = f32[2] parameter(1) }", "missing_parameter", " x = ", "no parameter 0"),
        ("ENTRY e { x = F32[2] parameter(0) }", "unknown_opcode", "F32", "lower case"),
        ("ENTRY e () -> f32[3] { x = f32[2] parameter(0) }", "shape_mismatch", "f32[3]", "f32[2]"),
        ("ENTRY e { }", "syntax", " }", "no instructions"),
        ("ENTRY e { x = f32[2] parameter(0)", "syntax", "", "the end of the text"),
        ("", "syntax", "", "expected a computation"),
        ("HloModule m, colour=3\ne { x = f32[] parameter(0) }", "unknown_attribute", "colour", "replica_count"),
        ("HloModule m, replica_count=0\ne { x = f32[] parameter(0) }", "syntax", "0\n", "at least 1"),
        ("HloModule m, replica_count=2048, num_partitions=1024\ne { x = f32[] parameter(0) }", "syntax", "1024\n",
         "2097152 devices, more than the limit of 1,048,576"),
        ("HloModule m, replica_cont=2\ne { x = f32[] parameter(0) }", "unknown_attribute", "replica_cont",
         "did you mean 'replica_count'"),
        ("relu { x = f32[] parameter(0) }\nENTRY e { x = f32[2] parameter(0) y = f32[2] call(x), to_apply=rleu }",
         "undefined_name", "rleu", "did you mean 'relu'"),
        ("ENTRY e { abc = f32[2] parameter(0) y = f32[2] negate(abc), control-predecessors={abd} }", "undefined_name",
         "abd", "did you mean 'abc'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] set-dimension-size(x, x), dimensions={0} }", "non_scalar",
         "set-dimension-size", "size"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] call(x), to_apply=f }", "undefined_name", "f }", "'f'"),
        ("ENTRY e { x = f32[2]{1} parameter(0) }", "syntax", "{1}",
         "not a permutation of the dimensions of an array of rank 1"),
        ("ENTRY e { x = f32[?] parameter(0) }", "syntax", "?", "expected an extent"),
        ("ENTRY e { x = opaque[] parameter(0) }", "syntax", "opaque", "type opaque"),
        ("ENTRY e { x = f32[2] parameter(0) y = bf16[2] convert(x) z = f32[2] add(x, y) }", "element_type_mismatch",
         "add", "bf16 and f32"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), metadata={op_nam=\"a\"} }", "unknown_attribute",
         "op_nam=", "did you mean 'op_name'"),
        ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), sharding={replicate} }", "syntax", "replicate} }",
         "did you mean 'replicated'"),
        ("ENTRY e { x = pred[2] parameter(0) y = pred[2] compare(x, x), direction=EQUAL }", "invalid_attribute",
         "compare", "'EQ'"),
        ("ENTRY e { x = f32[2] parameter(0) true = f32[2] negate(x) }", "syntax", "true", "an HLO keyword"),
    ],
)  # fmt: skip
def test_faults(text: str, kind: str, place: str, says: str) -> None:
    error = fault(text)
    assert error.kind == kind, error
    assert says in str(error), error
    first = error.faults[0]
    at = (text.splitlines(keepends=True) or [""])[first.line - 1][first.column - 1 :]
    assert at.lstrip().startswith(place.strip()), (at, error)


def test_kinds_are_listed() -> None:
    assert TEXT_KINDS <= KINDS
