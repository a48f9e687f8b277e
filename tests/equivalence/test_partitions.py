"""Programs of JAX: what the partitioner makes of them is accepted, and faults planted in it are found and named."""

from __future__ import annotations

import pytest

from tests.equivalence.partitions import Partition, judged, partitions

NAMES = (
    "mlp, fully sharded weights", "attention, heads", "cross entropy, vocabulary", "embedding, vocabulary", "experts",
    "dilated convolution", "power iteration", "cholesky of batches", "transformer step, data and model",
)  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> dict[str, Partition]:
    """Programs by name."""
    pytest.importorskip("jax")
    return {each.name: each for each in partitions(*NAMES)}


@pytest.mark.parametrize("name", NAMES)
def test_a_right_partition_is_accepted(programs: dict[str, Partition], name: str) -> None:
    found = programs[name].verdict()
    assert found, str(found)
    assert found.log2_error < -60


@pytest.mark.parametrize("name", NAMES[:6])
def test_faults_are_found(programs: dict[str, Partition], name: str) -> None:
    found = list(judged(programs[name], 4))
    assert len(found) == 4
    assert [each.judged.mutant.line for each in found if each.judged.is_missed] == []
    assert [each.judged.mutant.line for each in found if each.judged.verdict.kind == "undecided"] == []


def test_a_missing_sum_is_named(programs: dict[str, Partition]) -> None:
    found = [each for each in judged(programs["attention, heads"], 12) if "reduction" in each.judged.mutant.operator]
    assert {each.judged.mutant.operator for each in found} >= {"missing_reduction", "doubled_reduction"}
    assert {each.place for each in found} <= {"the changed one", "its user"}
