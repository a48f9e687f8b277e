"""`xb.cost`: sums, loops, collectives, programs of several devices, refusals, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from shape_inference import XbuildError
from xbuild.cli import main
from xbuild.costs.report import COST_FIELDS, short
from xbuild.files.targets import load

LOOP = """HloModule loop, num_partitions=8
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
body {
  p = (s32[], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[16,16] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  d = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="layer/dot"}
  r = f32[16,16] all-reduce(d), channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[16,16]) tuple(n, r)
}
test {
  p = (s32[], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(5)
  ROOT c = pred[] compare(i, end), direction=LT
}
ENTRY main {
  x = f32[16,16] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[16,16]) tuple(zero, x)
  w = (s32[], f32[16,16]) while(t), condition=test, body=body
  g = f32[16,16] get-tuple-element(w), index=1
  ROOT q = f32[16,16] all-reduce(g), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), to_apply=add, GLOBAL
}
""".replace("GLOBAL", "use_global_device_ids=true")


def row(cost: xb.Cost, name: str) -> xb.CostRow:
    (found,) = (each for each in cost.rows if each.instruction.name == name)
    return found


def test_a_loop_counts_as_often_as_it_runs() -> None:
    cost = xb.cost(xb.parse_hlo(LOOP))
    assert row(cost, "d").flops == 5 * 2 * 16**3
    assert row(cost, "c").times == 6
    assert cost.is_known


def test_a_loop_of_unknown_trips_counts_as_one_and_says_so() -> None:
    cost = xb.cost(xb.parse_hlo(LOOP.replace("constant(0)", "parameter(1)")))
    assert row(cost, "d").times == 1
    assert not row(cost, "d").is_known
    assert "counts as one trip" in str(cost)
    assert "1?" in str(cost)


def test_collectives_are_told_by_axis() -> None:
    cost = xb.cost(xb.parse_hlo(LOOP))
    assert cost.mesh == xb.Mesh(a=4, b=2)
    assert [str(each.collective) for each in sorted(cost.collectives, key=lambda each: each.instruction.name)] == [
        "all-reduce over axis a: 4 of 8, 2 groups",
        "all-reduce over axis b: 2 of 8, 4 groups",
    ]
    assert {each.name: each.link_bytes for each in cost.by("axis")} == {"axis a": 1536, "axis b": 5 * 1024}


def test_a_mesh_that_is_given_names_the_axes() -> None:
    cost = xb.cost(xb.parse_hlo(LOOP), mesh=xb.Mesh(data=4, model=2))
    assert {each.name for each in cost.by("axis")} == {"axis data", "axis model"}


@pytest.mark.parametrize("by", ["scope", "op"])
def test_sums_are_those_of_the_rows(by: str) -> None:
    cost = xb.cost(xb.parse_hlo(LOOP))
    for figure in COST_FIELDS:
        total = getattr(cost, figure)
        assert sum(getattr(each, figure) for each in cost.by(by)) == total  # type: ignore[arg-type]
        assert sum(getattr(each, figure) for each in cost.rows) == total
    assert cost.total_flops == 8 * cost.flops


def test_a_group_of_programs_costs_what_its_largest_program_does() -> None:
    small, large = (xb.Module(f"m{n}", xb.computation(xb.f32[n])(xb.negate)) for n in (4, 64))
    cost = xb.cost(xb.ModuleGroup({0: small, 1: large, 2: small}))
    assert (cost.flops, cost.total_flops, cost.num_devices) == (64, 72, 3)
    assert cost.peak_memory == xb.cost(large).peak_memory == 2 * 256


def test_memory_is_that_of_the_device_with_the_highest_peak() -> None:
    busy = xb.computation(xb.f32[64, 64])(lambda x: xb.dot(xb.dot(x, x), x))
    wide = xb.computation(xb.f32[64, 64])(lambda x: xb.broadcast(x, (100,)))
    programs = {0: xb.Module("busy", busy), 1: xb.Module("busy", busy), 2: xb.Module("wide", wide)}
    cost = xb.cost(xb.ModuleGroup(programs))
    peaks = [xb.cost(each).peak_memory for each in programs.values()]
    assert cost.flops == xb.cost(busy).flops > xb.cost(wide).flops
    assert (cost.peak_memory, cost.memory_device) == (max(peaks), 2)
    assert peaks[2] > 10 * peaks[0]
    assert f"{short(cost.reserved_memory, 'B')} reserved for a run on device 2: " in str(cost)
    assert f"{short(max(peaks), 'B')} at most at once, in the recorded order" in str(cost)
    assert cost.to_dict()["memory_device"] == 2
    laid = xb.timeline(xb.ModuleGroup(programs), xb.machine("v5e"))
    assert f"memory       {short(cost.reserved_memory, 'B')} reserved on device 2, of 16 GB: fits" in laid.table()


def test_what_is_no_program_or_mesh_is_refused() -> None:
    module = xb.parse_hlo(LOOP)
    with pytest.raises(TypeError, match="is not a Computation, a Module or a ModuleGroup"):
        xb.cost("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a Mesh"):
        xb.cost(module, mesh={"a": 8})  # type: ignore[arg-type]
    with pytest.raises(XbuildError, match="has 6 devices, but the program runs on 8"):
        xb.cost(module, mesh=xb.Mesh(a=6))
    with pytest.raises(XbuildError, match="the group has no programs"):
        xb.cost(xb.ModuleGroup({}))
    with pytest.raises(XbuildError, match="got 'line'"):
        xb.cost(module).by("line")  # type: ignore[arg-type]


def test_the_command_prints_the_page_and_json(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(LOOP)
    cost, run = xb.cost(load(str(target))), CliRunner().invoke
    assert run(main, ["cost", str(target)]).stdout == f"{cost}\n"
    assert "layer/dot" in run(main, ["cost", str(target), "--by", "scope"]).stdout
    found = json.loads(run(main, ["cost", str(target), "--json"]).stdout)
    assert found == {"schema": "xbuild.cost/1", "target": str(target), **cost.to_dict(), "issues": []}
    assert found["flops"] == cost.flops
    few = json.loads(run(main, ["cost", str(target), "--json", "--top", "2", "--by", "op"]).stdout)
    assert [each["name"] for each in few["rows"]] == ["d", "r"]
    assert [each["name"] for each in few["by"]] == ["dot", "all-reduce"]


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999, "999"), (999.6, "1 k"), (24.7e15, "24.7 P")])
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


def test_a_dump_has_a_line_for_each_module(tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = f"HloModule {name}\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}}\n"
        (tmp_path / f"{name}.hlo").write_text(text)
    result = CliRunner().invoke(main, ["cost", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["one", "two"]
    document = json.loads(CliRunner().invoke(main, ["cost", str(tmp_path), "--json"]).stdout)
    assert "needs 32 B of memory" in result.stdout
    assert len(document["programs"]) == 2
    assert CliRunner().invoke(main, ["cost", str(tmp_path), "--machine", "h100"]).exit_code == 2
