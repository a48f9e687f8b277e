"""Ops against real XLA: `docs/op_status.md` agrees with the record, and so does a slice of the campaign."""

from __future__ import annotations

import pytest

from shape_inference import PRIMITIVES
from tests.oracle.chance import UNRUN, Chance
from tests.oracle.deviations import DEVIATIONS
from tests.oracle.draw import DRAWS, FAMILIES
from tests.oracle.record import Record
from tests.oracle.status import FILE, page
from tests.oracle.tolerances import TABLE
from xbuild.core.op import OPS

RECORD = Record.read()
SLICE = ("add", "convert", "divide", "gather", "maximum", "pad")


def test_each_op_has_a_draw_in_the_file_of_its_family() -> None:
    families = {opcode: family for family, draws in FAMILIES.items() for opcode in draws}
    assert families == {opcode: schema.declaration.__module__.rpartition(".")[2] for opcode, schema in OPS.items()}


def test_a_draw_is_told_by_its_seed_and_keeps_its_shapes_when_the_values_change() -> None:
    for opcode, draw in DRAWS.items():
        for name in RECORD.runnable(opcode)[:1]:
            one, same, other = (draw(Chance(8, data=data), PRIMITIVES[name]) for data in (0, 0, 1))
            assert repr(one.operands) == repr(same.operands)
            assert _shapes(one.operands) == _shapes(other.operands)


def _shapes(operands: object) -> object:
    return tuple(map(_shapes, operands)) if isinstance(operands, tuple) else (operands.shape, operands.dtype)


def test_the_page_is_what_the_record_gives() -> None:
    assert FILE.read_text() == page(RECORD), "python -m tests.oracle.status writes it anew"


def test_the_record_has_every_op_in_every_type_and_no_cell_is_empty() -> None:
    assert set(RECORD.cells) == set(OPS)
    assert [opcode for opcode, row in RECORD.cells.items() if row.keys() != PRIMITIVES.keys() - UNRUN] == []
    empty = [(opcode, name) for opcode, row in RECORD.cells.items() for name, cell in row.items() if not cell]
    assert empty == []
    outcomes = set(RECORD.total())
    assert outcomes <= {"equal", "subnormals", *DEVIATIONS}


def test_the_tables_name_ops() -> None:
    assert set(TABLE) <= set(OPS)
    assert all(deviation.opcodes <= set(OPS) for deviation in DEVIATIONS.values())


@pytest.mark.slow
@pytest.mark.oracle
def test_a_slice_of_the_campaign_agrees() -> None:
    pytest.importorskip("jaxlib")
    from tests.oracle import Oracle
    from tests.oracle.campaign import compared

    with Oracle() as oracle:
        found = list(compared(0, 0, RECORD, oracle, SLICE, variants=4))
    assert len(found) > 300
    assert [str(each) for each in found if not each.is_explained] == []
