"""Collectives, transfers and async ops of StableHLO text: channels, groups, and how their ids are read."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from xbuild.properties.device_groups import strategy

ADD = """({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %s = stablehlo.add %a, %b : tensor<i64>
    stablehlo.return %s : tensor<i64>
  })"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
TO_SAME = "(tensor<2xi64>) -> tensor<2xi64>"
PAIRS = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
ROOT = "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>"
SPLIT = "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64"
ONE, GLOBAL = CHANNEL.format(1), "use_global_device_ids"
CASES = [
    ("all_reduce", f"{GROUPS}", "cross_replica", (2, 1), [[4, 6], [4, 6]]),
    ("all_reduce", f"{GROUPS}, {ONE}", "cross_replica_and_partition", (2, 1), [[4, 6], [4, 6]]),
    ("all_reduce", f"{GROUPS}, {ONE}, {GLOBAL}", "flattened_ids", (1, 2), [[4, 6], [4, 6]]),
    ("collective_permute", f"{PAIRS}, {CHANNEL.format(0)}", "cross_replica", (2, 1), [[0, 0], [1, 2]]),
    ("collective_permute", f"{PAIRS}, {CHANNEL.format(3)}", "cross_partition", (1, 2), [[0, 0], [1, 2]]),
    ("collective_broadcast", ROOT, "cross_replica", (2, 1), [[3, 4], [3, 4]]),
    ("all_to_all", f"{SPLIT}, {GROUPS}", "cross_replica", (2, 1), [[1, 3], [2, 4]]),
]


def _run(text: str, grid: tuple[int, int]) -> list[list[int]]:
    module = xb.parse_stablehlo(text, replicas=grid[0], partitions=grid[1])
    assert xb.check(module).kind == "ok"
    results = xb.execute(module, [[np.array([1, 2])], [np.array([3, 4])]])
    return [np.asarray(each).tolist() for each in results]


def _main(body: str, result: str = "tensor<2xi64>") -> str:
    return f"func.func @main(%x: tensor<2xi64>) -> {result} {{\n{body}\n}}"


@pytest.mark.parametrize(("name", "ids", "how", "grid", "expected"), CASES)
def test_collective(name: str, ids: str, how: str, grid: tuple[int, int], expected: list[list[int]]) -> None:
    op = f'"stablehlo.{name}"(%x) <{{{ids}}}> {ADD if name == "all_reduce" else ""} : {TO_SAME}'
    text = _main(f"  %0 = {op}\n  return %0 : tensor<2xi64>")
    assert strategy(xb.parse_stablehlo(text).entry.root) == how
    assert _run(text, grid) == expected


def test_groups_are_filled_up_with_minus_one_and_infer_the_counts() -> None:
    groups = "replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>"
    module = xb.parse_stablehlo(
        _main(f'  %0 = "stablehlo.all_reduce"(%x) <{{{groups}}}> {ADD} : {TO_SAME}\n  return %0 : tensor<2xi64>')
    )
    assert module.entry.root.attributes.replica_groups == ((0, 1), (2,))
    assert module.num_replicas == 3


@pytest.mark.parametrize(
    "op",
    [
        f'"stablehlo.all_reduce"(%a) <{{{GROUPS}}}> {ADD}',
        '"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, ' + GROUPS + "}>",
    ],
)
def test_async_collective_has_a_start_and_a_done(op: str) -> None:
    size = 2 if "all_reduce" in op else 4
    result = f"tensor<{size}xi64>"
    text = _main(
        f"""  %0 = "stablehlo.async_start"(%x) ({{
  ^bb0(%a: tensor<2xi64>):
    %1 = {op.replace("bb0(%a", "bb1(%p").replace("add %a", "add %p")} : (tensor<2xi64>) -> {result}
    stablehlo.return %1 : {result}
  }}) : (tensor<2xi64>) -> !stablehlo.future<{result}>
  %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<{result}>) -> {result}
  return %2 : {result}""",
        result,
    )
    opcodes = [each.opcode for each in xb.parse_stablehlo(text).entry.instructions]
    assert [opcode for opcode in opcodes if opcode.startswith("all_")] == opcodes[1:]
    assert opcodes[-2].endswith("_start")
    assert opcodes[-1].endswith("_done")
    assert len(_run(text, (2, 1))[0]) == size


