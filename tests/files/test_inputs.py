"""Faulty input files of commands: each is reported in a sentence before anything is loaded or written."""

from __future__ import annotations

import io
import os
import resource
import struct
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from tests.commands.command_line import usage
from xbuild.cli import main
from xbuild.files import arrays
from xbuild.files.arrays import ArchiveError

PROGRAM = "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
DEVICES = "HloModule m, replica_count=2\n" + PROGRAM
LARGE = PROGRAM.replace("[4]", "[4000000000000]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"p": PROGRAM, "two": DEVICES, "large": LARGE}.items():
        Path(f"{name}.hlo").write_text(text)


def xbuild(*words: object) -> Result:
    begin = time.perf_counter()
    with at_most(4 << 30):
        result = CliRunner().invoke(main, [str(word) for word in words])
    assert time.perf_counter() - begin < 10
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@contextmanager
def at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    width = "<H" if version == b"\x01\x00" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(text)) + text.encode("latin-1")


def npy(shape: str, descr: str = "'<f4'") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")


def zipped(name: str, **entries: bytes) -> str:
    """A file of these members; with a name twice where one ends in `_again`."""
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as file:
        for key, data in entries.items():
            file.writestr(f"{key.removesuffix('_again')}.npy", data)
    return name


FOUR = npy("(4,)") + bytes(16)
DAMAGED = {
    "claims more than it holds": (
        npy("(10000000000000,)") + b"12",
        "states 40,000,000,000,000 bytes of elements, but contains 2",
    ),
    "holds more than it claims": (FOUR + bytes(4), "states 16 bytes of elements, but contains 20"),
    "objects": (npy("(4,)", "'|O'") + bytes(32), "expected numbers"),
    "texts": (npy("(1,)", "'<U1000000'") + bytes(4_000_000), "expected numbers"),
    "records": (npy("(4,)", "[('a', '<f4')]") + bytes(16), "expected numbers"),
    "a negative size": (npy("(-4,)"), "a rank or extents that no array can have"),
    "a size that is no integer": (npy("(4.5,)"), "is not an array"),
    "many dimensions": (npy(f"({'1,' * 100})") + bytes(4), "a rank or extents that no array can have"),
    "deep nesting": (npy("(" * 5000 + ")" * 5000), "is not an array"),
    "an expression": (npy("(__import__('os'),)"), "is not an array"),
    "no header": (b"", "is not an array"),
    "another magic": (b"\x93NUMPX\x01\x00", "is not an array"),
    "another version": (b"\x93NUMPY\x09\x00" + bytes(100), "is in version (9, 0) of NumPy's format"),
    "a header without end": (header("{", b"\x02\x00")[:8] + b"\xff\xff\xff\xff" + b" " * 100, "is not an array"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_arrays(what: str) -> None:
    data, message = DAMAGED[what]
    told = usage(xbuild("run", "p.hlo", "--inputs", zipped("in.npz", arg0=data), "--outputs", "out.npz"))
    assert told.startswith("'in.npz': 'arg0' ")
    assert message in told
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"arg0": FOUR, "zz": FOUR}, "'in.npz': 'zz' is not the name of an argument"),
        ({"arg0": FOUR, "arg1": FOUR}, "unexpected arg1: the program takes 1 argument: arg0"),
        ({"d5_arg0": FOUR, "arg0": FOUR}, "d5_arg0 is for device 5, but the program has only 1"),
        ({"arg" + "9" * 5000: FOUR}, "'in.npz': 'arg999"),
        ({"arg0": FOUR, "arg0:bf16": FOUR}, "'in.npz' contains arg0 with two element types"),
        ({"infeed0": FOUR}, "'in.npz': 'infeed0' is not the name of an argument"),
    ],
)
def test_members_that_are_no_arguments(entries: dict[str, bytes], message: str) -> None:
    assert usage(xbuild("run", "p.hlo", "--inputs", zipped("in.npz", **entries))).startswith(message)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice() -> None:
    told = usage(xbuild("run", "p.hlo", "--inputs", zipped("in.npz", arg0=FOUR, arg0_again=FOUR)))
    assert told == "'in.npz' contains 'arg0' twice"


def test_results_may_stand_beside_arguments() -> None:
    np.savez("in.npz", d0_arg0=np.ones(4, np.float32), d0_out0=np.zeros(4, np.float32))
    assert xbuild("run", "p.hlo", "--inputs", "in.npz").exit_code == 0


