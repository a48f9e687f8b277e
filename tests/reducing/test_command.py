"""`xbuild reduce`: files, exit statuses, interrupts, and the worked example of its page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from tests.reducing.test_minimize import AFTER, BEFORE, BIG, LOOP, RING

PAGE = Path(__file__).parents[2] / "docs" / "reducing.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {"ring": RING, "big": BIG, "loop": LOOP, "before": BEFORE, "after": AFTER}
    for name, text in texts.items():
        (tmp_path / f"{name}.hlo").write_text(text)
    (tmp_path / "bad.hlo").write_text(
        "HloModule bad\n\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] negate(x)\n}\n"
    )
    return tmp_path


def test_the_worked_example_of_the_page_is_what_the_command_prints(folder: Path) -> None:
    program, printed = re.findall(r"```text\n(HloModule.*?|10 instr.*?)```", PAGE.read_text(), re.DOTALL)[:2]
    (folder / "step.hlo").write_text(program)
    result = xbuild("reduce", "step.hlo", "--while", "deadlock", "-o", "small.hlo", "--jobs", "1")
    assert result.exit_code == 0
    assert re.sub(r"[\d.]+ s\n", "0.6 s\n", result.stdout, count=1) == printed
    assert (folder / "small.hlo").read_text() in printed


def test_without_a_file_the_program_is_on_stdout(folder: Path) -> None:
    result = xbuild("reduce", "ring.hlo", "--while", "refused deadlock", "--jobs", "1")
    assert result.exit_code == 0
    assert len(xb.parse_hlo(result.stdout).entry.instructions) == 6
    assert result.stderr.startswith("10 instructions -> 6, ")


def test_the_other_program_is_written_beside_it(folder: Path) -> None:
    words = ["reduce", "after.hlo", "--while", "different before.hlo", "-o", "small.hlo", "--jobs", "1"]
    assert xbuild(*words).exit_code == 0
    verdict = xbuild("equivalent", "small.hlo", "small.other.hlo")
    assert verdict.exit_code == 1
    assert verdict.stdout.startswith("different")


def test_a_file_that_cannot_be_read_is_reduced_by_lines(folder: Path) -> None:
    result = xbuild("reduce", "bad.hlo", "--while", "refused shape_mismatch", "-o", "small.hlo", "--jobs", "1")
    assert result.exit_code == 0
    assert "bad.hlo cannot be read as a program" in result.stderr
    assert "2 instructions -> 2" in result.stdout


def test_exit_statuses(folder: Path) -> None:
    assert "the verdict of the check is ok" in xbuild("reduce", "big.hlo", "--while", "deadlock").stderr
    assert xbuild("reduce", "big.hlo", "--while", "deadlock").exit_code == 1
    assert xbuild("reduce", "bad.hlo", "--while", "deadlock").exit_code == 1
    limited = xbuild("reduce", "ring.hlo", "--while", "deadlock", "-o", "o.hlo", "--max-seconds", "0", "--jobs", "1")
    assert (limited.exit_code, (folder / "o.hlo").exists()) == (3, True)
    assert "0 tries, 0.0 s; stopped at " in limited.stdout
    assert "is not a condition: expected deadlock, refused [KIND]" in usage(xbuild("reduce", "big.hlo", "--while", "x"))
    assert "different OTHER" in usage(xbuild("reduce", "big.hlo", "--while", "different"))
    same = xbuild("reduce", "big.hlo", "--while", "peak > 1", "-o", "big.hlo")
    assert "is also the file that the command reads" in usage(same)
    facts = json.loads(xbuild("reduce", "ring.hlo", "--while", "deadlock", "--json", "--jobs", "1").stdout)
    assert (facts["schema"], facts["kind"], facts["before"], facts["after"]) == ("xbuild.reduce/1", "reduced", 10, 6)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent with os.kill")
def test_ctrl_c_leaves_the_smallest_program_so_far(folder: Path) -> None:
    slow = "command \"sh -c 'sleep 0.2; grep -q sine {}'\""
    words = [sys.executable, "-m", "xbuild", "reduce", "loop.hlo", "--while", slow, "-o", "o.hlo"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not (folder / "o.hlo").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "; interrupted" in out
    assert "sine" in (folder / "o.hlo").read_text()
    assert sum(len(c.instructions) for c in xb.parse_hlo((folder / "o.hlo").read_text()).computations) < 21
