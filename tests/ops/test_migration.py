"""The table of XlaBuilder's functions: every name has a row, every row leads somewhere, the document is made of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.test_docs import EXAMPLES
from xbuild.reference.migration import KINDS, ROWS, document

ROOT = Path(__file__).parents[2]
NAMES = (ROOT / "tests" / "data" / "xla_builder_names.txt").read_text().split()
RUN = {inspect.cleandoc(example.docstring or "") for example in EXAMPLES.values()}


def test_every_function_has_a_row() -> None:
    assert len(NAMES) > 190
    assert [name for name in NAMES if name not in ROWS] == []


def test_few_are_refused() -> None:
    refused = [row for row in ROWS.values() if row.kind == "refused"]
    assert len(refused) <= 9
    assert [row.name for row in refused if row.name.startswith("ops.")] == []


@pytest.mark.parametrize("name", ROWS)
def test_row_leads_somewhere(name: str) -> None:
    row = ROWS[name]
    assert row.kind in KINDS
    found = row.found()
    if row.kind == "refused":
        assert found == []
        assert row.note, "no reason"
    else:
        assert found, "no target"


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.kind in ("op", "composition")])
def test_example_of_a_row_runs(name: str) -> None:
    for target in ROWS[name].found():
        text = inspect.getdoc(target) or ""
        assert ">>> " in text
        assert text in RUN


def test_what_depends_on_the_run_is_no_constant() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    one = xb.constant(builder, [1.0, 2.0])
    same = [one, one + 2.0, xb.lgamma(one), xb.reduce_all(one, 0.0, xb.add), xb.iota(builder, xb.f32, 3)]
    differing = [
        x, one + x, xb.rng_uniform(0.0, 1.0, xb.f32[2], builder=builder), xb.replica_id(builder=builder),
        xb.cross_replica_sum(one), xb.map(one, lambda e: e + xb.rng_uniform(0.0, 1.0, xb.f32[()], builder=e.builder)),
        xb.get_tuple_element(xb.infeed(builder, xb.f32[2]), 0),
    ]  # fmt: skip
    assert [xb.is_constant(value) for value in (*same, *differing)] == [True] * len(same) + [False] * len(differing)


@pytest.mark.parametrize(("asked", "given"), [
    ((100, 1, 5, 0.9, False), (100, 0)), ((1048, 3, 30, 0.17, False, 4192), (256, 3)),
    ((513, 2, 1, 1.0, False), (128, 3)),
    ((625810, 2, 125, 1.0, False), (625810, 0)), ((131, 2, 82, 0.08, False, 524), (256, 0)),
    ((128476, 3, 170, 0.5, False, 513904), (128, 10)), ((1049030, 1, 251, 0.78, False, 4196120), (2048, 10)),
    ((4096, 2, 7, 0.95), (7, -1)),
])  # fmt: skip
def test_output_sizes_of_approx_top_k_are_those_of_xla(asked: tuple[Any, ...], given: tuple[int, int]) -> None:
    assert xb.approx_top_k_reduction_output_size(*asked) == given


@pytest.mark.oracle
def test_output_sizes_of_approx_top_k_are_those_of_the_xla_that_is_here() -> None:
    jax = pytest.importorskip("jax._src.lib")
    numbers = np.random.default_rng(5)
    for _ in range(2000):
        size, rank = int(10 ** numbers.uniform(0, 7)), int(numbers.integers(1, 4))
        top_k, recall = int(numbers.integers(1, min(size, 300) + 1)), float(numbers.choice([0.5, 0.9, 0.999, 1.0]))
        asked = (size, rank, top_k, recall, False, int(numbers.choice([-1, size, 4 * size])))
        theirs = jax._jax.approx_top_k_reduction_output_size(*asked)
        assert xb.approx_top_k_reduction_output_size(*asked) == tuple(theirs), asked


def test_document_is_up_to_date() -> None:
    written = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    assert written == document(), "python -m xbuild.reference.migration writes it anew"
