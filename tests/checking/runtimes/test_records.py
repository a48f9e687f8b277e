"""Records of runtimes: their fields, files and presets, and the table that documents them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import fields
from click.testing import CliRunner

import xbuild as xb
from shape_inference import XbuildError
from tests.model.compare import checked as checked_program
from tests.model.generator import random_program as random_program_with_data
from tests.support.random_programs import random_program
from xbuild.cli import main
from xbuild.runtimes.record import runtime_from_text

ROOT = Path(__file__).parents[3]
CROSSED = """HloModule m, is_scheduled=true, num_partitions=1
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x = f32[2] parameter(0)
  {first} = f32[2] all-reduce(x), replica_groups={{{{0,1}}}}, to_apply=add, channel_id={one}
  ROOT {second} = f32[2] all-reduce(x), replica_groups={{{{0,1}}}}, to_apply=add, channel_id={two}
}}"""


def crossed() -> xb.ModuleGroup:
    """Two devices that run the collectives a and b in opposite orders."""
    texts = (CROSSED.format(first="a", second="b", one=1, two=2), CROSSED.format(first="b", second="a", one=2, two=1))
    return xb.ModuleGroup(dict(enumerate(map(xb.parse_hlo, texts))))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("collectives", "name"),
        ("own_pairs", 1),
        ("eager_bytes", -1),
        ("eager_bytes", 0.5),
        ("eager_bytes", True),
        ("communicators", "never"),
        ("resident", 0),
        ("threads", "many"),
        ("callback_threads", float("inf")),
        ("devices_per_host", 0),
        ("launches", None),
        ("name", ""),
        ("synchronizing", (1,)),
    ],
)
def test_a_field_with_another_value_is_refused(field: str, value: Any) -> None:
    with pytest.raises(XbuildError, match=field) as refused:
        xb.Runtime(**{field: value})
    assert refused.value.kind == "invalid_attribute"


VALUES = (
    "3", "-1", "1.5", "true", '"x"', '""', "[]", "[1]", '["a"]', "[[]]", "{a = 1}", "inf", "nan", "1979-05-27",
    "9223372036854775808",
)  # fmt: skip


@pytest.mark.parametrize("field", [*(each.name for each in fields(xb.Runtime)), "preset", "other"])
def test_each_value_of_a_file_is_taken_or_refused(field: str) -> None:
    refusals = []
    for value in VALUES:
        try:
            assert hash(runtime_from_text(f"{field} = {value}", "mine"))
        except XbuildError as error:
            refusals.append(str(error))
    assert refusals
    assert all(field in each for each in refusals)


def test_a_name_is_a_preset_or_refused() -> None:
    assert str(xb.check(crossed(), runtime="nccl")) == str(xb.check(crossed(), runtime=xb.RUNTIMES["nccl"]))
    with pytest.raises(XbuildError, match="neither one of nccl, gloo, xla_cpu, xla_gpu, tpu nor"):
        xb.check(crossed(), runtime="mpi")


@pytest.mark.parametrize(
    "runtime", [*xb.RUNTIMES.values(), xb.Runtime(synchronizing=("a",), threads=3, own_pairs=True)]
)
def test_a_record_is_what_its_file_says(runtime: xb.Runtime) -> None:
    words = {True: "true", False: "false"}
    lines = [f"{k} = {words[v] if isinstance(v, bool) else repr(v)}" for k, v in runtime.to_dict().items()]
    assert runtime_from_text("\n".join(lines), "runtime") == runtime


def test_a_file_changes_a_preset() -> None:
    found = runtime_from_text('preset = "xla_cpu"\nthreads = 4\n', "mine")
    assert found == xb.Runtime(name="mine", collectives="channel", own_pairs=True, threads=4)
    for text, words in (
        ("threads = ", "not TOML"),
        ("thread = 4", "'thread' is not a field"),
        ("threads = 0", "threads"),
    ):
        with pytest.raises(XbuildError, match=words):
            runtime_from_text(text, "mine")


def test_the_table_of_the_document_is_that_of_the_presets() -> None:
    text = (ROOT / "docs" / "checker.md").read_text(encoding="utf-8")
    table_text = text[text.index("| field | rule |") : text.index("An empty cell is the default")]
    head, _, *rows = table_text.strip().splitlines()
    names = [cell.strip("` ") for cell in head.split("|")[4:-1]]
    assert names == [*xb.RUNTIMES]
    table = {}
    for row in rows:
        field, _, _, *cells = [cell.strip() for cell in row.split("|")[1:-1]]
        table[field.strip("`")] = dict(zip(names, (cell.strip("`") for cell in cells), strict=True))
    assert [*table] == [each.name for each in fields(xb.Runtime) if each.name != "name"]
    for name, runtime in xb.RUNTIMES.items():
        stated = {field: cells[name] for field, cells in table.items() if cells[name]}
        assert stated == {field: str(value) for field, value in runtime.to_dict().items() if field != "name"}
        assert f"| `{name}` | " in text


def test_a_command_checks_and_runs_under_a_runtime(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for device, module in crossed().modules.items():
        (folder / f"device{device}.hlo").write_text(module.to_hlo())
    file = tmp_path / "mine.toml"
    file.write_text('preset = "nccl"\ncommunicators = "exist"\n')
    for runtime in ("nccl", str(file)):
        name = "nccl" if runtime == "nccl" else "mine"
        for command in (["check"], ["run", "--random", "0"]):
            result = CliRunner().invoke(main, [*command, str(folder), "--runtime", runtime])
            assert result.exit_code == 1, result.output
            assert "a of device 0 and b of device 1 form one collective, but their channels differ" in result.stderr
            assert f"{name} matches collectives by order on a communicator, not by channel" in result.stderr
    result = CliRunner().invoke(main, ["check", str(folder), "--runtime", "mpi"])
    assert result.exit_code == 2
    assert "neither one of nccl, gloo, xla_cpu, xla_gpu, tpu nor a runtime file" in result.stderr
    file.write_text("room = 1\n")
    result = CliRunner().invoke(main, ["check", str(folder), "--runtime", str(file)])
    assert result.exit_code == 2
    assert "'room' is not a field of a runtime" in result.stderr


def test_a_document_of_the_command_has_the_verdict_under_the_runtime(tmp_path: Path) -> None:
    target = tmp_path / "p.hlo"
    text = CROSSED.format(first="a", second="b", one=1, two=2)
    target.write_text(text.replace("num_partitions=1", "replica_count=2"))
    result = CliRunner().invoke(main, ["check", str(target), "--json", "--runtime", "nccl"])
    assert result.exit_code == 0
    assert "under nccl, the given schedule runs to completion" in result.stdout


@pytest.mark.parametrize("first", [0, 60])
def test_a_record_of_defaults_gives_the_verdict_without_a_runtime(first: int) -> None:
    for seed in range(first, first + 60):
        program = random_program(seed)
        without = xb.check(program.module, send_buffers=program.send_buffers)
        under = xb.check(program.module, send_buffers=program.send_buffers, runtime=xb.Runtime())
        assert (under.refused, under.kind == "ok") == (without.refused, without.kind == "ok"), seed


@pytest.mark.parametrize("first", [0, 60])
def test_a_record_of_defaults_gives_the_verdict_on_programs_with_data(first: int) -> None:
    for seed in range(first, first + 60):
        made, without = checked_program(program := random_program_with_data(seed))
        waiting = {"send_buffers": program.send_buffers, "infeed": program.infeed}
        under = xb.check(made.module, **waiting, runtime=xb.Runtime())
        assert (under.refused, under.kind == "ok") == (without.refused, without.kind == "ok"), seed


def test_a_step_session_runs_under_a_runtime() -> None:
    story = ROOT / "examples" / "hangs" / "hardware_queues"
    words = ["step", f"{story}.py:broken", "--random", "1"]
    without, under = (
        CliRunner().invoke(main, [*words, *runtime], input="quit\n").output
        for runtime in ((), ("--runtime", f"{story}.toml"))
    )
    assert "stopped" not in without
    assert "a device runs at most 2 collectives at the same time" in " ".join(under.split())
