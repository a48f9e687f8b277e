"""`xbuild run` on real XLA or on both engines, and the programs and commands of the page on engines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.support.compare import assert_same
from xbuild.cli import main

ROOT = Path(__file__).parents[3]
PROGRAMS = "from tests.interpreter.engines.programs import deadly, endless, everywhere, random\n"


@pytest.fixture
def target(tmp_path: Path) -> str:
    file = tmp_path / "programs.py"
    file.write_text(PROGRAMS)
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.oracle
def test_the_command_line_runs_on_either_or_both(target: str, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    archives = [tmp_path / "xla.npz", tmp_path / "both.npz"]
    given = f"{target}:everywhere", "--random", "3"
    alone = run(*given, "--engine", "xla", "--outputs", str(archives[0]))
    both = run(*given, "--engine", "both", "--eps", "0", "--outputs", str(archives[1]))
    assert (alone.exit_code, both.exit_code) == (0, 0), both.output
    assert len([line for line in alone.output.splitlines() if line.startswith("device ")]) == 16
    assert "devices 0-3  out0  f32[2]  max 0 ulp  the same" in both.output
    with np.load(archives[0]) as one, np.load(archives[1]) as other:
        assert one.files == other.files
        for key in one.files:
            assert_same(one[key], other[key])


@pytest.mark.oracle
def test_the_command_line_tells_a_difference_by_its_status(target: str) -> None:
    pytest.importorskip("jaxlib")
    result = run(f"{target}:random", "--engine", "both")
    assert result.exit_code == 1
    assert "differs at [" in result.stdout
    assert "the engines differ" in result.stderr


@pytest.mark.oracle
def test_an_interruption_ends_the_child(target: str) -> None:
    pytest.importorskip("jaxlib")
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # shells may have it ignored
    program = f"{handled}; from xbuild.cli import main; main()"
    command = [sys.executable, "-c", program, "run", f"{target}:endless", "--random", "1", "--engine", "xla"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}").is_dir():
        pytest.skip("this system does not list the children of a process")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        deadline = time.monotonic() + 30
        while not (found := children.read_text().split()) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, "interrupted" in said) == (1, True), said
    while Path(f"/proc/{found[0]}").exists() and time.monotonic() < deadline + 60:
        time.sleep(0.05)
    assert not Path(f"/proc/{found[0]}").exists()


PAGE = (ROOT / "docs" / "engines.md").read_text()


@pytest.mark.oracle
@pytest.mark.parametrize("program", re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_programs_of_the_page_run(program: str) -> None:
    pytest.importorskip("jaxlib")
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.oracle
@pytest.mark.parametrize("command", re.findall(r"^    xbuild run (.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.chdir(ROOT)
    result = run(*command.split())
    assert result.exit_code == 0, result.output
