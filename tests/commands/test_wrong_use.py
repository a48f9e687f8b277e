"""The command line used wrongly: one sentence that says what is wrong, its exit code, and nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from xbuild.cli import main

RING = "examples/ring.py:program"
UNPAIRED = """HloModule m, replica_count=2
ENTRY e { x = f32[2] parameter(0)  t = token[] after-all()  ROOT s = (f32[2], u32[], token[]) send(x, t), channel_id=1 }
"""
STUCK = "examples/deadlocks/ring.py:program"
HLO = "HloModule m\nENTRY main { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }\n"


def xbuild(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def wrong(*arguments: object) -> str:
    """The last line of what a command says that is used wrongly."""
    result = xbuild(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


# targets


def test_a_text_that_xla_has_dumped_is_a_target(tmp_path: Path) -> None:
    dump = tmp_path / "module_0000.jit_f.before_optimizations.txt"
    dump.write_text(HLO)
    assert xbuild("check", dump).stdout.startswith("ok: ")
    for device in (0, 1):
        (tmp_path / f"device{device}.txt").write_text(HLO)
    assert xbuild("run", tmp_path, "--random", 0).stdout.count("device") == 2
    (tmp_path / "device1.hlo").write_text(HLO)
    assert "has device0.txt, device1.hlo, device1.txt; expected device0.hlo" in wrong("check", tmp_path)


def test_a_folder_whose_name_ends_in_hlo_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "kept.hlo"
    folder.mkdir()
    assert "kept.hlo' contains no program; expected device0.hlo, device1.hlo and so on" in wrong("check", folder)
    (folder / "device0.hlo").write_text(HLO)
    assert xbuild("check", folder).exit_code == 0


def test_a_file_may_import_from_its_package(tmp_path: Path) -> None:
    inner = tmp_path / "outer_package" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").write_text("")
    (inner.parent / "sizes.py").write_text("COUNT = 3\n")
    (inner / "programs.py").write_text(
        "import xbuild as xb\nfrom ..sizes import COUNT\n"
        "double = xb.Module('double', xb.computation(xb.f32[COUNT])(lambda x: x + x))\n"
    )
    shown = xbuild("show", inner / "programs.py:double")
    assert shown.exit_code == 0, shown.output
    assert "f32[3]" in shown.stdout
    (inner / "lost.py").write_text("from ..absent import COUNT\n")
    lost = xbuild("show", inner / "lost.py:double")
    assert lost.exit_code == 1
    assert lost.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'outer_package.absent'"


def test_a_file_that_ends_the_process_is_told(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "later.py").write_text("import sys\ndef program(): sys.exit('no')\n")
    for target, told in (
        ("ends.py:program", "ends.py calls sys.exit(3)"),
        ("later.py:program", "calls sys.exit('no')"),
    ):
        result = xbuild("check", tmp_path / target)
        assert result.exit_code == 1
        assert f"{told} and provides no program" in result.stderr


# options that contradict, or would say nothing


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("check", STUCK, "--random", 1), "--random has no effect without --page"),
        (("check", STUCK, "--theme", "dark"), "--theme has no effect without --picture"),
        (
            ("run", RING, "--random", 0, "--platform", "gpu"),
            "--platform has no effect without --engine xla, or both against it",
        ),
        (("run", RING, "--random", 0, "--eps", 1), "--eps has no effect without --engine both"),
        (("run", RING, "--random", 0, "--trace-every", 2), "--trace-every has no effect without --trace DIR"),
        (("run", RING, "--random", 0, "--trace-bytes", 2), "--trace-bytes has no effect without --trace DIR"),
        (("show", RING, "--plan", "--style", "full"), "--style applies to HLO text, but --plan prints Python"),
        (("show", RING, "--plan", "--only", "collectives"), "--only applies to HLO text, but --plan prints Python"),
        (
            ("show", RING, "--only", "collectives", "--style", "full"),
            "--style applies to the full text, but --only prints",
        ),
        (("viz", RING, "--radius", 1), "--radius has no effect without --around NAME"),
        (("viz", RING, "--seconds", 1), "--seconds has no effect without -o FILE.png or .pdf"),
        (("extract", RING, "--radius", 1), "--radius has no effect without --around NAME"),
        (("extract", RING, "--around", "nothing"), "module ring_all_reduce has no instruction 'nothing'"),
        (
            ("extract", "examples/pipeline.py:program"),
            "'examples/pipeline.py:program' has one program for each device; ",
        ),
        (("run", RING, "--random", -1), "Invalid value for '--random': -1 is not in the range x>=0."),
        (("check", STUCK, "--page", "p.html", "--random", -1), "Invalid value for '--random': -1 is not in the range"),
        (
            ("run", RING, "--random", 0, "--max-seconds", "nan"),
            "Invalid value for '--max-seconds': nan is not a number",
        ),
        (("run", RING, "--random", 0, "--engine", "both", "--eps", "nan"), "Invalid value for '--eps': nan is not a "),
        (("viz", RING, "-o", "x.png", "--seconds", "nan"), "Invalid value for '--seconds': nan is not a number."),
        (("run", RING, "--random", 0, "--page", "p.txt"), "--page p.txt: expected a file name that ends in .html"),
        (
            ("run", RING, "--random", 0, "--outputs", "absent/o.npz"),
            "cannot write absent/o.npz: the folder does not exist",
        ),
    ],
)
def test_an_option_that_would_say_nothing(arguments: tuple[object, ...], told: str) -> None:
    assert wrong(*arguments).startswith(told)


def test_what_is_missing_in_a_folder_is_told_with_a_way_out(tmp_path: Path) -> None:
    for device in (0, 1):
        (tmp_path / f"device{device}.hlo").write_text(HLO)
    assert wrong("diff", tmp_path, tmp_path).endswith(
        f"choose the program of one device, such as {tmp_path}/device0.hlo"
    )


def test_a_kept_trace_takes_no_options_of_a_run(tmp_path: Path) -> None:
    assert xbuild("run", RING, "--random", 0, "--trace", tmp_path / "kept").exit_code == 0
    assert wrong("step", tmp_path / "kept", "--random", 1).startswith("--random has no effect here: ")


# files


@pytest.mark.parametrize("content", [b"", b"\x8b\xc2 is no archive", b"PK\x03\x04 and then nothing"])
def test_inputs_that_are_no_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    said = wrong("run", RING, "--inputs", path)
    assert said == f"'{path}' is not an npz file of arrays; numpy.savez writes such files"


def test_inputs_that_are_cut_off_or_objects_or_one_array(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.npz", tmp_path / "in.npz"
    np.savez(whole, arg0=np.zeros(16, np.float32))
    path.write_bytes(whole.read_bytes()[:-40])
    objects = tmp_path / "objects.npz"
    np.savez(objects, arg0=np.array([{}], object))
    single = tmp_path / "single.npy"
    np.save(single, np.zeros(16, np.float32))
    for each in (path, single):
        said = wrong("run", RING, "--inputs", each)
        assert said.endswith("is not an npz file of arrays; numpy.savez writes such files")
    assert wrong("run", RING, "--inputs", objects).endswith("'arg0' has elements of object; expected numbers")


@pytest.mark.parametrize("name", ["index.json", "time.npz", "chunk-00000.npz", "program-0.hlo"])
@pytest.mark.parametrize("content", [b"", b"\xff\x8b\xc2"])
def test_a_trace_with_a_file_that_is_none(tmp_path: Path, name: str, content: bytes) -> None:
    kept = tmp_path / "kept"
    assert xbuild("run", RING, "--random", 0, "--trace", kept).exit_code == 0
    (kept / name).write_bytes(content)
    result = xbuild("trace", kept)
    assert result.exit_code == 2, result.output
    assert f"'{kept}' is not a readable trace: " in result.stderr
    assert "pickle" not in result.stderr
    (kept / name).unlink()
    assert xbuild("trace", kept).exit_code == 2
    assert wrong("trace", kept / "results.npz").endswith("is a file; expected the folder of a trace")


def test_a_repair_goes_where_it_can_be_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.hlo"
    file.write_text(HLO)
    assert "the repair needs a .hlo file" in wrong("check", STUCK, "--repair", tmp_path)
    assert "the repair needs a .hlo file" in wrong("check", STUCK, "--repair", tmp_path / "mended")
    assert "the repair needs a folder" in wrong("check", "examples/pipeline.py:program", "--repair", file)
    assert [each.name for each in tmp_path.iterdir()] == ["a.hlo"]
    unpaired = tmp_path / "unpaired.hlo"
    unpaired.write_text(UNPAIRED)
    stuck = xbuild("check", unpaired, "--repair", tmp_path / "mended.hlo")
    assert "mended.hlo was not written: no other order avoids the deadlock" in stuck.stderr
    assert stuck.exit_code == 1


def test_json_stands_alone_on_stdout(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("v.svg", "v.html", "v.hlo")]
    options = [each for pair in zip(("--picture", "--page", "--repair"), files, strict=True) for each in pair]
    result = xbuild("check", STUCK, "--json", *options)
    assert json.loads(result.stdout)["kind"] == "deadlock"
    lines = [line.partition(": ")[0] for line in result.stderr.splitlines()]
    assert {*lines} >= {f"wrote {file}" for file in files}
    assert all(each.stat().st_size for each in files)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is wanted")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    link = tmp_path / "full.npz"
    link.symlink_to("/dev/full")
    assert wrong("run", RING, "--random", 0, "--outputs", link) == f"{link}: No space left on device"
    command = [sys.executable, "-c", "from xbuild.cli import main; main()", "show", RING]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")
    assert Path("/dev/full").is_char_device()


def test_a_closed_stdin_is_an_empty_script() -> None:
    command = [sys.executable, "-m", "xbuild", "step", RING, "--random", "0"]
    done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', *command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# explain


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("xb.dot", "xb.ops.dot(lhs: Value"),
        ("xb.ops.add", "xb.ops.add(lhs: Value"),
        ("cross_replica_sum", "xb.cross_replica_sum(operand: Value"),
        (
            "Dot",
            (
                "Dot",
                "XlaBuilder's Dot is xb.dot (chooses the contraction from the ranks of the operands; "
                "HLO's dot is xb.dot_general)\n"
                "xb.ops.dot(",
            ),
        ),
        ("psum", "xb.mesh.psum(operand: Any, axis_name"),
        ("xb.mesh.all_gather_invariant", "xb.mesh.all_gather_invariant(operand"),
        ("CrossReplicaSum", "XlaBuilder's CrossReplicaSum is xb.cross_replica_sum\nxb.cross_replica_sum("),
    ],
)
def test_explain_finds_a_word_by_each_of_its_names(word: str, told: str) -> None:
    result = xbuild("explain", word)
    assert result.exit_code == 0
    assert result.stdout.startswith(told)


def test_explain_tells_strict_and_comfortable_apart() -> None:
    assert "\nthe convenience form: xb.dot(lhs: Any, rhs: Any, precision: " in xbuild("explain", "dot").stdout


# another way in


def test_python_m_xbuild_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "xbuild", "check", RING], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.startswith("notice: another order of the same instructions may deadlock")
    assert done.stdout.startswith("ok: ")
