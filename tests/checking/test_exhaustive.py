"""Verdicts against every run of small programs that compute their decisions, and against a table of known faults."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from interpreter import Stopped, execute
from tests.exhaustive.campaign import compare
from tests.exhaustive.generator import random_program
from tests.exhaustive.model.judge import all_data, interleavings, judged, run
from tests.exhaustive.numbering import numbering
from tests.exhaustive.table.case import Case, failure
from tests.exhaustive.table.measures import CLASSES, measured, table
from tests.exhaustive.table.rows import rows
from tests.exhaustive.table.writer import SIZE
from tests.exhaustive.text import grouped, parsed

CHUNK = 50
CATEGORIES = defaultdict(list)
for _row in rows():
    CATEGORIES[_row.category].append(_row)


@pytest.mark.parametrize("first", range(1000, 1000 + 4 * CHUNK, CHUNK))
def test_verdicts_are_what_every_run_shows(first: int) -> None:
    _, wrong, vague = compare(range(first, first + CHUNK))
    assert not wrong
    assert len(vague) <= 1


def test_programs_of_all_forms_and_ends_are_among_them() -> None:
    found = set()
    for seed in range(160):
        program = random_program(seed)
        found |= {(program.is_one, program.is_given), judged(program).kind}
    assert found >= {(True, True), (True, False), (False, True), (False, False), "ok", "deadlock", "depends"}


def test_the_model_computes_as_programs_do() -> None:
    """Each operation on ids that a decision may be made of."""
    for seed in range(80):
        program, numbers = numbering(seed)
        inputs = [[np.zeros(4, np.int32), np.zeros(2, np.float32)]] * program.devices
        assert [int(each) for each in execute(parsed(program), inputs)] == [*numbers.values()], seed


def test_who_moves_first_decides_nothing() -> None:
    """All interleavings of an order end alike with the same data, so that the model follows one."""
    followed = 0
    for seed in range(300, 360):
        program = random_program(seed)
        data = next(iter(all_data(program)))
        found = interleavings(program, data)
        assert found in (None, {run(program, data).ends}), seed
        followed += found is not None
    assert followed > 40


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_fault_of_the_table_is_found_and_its_guilty_call_named(category: str) -> None:
    failures = {row.id: wrong for row in CATEGORIES[category] if (wrong := failure(row))}
    assert not failures


def test_the_table_has_correct_twins_of_its_faults() -> None:
    truths = {category: {row.truth for row in found} for category, found in CATEGORIES.items()}
    assert {"ok", "refused", "depends"} == set().union(*truths.values())
    assert sum("refused" in found for found in truths.values()) > 15
    assert len({row.id for row in rows()}) == len(rows())


def test_recall_and_precision_of_each_class_of_faults_are_those_of_the_document() -> None:
    found = measured(row for category in CATEGORIES.values() for row in category)
    assert {*CLASSES, "all"} == {*found}
    for each in found.values():
        assert each.recall == 1
        assert each.f1 >= 0.99
        assert each.named == each.faulty
    assert table(found) in (Path(__file__).parents[2] / "docs" / "checker.md").read_text()


ONLY_CHECKED = ("local concurrency", "communicator", "missing wait", "missing partner", "invalid peer")


@pytest.mark.parametrize("number", range(4))
def test_what_the_table_says_is_what_runs_do(number: int) -> None:
    """Correct rows run to completion; of the faulty ones that can be run each stops with some data."""
    run_rows = [row for row in rows() if row.category not in ONLY_CHECKED and "mismatched" not in row.category]
    for row in run_rows[number * 7 :: 28]:
        if not row.category.startswith("P2P ") or row.category == "P2P order":
            assert _ends(row) == (row.truth == "ok"), row.id


def _ends(row: Case) -> bool:
    """With equal numbers, and with one that differs."""
    ranks = int(row.id.split(", ")[-2 if row.id.endswith("one program") else -1].split()[0])
    return all(_runs(row, [int(rank < differing) for rank in range(ranks)]) for differing in (0, 1, ranks))


def _runs(row: Case, numbers: list[int]) -> bool:
    inputs = [[np.int32(number), np.ones(SIZE, np.float32)] for number in numbers]
    try:
        execute(grouped([*row.sources]), inputs, send_buffers=row.send_buffers, check=False)
    except Stopped:
        return False
    return True
