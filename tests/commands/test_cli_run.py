"""The command run, in process: arguments and results in files, refusals, limits and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from shape_inference import PRIMITIVES, PrimitiveType
from tests.commands.command_line import usage, xbuild
from xbuild.files import arrays
from xbuild.files import arrays as inputs


def test_run_from_and_to_files(folder: Path) -> None:
    np.savez("in.npz", d0_arg0=np.array([1, 2], np.float32), arg0=np.array([10, 20], np.float32))
    result = xbuild("run", "programs.py:summed", "--inputs", "in.npz", "--outputs", "out.npz")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "device 0  out0  f32[2]  [11., 22.]",
        "device 1  out0  f32[2]  [11., 22.]",
        "wrote out.npz: the results by device and output",
    ]
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
        ((), "the program has parameters: use --inputs FILE.npz or --random SEED"),
        (("--inputs", "in.npz", "--random", 1), "--inputs and --random cannot be used together: use only one"),
        (
            ("--inputs", "in.npz"),
            "argument 1 of device 0, f32[3], is missing: the file contains neither d0_arg1 nor arg1, only arg0",
        ),
        (("--inputs", "programs.py"), "'programs.py' is not an npz file of arrays; numpy.savez"),
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
    assert "would take 12 bytes; the limit is 4" in result.stderr


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
    ((value,),) = arrays.random_arguments(1, [[shape]])
    assert (value.shape, value.dtype) == ((2, 3), dtype.dtype)
    arrays.write_results(tmp_path / "out.npz", [value], [shape])
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
        arrays.write_results(target, [np.zeros(2)], [PRIMITIVES["f64"][2]])
    assert os.listdir(tmp_path) == ["out.npz"]
    assert target.read_bytes() == b"old"
