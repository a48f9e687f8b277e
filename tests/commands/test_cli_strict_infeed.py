"""The options --strict and --infeed of the command run: findings beside results, and items from a file."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.commands.command_line import usage, xbuild

# run --strict


@pytest.mark.usefixtures("folder")
def test_strict_prints_the_findings_beside_the_results() -> None:
    np.savez("in.npz", arg0=np.array([3e38, 1, 2], np.float32), arg1=np.array([3e38, 1, 2], np.float32))
    arguments = ("run", "programs.py:total", "--inputs", "in.npz")
    assert xbuild(*arguments).exit_code == 0
    result = xbuild(*arguments, "--strict", "--outputs", "out.npz")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "device 0  out0  f32[3]  [inf, 2., 4.]",
        "wrote out.npz: the results by device and output",
    ]
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


# run --infeed


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
        (["arg0"], "'arg0' is not the name of an infeed item; expected d<device>_infeed<i> or infeed<i>"),
        (["infeed0:f99"], "'infeed0:f99' is not the name of an infeed item"),
        (["d3_infeed0"], "d3_infeed0 is for device 3, but the program has only 1"),
        (["infeed0", "infeed2"], "infeed item 1 of device 0 is missing, but the file has item 2"),
        (["infeed0", "infeed0_1"], "infeed0 is both an array and a tuple"),
        (["infeed0_0", "infeed0_2"], "element 1 of infeed0 is missing, but the file has element 2"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_infeed_used_wrongly(names: list[str], message: str) -> None:
    np.savez("feed.npz", **dict.fromkeys(names, np.zeros(2, np.float32)))
    assert usage(xbuild("run", "programs.py:fed", "--infeed", "feed.npz")).startswith(message)


# both


@pytest.mark.parametrize("options", [("--strict", "--engine", "xla"), ("--infeed", "in.npz", "--engine", "both")])
@pytest.mark.usefixtures("folder")
def test_what_only_the_interpreter_can(options: tuple[str, ...]) -> None:
    np.savez("in.npz", infeed0=np.zeros(3, np.float32))
    told = usage(xbuild("run", "programs.py:total", "--random", 1, *options))
    assert told == f"{options[0]} needs the interpreter, but --engine is {options[-1]}"
