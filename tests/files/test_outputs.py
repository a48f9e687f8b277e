"""What is written: whole or not at all, never through a link that is there already, for each output of each command."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from tests.commands.command_line import usage, xbuild
from tests.fuzzing.attack import half_written
from tests.fuzzing.outputs import TEXT, faults, writing
from xbuild.files import temporary
from xbuild.files.arrays import new_folder, remove_unfinished, replacing, write_results
from xbuild.pages import write_page

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="links and limits of files are those of POSIX")
pytestmark = posix


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "p.hlo").write_text(TEXT)
    return tmp_path


def _module() -> xb.Module:
    return xb.parse_hlo(TEXT)


def _npz(path: Path) -> object:
    return write_results(path, [np.ones(4, np.float32)], [xb.f32[4]])


FILES: dict[str, Callable[[Path], object]] = {
    "viz.svg": lambda path: xb.viz(_module(), path),
    "viz.html": lambda path: xb.viz(_module(), path),
    "page.html": lambda path: write_page(trace(_module(), [[np.ones(4, np.float32)]] * 2), path),
    "machine.json": lambda path: xb.timeline(_module(), "h100").machine.write(path),
    "results.npz": _npz,
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_library(name: str, tmp_path: Path) -> None:
    path, mine = tmp_path / name, tmp_path / "mine"
    mine.write_text("mine")
    for target in (mine, tmp_path / "nothing"):
        path.symlink_to(target)
        with pytest.raises(OSError, match="xbuild does not write through links"):
            FILES[name](path)
        assert path.is_symlink()
        path.unlink()
    assert mine.read_text() == "mine"
    path.write_text("old")
    path.chmod(0o640)
    FILES[name](path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert half_written(tmp_path) == []


def test_every_output_of_every_command_leaves_planted_links_alone(program: Path) -> None:
    found = list(writing())
    assert {"--chakra", "--repair", "--trace", "--outputs", "--picture", "--page", "--goal", "--copy"} <= {
        word for words in found for word in words
    }
    assert [*faults(found, program / "planted")] == []


def test_without_links_the_same_commands_write(program: Path) -> None:
    """Where nothing is planted, some command line writes each output: so the test before sees what it is to see."""
    wrote = set()
    for number, words in enumerate(writing()):
        folder = program / str(number)
        folder.mkdir()
        os.chdir(folder)
        (folder / "p.hlo").write_text(TEXT)
        xbuild(*words)
        if any(each.name.startswith("OUT") for each in folder.iterdir()):
            wrote |= {*words}
    assert {"--chakra", "--trace", "--outputs", "--page", "--goal", "--copy", "--output", "-o"} <= wrote


FOLDERS = (
    ["cost", "p.hlo", "--machine", "h100", "--chakra", "out"],
    ["learn", "--copy", "out"],
    ["puzzle", "--copy", "out"],
    ["examples", "--copy", "out"],
)
_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
sys.argv = ["xbuild", *sys.argv[2:]]
from xbuild.cli import main
main(prog_name="xbuild")
"""


def limited(size: int, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that cannot write a file of more than some bytes, as on a disk that is full."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", _LIMITED, str(size), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("words", FOLDERS, ids=" ".join)
def test_a_folder_is_written_whole_or_not_at_all(words: list[str], program: Path) -> None:
    before = {*os.listdir(program)}
    done = limited(40 if "--chakra" in words else 1500, *words)
    assert done.returncode in (1, 2)
    assert "cannot write" in done.stderr or "cannot be written" in done.stderr
    assert ": File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert {*os.listdir(program)} - {"data"} == before
    done = limited(1 << 30, *words)
    assert done.returncode == 0, done.stderr
    again = limited(1 << 30, *words)
    assert "a file or folder with this name already exists" in again.stderr
    assert again.returncode in (1, 2)


@pytest.mark.parametrize("words", FOLDERS, ids=" ".join)
@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_is_not_written_through_a_link(words: list[str], inside: bool, program: Path) -> None:
    mine = program / "mine"
    mine.mkdir()
    copies = {"learn": "lessons", "puzzle": "puzzles", "examples": "examples"}
    target = program / "out" / copies.get(words[0], "")
    target.parent.mkdir(exist_ok=True)
    if inside:
        target.mkdir()
        (target / "groups.json").symlink_to(mine / "groups.json")
    else:
        target.symlink_to(mine)
    done = xbuild(*words)
    assert done.exit_code in (1, 2)
    assert ("with this name already exists" if inside else "xbuild does not write through links") in done.stderr
    assert [*mine.iterdir()] == []


def test_what_is_left_of_a_folder_is_removed(tmp_path: Path) -> None:
    for place in (tmp_path / "a" / "b" / "c", tmp_path / "c"):
        with pytest.raises(FileNotFoundError), new_folder(place) as made:
            (made / "no folder" / "half").write_text("half")
        assert [*tmp_path.iterdir()] == []
    with suppress(FileNotFoundError), new_folder(tmp_path / "c") as made:
        (made / "half").write_text("half")
        remove_unfinished()
        assert [*tmp_path.iterdir()] == []
    assert [*tmp_path.iterdir()] == []
    other = tmp_path / f".xbuild-{temporary._machine()}-{2**22 + 7}-left"
    other.mkdir()
    (other / "half").write_text("half")
    with new_folder(tmp_path / "new"):
        assert not other.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with new_folder(tmp_path / "new") as made:
        (made / "file").write_text("whole")
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["file"]


@pytest.fixture
def streams() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for each in ends:
        os.close(each)


def test_links_of_the_system_to_open_files_are_followed(streams: tuple[int, int], tmp_path: Path) -> None:
    """/dev/stdout is a link."""
    read, write = streams
    with replacing(Path(f"/dev/fd/{write}")) as file:
        file.write(b"told")
    assert os.read(read, 10) == b"told"
    with (tmp_path / "log").open("wb") as log, replacing(Path(f"/dev/fd/{log.fileno()}")) as file:
        file.write(b"told")
    assert (tmp_path / "log").read_bytes() == b"told"


def test_a_page_of_play_is_named_by_the_file_and_replaces_nothing(program: Path) -> None:
    """Not by the program, whose name may be a stranger's."""
    Path("m.html").write_text("mine")
    assert xbuild("play", "p.hlo").stdout == "wrote p.html: a page for any browser\n"
    assert Path("m.html").read_text() == "mine"
    assert usage(xbuild("play", "p.hlo")) == "p.html already exists; use -o to write to another file"
