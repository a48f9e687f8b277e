"""Commands under failures of the machine: killed, interrupted while starting, a full disk, a child that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from interpreter.engines.process import Child, Failure, Job
from xbuild import interrupts
from xbuild.files import temporary
from xbuild.files.arrays import replacing

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "xbuild"]
NEGATION = "HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT y = f32[8] negate(x) }\n"

posix = pytest.mark.skipif(os.name != "posix", reason="signals and numbers of processes as POSIX has them")
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is wanted")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    file = tmp_path / "program.hlo"
    file.write_text(NEGATION)
    return file


# what killed runs leave


_WRITES = """
import sys, time
from pathlib import Path
from xbuild.files import temporary
from xbuild.files.arrays import replacing

with replacing(Path(sys.argv[1])) as file, temporary.folder() as folder:
    (folder / "inside").write_text("half")
    file.write(b"half")
    print("ready", flush=True)
    time.sleep(100)
"""


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a process was killed while it wrote `out`, and which is the one for temporary files, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _WRITES, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
        assert len(os.listdir(tmp_path)) == 2
        with replacing(tmp_path / "out") as file:  # while it lives, what it writes is its own
            file.write(b"old")
        assert len(os.listdir(tmp_path)) == 3
        writer.kill()
    return tmp_path


@posix
def test_the_next_file_removes_what_a_killed_process_left(killed: Path) -> None:
    kept = killed / f".xbuild-{temporary._machine()}-{os.getpid()}-mine"
    other = killed / ".xbuild-00000000-999999999-elsewhere"
    for each in (kept, other, killed / ".xbuild-notes"):
        each.write_text("kept")
    with replacing(killed / "out") as file:
        file.write(b"new")
    assert sorted(os.listdir(killed)) == sorted([kept.name, other.name, ".xbuild-notes", "out"])
    assert (killed / "out").read_bytes() == b"new"


@posix
def test_the_next_folder_removes_what_a_killed_process_left(killed: Path) -> None:
    with temporary.folder() as folder:
        assert sorted(os.listdir(killed)) == sorted([folder.name, "out"])
    assert os.listdir(killed) == ["out"]


@posix
def test_no_link_is_followed(killed: Path) -> None:
    """A name like that of a leftover may point at what is the user's."""
    (killed / "mine").mkdir()
    (killed / "mine" / "notes").write_text("kept")
    link = killed / f".xbuild-{temporary._machine()}-{2**22 + 7}-link"
    link.symlink_to(killed / "mine")
    temporary.sweep(killed)
    assert (killed / "mine" / "notes").read_text() == "kept"
    assert link.is_symlink()


# Ctrl-C while it starts


_SLOW = "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(60)\n"


def interrupted(target: Path, tmp_path: Path, slow: str, text: str = _SLOW) -> tuple[int, str]:
    """The exit code and stderr of a command that is interrupted while it imports a module."""
    (tmp_path / f"{slow}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    handled = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may have it ignored
    (tmp_path / "sitecustomize.py").write_text(handled)
    command = [*COMMAND, "check", str(target)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        assert running.stderr.readline() == "importing\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    return running.returncode, said


@posix
@pytest.mark.parametrize("module", ["ml_dtypes", "click"])
def test_an_interrupt_while_it_starts_is_told(target: Path, tmp_path: Path, module: str) -> None:
    """In an import of the package, or of the command line."""
    status, said = interrupted(target, tmp_path, module)
    assert status == 130
    assert said == "xbuild: interrupted while it started\n"


@posix
def test_an_interrupt_of_the_users_file_is_told(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    status, said = interrupted(Path(f"{slow}:program"), tmp_path, "slow")
    assert (status, said.strip()) == (130, "interrupted")


def test_which_process_is_the_command() -> None:
    assert interrupts.is_command(["-m"], ["python", "-m", "xbuild", "check"])
    assert interrupts.is_command(["/usr/bin/xbuild"], ["python", "/usr/bin/xbuild"])
    assert not interrupts.is_command(["-m"], ["python", "-m", "pytest", "xbuild"])
    assert not interrupts.is_command(["train.py"], ["python", "train.py", "-m", "xbuild.py"])
    assert not interrupts.is_command([], [])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# a disk that is full


@full
@pytest.mark.parametrize(
    "words",
    ["--help", "show {}", "check {} --json", "viz {}", "run {} --random 1", "step {} --random 1"],
)  # fmt: skip
def test_a_full_disk_is_told_in_a_sentence(target: Path, words: str) -> None:
    with open("/dev/full", "wb") as disk:
        done = subprocess.run(
            [*COMMAND, *words.format(target, target).split()], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=disk,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


@full
def test_nowhere_to_tell_it(target: Path) -> None:
    with open("/dev/full", "wb") as disk:
        for words in (["show", str(target)], ["show", "nothing"]):
            assert subprocess.run([*COMMAND, *words], cwd=ROOT, stdout=disk, stderr=disk, check=False).returncode in (
                1,
                2,
            )


SMALL_FILES = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
os.execv(sys.argv[1], sys.argv[1:])
"""


@posix
@pytest.mark.parametrize("option", ["--outputs=out.npz", "--page=out.html", "--trace=out"])
def test_a_file_that_finds_no_room_is_not_there(target: Path, tmp_path: Path, option: str) -> None:
    """A limit on the size of files stands for a disk that is full."""
    words = [*COMMAND, "run", str(target), "--random", "1", option]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", SMALL_FILES, *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    kept = {target, tmp_path / "out" / "xbuild-trace.txt"}  # of a trace: the list of its own files
    large = {each for each in tmp_path.rglob("*") if each.is_file() and each.stat().st_size >= 100}
    assert large <= kept


# a child that does not read


@pytest.fixture
def child() -> Iterator[Child]:
    pytest.importorskip("jaxlib")
    with Child(1) as found:
        yield found


@posix
@pytest.mark.oracle
def test_the_limit_holds_while_arguments_are_sent(child: Child) -> None:
    few, many = ([[np.zeros(count, np.float32)]] for count in (8, 4_000_000))
    assert not isinstance(child.run(Job(NEGATION, few), 60), Failure)
    os.kill(child.process.pid, signal.SIGSTOP)
    guard = threading.Timer(30, child.process.kill)  # without the limit the test would wait for ever
    guard.start()
    begin = time.monotonic()
    outcome = child.run(Job(NEGATION, many), 0.5)
    guard.cancel()
    assert outcome == Failure("late", "no answer within 0.5 s")
    assert time.monotonic() - begin < 10
    assert child.is_dead


@pytest.mark.oracle
def test_what_cannot_be_sent_is_told(child: Child) -> None:
    with pytest.raises(TypeError, match="is not an XLA element type"):
        child.run(Job(NEGATION, [[lambda: None]]), 60)
    assert child.is_dead
