"""Commands on a small file of HLO import what they need: no other reader, no costs, no timelines, no traces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HLO = "ENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] tanh(x)\n}\n"
NOT_NEEDED = (
    "xbuild.stablehlo.syntax", "xbuild.stablehlo.op_rules", "xbuild.costs", "xbuild.timelines", "xbuild.traces",
    "xbuild.sharding.partition", "xbuild.sharding.propagation", "xbuild.pages", "interpreter.engines",
    "interpreter.tracing",
)  # fmt: skip
LIST = "import sys; sys.argv[0] = 'xbuild'\nfrom xbuild.cli import main\ntry: main()\nfinally: print(*sys.modules)"


@pytest.mark.parametrize("command", [["check"], ["run", "--random", "1"]], ids=" ".join)
def test_modules_that_a_command_does_not_need(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "small.hlo"
    file.write_text(HLO)
    arguments = [sys.executable, "-c", LIST, *command, str(file)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.splitlines()[-1].split()
    assert "xbuild.text.reader" in loaded
    assert [name for name in loaded if name.startswith(NOT_NEEDED)] == []
