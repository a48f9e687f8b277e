"""Commands on a file of several modules, on modules that are not partitioned yet, and lines of the user's program."""

from __future__ import annotations

from pathlib import Path

import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from xbuild.sharding.unpartitioned import annotated_devices

ONE = "HloModule one\nENTRY e { x = f32[2] parameter(0) ROOT y = negate(x) }\n"
STUCK = """HloModule stuck, replica_count=2, is_scheduled=true
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  ROOT s = (f32[2], u32[], token[]) send(x, t), channel_id=1
}
"""
SHARDED = """HloModule sharded, num_partitions=4
ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[8] negate(x)
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("three.hlo").write_text(f"// RUN: a tool\n{ONE}// -----\n{STUCK}// -----\n{SHARDED}")
    return "three.hlo"


def test_check_takes_each_module_in_turn(file: str) -> None:
    result = xbuild("check", file)
    assert result.exit_code == 1
    assert [line for line in result.output.splitlines() if line.startswith(file)] == [
        "three.hlo#1  one", "three.hlo#2  stuck", "three.hlo#3  sharded",
    ]  # fmt: skip
    assert "error: send s on channel 1 has no send-done" in result.stderr


def test_show_prints_a_file_of_several_modules(file: str) -> None:
    result = xbuild("show", file)
    Path("again.hlo").write_text(result.stdout)
    assert xbuild("show", "again.hlo").stdout == result.stdout.replace(file, "again.hlo")


@pytest.mark.parametrize("target", ["three.hlo#1", "three.hlo#one"])
@pytest.mark.usefixtures("file")
def test_one_module_is_named_by_its_number_or_name(target: str) -> None:
    assert xbuild("check", target).stdout.startswith("ok: no schedule can deadlock: nothing communicates, so")
    assert xbuild("run", target, "--random", "1").stdout.startswith("device 0  out0")
    assert "negate(x)" in xbuild("viz", target).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("viz", "three.hlo"),
            "three.hlo has 3 modules: 1 one, 2 stuck, 3 sharded; select one module, as in three.hlo#1",
        ),
        (("run", "three.hlo"), "three.hlo has 3 modules: "),
        (("show", "three.hlo#4"), "no module matches '4': three.hlo has 3 modules: 1 one, 2 stuck, 3 sharded"),
        (("show", "absent.hlo#1"), "there is no file 'absent.hlo'"),
        (
            ("check", "three.hlo", "--page", "p.html"),
            "--page takes one program, but three.hlo has 3; name one program, such as three.hlo#1",
        ),
    ],
)
@pytest.mark.usefixtures("file")
def test_a_target_of_several_modules_where_one_is_wanted(arguments: tuple[str, ...], message: str) -> None:
    assert usage(xbuild(*arguments)).startswith(message)


def test_a_file_whose_name_has_the_mark_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.hlo#1"
    path.write_text(ONE)
    (tmp_path / "a.hlo").write_text(ONE + ONE.replace("one", "two"))
    assert "is not a target" in usage(xbuild("show", path))


def test_a_module_that_is_not_partitioned_is_told_as_such(file: str) -> None:
    note = "sharded is annotated for 4 devices and not partitioned yet: it is {} as one global program"
    assert note.format("checked") in " ".join(xbuild("check", f"{file}#3").stdout.split())
    assert "nothing communicates yet, so no device can block" in xbuild("check", f"{file}#3").stdout
    assert note.format("run") in xbuild("run", f"{file}#3", "--random", "1").stderr
    assert note.format("drawn") in xbuild("viz", f"{file}#3").stdout


MESH = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\\"x\\"=2, \\"y\\"=4]>}}'
VALUE = (
    "HloModule m{header}\nENTRY {name} {{\n  x = f32[8] parameter(0){note}\n  {more}\n  ROOT y = f32[8] negate(x)\n}}"
)
SUM = "s = f32[8] all-reduce(x), replica_groups={{0,1}}, channel_id=1, to_apply=add"
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
TILED = ", sharding={devices=[2]<=[2]}"


@pytest.mark.parametrize(
    ("header", "name", "note", "more", "devices"),
    [
        ("", "e", "", "", 0),
        (", num_partitions=2", "e", "", "", 0),
        (", num_partitions=2", "e", TILED, "", 2),
        ("", "e", TILED, "", 2),
        ("", "e", ", sharding={replicated}", "", 0),
        ("", "e", ", sharding={maximal device=1}", "", 0),
        (f", {MESH}", "e", "", "", 8),
        (", num_partitions=2", "main_spmd", TILED, "", 0),
        (", is_scheduled=true, num_partitions=2", "e", TILED, "", 0),
        (", num_partitions=2", "e", TILED, SUM, 0),
        (", num_partitions=2", "e", TILED, "p = u32[] partition-id()", 0),
        (", num_partitions=2", "e", TILED, f'{SUM} f = f32[8] custom-call(s), custom_call_target="Sharding"', 2),
        (", num_partitions=2", "e", "", 'f = f32[8] custom-call(x), custom_call_target="SPMDFullToShardShape"', 2),
        (", num_partitions=2", "e", "", 'f = f32[8] custom-call(x), custom_call_target="other"', 0),
    ],
)
def test_what_is_taken_as_not_partitioned(header: str, name: str, note: str, more: str, devices: int) -> None:
    text = VALUE.format(header=header.replace('\\"', "'"), name=name, note=note, more=more)
    place = text.index("ENTRY")
    assert annotated_devices(xb.parse_hlo(text[:place] + ADD * ("add" in more) + text[place:])) == devices


DUMP = """HloModule m, replica_count=2, is_scheduled=true

FileNames
1 "model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=88 end_line=88 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  ROOT s = (f32[2], u32[], token[]) send(x, t), channel_id=1, metadata={op_name="a" stack_frame_id=1}
}
"""


def test_reports_name_the_lines_of_the_program_that_a_dump_was_made_of(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(DUMP)
    assert "model.py:88" in xbuild("check", path).stderr
    assert "dump.txt" not in xbuild("check", path).stderr
