"""Why a program that XLA partitioned has each of its collectives, from its text and the text before."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from xbuild.cli import main
from xbuild.explaining.collectives import explain_collectives

SUM = "replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add"
PARTS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true, dimensions={0}"
AFTER = f"""HloModule jit_step, is_scheduled=true, num_partitions=4
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY main_spmd {{
  w = f32[2,8] parameter(0)
  x = f32[4,8] parameter(1)
  gathered = f32[8,8] all-gather(w), channel_id=1, {PARTS},
    metadata={{op_name="jit(step)/dot_general"}}
  product = f32[8,8] dot(x, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  summed = f32[8,8] all-reduce(product), channel_id=2, {SUM},
    metadata={{op_name="jit(step)/transpose(jvp())/dot_general" source_file="step.py" source_line=7}}
  both = f32[8,8] add(gathered, summed)
  zero = f32[] constant(0)
  total = f32[] reduce(both, zero), dimensions={{0,1}}, to_apply=add
  mine = f32[] all-reduce(total), channel_id=3, {SUM},
    metadata={{op_name="jit(step)/psum"}}
  pair = (f32[], f32[]) all-reduce(total, mine), channel_id=4, {SUM},
    metadata={{op_name="jit(step)/(shard_map/psum:jvp()/reduce_sum)"}}
  one = f32[] get-tuple-element(pair), index=0
  moved = f32[2,8] collective-permute(w), channel_id=5, source_target_pairs={{{{0,1}},{{1,2}}}},
    metadata={{op_name="jit(step)/concatenate"}}
  new = f32[2,8] negate(w)
  whole = f32[8,8] all-gather(new), channel_id=6, {PARTS}
  ROOT r = (f32[], f32[2,8], f32[8,8]) tuple(one, moved, whole)
}}
"""
BEFORE = """HloModule jit_step, num_partitions=4
ENTRY main {
  w = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="params[\\'w\\']"}
  x = f32[16,8] parameter(1)
  one = f32[] constant(0)
  ROOT r = (f32[], f32[8,8], f32[8,8]) tuple(one, w, w), sharding={{replicated}, {devices=[4,1]<=[4]}, {replicated}}
}
"""
REASONS = {
    "gathered": "argument 0, w, is split along dimension 0, and each device needs all of it for dot_general",
    "summed": "the dimension that dot_general sums over is split, so each device holds a partial sum",
    "mine": "you wrote psum",
    "pair": "2 collectives, which XLA combined: you wrote psum; the dimension that reduce_sum reduces is split, so "
    "each device holds a partial result",
    "moved": "devices exchange parts of argument 0, w, for concatenate",
    "whole": "new is split along dimension 0, but result 2 of the program must be whole, or in larger parts",
}


def test_the_reason_of_each_collective() -> None:
    found = {each.instruction.name: each for each in explain_collectives(xb.cost(xb.parse_hlo(AFTER, origins=True)))}
    assert {name: each.reason for name, each in found.items()} == REASONS
    assert [name for name, each in found.items() if each.is_written] == ["mine"]
    assert str(found["summed"].source).startswith("step.py:7")
    assert found["gathered"].to_dict()["bytes"] == 192


def test_the_text_before_states_shardings() -> None:
    cost, before = xb.cost(xb.parse_hlo(AFTER)), xb.parse_hlo(BEFORE)
    found = {each.instruction.name: each.reason for each in explain_collectives(cost, before)}
    assert found["gathered"].startswith("argument 0, ")
    assert (
        "which is stated to be in 4 x 1 tiles, is split along dimension 0, and each device needs all"
        in found["gathered"]
    )
    assert found["whole"] == "new is split along dimension 0, but result 2 of the program is stated as {replicated}"


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "after.hlo"
    file.write_text(AFTER)
    result = CliRunner().invoke(main, ["shard", str(file)])
    assert result.exit_code == 0
    first, *rest = result.output.splitlines()
    assert first.startswith(
        "jit_step, partitioned by XLA: 6 collectives, 1 of them written by you, 5 inserted by XLA; "
    )
    assert "inserted by XLA: " + REASONS["summed"] in " ".join(" ".join(rest).split())
    assert "gathered" not in CliRunner().invoke(main, ["shard", str(file), "--top", "1"]).output
    document = CliRunner().invoke(main, ["shard", str(file), "--json"]).output
    assert '"is_written": true' in document
    assert CliRunner().invoke(main, ["shard", str(file), "--compiled", "--explain", "mine"]).exit_code == 2


def test_a_dump_has_the_text_before(tmp_path: Path) -> None:
    for stage, text in (("before_optimizations", BEFORE), ("cpu_after_optimizations", AFTER)):
        (tmp_path / f"module_0001.jit_step.{stage}.txt").write_text(text)
    result = CliRunner().invoke(main, ["shard", f"{tmp_path}#jit_step"])
    assert "result 2 of the program is stated as {replicated}" in " ".join(result.output.split())


@pytest.mark.parametrize("names", [("step", "other"), ("a", "b", "c", "d")])
def test_a_dump_has_the_reasons_of_a_few_modules_or_a_line_for_each(tmp_path: Path, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        text = AFTER.replace("jit_step", f"jit_{name}")
        (tmp_path / f"module_000{number}.jit_{name}.cpu_after_optimizations.txt").write_text(text)
    result = CliRunner().invoke(main, ["shard", str(tmp_path)])
    assert result.exit_code == 0, result.output
    heads = [line.partition(",")[0] for line in result.stdout.splitlines() if "partitioned by XLA" in line]
    assert heads == [f"jit_{name}" for name in names]
    assert ("inserted by XLA: " in result.stdout) == (len(names) == 2)


@pytest.mark.oracle
@pytest.mark.slow
def test_what_jax_lowered_is_compiled_first(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "net.py").write_text(
        "import os\n"
        'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"\n'
        "import jax\n"
        'mesh = jax.sharding.Mesh(jax.devices()[:4], ("d",))\n'
        'split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))\n'
        "def program():\n"
        "    array = jax.ShapeDtypeStruct((16, 16), 'float32')\n"
        "    return jax.jit(lambda x, w: x @ w, in_shardings=(split, split), out_shardings=split).lower(array, array)\n"
    )
    result = CliRunner().invoke(main, ["shard", f"{tmp_path}/net.py:program", "--compiled"])
    assert "all-gather  over axis d: 4 of 4, 1 group" in result.output, result.output
    assert "argument 1, w, which is stated as [{d}, {}], is split" in " ".join(result.output.split())
