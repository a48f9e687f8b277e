"""`--partition`: commands treat what each device runs, with global arguments and results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from xbuild.cli import main
from xbuild.sharding import partition

BLOCK = str(Path(__file__).parents[3] / "examples" / "sharding" / "block.py")
UNEVEN = """HloModule m
ENTRY e {
  a = s32[5,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
  b = s32[4,3] parameter(1), sharding={mesh['x'=2,'y'=2], [{'y'}, {}]}
  y = s32[5,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[5,3], s32[5,4]) tuple(y, a)
}
"""


@pytest.fixture
def uneven(tmp_path: Path) -> str:
    (tmp_path / "m.hlo").write_text(UNEVEN)
    return str(tmp_path / "m.hlo")


def xbuild(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_a_run_takes_and_gives_global_arrays(uneven: str, tmp_path: Path) -> None:
    a, b = np.arange(20, dtype=np.int32).reshape(5, 4), np.arange(12, dtype=np.int32).reshape(4, 3)
    np.savez(tmp_path / "in.npz", arg0=a, arg1=b)
    done = xbuild("run", uneven, "--partition", "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:4] for line in lines[:2]] == [
        ["global", "out0", "s32[5,3]", "min"],
        ["global", "out1", "s32[5,4]", "min"],
    ]
    assert [" ".join(line) for line in lines[2:4]] == [
        "against one device out0 s32[5,3] max 0 ulp the same", "against one device out1 s32[5,4] max 0 ulp the same",
    ]  # fmt: skip
    with np.load(tmp_path / "out.npz") as found:
        assert (found["d0_out0"] == a @ b).all()
        assert (found["d0_out1"] == a).all()


def test_each_command_treats_what_each_device_runs(uneven: str, tmp_path: Path) -> None:
    assert "which has 1 collective" in xbuild("check", uneven, "--partition").stdout
    assert "devices      4, mesh x=2 x y=2" in xbuild("cost", uneven, "--partition").stdout
    assert "all-reduce" in xbuild("viz", uneven, "--partition").stdout
    stepped = CliRunner().invoke(main, ["step", uneven, "--partition", "--random", "0"], input="to end\n")
    assert stepped.exit_code == 0
    assert "on 4 devices" in stepped.stdout
    page = tmp_path / "p.html"
    assert xbuild("run", uneven, "--partition", "--random", 0, "--page", page).exit_code == 0
    assert '"layouts": [{' in page.read_text().replace('"layouts":[{', '"layouts": [{')


def test_a_program_that_is_not_partitioned_says_how(uneven: str) -> None:
    done = xbuild("run", uneven, "--random", 0)
    assert "it is run as one global program" in done.stderr
    assert done.stderr.strip().endswith("; --partition partitions the program first")
    assert "--partition partitions the program first" in xbuild("check", uneven).stderr
    assert "--partition partitions the program first" in xbuild("cost", uneven).stderr
    assert "notice" not in xbuild("cost", uneven, "--partition").stderr
    assert "notice" not in xbuild("run", uneven, "--partition", "--random", 0).stderr


def test_the_check_partitions_what_is_in_part_for_each_device() -> None:
    dumps = Path(__file__).parents[2] / "data" / "dumps"
    for target in (dumps / "jax_0.10.2/ir#jit_summed", f"{dumps}/passes"):
        done = xbuild("check", target, *(["--stage", "before"] if str(target).endswith("passes") else []))
        assert done.exit_code == 0, done.output
        assert "devices 0-3 run one program, which has 1 collective" in done.stdout
        assert done.stderr == (
            "notice: jit_summed is for 4 devices but is not partitioned yet, so xbuild has partitioned it\n"
        )
    lowered = dumps / "jax_0.10.2/ir/jax_ir0007_jit_summed_compile.mlir"
    both = xbuild("check", lowered, BLOCK + ":tensor", "--json")
    assert both.exit_code == 0
    assert [each["kind"] for each in json.loads(both.stdout)["programs"]] == ["ok", "ok"]
    assert xbuild("check", lowered, "--json").exit_code == 0


def test_a_partition_that_is_wrong_ends_with_exit_code_1(uneven: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = partition.Partitioned.joined

    def spoiled(self: xb.shard.Partitioned, results: object) -> object:
        y, a = whole(self, results)  # type: ignore[arg-type]
        return y + 1, a

    monkeypatch.setattr(partition.Partitioned, "joined", spoiled)
    done = xbuild("run", uneven, "--partition", "--random", 0)
    assert done.exit_code == 1
    assert "the partitioned program differs from the one-device run" in done.stderr
    assert "differs at [0, 0]" in done.stdout


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("examples/ring.py:program", 1, "no sharding in ring_all_reduce names a mesh"),
        ("examples/pipeline.py:program", 2, "--partition takes one program for all devices"),
    ],
)
def test_what_has_no_partition_is_refused(target: str, code: int, told: str) -> None:
    done = xbuild("check", Path(__file__).parents[3] / target, "--partition")
    assert (done.exit_code, told in done.stderr) == (code, True)


def test_a_kept_trace_is_of_one_program(tmp_path: Path, uneven: str) -> None:
    assert xbuild("run", uneven, "--partition", "--random", 0, "--trace", tmp_path / "kept").exit_code == 0
    done = xbuild("step", tmp_path / "kept", "--partition")
    assert done.exit_code == 2
    assert "--partition has no effect here:" in done.stderr


@pytest.mark.oracle
def test_the_partition_of_a_block_on_real_xla() -> None:
    pytest.importorskip("jaxlib")
    done = xbuild("run", f"{BLOCK}:tensor", "--partition", "--random", 0, "--engine", "both")
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["global", "out0"], ["against", "one"]]


CANCELLING = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[256] parameter(0), sharding={mesh['x'=4], [{'x'}]}
  zero = f32[] constant(0)
  large = f32[] constant(1e9)
  spread = f32[256] broadcast(large), dimensions={}
  scaled = f32[256] multiply(x, spread)
  one = f32[] reduce(scaled, zero), dimensions={0}, to_apply=add
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  other = f32[] multiply(total, large)
  ROOT y = f32[] subtract(one, other)
}
"""


@pytest.fixture
def cancelling(tmp_path: Path) -> tuple[str, str]:
    """A program whose result is small beside what cancels in it, in f32 and in f64."""
    files = tmp_path / "f32.hlo", tmp_path / "f64.hlo"
    files[0].write_text(CANCELLING)
    files[1].write_text(CANCELLING.replace("f32", "f64"))
    return str(files[0]), str(files[1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bits", [0, 1])
def test_rounding_beside_large_numbers_is_no_difference(cancelling: tuple[str, str], bits: int, seed: int) -> None:
    done = xbuild("run", cancelling[bits], "--partition", "--random", seed)
    assert done.exit_code == 0, done.output
    assert "the same" in done.stdout or "within" in done.stdout


def test_some_of_these_results_are_beyond_the_tolerance_of_their_type(cancelling: tuple[str, str]) -> None:
    notes = [xbuild("run", cancelling[0], "--partition", "--random", seed).stdout for seed in range(8)]
    assert any("within rounding: in f64, " in note for note in notes)


@pytest.mark.parametrize("bits", [0, 1])
@pytest.mark.parametrize("wrong", ["more than rounding", "not a number"])
def test_what_is_wrong_beside_large_numbers_is_a_difference(
    cancelling: tuple[str, str], bits: int, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, size = partition.Partitioned.joined, (1e5, 1e-2)[bits] if wrong == "more than rounding" else np.nan

    def spoiled(self: xb.shard.Partitioned, results: object) -> object:
        return whole(self, results) + np.float64(size)  # type: ignore[arg-type]

    monkeypatch.setattr(partition.Partitioned, "joined", spoiled)
    done = xbuild("run", cancelling[bits], "--partition", "--random", 0)
    assert done.exit_code == 1
    assert "differs at []: partitioned " in done.stdout
    assert ", one device " in done.stdout


def test_a_difference_names_both_sides(uneven: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = partition.Partitioned.joined

    def spoiled(self: xb.shard.Partitioned, results: object) -> object:
        y, a = whole(self, results)  # type: ignore[arg-type]
        return y * 0 + 7, a * 0 + 8

    monkeypatch.setattr(partition.Partitioned, "joined", spoiled)
    done = xbuild("run", uneven, "--partition", "--random", 0)
    assert "partitioned 7, one device " in done.stdout
    assert "partitioned 8, one device " in done.stdout
