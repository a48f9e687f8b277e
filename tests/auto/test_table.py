"""The list of tested ops: it follows from the oracle's record, and cases compiled in process agree with it."""

from __future__ import annotations

import pytest

from interpreter.auto.tested import TESTED
from tests.auto import table
from tests.oracle.deviations import DEVIATIONS, OF_DENORMALS
from tests.oracle.record import Record
from xbuild.core.op import OPS
from xbuild.properties.effects import COLLECTIVES


def test_the_list_follows_from_the_record() -> None:
    assert table.candidates(Record.read()) == TESTED, "run `python -m tests.auto.table`"


def test_no_op_on_the_list_needs_more_than_its_operands() -> None:
    assert not TESTED.keys() & (COLLECTIVES | table.NOT_PURE | table.LEFT_OUT.keys())
    assert TESTED.keys() <= OPS.keys()


def test_no_op_is_on_the_list_in_a_type_that_it_deviates_in() -> None:
    record = Record.read()
    for opcode, types in TESTED.items():
        for name in types - {*table.OTHER_RESULTS.get(opcode, ())}:
            outcomes = record.cells[opcode][name].keys()
            assert "unable" not in outcomes
            assert not outcomes & (DEVIATIONS.keys() - {"subnormal operands"}), (opcode, name)
            assert opcode not in OF_DENORMALS or name not in OF_DENORMALS[opcode].types


@pytest.mark.slow
@pytest.mark.oracle
def test_a_case_of_each_op_agrees_if_it_is_compiled() -> None:
    """The first case of each op that is compiled; `python -m tests.auto.table` takes all of them."""
    pytest.importorskip("jaxlib")
    chosen: dict[str, str] = {}
    for name, case in table.family_cases():
        new = table.opcodes_of(case) & TESTED.keys() - chosen.keys()
        if case.oracle and new and name not in table.BITS_OF_NAN:
            chosen |= dict.fromkeys(new, name)
    outcomes = table.judged(sorted({*chosen.values()}), TESTED)
    assert {name: words for name, words in outcomes.items() if table.is_wrong(words)} == {}
    assert sum(words is None for words in outcomes.values()) > len(outcomes) / 3
