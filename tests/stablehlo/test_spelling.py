"""The words of StableHLO in both directions."""

from __future__ import annotations

import pytest

import xbuild as xb
from shape_inference import PRIMITIVES
from xbuild.core.op import OPS
from xbuild.stablehlo import spelling
from xbuild.stablehlo.op_rules import functions
from xbuild.stablehlo.reading.rules import rule, wrap_rule
from xbuild.stablehlo.spelling import EXPANDED, OP_NAMES, OPCODES, TYPE_NAMES, TYPES_BY_NAME, UNNAMED


def test_every_element_type_has_a_name_of_its_own_but_the_two_of_one_bit() -> None:
    assert set(PRIMITIVES.values()) - TYPE_NAMES.keys() == {xb.s1, xb.u1}
    assert {TYPES_BY_NAME[name]: name for name in TYPE_NAMES.values()} == TYPE_NAMES


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (xb.pred, "i1"), (xb.s4, "i4"), (xb.u64, "ui64"), (xb.f4e2m1fn, "f4E2M1FN"), (xb.f6e3m2fn, "f6E3M2FN"),
        (xb.f8e4m3b11fnuz, "f8E4M3B11FNUZ"), (xb.bf16, "bf16"), (xb.f16, "f16"), (xb.c128, "complex<f64>"),
    ],
)  # fmt: skip
def test_name_of_an_element_type(dtype: xb.PrimitiveType, name: str) -> None:
    assert TYPE_NAMES[dtype] == name


def test_every_opcode_has_a_name_of_its_own_or_none() -> None:
    assert OP_NAMES.keys() | UNNAMED == OPS.keys()
    assert not OP_NAMES.keys() & UNNAMED
    assert {OPCODES[name]: name for name in OP_NAMES.values()} == OP_NAMES


def test_choices_are_read_back() -> None:
    pairs = [
        (spelling.PRECISIONS, spelling.PRECISIONS_READ),
        (spelling.ALGORITHMS, spelling.ALGORITHMS_READ),
        (spelling.DISTRIBUTIONS, spelling.DISTRIBUTIONS_READ),
        (spelling.API_VERSIONS, spelling.API_VERSIONS_READ),
    ]
    for written, read in pairs:
        assert {read[word]: word for word in written.values()} == written


def test_ops_that_xla_expands_are_marked_and_come_back() -> None:
    assert set(functions._INVERSES) == EXPANDED
    for opcode in sorted(EXPANDED):
        module = xb.parse_hlo(f"ENTRY e {{ x = f32[2] parameter(0) ROOT y = f32[2] {opcode}(x) }}")
        text = module.to_stablehlo()
        assert xb.same_structure(xb.parse(text), module)
        unmarked = xb.parse(text.replace(f' {{mhlo.opcode = "{opcode}"}}', ""))
        assert unmarked.entry.root.opcode == "call"


def test_an_operation_has_one_rule() -> None:
    with pytest.raises(ValueError, match=r"stablehlo\.add already has the rule"):
        rule("stablehlo.add")(lambda op: None)
    with pytest.raises(KeyError, match=r"stablehlo\.nothing"):
        wrap_rule("stablehlo.nothing")(lambda op, earlier: None)
