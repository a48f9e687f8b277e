"""The command line, in process: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from shape_inference import KINDS, PRIMITIVES, PrimitiveType
from xbuild.cli import main
from xbuild.core.op import OPS
from xbuild.files import arguments as inputs
from xbuild.files import results
from xbuild.reference.explanations import EXPLANATIONS

PROGRAMS = """
import numpy as np
import xbuild as xb

@xb.computation(xb.f32[3], xb.f32[3])
def total(x, y):
    return xb.ops.add(x, y)

def summed():
    builder = xb.Builder("summed")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[2], name="x")
    return xb.Module("summed", builder.build(xb.ops.all_reduce(x, to_apply=xb.ops.add)), num_replicas=2)

def small_types():
    builder = xb.Builder("small")
    x = xb.ops.parameter(builder, number=0, shape=xb.bf16[2], name="x")
    n = xb.ops.parameter(builder, number=1, shape=xb.s4[3], name="n")
    return builder.build(xb.ops.tuple_([xb.ops.add(x, x), n, xb.ops.after_all((), builder=builder)]))

def crossed():
    def device(first, second):
        builder = xb.Builder("device")
        x = xb.ops.parameter(builder, number=0, shape=xb.f32[4], name="x")
        token = xb.ops.after_all((), builder=builder)
        sent = xb.ops.send(x, token, channel_id=first)
        sent = xb.ops.send_done(sent, channel_id=first)
        posted = xb.ops.recv(sent, shape=xb.f32[4], channel_id=second)
        got = xb.ops.recv_done(posted, channel_id=second)
        return xb.Module("device", builder.build(xb.ops.get_tuple_element(got, index=0)))
    return xb.ModuleGroup({0: device(1, 2), 1: device(2, 1)})

def endless():
    builder = xb.Builder("endless")
    n = xb.ops.parameter(builder, number=0, shape=xb.s32[()], name="n")
    zero = lambda n: xb.ops.constant(n.builder, literal=np.int32(-1))
    loop = xb.ops.while_(
        n, condition=lambda n: xb.ops.compare(n, zero(n), direction="GT"), body=lambda n: xb.ops.abs(n)
    )
    return builder.build(loop)

def fed():
    builder = xb.Builder("fed")
    item = xb.ops.infeed(xb.ops.after_all((), builder=builder), shape=xb.f32[2])
    return builder.build(xb.ops.get_tuple_element(item, index=0))

def fed_twice():
    builder = xb.Builder("fed")
    shape = xb.TupleShape([xb.f32[()], xb.bf16[2]])
    first = xb.ops.infeed(xb.ops.after_all((), builder=builder), shape=shape)
    second = xb.ops.infeed(xb.ops.get_tuple_element(first, index=1), shape=shape)
    return xb.Module("fed", builder.build(xb.ops.get_tuple_element(second, index=0)), num_replicas=2)

def diverging():
    builder = xb.Builder("diverging")
    n = xb.ops.parameter(builder, number=0, shape=xb.s32[()], name="n")
    return builder.build(xb.while_(n, condition=lambda n: xb.eq(n, n), body=lambda n: n / 0))

def wants(x):
    return x

def fails():
    inner = 1
    return inner / 0

def refused():
    builder = xb.Builder("refused")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[2], name="x")
    y = xb.ops.parameter(builder, number=1, shape=xb.f32[3], name="y")
    return builder.build(xb.ops.add(x, y))

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs.py").write_text(PROGRAMS)
    return tmp_path


def xbuild(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], **options)