def test_async_start_of_another_op_wraps_it() -> None:
    text = _main("""  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xi64>):
    %1 = stablehlo.negate %a : tensor<2xi64>
    stablehlo.return %1 : tensor<2xi64>
  }) : (tensor<2xi64>) -> !stablehlo.future<tensor<2xi64>>
  %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xi64>>) -> tensor<2xi64>
  return %2 : tensor<2xi64>""")
    assert [each.opcode for each in xb.parse_stablehlo(text).entry.instructions] == [
        "parameter",
        "async_start",
        "async_done",
    ]
    assert _run(text, (2, 1)) == [[-1, -2], [-3, -4]]


def test_transfers_between_devices() -> None:
    pairs = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>, is_host_transfer = false"
    text = _main(f"""  %t = stablehlo.create_token : !stablehlo.token
  %s = "stablehlo.send"(%x, %t) <{{{CHANNEL.format(1)}, {pairs}}}> :
    (tensor<2xi64>, !stablehlo.token) -> !stablehlo.token
  %r:2 = "stablehlo.recv"(%t) <{{{CHANNEL.format(1)}, {pairs}}}> :
    (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
  return %r#0 : tensor<2xi64>""")
    opcodes = [each.opcode for each in xb.parse_stablehlo(text).entry.instructions]
    assert opcodes == [
        "parameter",
        "after_all",
        "send",
        "send_done",
        "recv",
        "recv_done",
        "get_tuple_element",
        "get_tuple_element",
    ]


def test_feeds_give_and_take_tuples() -> None:
    text = _main("""  %t = stablehlo.create_token : !stablehlo.token
  %i:3 = "stablehlo.infeed"(%t) <{infeed_config = "c"}> :
    (!stablehlo.token) -> (tensor<2xi64>, tensor<f32>, !stablehlo.token)
  %o = "stablehlo.outfeed"(%i#0, %i#1, %i#2) <{outfeed_config = "d"}> :
    (tensor<2xi64>, tensor<f32>, !stablehlo.token) -> !stablehlo.token
  return %i#0 : tensor<2xi64>""")
    entry = xb.parse_stablehlo(text).entry
    assert [each.opcode for each in entry.instructions].count("get_tuple_element") == 4
    assert (
        str(next(each.shape for each in entry.instructions if each.opcode == "infeed")) == "((s64[2], f32[]), token[])"
    )


def test_pairs_of_a_transfer_may_stand_among_the_frontend_attributes() -> None:
    noted = '{mhlo.frontend_attributes = {_xla_send_recv_source_target_pairs = "PAIRS", kept = "1"}}'
    text = _main(f"""  %t = stablehlo.create_token : !stablehlo.token
  %s = "stablehlo.send"(%x, %t) <{{{CHANNEL.format(1)}, is_host_transfer = false}}> {noted} :
    (tensor<2xi64>, !stablehlo.token) -> !stablehlo.token
  %r:2 = "stablehlo.recv"(%t) <{{{CHANNEL.format(1)}, is_host_transfer = false}}> {noted} :
    (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
  return %r#0 : tensor<2xi64>""")
    module = xb.parse_stablehlo(text.replace("PAIRS", "{{0,1}}"), partitions=2)
    starts = [each for each in module.entry.instructions if each.opcode in ("send", "recv")]
    assert [each.attributes.source_target_pairs for each in starts] == [((0, 1),)] * 2
    dones = [each for each in module.entry.instructions if each.opcode in ("send_done", "recv_done")]
    assert [each.annotations["frontend_attributes"] for each in dones] == [{"kept": "1"}] * 2
    assert xb.same_structure(xb.parse(module.to_stablehlo()), module)
    with pytest.raises(xb.HloParseError, match="_xla_send_recv_source_target_pairs='none'"):
        xb.parse_stablehlo(text.replace("PAIRS", "none"))
