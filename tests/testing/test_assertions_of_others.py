"""Contracts for the assertions on text that public repositories make, as `docs/assertions.md` lists them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from xbuild import testing
from xbuild.testing import ContractError, at_least

DOCUMENT = Path(__file__).parents[2] / "docs" / "assertions.md"
TEXT = """HloModule step, num_partitions=4, replica_count=1

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }

ENTRY e {
  all-reduce.name = f32[64] parameter(0)
  norm = f32[] constant(1)
  half = bf16[8,8] parameter(1)
  start = f32[64] all-reduce-start(all-reduce.name), channel_id=1, replica_groups={{0,1},{2,3}},
    use_global_device_ids=true, to_apply=add
  done = f32[64] all-reduce-done(start)
  scalar = f32[] all-reduce(norm), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  moved = f32[16] collective-permute(shard), channel_id=3, source_target_pairs={{0,1},{1,0}}
  narrow = bf16[8,8] dot(half, half), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  eighth = f8e4m3fn[8,8] convert(half)
  scaled = f32[8,8] custom-call(eighth, eighth), custom_call_target="__cublas$lt$matmul$f8"
  ROOT r = (f32[64], f32[], f32[16], bf16[8,8], f32[8,8]) tuple(done, scalar, moved, narrow, scaled)
}
""".replace("  moved =", "  shard = f32[16] slice(done), slice={[0:16]}\n  moved =")  # fmt: skip

GATHERED = TEXT.replace(
    "f32[16] collective-permute(shard), channel_id=3, source_target_pairs={{0,1},{1,0}}",
    "f32[64] all-gather(shard), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true",
).replace("f32[], f32[16], bf16", "f32[], f32[64], bf16")
WIDE = TEXT.replace("narrow = bf16[8,8] dot(half, half)", "w = f32[8,8] dot(half, half)").replace(
    "moved, narrow", "moved, w"
)
WIDE = WIDE.replace("f32[16], bf16[8,8]", "f32[16], f32[8,8]")


def sizes(program: str) -> None:
    rows = [each for each in testing.collectives(program) if each.bytes > 4]
    assert [(each.op, each.bytes) for each in rows] == [("all_reduce", 256), ("collective_permute", 64)]


def bytes_by_op(program: str) -> None:
    found = testing.assert_collectives(program)
    assert (found.only("all_reduce").bytes, found.only("all_gather").bytes) == (260, 0)


# The contract, and a program for which it does not hold.
KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "counts and their total": (
        lambda text: testing.assert_collectives(text, all_reduce=2, collective_permute=1, others=0),
        GATHERED,
    ),
    "without scalars": (sizes, GATHERED),
    "bytes by op": (bytes_by_op, GATHERED),
    "no gather": (lambda text: testing.assert_collectives(text, all_gather=0), GATHERED),
    "permutes and no gather": (
        lambda text: testing.assert_collectives(text, collective_permute=at_least(1), all_gather=0),
        GATHERED,
    ),
    "groups": (
        lambda text: testing.assert_collectives(text, axis="y", all_reduce=2, mesh=xb.Mesh(x=2, y=2)),
        TEXT.replace("{{0,1},{2,3}}", "{{0,2},{1,3}}"),
    ),
    "products in bf16": (
        lambda text: (
            testing.assert_ops(text, dtype="bf16", dot=at_least(1)),
            testing.assert_ops(text, dtype="f32", dot=0),
        ),
        WIDE,
    ),
    "a call of a library": (
        lambda text: testing.assert_ops(text, custom_call={"__cublas$lt$matmul$f8": 1}),
        TEXT.replace("$f8", ""),
    ),
    "half the memory of another": (
        lambda text: testing.assert_memory(text, at_most=2 * xb.cost(xb.parse_hlo(TEXT)).peak_memory // 2),
        TEXT.replace("f32[64] parameter(0)", "f32[64] parameter(0)\n  big = f32[4096] parameter(2)"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_contract_holds_and_fails_for_a_broken_program(kind: str) -> None:
    contract, broken = KINDS[kind]
    contract(TEXT)
    with pytest.raises(AssertionError) as caught:
        contract(broken)
    assert isinstance(caught.value, ContractError) or kind in ("without scalars", "bytes by op")


def test_the_document_counts_every_assertion() -> None:
    text = DOCUMENT.read_text()
    total, compiled, lowered = map(
        int, re.findall(r"all (\d+) assertions on text.*?: (\d+) on compiled .*? (\d+) on lowered", text, re.DOTALL)[0]
    )
    parts = re.split(r"^## In JAX's tests: .*$", text, flags=re.MULTILINE)[1:]
    sums = [sum(map(int, re.findall(r"\| (\d+) on ", part))) for part in parts]
    assert sums == [compiled, lowered]
    assert compiled + lowered == total


def test_the_contracts_of_the_document_exist() -> None:
    names = set(re.findall(r"\b(assert_\w+|collectives|at_least)\(", DOCUMENT.read_text()))
    names -= {"assert_equal_collectives"}
    assert names
    assert all(hasattr(testing, name) for name in names)