@pytest.mark.slow
def test_what_is_not_asked_for_in_its_shape_is_not_loaded() -> None:
    """A megabyte that unpacks to a gigabyte; the run tells its shape, and nothing of it was unpacked."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("arg0.npy", "w", force_zip64=True) as out,
    ):
        out.write(npy("(268435456,)"))
        for _ in range(1024):
            out.write(bytes(1 << 20))
    Path("in.npz").write_bytes(packed.getvalue())
    begin = time.perf_counter()
    result = xbuild("run", "p.hlo", "--inputs", "in.npz")
    assert time.perf_counter() - begin < 2
    assert (result.exit_code, "argument_mismatch" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["infeed0_999999999"], "element 0 of infeed0 is missing, but the file has element 999999999"),
        (["infeed999999999"], "infeed item 0 of device 0 is missing, but the file has item 999999999"),
        (["infeed0" + "_0" * 41], "is nested in 41 tuples; at most 40 are allowed"),
        (["infeed0" + "_0" * 20000], "is nested in 20000 tuples"),
        (["infeed" + "1" * 5000], "is not the name of an infeed item"),
        (["infeed0", "infeed0:f32"], "the file contains infeed0 with two element types"),
    ],
)
def test_items_of_an_infeed(names: list[str], message: str) -> None:
    zipped("feed.npz", **dict.fromkeys(names, FOUR))
    told = usage(xbuild("run", "p.hlo", "--random", 1, "--infeed", "feed.npz"))
    assert message in told
    assert len(told) < 300


def test_arguments_beyond_the_memory() -> None:
    assert "random arguments would take" in usage(xbuild("run", "large.hlo", "--random", 1))
    assert "random arguments would take" in usage(xbuild("step", "large.hlo", "--random", 1))
    assert "random arguments would take" in usage(xbuild("check", "large.hlo", "--page", "p.html"))


def test_sizes_are_limited_before_anything_is_loaded(tmp_path: Path) -> None:
    np.savez("in.npz", arg0=np.zeros(4, np.float32))
    np.savez("feed.npz", infeed0=np.zeros(4, np.float32))
    with pytest.raises(ArchiveError, match="the arguments up to arg0 would take 16 bytes; the limit is 15"):
        arrays.read_arguments("in.npz", [[xb.f32[4]]], 15)
    with pytest.raises(ArchiveError, match="the items of the infeed would take 16 bytes"):
        arrays.read_infeed("feed.npz", 1, 15)
    with pytest.raises(ArchiveError, match="random arguments would take"):
        arrays.random_arguments(0, [[xb.f32[4]]], 16)
    ((value,),) = arrays.read_arguments("in.npz", [[xb.f32[4]]], 16)
    assert value.tolist() == [0, 0, 0, 0]


def test_an_array_for_all_devices_is_loaded_once() -> None:
    np.savez("in.npz", arg0=np.zeros(4, np.float32))
    (first,), (second,) = arrays.read_arguments("in.npz", [[xb.f32[4]], [xb.f32[4]]], 16)
    assert first is second


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_pipes_and_devices_in_place_of_files() -> None:
    os.mkfifo("pipe")
    os.mkfifo("pipe.hlo")
    assert usage(xbuild("run", "p.hlo", "--inputs", "pipe")) == "'pipe' is a pipe; expected a file"
    assert usage(xbuild("run", "p.hlo", "--random", 1, "--infeed", "pipe")) == "'pipe' is a pipe; expected a file"
    assert usage(xbuild("run", "p.hlo", "--inputs", "/dev/zero")) == "'/dev/zero' is a device; expected a file"
    assert usage(xbuild("check", "pipe.hlo")) == "'pipe.hlo' is a pipe; expected a file"
    assert usage(xbuild("viz", "p.hlo", "--data", "pipe")) == "'pipe' is a pipe; expected a file"
    assert (
        usage(xbuild("run", "p.hlo", "--random", 1, "--outputs", "pipe"))
        == "pipe: no process is reading from this pipe"
    )
    Path("folder.hlo").mkdir()
    assert "expected device0.hlo, device1.hlo and so on" in usage(xbuild("check", "folder.hlo"))


def test_a_text_of_any_claimed_size() -> None:
    with open("sparse.hlo", "wb") as file:
        file.truncate(1 << 42)
    assert "the limit is 4,294,967,296" in usage(xbuild("check", "sparse.hlo"))


SPELLINGS = ("in.npz", "./in.npz", "sub/../in.npz", "hard.npz", "soft.npz", "{here}/in.npz", "linked/in.npz")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_results_do_not_take_the_place_of_arguments(spelling: str) -> None:
    np.savez("in.npz", arg0=np.ones(4, np.float32))
    linked("in.npz", "hard.npz", "soft.npz")
    before = Path("in.npz").read_bytes()
    for option in ("--inputs", "--infeed"):
        words = ("--random", 1) if option == "--infeed" else ()
        out = spelling.format(here=os.getcwd())
        told = usage(xbuild("run", "p.hlo", *words, option, "in.npz", "--outputs", out))
        assert told == f"--outputs {out} is also the file that the command reads as {option}; choose a different path"
    assert Path("in.npz").read_bytes() == before


def linked(file: str, hard: str, soft: str) -> None:
    os.link(file, hard)
    os.symlink(file, soft)
    os.symlink(".", "linked")
    Path("sub").mkdir()


@pytest.mark.parametrize("spelling", ["p.txt", "./p.txt", "sub/../p.txt", "hard.txt", "soft.txt", "linked/p.txt"])
@pytest.mark.parametrize(
    "words",
    [
        ("viz", "p.txt", "-o"),
        ("extract", "p.txt", "-o"),
        ("check", "p.txt", "--picture"),
        ("check", "p.txt", "--repair"),
    ],
)
def test_no_output_takes_the_place_of_the_target(words: tuple[str, ...], spelling: str) -> None:
    Path("p.txt").write_text(PROGRAM)
    linked("p.txt", "hard.txt", "soft.txt")
    told = usage(xbuild(*words, spelling))
    assert (
        told
        == f"{words[2]} {spelling} is also the file that the command reads as TARGET, p.txt; choose a different path"
    )
    assert Path("p.txt").read_text() == PROGRAM


def test_other_files_that_are_read() -> None:
    Path("one").mkdir()
    Path("one/device0.hlo").write_text(PROGRAM)
    os.symlink("one/device0.hlo", "page.html")
    Path("data.svg").write_text("{}")
    Path("program.py").write_text("")
    os.symlink("program.py", "program.svg")
    assert "as TARGET, one" in usage(xbuild("check", "one", "--page", "page.html"))
    assert "as TARGET, one" in usage(xbuild("check", "one", "--repair", "./one"))
    assert "as --data" in usage(xbuild("viz", "p.hlo", "--data", "data.svg", "-o", "data.svg"))
    assert "as TARGET, program.py:f" in usage(xbuild("viz", "program.py:f", "-o", "program.svg"))
    assert xbuild("run", "p.hlo", "--random", 1, "--trace", "kept").exit_code == 0
    os.symlink("kept/index.json", "kept.html")
    before = Path("kept/index.json").read_bytes()
    assert "as DIR, kept" in usage(xbuild("trace", "kept", "--page", "kept.html"))
    assert Path("kept/index.json").read_bytes() == before


def test_two_outputs_are_two_files() -> None:
    told = usage(xbuild("run", "p.hlo", "--random", 1, "--outputs", "./a.html", "--page", "a.html"))
    assert told == "--page a.html is also the file that the command writes as --outputs; choose a different path"
    assert not Path("a.html").exists()
    assert xbuild("run", "p.hlo", "--random", 1, "--outputs", "/dev/null").exit_code == 0


@pytest.mark.parametrize("seconds", ["1e400", "99999999999999999999999", "4294967296"])
def test_times_beyond_what_can_be_waited(seconds: str) -> None:
    result = xbuild("viz", "p.hlo", "-o", "a.png", "--seconds", seconds)
    assert result.exit_code == 0 or "graphviz" in result.stderr
    assert xbuild("run", "p.hlo", "--random", 1, "--max-seconds", seconds).exit_code == 0


@pytest.mark.oracle
def test_real_xla_may_take_any_time() -> None:
    pytest.importorskip("jaxlib")
    words = ("run", "p.hlo", "--random", 1, "--engine", "xla", "--max-seconds", "1e400")
    assert CliRunner().invoke(main, list(map(str, words))).exit_code == 0
