"""The runner of attacks: it takes each command from the command line, and sees what is wrong with one."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzzing import attack
from tests.fuzzing.attack import Job, attacked, commands, files_of
from tests.fuzzing.outputs import TEXT
from xbuild.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "wait4"), reason="the runner forks, and reads /proc")


def test_each_command_with_a_target_is_in_it() -> None:
    first = [*itertools.islice(commands(0), 900)]
    named = {words[0] for words in first}
    assert named == {*main.commands} - {"completion", "demo", "examples", "lsp", "ops"}
    assert ["diff", "TARGET", "TARGET"] in first
    assert ["run", "TARGET", "--random", "0"] in first
    assert ["show", "TARGET", "--plan"] in first
    assert any(words[-2:] == ["--chakra", "OUT"] or "--chakra" in words for words in first)


def test_a_later_command_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.commands, "later", main.commands["check"])
    assert ["later", "TARGET", "--random", "0"] in [*itertools.islice(commands(0), 30)]


@pytest.mark.forks
@pytest.mark.slow
def test_a_folder_of_harmless_files(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "p.hlo").write_text(TEXT)
    (folder / "code.py").write_text("raise SystemExit('it was run')\n")
    files = files_of(folder, tmp_path / "files")
    assert {each.name for each in files} >= {"p.hlo", "code.py", "pipe.hlo", "zero.hlo", "loop.hlo"}
    found = [*attacked(files, tmp_path, 120, most=60)]
    assert len(found) == 60
    assert [(job.told, wrong) for job, wrong in found if wrong] == []
    assert all(job.line or job.file.suffix != ".py" for job, _ in found)


def _half(_: Job) -> None:
    Path("o.html").write_text("<!doctype html><p>half")
    Path(".xbuild-0-0-x").mkdir()
    Path("o.json").write_text("{")


def _traceback(_: Job) -> None:
    raise ZeroDivisionError


def _hangs(_: Job) -> None:
    time.sleep(60)


def _busy(_: Job) -> None:
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass


def _large(_: Job) -> None:
    time.sleep(0.2 * len(bytearray(b"x") * (300 << 20)) / (300 << 20))


FAULTS: dict[str, tuple[Callable[[Job], None], tuple[str, ...]]] = {
    "half": (_half, (".xbuild-0-0-x is left over", "o.html does not read", "o.json does not read")),
    "traceback": (_traceback, ("exit code 70", "a traceback: ZeroDivisionError")),
    "code": (lambda _: sys.exit(9), ("exit code 9",)),
    "hangs": (_hangs, ("it was ended",)),
    "busy": (_busy, ("s of the processor",)),
    "large": (_large, (" MB",)),
    "right": (lambda _: sys.exit(3), ()),
}  # fmt: skip


@pytest.mark.forks
@pytest.mark.parametrize("how", FAULTS)
def test_what_is_wrong_is_seen(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, told = FAULTS[how]
    monkeypatch.setattr(Job, "run", run)
    monkeypatch.setattr(attack, "IDLE", 3.0 if how == "hangs" else 120.0)
    monkeypatch.setattr(attack, "SECONDS", 0.3 if how == "busy" else 20.0)
    monkeypatch.setattr(attack, "GIGABYTES", 0.3 if how == "large" else 4.0)
    (tmp_path / "p.hlo").write_text(TEXT)
    found = [*attacked([tmp_path / "p.hlo"], tmp_path, 60, most=1, is_random=True)]
    text = "; ".join(found[0][1])
    assert all(each in text for each in told), text
    assert bool(told) == bool(text), text


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of bytes is one of Linux")
@pytest.mark.parametrize("most", ["0", "2", "100000", "10000000"])
@pytest.mark.parametrize("words", [["diff", "p.hlo", "p.hlo", "--json"], ["explain", "p.hlo", "--of", "x"]])
def test_a_limit_of_bytes_that_is_reached_while_a_module_is_loaded(words: list[str], most: str, tmp_path: Path) -> None:
    """The loader's error is reported as the limit, like any other lack of memory."""
    (tmp_path / "p.hlo").write_text(TEXT)
    environment = {**os.environ, "PYTHONPATH": str(Path(attack.__file__).parents[2])}
    command = [sys.executable, "-m", "xbuild", *words, "--max-bytes", most]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert "Traceback" not in done.stdout
    assert done.returncode in (0, 1, 2, 3)


def test_a_folder_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert attack.main_(["/no/such"]) == 0
    assert capsys.readouterr().out == "/no/such: there is no such folder, and nothing was attacked\n"
