"""The folder of a trace: only the trace's own files are removed, one run at a time writes, what is cut off is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from interpreter import trace
from xbuild.cli import main
from xbuild.process import locking
from xbuild.traces import Trace, TraceError, folder
from xbuild.traces.folder import JOURNAL, Folder

SMALL = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
ROOT = Path(__file__).parents[2]


def call(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def tree(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    return path


@pytest.fixture
def kept(small: Path, tmp_path: Path) -> Path:
    assert call("run", small, "--random", 1, "--trace", tmp_path / "kept").exit_code == 0
    return tmp_path / "kept"


@pytest.mark.parametrize(
    "index", ['{"weight_map": {}}', '{"format": "xbuild trace 1"}', '{"format": "xbuild trace 2"}', "", "[]"]
)
def test_files_beside_any_index_are_left_alone(index: str, small: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, text in {"index.json": index, "time.npz": "mine", "chunk-00000.npz": "mine", "a.hlo": SMALL}.items():
        (mine / name).write_text(text)
    before = tree(mine)
    for target in (small, mine / "a.hlo"):
        done = call("run", target, "--random", 1, "--trace", mine)
        assert done.exit_code == 2
        assert "a trace needs its own folder" in done.output
        assert tree(mine) == before


@pytest.mark.parametrize(
    "changed",
    [
        lambda kept: (kept / "notes.txt").write_text("mine"),
        lambda kept: (kept / "weights.npz").write_text("mine"),
        lambda kept: (kept / "chunk-00007.npz").write_text("mine"),
        lambda kept: (kept / "program-1.hlo").write_text("mine"),
        lambda kept: (kept / "results.npz").write_text("mine, in its place"),
        lambda kept: (kept / "index.json.part").mkdir(),
        lambda kept: (kept / "sub").mkdir(),
        lambda kept: ((kept / "time.npz").unlink(), (kept / "time.npz").symlink_to(kept.parent / "small.hlo")),
        lambda kept: (kept / JOURNAL).unlink(),
        lambda kept: (kept / JOURNAL).write_text("my own notes\n"),
        lambda kept: ((kept / JOURNAL).unlink(), (kept / JOURNAL).mkdir()),
        lambda kept: ((kept / JOURNAL).unlink(), (kept / JOURNAL).symlink_to(kept.parent / "small.hlo")),
        lambda kept: ((kept / JOURNAL).unlink(), os.link(kept.parent / "small.hlo", kept / JOURNAL)),
        lambda kept: ((kept / JOURNAL).unlink(), os.mkfifo(kept / JOURNAL)),
    ],
)
def test_a_trace_with_other_things_in_it_is_left_alone(
    changed: Callable[[Path], object], small: Path, kept: Path
) -> None:
    changed(kept)
    before = [(each, each.lstat().st_size) for each in sorted(kept.iterdir())]
    done = call("run", small, "--random", 1, "--trace", kept)
    assert done.exit_code == 2
    assert "nothing was removed" in done.output
    assert [(each, each.lstat().st_size) for each in sorted(kept.iterdir())] == before
    assert small.read_text() == SMALL


def test_a_trace_takes_the_place_of_a_trace(small: Path, kept: Path) -> None:
    (kept / "chunk-00000.npz.part").write_text("left by a run that was killed")
    assert call("run", small, "--random", 2, "--trace", kept).exit_code == 0
    assert len(Trace.load(kept)) == 2
    assert sorted(os.listdir(kept)) == [
        "chunk-00000.npz", "index.json", "program-0.hlo", "results.npz", "time.npz", JOURNAL,
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["itself", "link", "hard link"])
def test_the_target_may_not_be_in_the_folder(way: str, kept: Path, tmp_path: Path) -> None:
    target, inside = tmp_path / "other.hlo", kept / "program-0.hlo"
    {"itself": lambda: None, "link": lambda: target.symlink_to(inside), "hard link": lambda: os.link(inside, target)}[
        way
    ]()
    before = tree(kept)
    done = call("run", inside if way == "itself" else target, "--random", 1, "--trace", kept)
    assert (done.exit_code, "needs its own folder" in done.output) == (2, True)
    assert tree(kept) == before


@pytest.mark.parametrize("option", ["--inputs", "--outputs", "--page", "--infeed"])
def test_no_file_of_a_run_may_be_in_the_folder(option: str, small: Path, kept: Path) -> None:
    file = "page.html" if option == "--page" else "results.npz"
    rest = [] if option == "--inputs" else ["--random", 1]
    before = tree(kept)
    done = call("run", small, *rest, option, kept / file, "--trace", kept)
    assert (done.exit_code, "needs its own folder" in done.output) == (2, True)
    assert tree(kept) == before


LONG = """
    import sys, time
    import numpy as np
    import xbuild as xb
    from interpreter import trace
    import interpreter.tracing.run as tracer

    tracer.CHUNK = 50

    @xb.custom_call_target("told")
    def told(n):
        if n == 40:
            print("under way", flush=True)
            time.sleep(float(sys.argv[2]))
        return n

    @xb.computation(xb.s32[()])
    def program(n):
        def body(n):
            return xb.custom_call(n, custom_call_target="told", shape=xb.s32[()]) + 1
        return xb.while_(n, condition=lambda n: xb.lt(n, 100), body=body)

    trace(xb.Module("long", program), [[0]], folder=sys.argv[1])
