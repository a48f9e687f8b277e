"""Commands on dump folders, on several targets and on stdin."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from tests.commands.command_line import usage, xbuild

DUMPS = Path(__file__).parents[1] / "data" / "dumps"
ONE = "HloModule one\nENTRY e { x = f32[2] parameter(0) ROOT y = negate(x) }\n"
STUCK = "HloModule stuck, num_partitions=2\n" + """ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
  ROOT d = token[] send-done(s), channel_id=1
}
"""  # fmt: skip  # noqa: E501
VERSIONS = ("0.6.2", "0.10.2", "0.12.0.1")


@pytest.mark.parametrize("version", VERSIONS)
def test_check_prints_a_line_for_each_module(version: str) -> None:
    result = xbuild("check", DUMPS / f"jax_{version}/xla")
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["jit_step", "ok:"], ["jit_summed", "ok:"]]
    assert "has 1 collective" in result.stdout


@pytest.mark.parametrize(("command", "line"), [("run", "global  out0"), ("cost", "devices      4, mesh")])
def test_commands_partition_what_is_written_per_device(command: str, line: str) -> None:
    target = f"{DUMPS / f'jax_{VERSIONS[0]}/ir'}#jit_summed"
    words = ["--random", 0] if command == "run" else []
    result = xbuild(command, target, *words)
    assert (result.exit_code, line in result.stdout) == (0, True), result.output
    assert (
        "notice: jit_summed is for 4 devices but is not partitioned yet, so xbuild has partitioned it" in result.stderr
    )
    assert result.stdout == xbuild(command, target, *words, "--partition").stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("folder", "stage"), [("ir", ()), ("xla", ("--stage", "before"))])
def test_a_program_of_shard_map_before_it_is_partitioned(version: str, folder: str, stage: tuple[str, ...]) -> None:
    dump = DUMPS / f"jax_{version}/{folder}"
    result = xbuild("check", dump, *stage)
    assert result.exit_code == 0
    assert "jit_summed  ok: " in result.stdout
    assert "devices 0-3 run one program, which has 1 collective" in result.stdout
    assert "notice: jit_summed is not partitioned yet, so xbuild has partitioned it\n" in result.stderr
    assert "has 1 collective" in xbuild("check", dump, *stage, "--partition").stdout
    run = xbuild("run", f"{dump}#jit_summed", *stage, "--partition", "--random", 0)
    assert (run.exit_code, run.stdout) == (0, "global  out0  f32[]  -2.7014716\n")
    assert "a run on one device cannot check the result" in run.stderr


def test_each_command_takes_a_module_of_a_dump() -> None:
    dump = DUMPS / "jax_0.10.2/xla"
    assert xbuild("cost", f"{dump}#jit_step").stdout.startswith("jit_step: a device computes 391 FLOP")
    assert "p['l0']['down']" in xbuild("cost", f"{dump}#1").stdout
    assert xbuild("show", f"{dump}#jit_summed", "--stage", "before").stdout.startswith("HloModule jit_summed")
    assert xbuild("equivalent", f"{dump}#jit_step", f"{DUMPS}/jax_0.6.2/xla#jit_step").stdout.startswith("equal")
    for folder, has, chosen in (
        (dump, "2 modules: jit_step, jit_summed", "jit_summed"),
        (
            DUMPS / "job_hangs",
            "3 modules: process_0/jit_body, process_0/jit__lambda, process_1/jit_body",
            "process_0/jit_body",
        ),
    ):
        assert f"{folder} has {has}; select one module, as in {folder}#{chosen}" == usage(xbuild("viz", folder))
    assert "no module matches 'jit_stp'; did you mean 'jit_step'?" in usage(xbuild("cost", f"{dump}#jit_stp"))


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("module_{}.jit_{}.cpu_after_optimizations.txt", "HloModule jit_{}, num_partitions={}"),
        ("jax_ir{}_jit_{}_compile.mlir", "module @jit_{} attributes {{mhlo.num_partitions = {} : i32}}"),
    ],
)
def test_of_several_modules_the_largest_for_several_devices_is_suggested(
    tmp_path: Path, file: str, header: str
) -> None:
    for number, (name, devices, lines) in enumerate([("seed", 1, 9), ("small", 8, 2), ("step", 16, 5), ("one", 1, 1)]):
        (tmp_path / file.format(f"{number:04}", name)).write_text(header.format(name, devices) + "\n" * lines)
    assert usage(xbuild("viz", tmp_path)).endswith(f"; select one module, as in {tmp_path}#jit_step")


def test_the_stage_of_a_pass() -> None:
    dump = DUMPS / "passes"
    assert "all-reduce" in xbuild("show", dump, "--stage", "spmd-partitioning").stdout
    lines = xbuild("check", dump, "--all").stdout.splitlines()
    assert [line.split("  ")[1].strip() for line in lines] == [
        "before", "spmd-partitioner: shardy-xla", "spmd-partitioner: spmd-partitioning", "after",
    ]  # fmt: skip
    assert [line.rpartition("  ")[2].split()[0] for line in lines] == ["ok:", "ok:", "ok:", "ok:"]
    assert all("has 1 collective" in line for line in lines)
    assert "has no stage 'nope'; it has before, shardy-xla, " in usage(xbuild("check", dump, "--stage", "nope"))


def test_options_that_apply_to_dumps(tmp_path: Path) -> None:
    (tmp_path / "one.hlo").write_text(ONE)
    assert "--stage applies only to dump folders" in usage(xbuild("check", tmp_path / "one.hlo", "--stage", "before"))
    assert "--page takes one program" in usage(xbuild("check", DUMPS / "jax_0.10.2/xla", "--page", "p.html"))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for name, text in {"jit_a": "HloModule jit_a\nENTRY e {", "jit_b": STUCK, "jit_c": ONE}.items():
        (tmp_path / f"module_0001.{name}.before_optimizations.txt".replace("0001", str(ord(name[-1])))).write_text(text)
    (tmp_path / "module_0200.jit_d.before_optimizations.txt").symlink_to(tmp_path / "absent")
    result = xbuild("check", tmp_path)
    assert result.exit_code == 1
    words = [line.split()[:2] for line in result.stdout.splitlines()]
    assert words == [["jit_a", "unread:"], ["jit_b", "error:"], ["jit_c", "ok:"], ["jit_d", "unread:"]]
    assert "jit_a.before_optimizations.txt" in result.stdout
    assert f"xbuild check '{tmp_path}#jit_b' prints the report" in result.stderr
    assert xbuild("check", f"{tmp_path}#jit_b").exit_code == 1


def test_the_folder_of_a_guard(tmp_path: Path) -> None:
    (tmp_path / "process_0").mkdir()
    (tmp_path / "process_0" / "jit_f.hlo.gz").write_bytes(gzip.compress(ONE.encode()))
    (tmp_path / "process_0" / "jit_f.html").write_text("")
    assert xbuild("check", tmp_path).stdout.startswith("ok: ")
    assert xbuild("show", f"{tmp_path}#process_0/jit_f").stdout == xbuild("show", tmp_path).stdout


@pytest.mark.parametrize("names", [("process0", "process1"), ("rank_0", "rank_1"), ("host-0", "host-1")])
def test_the_folders_of_processes_have_any_usual_name(tmp_path: Path, names: tuple[str, str]) -> None:
    for number, name in enumerate(names):
        shutil.copytree(DUMPS / f"job_hangs/process_{number}", tmp_path / name)
    assert xbuild("check", tmp_path).output == xbuild("check", DUMPS / "job_hangs").output.replace(
        str(DUMPS / "job_hangs"), str(tmp_path)
    )


def test_a_folder_of_dumps_with_other_names_says_what_to_pass(tmp_path: Path) -> None:
    for name in ("first", "second", "empty"):
        (tmp_path / name).mkdir()
    for name in ("first", "second"):
        (tmp_path / name / "jit_f.hlo").write_text(ONE)
    assert usage(xbuild("check", tmp_path)).endswith(
        f"contains no program, but folders with dumps: pass {tmp_path}/first, {tmp_path}/second"
    )


def test_several_targets(tmp_path: Path) -> None:
    for name, text in {"one": ONE, "stuck": STUCK}.items():
        (tmp_path / f"{name}.hlo").write_text(text)
    result = xbuild("check", tmp_path / "one.hlo", tmp_path / "stuck.hlo", DUMPS / "passes")
    assert result.exit_code == 1
    assert f"{tmp_path}/one.hlo  one\n" in result.stdout
    assert f"{tmp_path}/stuck.hlo  stuck\n" in result.stderr
    assert "jit_summed  ok: " in result.stdout


def test_stdin() -> None:
    assert xbuild("check", "-", input=ONE).stdout.startswith("ok: ")
    assert "negate(x)" in xbuild("show", "-", input=ONE).stdout
    several = xbuild("check", "-", input=ONE + STUCK)
    assert (several.exit_code, several.stdout.splitlines()[0]) == (1, "-#1  one")
    assert "<stdin>:1:" in xbuild("check", "-", input="HloModule m ENTRY").stderr


@pytest.mark.parametrize("by", ["folder", "folders"])
def test_a_job_whose_processes_compiled_different_programs(by: str) -> None:
    dumps = [DUMPS / "job_hangs"] if by == "folder" else [DUMPS / f"job_hangs/process_{n}" for n in (0, 1)]
    result = xbuild("check", *dumps)
    assert result.exit_code == 1
    assert "process 0 (jit_body) and process 1 (jit_body) compiled different programs, and the job would hang" in (
        result.stdout
    )
    assert "devices 0 and 1  pmax.7" in result.stdout
    assert "job.py:10 in body" in result.stdout


def test_a_harmless_difference() -> None:
    result = xbuild("check", DUMPS / "job_harmless")
    assert result.exit_code == 0
    assert "compiled different programs, but the job cannot hang because of the difference: ok" in result.stdout


def test_processes_that_compiled_the_same(tmp_path: Path) -> None:
    for process in (0, 1, 2):
        shutil.copytree(DUMPS / "job_hangs/process_1", tmp_path / f"process_{process}")
    shutil.copy(
        DUMPS / "job_hangs/process_0/module_0002.jit__lambda.cpu_after_optimizations.txt", tmp_path / "process_1"
    )
    result = xbuild("check", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "1 module identical in processes 0, 1 and 2; 1 module only in process 1"


def test_a_process_that_lacks_a_program_of_several_devices(tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "job_harmless/process_0", tmp_path / "process_0")
    shutil.copytree(DUMPS / "job_harmless/process_0", tmp_path / "process_1", ignore=lambda *_: _BODY)
    result = xbuild("check", tmp_path)
    assert (result.exit_code, xbuild("check", tmp_path, "--strict").exit_code) == (0, 1)
    assert "only process 0 compiled jit_body: if it spans devices of process 1, it waits for them forever" in (
        result.stdout
    )


_BODY = [f"module_0000.jit_body.{stage}_optimizations.txt" for stage in ("before", "cpu_after")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_hostile_files_of_a_dump_are_lines_of_their_own(tmp_path: Path) -> None:
    """A pipe, a device and a loop of links are not read; no name of a file changes the terminal."""
    after = "after_optimizations.txt"
    (tmp_path / f"module_0001.good.{after}").write_text(ONE)
    os.mkfifo(tmp_path / f"module_0002.pipe.{after}")
    (tmp_path / f"module_0003.zeros.{after}").symlink_to("/dev/zero")
    (tmp_path / f"module_0004.loop.{after}").symlink_to(f"module_0004.loop.{after}")
    (tmp_path / f"module_0005.\x1b[31mred\u202e\t.{after}").write_text(ONE)
    (tmp_path / f"module_0006.cut.{after}.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "process_0").symlink_to(tmp_path)
    result = xbuild("check", tmp_path)
    assert result.exit_code == 1
    for name, words in {"good": "ok:", "pipe": "is a pipe", "zeros": "is a device", "loop": "there is no file",
                        r"\x1b[31mred\u202e\t": "ok:", "cut": "cannot be read as gzip"}.items():  # fmt: skip
        assert any(line.startswith(f"{name} ") and words in line for line in result.stdout.splitlines()), name
    assert result.stdout.replace("\n", "").isprintable()
    assert "select one module" in usage(xbuild("extract", tmp_path))  # none is opened to say which
