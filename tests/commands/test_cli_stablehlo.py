"""Files of StableHLO text as targets of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.command_line import xbuild

LOGARITHM = """#loc1 = loc("model.py":88:3)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<-1.0> : tensor<4xf32>
  %0 = stablehlo.log %c : tensor<4xf32> loc(#loc1)
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("program.mlir").write_text(LOGARITHM)
    return "program.mlir"


@pytest.mark.parametrize("command", [["show"], ["check"], ["viz", "-o", "out.svg"], ["run", "--random", "1"]])
def test_commands_take_a_file_of_stablehlo(program: str, command: list[str]) -> None:
    assert xbuild(*command, program).exit_code == 0


@pytest.mark.usefixtures("program")
def test_the_text_says_what_it_is_whatever_the_file_is_called() -> None:
    for name in ("other.txt", "other.hlo"):
        Path(name).write_text(LOGARITHM)
        assert "log.0 = f32[4] log(c)" in xbuild("show", name).stdout


def test_a_strict_run_names_the_line_of_the_program(program: str) -> None:
    result = xbuild("run", program, "--strict", "--random", "1")
    assert result.exit_code == 1
    assert "model.py:88" in result.stderr + result.stdout


@pytest.mark.usefixtures("program")
def test_a_fault_is_told_with_its_place() -> None:
    Path("wrong.mlir").write_text(LOGARITHM.replace("log %c", "log %d"))
    result = xbuild("check", "wrong.mlir")
    assert result.exit_code == 1
    assert result.stderr.startswith("wrong.mlir:4:3: undefined value %d")


@pytest.mark.usefixtures("program")
def test_a_folder_may_have_a_program_of_stablehlo_for_each_device() -> None:
    Path("devices").mkdir()
    for device in range(2):
        Path(f"devices/device{device}.mlir").write_text(LOGARITHM)
    assert xbuild("check", "devices").exit_code == 0