"""


def under_way(place: Path, seconds: float) -> subprocess.Popen[str]:
    """A run in a process of its own that waits in the middle."""
    script = [sys.executable, "-c", dedent(LONG), str(place), str(seconds)]
    process = subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "under way\n"
    return process


@pytest.mark.parametrize("has_locks", [True, False])
def test_the_second_of_two_runs_is_refused(
    has_locks: bool, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "trace"
    if not has_locks:
        monkeypatch.setattr(folder, "locked", lambda handle: "unknown")
    with under_way(place, 1.0) as process:
        done = call("run", small, "--random", 1, "--trace", place)
        assert (done.exit_code, "another run is writing to" in done.output) == (2, True)
        assert "interrupted or is still running" in Trace.load(place).left_out
        process.communicate()
        assert process.returncode == 0
    found = Trace.load(place)
    assert (found.program.name, found.left_out) == ("long", "")  # type: ignore[union-attr]
    assert call("run", small, "--random", 1, "--trace", place).exit_code == 0


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_run_that_is_killed_leaves_what_it_had_and_no_lock(
    has_locks: bool, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "trace"
    if not has_locks:
        monkeypatch.setattr(folder, "locked", lambda handle: "unknown")
    with under_way(place, 60) as process:
        process.kill()
    found = Trace.load(place)
    assert len(found) >= 100
    assert "interrupted" in found.left_out
    assert call("run", small, "--random", 1, "--trace", place).exit_code == 0
    assert len(Trace.load(place)) == 2


def test_a_run_that_is_interrupted_leaves_all_that_it_had(tmp_path: Path) -> None:
    with under_way(tmp_path / "trace", 60) as process:
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    found = Trace.load(tmp_path / "trace")
    assert len(found) % 50, "what came after the last chunk is there, too"
    assert found.stop is not None or "interrupted" in found.left_out


def test_a_run_whose_program_raises_leaves_what_it_had(tmp_path: Path) -> None:
    @xb.custom_call_target("raises.here")
    def raises(x: Any) -> Any:
        raise KeyError("mine")

    program = xb.computation(xb.f32[2])(lambda x: xb.custom_call(-x, custom_call_target="raises.here", shape=xb.f32[2]))
    trace(xb.Module("m", program), [[np.ones(2, np.float32)]], folder=tmp_path / "trace")
    found = Trace.load(tmp_path / "trace")
    assert [event.instruction.opcode for event in found] == ["parameter", "negate"]
    assert "KeyError" in found.stop["text"]  # type: ignore[index]


def test_a_full_disk_is_told_and_leaves_a_trace(small: Path, tmp_path: Path) -> None:
    """Files of at most 3,000 bytes can be written: the program can, the values cannot."""
    script = """
        import resource, signal, sys
        from xbuild.cli import main
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        main(["run", sys.argv[1], "--random", "1", "--trace", sys.argv[2]])
    """
    small.write_text(SMALL.replace("[4]", "[4000]"))
    place = tmp_path / "trace"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(script), str(small), str(place)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert done.stderr.splitlines()[-1] == f"Error: {place / 'chunk-00000.npz'}: File too large"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    found = Trace.load(place)
    assert (len(found), "interrupted" in found.left_out) == (0, True)
    assert not [*place.glob("*.part")]


def test_a_trace_is_not_written_over_what_it_reads(kept: Path, tmp_path: Path) -> None:
    found = Trace.load(kept)
    with pytest.raises(TraceError, match="choose a different folder"):
        found.save(kept)
    assert len(Trace.load(found.save(tmp_path / "copy"))) == len(found)


def test_a_folder_is_held_until_it_is_closed(tmp_path: Path) -> None:
    first = Folder.claim(tmp_path)
    with pytest.raises(TraceError, match="another run"):
        Folder.claim(tmp_path)
    first.close()
    Folder.claim(tmp_path).close()


def test_without_locks_a_folder_that_was_taken_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "locked", lambda handle: "unknown")
    monkeypatch.setattr(folder, "is_running", lambda process: False)
    first = Folder.claim(tmp_path)
    second = Folder.claim(tmp_path)
    with pytest.raises(TraceError, match="another run now uses"), first.writing("index.json"):
        pass
    with second.writing("index.json") as file:
        file.write(b"{}")
    assert (tmp_path / "index.json").read_bytes() == b"{}"


def test_processes_are_told_apart() -> None:
    ours = locking.this_process()
    host, number, start = ours.rsplit("/", 2)
    assert locking.is_running(ours)
    assert locking.is_running(f"elsewhere/{number}/{start}")
    assert not locking.is_running(f"{host}/{2**22 + 1}/{start}")
    assert not locking.is_running(f"{host}/{number}/{start}0")
    assert not locking.is_running("")
    assert not locking.is_running(f"{host}/x/{start}")


def test_a_file_system_without_locks_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import fcntl

    def refuses(number: int) -> Callable[..., None]:
        def flock(*_: Any) -> None:
            raise OSError(number, "no")

        return flock

    with (tmp_path / "file").open("w") as file:
        for number, state in ((errno.ENOLCK, "unknown"), (errno.EWOULDBLOCK, "taken")):
            monkeypatch.setattr(fcntl, "flock", refuses(number))
            assert locking.locked(file.fileno()) == state
