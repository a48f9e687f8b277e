"""The words of StableHLO in both directions."""

from __future__ import annotations

import pytest

import xbuild as xb
from shape_inference import PRIMITIVES
from xbuild.core.op import OPS
from xbuild.stablehlo.decomposing import inverse_functions
from xbuild.stablehlo.reading.rules import around, rule
from xbuild.stablehlo.spelling import choices
from xbuild.stablehlo.spelling.element_types import TYPE_NAMES, TYPES_BY_NAME
from xbuild.stablehlo.spelling.op_names import EXPANDED, OP_NAMES, OPCODES, UNNAMED


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
        (choices.PRECISIONS, choices.PRECISIONS_READ),
        (choices.ALGORITHMS, choices.ALGORITHMS_READ),
        (choices.DISTRIBUTIONS, choices.DISTRIBUTIONS_READ),
        (choices.API_VERSIONS, choices.API_VERSIONS_READ),
    ]
    for written, read in pairs:
        assert {read[word]: word for word in written.values()} == written


def test_ops_that_xla_expands_are_marked_and_come_back() -> None:
    assert set(inverse_functions._FUNCTIONS) == EXPANDED
    for opcode in sorted(EXPANDED):
        module = xb.parse_hlo(f"ENTRY e {{ x = f32[2] parameter(0) ROOT y = f32[2] {opcode}(x) }}")
        text = module.to_stablehlo()
        assert xb.same_structure(xb.parse(text), module)
        unmarked = xb.parse(text.replace(f' {{mhlo.opcode = "{opcode}"}}', ""))
        assert unmarked.entry.root.opcode == "call"


def test_an_operation_has_one_rule() -> None:
    with pytest.raises(ValueError, match=r"stablehlo\.add has a rule already"):
        rule("stablehlo.add")(lambda op: None)
    with pytest.raises(KeyError, match=r"stablehlo\.nothing"):
        around("stablehlo.nothing")(lambda op, earlier: None)
