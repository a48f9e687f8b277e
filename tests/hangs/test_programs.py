"""`--program`: where in the program each rank is, whether healthy machines hang, and what fixes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from tests.hangs.jobs import DATA, find
from xbuild.cli import main
from xbuild.hangs.programs import find_in_program

STEP = """\
HloModule step, num_partitions=4, is_scheduled=true

add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }

ENTRY step {
  p = f32[4]{0} parameter(0)
  first = f32[4]{0} all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=add, use_global_device_ids=true
  shift = f32[4]{0} collective-permute(first), channel_id=2, source_target_pairs={{0,2},{1,3},{2,0},{3,1}}
  second = f32[4]{0} all-reduce(shift), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true,
    to_apply=add
  ROOT third = f32[4]{0} all-reduce(second), channel_id=4, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    to_apply=add
}
"""


def _dump(rank: int, group: list[int], launched: int, completed: int, op: str = "all_reduce") -> dict[str, Any]:
    """A dump of a rank that is at a collective of a group; nothing is pending if it completed what it launched."""
    name = "g" + "".join(map(str, group))
    entry = {
        "record_id": 40, "pg_id": 0, "process_group": [name, "data"], "collective_seq_id": launched,
        "profiling_name": f"nccl:{op}", "state": "scheduled", "input_sizes": [[4]], "output_sizes": [[4]],
        "input_dtypes": ["Float"], "output_dtypes": ["Float"], "is_p2p": False,
    }  # fmt: skip
    return {
        "version": "2.9",
        "pg_config": {name: {"name": name, "desc": "data", "ranks": str(group)}},
        "pg_status": {"0": {"last_enqueued_collective": launched, "last_completed_collective": completed}},
        "entries": [entry] if launched > completed else [],
    }


def _write(folder: Path, dumps: dict[int, dict[str, Any]]) -> Path:
    for rank, dump in dumps.items():
        (folder / f"trace_{rank}.json").write_text(json.dumps(dump))
    return folder


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, ["hang", *map(str, words)])


def test_counts_lead_to_the_collective_that_is_missing(tmp_path: Path) -> None:
    """Two all-reduces of devices 2 and 3 in each execution: after 20, number 22 is the second one of execution 11."""
    _write(tmp_path, {2: _dump(2, [2, 3], 22, 21), 3: _dump(3, [2, 3], 21, 21)})
    found = find_in_program(find(tmp_path), xb.parse_hlo(STEP))
    by_rank = {placement.ranks: placement for placement in found.placements}
    assert by_rank[(3,)].instruction.name == "second"
    assert by_rank[(3,)].is_missing
    assert "Its operands need first, shift" in by_rank[(3,)].reason
    assert by_rank[(2,)].instruction.name == "second"
    assert not by_rank[(2,)].is_missing
    assert found.verdict.kind == "ok"
    assert found.recurs.startswith("the program does not hang on healthy machines")
    assert any("2 collectives in each execution" in note for note in found.notes)


def test_a_count_that_leads_to_another_operation_gives_no_place(tmp_path: Path) -> None:
    group = [2, 3]
    _write(tmp_path, {2: _dump(2, group, 22, 21, "all_gather"), 3: _dump(3, group, 21, 21)})
    found = find_in_program(find(tmp_path), xb.parse_hlo(STEP))
    assert found.placements == ()
    assert any("the dumps say all_gather" in note for note in found.notes)


@pytest.mark.slow
def test_a_log_of_xla_and_the_program_name_the_branch_and_the_device() -> None:
    result = _run(DATA / "xla_cpu_rendezvous.log", "--program", DATA / "xla_cpu_rendezvous.hlo")
    text = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "ranks 0-3 meet at psum.6 in branch 0 of conditional.1.clone, train.py:8" in text
    assert "healthy machines hang as well: device 2 never reaches psum.6" in text
    assert "fix move psum.6 out of conditional.1.clone" in text


def test_progress_lines_name_the_instruction(tmp_path: Path) -> None:
    lines = []
    for device, (number, name) in enumerate([(3, "second"), (3, "second"), (2, "shift"), (3, "second")]):
        lines += [f"] [{device}] First pending thunks:", f"]   - exec[{number}] thunk[1/4] kAllReduce: {name} at 0:00"]
    (tmp_path / "stderr.log").write_text("\n".join(lines))
    found = find_in_program(find(tmp_path), xb.parse_hlo(STEP))
    assert {placement.ranks: placement.instruction.name for placement in found.placements} == {
        (0, 1, 3): "second",
        (2,): "shift",
    }


def test_the_module_of_a_dump_folder_that_fits_is_used(tmp_path: Path) -> None:
    dumps, folder = tmp_path / "dumps", tmp_path / "programs"
    dumps.mkdir()
    folder.mkdir()
    _write(dumps, {2: _dump(2, [2, 3], 22, 21), 3: _dump(3, [2, 3], 21, 21)})
    (folder / "other.hlo").write_text("HloModule other\nENTRY e { ROOT p = f32[4]{0} parameter(0) }\n")
    (folder / "step.hlo").write_text(STEP)
    result = _run(dumps, "--program", folder, "--json")
    program = json.loads(result.output)["program"]
    assert program["name"] == "step"
    assert [(each["ranks"], each["instruction"], each["missing"]) for each in program["placements"]] == [
        ([3], "second", True),
        ([2], "second", False),
    ]


MORE = """\
  third = f32[4]{0} all-reduce(second), channel_id=4, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    to_apply=add
  ROOT fourth = f32[4]{0} all-reduce(third), channel_id=5, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    to_apply=add
}
"""
LONGER = STEP[: STEP.index("  ROOT third")] + MORE
"""The program with one collective more."""


@pytest.mark.parametrize(("second", "are_different"), [(STEP, False), (LONGER, True)])
def test_processes_that_compiled_different_programs(second: str, are_different: bool, tmp_path: Path) -> None:
    dumps, folder = tmp_path / "dumps", tmp_path / "programs"
    dumps.mkdir()
    _write(dumps, {2: _dump(2, [2, 3], 22, 21), 3: _dump(3, [2, 3], 21, 21)})
    for process, text in enumerate([STEP, second]):
        (folder / f"process_{process}").mkdir(parents=True)
        (folder / f"process_{process}" / "step.hlo").write_text(text)
    program = json.loads(_run(dumps, "--program", folder, "--json").output)["program"]
    sentences = program["processes"]
    assert bool(sentences) == are_different
    if are_different:
        assert "process 0" in sentences[0]
        assert "fourth" in sentences[1]
    assert program["recurs"].startswith("healthy machines hang as well") == are_different
    assert any("compile the same program" in fix for fix in program["fixes"]) == are_different


def test_redact_and_program_exclude_each_other(tmp_path: Path) -> None:
    result = _run(tmp_path, "--redact", "--program", "step.hlo")
    assert result.exit_code == 2
    assert "cannot be used together" in result.output
