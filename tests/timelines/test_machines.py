"""Machines: presets, files, peaks by element type, refusals, and the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from shape_inference import XbuildError
from tests.costs.test_cost import LOOP
from xbuild.cli import main
from xbuild.timelines.machines import MACHINES, calibrate


@pytest.mark.parametrize("name", MACHINES)
def test_a_preset_has_all_that_is_published(name: str) -> None:
    found = xb.machine(name)
    assert found.name == name
    assert found.memory is not None
    assert found.peak("s8") >= found.peak("bf16") >= found.peak("f32") > found.memory_bandwidth
    assert found.link().alpha > 0
    assert found.links[""].bandwidth < found.memory_bandwidth


@pytest.mark.parametrize(
    ("dtype", "peak"), [("bf16", 2e14), ("f16", 2e14), ("f32", 1e14), ("f64", 1e14), ("s8", 4e14), ("s4", 4e14)]
)
def test_a_type_that_is_not_stated_takes_the_peak_of_the_next_wider(dtype: str, peak: float) -> None:
    machine = xb.Machine(flops={"bf16": 2e14, "s8": 4e14, "f32": 1e14}, memory_bandwidth=1e12)
    assert machine.peak(dtype) == peak


def test_a_machine_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    h100 = xb.machine("h100")
    h100.write(tmp_path / "h100.json")
    assert xb.machine(str(tmp_path / "h100.json")) == h100


def test_a_machine_that_is_measured_can_be_read(tmp_path: Path) -> None:
    found = calibrate()
    found.write(tmp_path / "here.json")
    assert xb.machine(str(tmp_path / "here.json")) == found
    assert 1e6 < found.peak("f64") <= 1.5 * found.peak("f32")
    assert "Infinity" not in (tmp_path / "here.json").read_text()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"flops": -1.0, "memory_bandwidth": 1e9}, "flops for f32 is -1.0"),
        ({"flops": {"f99": 1.0}, "memory_bandwidth": 1e9}, "'f99', which is not an element type"),
        ({"flops": {}, "memory_bandwidth": 1e9}, "flops is empty"),
        ({"flops": 1e9, "memory_bandwidth": 0}, "memory_bandwidth is 0"),
        ({"flops": 1e9, "memory_bandwidth": float("nan")}, "memory_bandwidth is nan"),
        ({"flops": 1e9, "memory_bandwidth": "fast"}, "memory_bandwidth is 'fast'"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(XbuildError, match=told):
        xb.Machine(**given)  # type: ignore[arg-type]
    with pytest.raises(XbuildError, match="alpha is -1"):
        xb.Link(alpha=-1)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"flops": 1}', '{"flops": 1, "memory_bandwidth": 1, "x": 2}', "{", '"a"']
)
def test_a_file_that_describes_no_machine_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(XbuildError, match="machine"):
        xb.machine(str(tmp_path / "m.json"))


def test_what_is_no_machine_or_program_is_refused() -> None:
    module = xb.parse_hlo(LOOP)
    with pytest.raises(XbuildError, match="is neither one of v4, v5p"):
        xb.timeline(module, "abacus")
    with pytest.raises(TypeError, match="expected the name of a machine"):
        xb.timeline(module, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is not a Computation, a Module or a ModuleGroup"):
        xb.timeline("text", "v5e")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a Link"):
        xb.Machine(flops=1, memory_bandwidth=1, links={"a": 5})  # type: ignore[dict-item]


def test_loops_that_are_too_long_to_be_written_out_are_refused() -> None:
    one, two = (xb.parse_hlo(LOOP.replace("constant(5)", "constant(2000000)")) for _ in range(2))
    with pytest.raises(XbuildError, match="unroll to more than"):
        xb.timeline(xb.ModuleGroup({d: (one, two)[d % 2] for d in range(8)}), "v5e")


def test_links_by_axis_count_by_axis() -> None:
    module = xb.parse_hlo(LOOP)
    fast, slow = xb.Link(alpha=1e-9, bandwidth=1e12), xb.Link(alpha=1e-3, bandwidth=1e12)

    def ended(a: xb.Link, b: xb.Link) -> float:
        return xb.timeline(module, xb.Machine(flops=1e12, memory_bandwidth=1e12, links={"a": a, "b": b})).seconds

    assert ended(slow, fast) == pytest.approx(2 * 2 * 1e-3, rel=0.01)  # once, halving-doubling over 4 devices
    assert ended(fast, slow) == pytest.approx(5 * 2 * 1e-3, rel=0.01)  # in five trips, over 2 devices


def test_the_command_prints_the_time_line(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(LOOP)
    line, run = xb.timeline(xb.parse_hlo(LOOP), "v5e"), CliRunner().invoke
    alone = run(main, ["cost", str(target), "--machine", "v5e", "--timeline"]).stdout
    assert alone.splitlines()[:9] == str(line).splitlines()[:9]
    both = run(main, ["cost", str(target), "--machine", "v5e"]).stdout
    assert both.startswith(str(xb.cost(xb.parse_hlo(LOOP, str(target)))).partition("\nalive at ")[0])
    assert alone in both
    found = json.loads(run(main, ["cost", str(target), "--machine", "v5e", "--json"]).stdout)
    assert found["timeline"]["seconds"] == line.seconds
    assert "no effect without --machine" in run(main, ["cost", str(target), "--timeline"]).stderr
    assert run(main, ["cost", str(target), "--machine", "abacus"]).exit_code == 2


def test_the_command_measures_this_machine(tmp_path: Path) -> None:
    found = json.loads(CliRunner().invoke(main, ["cost", "--calibrate"]).stdout)
    assert {"name", "flops", "memory_bandwidth", "memory"} <= {*found}


@pytest.mark.parametrize("content", [None, "", "[" * 100_000, "{", '{"flops": 1}'])
@pytest.mark.parametrize("command", [["cost"], ["run", "--random", "0", "--page", "o.html"], ["viz", "--timeline"]])
def test_a_machine_that_is_none_is_wrong_use(command: list[str], content: str | None, tmp_path: Path) -> None:
    (tmp_path / "p.hlo").write_text(LOOP)
    machine = tmp_path / "m.json"
    if content is not None:
        machine.write_text(content)
    found = CliRunner().invoke(main, [command[0], str(tmp_path / "p.hlo"), *command[1:], "--machine", str(machine)])
    assert found.exit_code == 2, found.output
    assert "Invalid value for '--machine'" in found.stderr


def test_a_pipe_is_no_machine_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(XbuildError, match="is a pipe; expected a file"):
        xb.machine(str(tmp_path / "pipe"))


@pytest.mark.parametrize("option", ["--trace", "--goal", "--page"])
def test_what_is_read_is_not_written(option: str, tmp_path: Path) -> None:
    target = tmp_path / "p.hlo"
    target.write_text(LOOP)
    found = CliRunner().invoke(main, ["cost", str(target), "--machine", "v5e", option, str(target)])
    assert found.exit_code == 2
    assert f"{option} {target} is also the file that the command reads as TARGET" in found.stderr
    assert target.read_text() == LOOP


@pytest.mark.parametrize("option", ["--trace", "--goal", "--page"])
def test_a_file_is_written_whole_or_not_at_all(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.hlo").write_text(LOOP)
    (tmp_path / "out").write_text("earlier")

    def broken(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", broken)
    given = ["cost", str(tmp_path / "p.hlo"), "--machine", "v5e", option, str(tmp_path / "out")]
    found = CliRunner().invoke(main, given)
    assert (found.exit_code, (tmp_path / "out").read_text()) == (1, "earlier")
    assert "out: No space left on device" in found.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "p.hlo"]