def usage(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


# targets


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "programs.py:totl",
            "programs.py has no 'totl'; did you mean 'total'?",
        ),
        ("programs.py:zzz", "programs.py has no 'zzz'; it has total, "),
        ("programs.py:wants", "wants takes x; a function of no arguments is wanted"),
        ("programs.py:number", "programs.py:number is 3, of type int; a Computation, Module or ModuleGroup is wanted"),
        ("program.py:total", "there is no file 'program.py'; did you mean 'programs.py'?"),
        ("programs.py", "'programs.py' is a file of programs: programs.py:NAME is wanted; it has total, summed, "),
        ("total", "'total' is no target: FILE.hlo, FILE.txt, FILE.py:NAME or a folder is wanted"),
        ("", "'' is no target: "),
        ("absent.hlo", "there is no file 'absent.hlo'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_target_that_names_no_program(target: str, message: str) -> None:
    assert usage(xbuild("show", target)).startswith(message)


@pytest.mark.usefixtures("folder")
def test_an_error_in_the_file_is_shown_in_its_own_lines() -> None:
    result = xbuild("show", "programs.py:fails")
    assert result.exit_code == 1
    assert "return inner / 0" in result.stderr
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "targets.py" not in result.stderr


@pytest.mark.usefixtures("folder")
def test_a_refused_op_is_shown_with_its_report() -> None:
    result = xbuild("show", "programs.py:refused")
    assert result.exit_code == 1
    assert "dimension 0 is 2 and 3" in result.stderr
    assert "in _infer" not in result.stderr
    assert "return builder.build(xb.ops.add(x, y))" in result.stderr


def test_an_error_while_the_file_is_read(folder: Path) -> None:
    (folder / "broken.py").write_text("import xbuild\nx = 1 +\n")
    result = xbuild("show", "broken.py:x")
    assert result.exit_code == 1
    assert "broken.py" in result.stderr
    assert "SyntaxError" in result.stderr


def test_the_folder_of_the_file_can_be_imported_from(folder: Path) -> None:
    (folder / "using.py").write_text("from programs import total as mine\n")
    assert xbuild("show", "using.py:mine").exit_code == 0


# show


@pytest.mark.usefixtures("folder")
def test_show_prints_hlo_text() -> None:
    result = xbuild("show", "programs.py:total")
    assert result.exit_code == 0
    assert result.stdout == dedent(
        """\
        ENTRY total {
          parameter.1 = f32[3] parameter(0)
          parameter.2 = f32[3] parameter(1)
          ROOT add.3 = f32[3] add(parameter.1, parameter.2)
        }
        """
    )
    assert "%add.3" in xbuild("show", "programs.py:total", "--style", "full").stdout
    assert xbuild("show", "programs.py:summed").stdout.startswith("HloModule summed, replica_count=2\n")
    assert "// device 1\nHloModule device" in xbuild("show", "programs.py:crossed").stdout


@pytest.mark.usefixtures("folder")
def test_show_the_skeleton() -> None:
    assert xbuild("show", "programs.py:summed", "--only", "collectives").stdout == dedent(
        """\
        ENTRY summed {
          ... 1 op
          all-reduce.4 = f32[2] all-reduce(x), replica_groups={}, to_apply=add
        }
        """
    )


@pytest.mark.usefixtures("folder")
def test_show_the_plan() -> None:
    source = xbuild("show", "programs.py:total", "--plan").stdout
    compile(source, "plan", "exec")
    assert "def " in source


# check


@pytest.mark.usefixtures("folder")
def test_check_says_ok() -> None:
    result = xbuild("check", "programs.py:summed")
    assert result.exit_code == 0
    assert result.stdout.startswith("ok")
    assert result.stderr == ""


@pytest.mark.usefixtures("folder")
def test_check_refuses_on_stderr() -> None:
    result = xbuild("check", "programs.py:crossed")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("deadlock")
    assert xbuild("check", "programs.py:crossed", "--send-buffers", 1).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_check_depends_is_a_notice() -> None:
    result = xbuild("check", "programs.py:fed")
    assert result.exit_code == 0
    assert result.stdout.startswith("depends")
    assert result.stderr.startswith("notice: ")


@pytest.mark.usefixtures("folder")
def test_check_as_json() -> None:
    result = xbuild("check", "programs.py:crossed", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["kind"] == "deadlock"


@pytest.mark.usefixtures("folder")
def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in xbuild("check", "programs.py:summed").stdout
    assert "\x1b[" in xbuild("check", "programs.py:summed", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in xbuild("check", "programs.py:summed", color=True).stdout


# run


def test_run_from_and_to_files(folder: Path) -> None:
    np.savez("in.npz", d0_arg0=np.array([1, 2], np.float32), arg0=np.array([10, 20], np.float32))
    result = xbuild("run", "programs.py:summed", "--inputs", "in.npz", "--outputs", "out.npz")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["device 0  out0  f32[2]  [11., 22.]", "device 1  out0  f32[2]  [11., 22.]"]
    with np.load("out.npz") as out:
        assert {key: out[key].tolist() for key in out.files} == {"d0_out0": [11, 22], "d1_out0": [11, 22]}
    assert {*os.listdir(folder)} - {"__pycache__"} == {"in.npz", "out.npz", "programs.py"}


@pytest.mark.usefixtures("folder")
def test_run_with_types_that_files_do_not_know() -> None:
    x = np.array([1.5, 2], ml_dtypes.bfloat16)
    np.savez("in.npz", **{"arg0:bf16": x.view(np.uint16), "arg1": np.array([-8, 7, 0], np.int8)})
    result = xbuild("run", "programs.py:small_types", "--inputs", "in.npz", "--outputs", "out.npz")
    assert result.exit_code == 0, result.output
    with np.load("out.npz") as out:
        assert set(out.files) == {"d0_out0:bf16", "d0_out1:s4"}
        assert out["d0_out0:bf16"].view(ml_dtypes.bfloat16).astype(float).tolist() == [3, 4]
        assert out["d0_out1:s4"].tolist() == [-8, 7, 0]


@pytest.mark.usefixtures("folder")
def test_run_with_random_arguments_is_repeatable() -> None:
    first = xbuild("run", "programs.py:total", "--random", 5)
    assert first.exit_code == 0, first.output
    assert first.stdout == xbuild("run", "programs.py:total", "--random", 5).stdout
    assert first.stdout != xbuild("run", "programs.py:total", "--random", 6).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the program has parameters: --inputs FILE.npz or --random SEED is wanted"),
        (("--inputs", "in.npz", "--random", 1), "--inputs and --random are both given; one is wanted"),
        (("--inputs", "in.npz"), "argument 1 of device 0, f32[3], is missing: neither d0_arg1 nor arg1 is among arg0"),
        (("--inputs", "programs.py"), "'programs.py' is no npz file of arrays, as numpy.savez"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_run_used_wrongly(options: tuple[object, ...], message: str) -> None:
    np.savez("in.npz", arg0=np.zeros(3, np.float32))
    assert usage(xbuild("run", "programs.py:total", *options)).startswith(message)


@pytest.mark.usefixtures("folder")
def test_run_refuses_what_check_refuses() -> None:
    result = xbuild("run", "programs.py:crossed", "--random", 0)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("deadlock")


@pytest.mark.usefixtures("folder")
def test_run_refuses_arguments_of_another_shape() -> None:
    np.savez("in.npz", arg0=np.zeros(3, np.float32), arg1=np.zeros(4, np.float32))
    result = xbuild("run", "programs.py:total", "--inputs", "in.npz", "--outputs", "out.npz")
    assert result.exit_code == 1
    assert "argument_mismatch" in result.stderr
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("limit", [("--max-trips", 100), ("--max-seconds", 0.2)])
@pytest.mark.usefixtures("folder")
def test_run_stops_at_a_limit_with_the_report(limit: tuple[object, ...]) -> None:
    result = xbuild("run", "programs.py:endless", "--random", 0, *limit)
    assert result.exit_code == 1
    assert result.stderr.startswith("stopped: ")
    assert "device 0" in result.stderr


@pytest.mark.usefixtures("folder")
def test_run_stops_at_a_limit_of_bytes() -> None:
    result = xbuild("run", "programs.py:total", "--random", 0, "--max-bytes", 4)
    assert result.exit_code == 1
    assert "would take 12 bytes, the limit is 4" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.usefixtures("folder")
def test_run_that_is_interrupted_says_where_it_stands() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from xbuild.cli import main; main()"
    )
    with open("programs.py", "a") as file:
        file.write("\nif __name__ == 'programs':\n    print('read', flush=True)\n")
    command = [sys.executable, "-c", code, "run", "programs.py:endless", "--random", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=environment) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(1.5)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 1, said
    assert "interrupted" in said.splitlines()[0]
    assert "Traceback" not in said


@pytest.mark.parametrize("dtype", PRIMITIVES.values(), ids=str)
def test_every_type_goes_through_a_file(dtype: PrimitiveType, tmp_path: Path) -> None:
    shape = dtype[2, 3]
    ((value,),) = results.random_arguments(1, [[shape]])
    assert (value.shape, value.dtype) == ((2, 3), dtype.dtype)
    results.write_results(tmp_path / "out.npz", [value], [shape])
    with np.load(tmp_path / "out.npz") as out:
        (key,) = out.files
        np.savez(tmp_path / "in.npz", **{key.replace("out", "arg"): out[key]})
    ((back,),) = inputs.read_arguments(tmp_path / "in.npz", [[shape]])
    assert back.dtype == value.dtype
    assert back.tobytes() == value.tobytes()


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")

    def fails(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", fails)
    with pytest.raises(KeyboardInterrupt):
        results.write_results(target, [np.zeros(2)], [PRIMITIVES["f64"][2]])
    assert os.listdir(tmp_path) == ["out.npz"]
    assert target.read_bytes() == b"old"


# run --strict, run --infeed


@pytest.mark.usefixtures("folder")
def test_strict_prints_the_findings_beside_the_results() -> None:
    np.savez("in.npz", arg0=np.array([3e38, 1, 2], np.float32), arg1=np.array([3e38, 1, 2], np.float32))
    arguments = ("run", "programs.py:total", "--inputs", "in.npz")
    assert xbuild(*arguments).exit_code == 0
    result = xbuild(*arguments, "--strict", "--outputs", "out.npz")
    assert result.exit_code == 1
    assert result.stdout == "device 0  out0  f32[3]  [inf, 2., 4.]\n"
    assert result.stderr.startswith(
        "strict: 1 finding at 1 place [inf_born]\n\n  inf_born  add.3 on device 0    programs.py:"
    )
    with np.load("out.npz") as out:
        assert out["d0_out0"].tolist() == [np.inf, 2, 4]


@pytest.mark.usefixtures("folder")
def test_strict_without_a_finding_is_like_a_plain_run() -> None:
    plain, strict = (xbuild("run", "programs.py:total", "--random", 1, *options) for options in ((), ("--strict",)))
    assert (
        (strict.exit_code, strict.stdout, strict.stderr)
        == (plain.exit_code, plain.stdout, plain.stderr)
        == (0, plain.stdout, "")
    )


@pytest.mark.usefixtures("folder")
def test_a_strict_run_that_stops_says_what_it_has_found() -> None:
    result = xbuild("run", "programs.py:diverging", "--random", 0, "--max-trips", 50, "--strict")
    assert result.exit_code == 1
    assert result.stderr.startswith("stopped: ")
    assert "strict: 51 findings at 1 place [division_by_zero]" in result.stderr


@pytest.mark.usefixtures("folder")
def test_infeed_from_a_file() -> None:
    np.savez("feed.npz", infeed0=np.array([1, 2], np.float32))
    result = xbuild("run", "programs.py:fed", "--infeed", "feed.npz")
    assert (result.exit_code, result.stdout) == (0, "device 0  out0  f32[2]  [1., 2.]\n"), result.output


@pytest.mark.usefixtures("folder")
def test_infeed_of_tuples_and_of_types_that_files_do_not_know() -> None:
    pair = np.array([1.5, 2], ml_dtypes.bfloat16)
    own = {"d1_infeed1_0": np.float32(7), "d1_infeed1_1:bf16": (pair + pair).view(np.uint16)}
    np.savez("feed.npz", **{f"infeed{n}_0": np.float32(n) for n in (0, 1)},
             **{f"infeed{n}_1:bf16": pair.view(np.uint16) for n in (0, 1)}, **own)  # fmt: skip
    result = xbuild("run", "programs.py:fed_twice", "--infeed", "feed.npz")
    assert result.exit_code == 0, result.output
    rows = [line.split("  ") for line in result.stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [
        ("device 0", "1."), ("device 0", "[1.5, 2]"), ("device 1", "7."), ("device 1", "[3, 4]"),
    ]  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_an_infeed_that_is_too_short_stops_with_the_report() -> None:
    np.savez("feed.npz", infeed0_0=np.float32(1), **{"infeed0_1:bf16": np.zeros(2, np.uint16)})
    result = xbuild("run", "programs.py:fed_twice", "--infeed", "feed.npz")
    assert result.exit_code == 1
    assert "infeed_starved" in result.stderr


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["arg0"], "'arg0' is no item of an infeed: d<device>_infeed<i> or infeed<i> is wanted"),
        (["infeed0:f99"], "'infeed0:f99' is no item of an infeed"),
        (["d3_infeed0"], "d3_infeed0 is for device 3, and the program has 1"),
        (["infeed0", "infeed2"], "infeed item 1 of device 0 is missing, and 2 is there"),
        (["infeed0", "infeed0_1"], "infeed0 is an array, and is a tuple, too"),
        (["infeed0_0", "infeed0_2"], "element 1 of infeed0 is missing, and 2 is there"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_infeed_used_wrongly(names: list[str], message: str) -> None:
    np.savez("feed.npz", **dict.fromkeys(names, np.zeros(2, np.float32)))
    assert usage(xbuild("run", "programs.py:fed", "--infeed", "feed.npz")).startswith(message)


@pytest.mark.parametrize("options", [("--strict", "--engine", "xla"), ("--infeed", "in.npz", "--engine", "both")])
@pytest.mark.usefixtures("folder")
def test_what_only_the_interpreter_can(options: tuple[str, ...]) -> None:
    np.savez("in.npz", infeed0=np.zeros(3, np.float32))
    told = usage(xbuild("run", "programs.py:total", "--random", 1, *options))
    assert told == f"{options[0]} is for the interpreter, and --engine {options[-1]} is given"


# viz, ops, explain


@pytest.mark.usefixtures("folder")
def test_viz() -> None:
    assert xbuild("viz", "programs.py:summed").stdout.startswith("summed\n├─ P x")
    assert xbuild("viz", "programs.py:summed", "-o", "out.dot").stdout == "out.dot\n"
    assert Path("out.dot").read_text().startswith("digraph")
    assert usage(xbuild("viz", "programs.py:summed", "-o", "out.gif")).startswith("'out.gif' is no picture; a name")


@pytest.mark.usefixtures("folder")
def test_viz_without_an_engine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from xbuild.pictures.formats import engine

    def missing(*_: str) -> list[str]:
        raise engine.DrawingError("no layout engine is here")

    monkeypatch.setattr(engine, "_command", missing)
    result = xbuild("viz", "programs.py:summed", "-o", "out.png")
    assert result.exit_code == 1
    assert result.stderr == "no layout engine is here\n"
    assert not Path("out.png").exists()


def test_ops_lists_every_op_with_both_readings() -> None:
    result = xbuild("ops")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == len(OPS)
    assert "shape value  get_tuple_element(operand: Value, *, index: int) -> Value  (GetTupleElement)" in lines
    assert [line for line in lines if not line.startswith("shape value")] == []


def test_explain_an_op() -> None:
    text = xbuild("explain", "get-tuple-element").stdout
    assert text.startswith(
        "xb.ops.get_tuple_element(operand: Value, *, index: int) -> Value\nget-tuple-element in HLO text"
    )
    assert "Source: Operation Semantics, GetTupleElement" in text
    assert xbuild("explain", "while_").stdout.startswith("xb.ops.while_(")


def test_why_an_instruction_is_there(tmp_path: Path) -> None:
    gradient = xb.grad(lambda x: xb.reduce(xb.tanh(x), 0.0, xb.add))(xb.f32[3])
    path = tmp_path / "gradient.hlo"
    for style in ("short", "full"):
        path.write_text(xb.Module("m", gradient).to_hlo(style=style))
        said = xbuild("why", str(path), "tanh.2.vjp").stdout
        assert "takes cotangents back through tanh.2 = f32[3]" in said
        assert "used by tanh.2.vjp.1" in said
    assert usage(xbuild("why", str(path), "tanh.9")).endswith("has no instruction %tanh.9; `xbuild show` prints them")


def test_explain_a_kind() -> None:
    assert xbuild("explain", "self_send").stdout == "self_send: A device sends to itself.\n"
    assert usage(xbuild("explain", "self_sent")).endswith(
        "neither an op nor a kind of refusal; did you mean 'self_send'?"
    )


def test_each_kind_is_explained_in_a_sentence() -> None:
    assert EXPLANATIONS.keys() == KINDS
    for sentence in EXPLANATIONS.values():
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_help_names_the_exit_codes() -> None:
    assert "Exit codes: 0 ok, 1 the program is refused or stops, 2" in " ".join(xbuild("--help").stdout.split())
