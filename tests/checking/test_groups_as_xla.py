"""Who meets in a collective with a channel, as real XLA:CPU has it, on grids of replicas and partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from tests.oracle import Failure, Job, Oracle

LENGTH = 12

HEAD = """HloModule m, replica_count={}, num_partitions={}

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main (x: f32[12]) -> {} {{
  %x = f32[12] parameter(0)
  ROOT %r = {} {}(%x), channel_id=1, {}
}}
"""

BY_OPCODE = {
    "all-gather": "dimensions={0}, replica_groups=",
    "all-reduce": "to_apply=%add, replica_groups=",
    "reduce-scatter": "dimensions={0}, to_apply=%add, replica_groups=",
    "all-to-all": "dimensions={0}, replica_groups=",
    "collective-permute": "source_target_pairs=",
}

CASES = [
    (2, 1, "collective-permute", "{{0,0}}", 1),
    (2, 1, "collective-permute", "{{0,1}}", 1),
    (2, 1, "collective-permute", "{{1,1}}", 1),
    (3, 1, "collective-permute", "{{0,0},{1,1}}", 1),
    (2, 1, "all-to-all", "{{0},{1}}", 1),
    (2, 1, "all-gather", "{{1,0}}", 2),
    (2, 2, "collective-permute", "{{0,1},{1,0}}", 1),
    (2, 2, "all-to-all", "{{1,0}}", 2),
    (2, 2, "all-gather", "{{1,0}}", 4),
    (2, 3, "all-reduce", "{{1,0}}", 1),
    (2, 3, "reduce-scatter", "{{1,0}}", 6),
    (2, 3, "all-to-all", "{{2,1,0}}", 3),
    (4, 2, "all-to-all", "{{0,1}}", 2),
    (4, 2, "all-reduce", "{{0,2},{3,1}}", 1),
    (4, 2, "reduce-scatter", "{{0,2},{3,1}}", 4),
]
"""Replicas, partitions, the op, its groups or pairs, and how many devices share out or give the result."""

REFUSED = [
    ("all-to-all", "{{0,1}}", 2, "invalid_group"),
    ("collective-permute", "{{0,1},{1,0}}", 1, "but the partitions are 0..0"),
]


def text(replicas: int, partitions: int, opcode: str, ids: str, count: int) -> str:
    extent = {"all-gather": LENGTH * count, "reduce-scatter": LENGTH // count}.get(opcode, LENGTH)
    shape = f"f32[{extent}]"
    return HEAD.format(replicas, partitions, shape, shape, opcode, BY_OPCODE[opcode] + ids)


def inputs(devices: int) -> list[Any]:
    return [[np.arange(LENGTH, dtype=np.float32) + 100 * device] for device in range(devices)]


@pytest.mark.oracle
def test_as_xla() -> None:
    pytest.importorskip("jaxlib")
    with Oracle() as oracle:
        for replicas, partitions, opcode, ids, count in CASES:
            source, given = text(replicas, partitions, opcode, ids, count), inputs(replicas * partitions)
            theirs = oracle.run(Job(source, given, replicas, partitions))
            assert not isinstance(theirs, Failure), (opcode, ids, theirs)
            ours = execute(xb.parse_hlo(source), given)
            same = [np.array_equal(a, row[0]) for a, row in zip(ours, theirs, strict=True)]
            assert all(same), (replicas, partitions, opcode, ids)


@pytest.mark.parametrize(("opcode", "ids", "count", "words"), REFUSED)
def test_partitions_that_there_are_not(opcode: str, ids: str, count: int, words: str) -> None:
    """XLA:CPU fails at the run of the first, and dies of the second."""
    assert words in str(xb.check(xb.parse_hlo(text(2, 1, opcode, ids, count))))


@pytest.mark.parametrize("ids", ["{{0,1}}", "{{1,1}}"])
def test_a_permutation_of_partitions_that_there_are_not_gives_zeros(ids: str) -> None:
    results = execute(xb.parse_hlo(text(2, 1, "collective-permute", ids, 1)), inputs(2))
    assert not any(result.any() for result in results)


@pytest.mark.parametrize(
    ("pairs", "replicas", "kind"),
    [("{0,3}", 3, "error"), ("{3,0}", 3, "error"), ("{0,1}", 3, "ok"), ("{0,1}", 1, "error"), ("{0,0}", 1, "ok")],
)
def test_pairs_beyond_all_devices_are_out_of_range_where_one_partition_ignores_others(
    pairs: str, replicas: int, kind: str
) -> None:
    text = f"""HloModule m, replica_count={replicas}
    ENTRY e {{ x = f32[4] parameter(0)
      ROOT c = f32[4] collective-permute(x), channel_id=1, source_target_pairs={{{pairs}}} }}"""
    verdict = xb.check(xb.parse_hlo(text))
    assert verdict.kind == kind, verdict
    assert [each.kind for each in verdict.findings] == ["device_out_of_range"] * (kind == "error")


@pytest.mark.parametrize(("groups", "kind"), [("{{0},{1}}", "ok"), ("{{0},{7}}", "error")])
def test_groups_beyond_all_devices_are_wrong_where_one_partition_ignores_others(groups: str, kind: str) -> None:
    text = f"""HloModule m, replica_count=3
    ENTRY e {{ x = f32[4] parameter(0)
      ROOT c = f32[4] all-to-all(x), channel_id=1, replica_groups={groups}, dimensions={{0}} }}"""
    assert xb.check(xb.parse_hlo(text)).kind == kind
