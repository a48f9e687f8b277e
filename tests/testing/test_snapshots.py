"""Files of contracts under attack: hostile content, links, full disks and names; each gives one clear error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from xbuild.testing import ContractError, snapshots

ROOT = Path(__file__).parents[2]
TOTAL = xb.Module("total", xb.computation(xb.f32[8])(xb.cross_replica_sum), num_replicas=2)
HEAD = snapshots.HEAD.encode()
SECRET = "password of another file"


def attempt(folder: Any, name: Any = "total") -> None:
    xb.testing.contract(name, TOTAL, folder=folder)


def updating(monkeypatch: pytest.MonkeyPatch, update: bool) -> None:
    monkeypatch.setenv(snapshots.UPDATE, "1" if update else "0")


NOT_A_CONTRACT = "is not a contract, because its first line does not begin with '# xbuild contract of '"
STRANGE = {
    "too large": (HEAD + b"a" * snapshots.MOST_BYTES, "the limit is 4,194,304"),
    "binary": (bytes(range(256)) * 100, NOT_A_CONTRACT),
    "another encoding": ("# xbuild contract of total".encode("utf-16"), NOT_A_CONTRACT),
    "binary after the first line": (HEAD + b"total\n\xff\xfe", NOT_A_CONTRACT),
    "NUL characters": (b"\0" * 50, NOT_A_CONTRACT),
    "JSON": (b'{"total": 1}', NOT_A_CONTRACT),
    "a long line": (b"x" * 2_000_000, NOT_A_CONTRACT),
}


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("case", STRANGE)
def test_a_file_that_is_no_contract_is_neither_shown_nor_replaced(
    case: str, update: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, words = STRANGE[case]
    (tmp_path / "total.txt").write_bytes(content)
    updating(monkeypatch, update)
    with pytest.raises(ContractError) as caught:
        attempt(tmp_path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500
    assert (tmp_path / "total.txt").read_bytes() == content
    assert os.listdir(tmp_path) == ["total.txt"]


DAMAGED = {
    "empty": b"",
    "truncated": HEAD + b"total: 2 dev",
    "of another program": HEAD + b"other: 4 devices\ntotal: 0 bytes in 0 collectives\n",
    "of control characters": HEAD + b"total: 2 devices\n\x1b[31mred\x1b[0m\n",
    "of many lines": HEAD + b"total: 2 devices\n" + b"all-reduce\n" * 50_000,
    "of a long line": HEAD + b"total: 2 devices\n" + b"x" * 1_000_000,
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_contract_is_a_changed_one(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "total.txt"
    file.write_bytes(DAMAGED[case])
    updating(monkeypatch, False)
    with pytest.raises(ContractError, match="contract total has changed") as caught:
        attempt(tmp_path)
    assert len(str(caught.value)) < 60_000
    assert "\x1b" not in str(caught.value)
    assert file.read_bytes() == DAMAGED[case]
    updating(monkeypatch, True)
    attempt(tmp_path)
    updating(monkeypatch, False)
    attempt(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    attempt(tmp_path)


def a_folder(file: Path) -> None:
    file.mkdir()


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


def a_link(file: Path) -> None:
    file.with_name("mine").write_text(SECRET)
    file.symlink_to(file.with_name("mine"))


def a_link_to_nothing(file: Path) -> None:
    file.symlink_to(file.with_name("nothing"))


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file)


PLACES = (a_folder, a_pipe, a_link, a_link_to_nothing, a_link_to_itself)


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("make", PLACES)
def test_what_is_in_the_place_of_the_file_is_kept(
    make: Callable[[Path], None], update: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "total.txt")
    before = sorted(os.listdir(tmp_path))
    updating(monkeypatch, update)
    with pytest.raises(ContractError, match="contract total ") as caught:
        attempt(tmp_path)
    assert SECRET not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == before
    if make is a_link:
        assert (tmp_path / "mine").read_text() == SECRET


def test_a_contract_is_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(HEAD + b"mine: 1 device\n")
    (tmp_path / "total.txt").symlink_to(mine)
    updating(monkeypatch, True)
    with pytest.raises(ContractError, match="does not write through links"):
        attempt(tmp_path)
    assert mine.read_bytes() == HEAD + b"mine: 1 device\n"


def test_a_folder_that_cannot_be_made_or_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    updating(monkeypatch, True)
    with pytest.raises(ContractError, match=r"contract total was not written: .*File exists"):
        attempt(tmp_path / "file")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(ContractError, match=r"contract total was not written: .*Permission denied"):
        attempt(tmp_path)
    assert os.listdir(tmp_path) == ["file"]


WRITER = """
import resource, sys
import xbuild as xb
sizes, folder, limit, times = range(1, 1 + int(sys.argv[1])), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
module = xb.Module(
    "total",
    xb.computation(xb.f32[8])(lambda x: [x := xb.cross_replica_sum(x) for _ in sizes][-1]),
    num_replicas=2,
)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    for _ in range(times):
        xb.testing.contract("total", module, folder=folder)
except xb.testing.ContractError as error:
    print(error)
"""


def writer(sums: int, folder: Path, limit: int, times: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", snapshots.UPDATE: "1"}
    command = [sys.executable, "-c", WRITER, str(sums), str(folder), str(limit), str(times)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    kept = HEAD + b"total: 9 devices\n"
    (tmp_path / "total.txt").write_bytes(kept)
    said, errors = writer(1, tmp_path, 20, 1).communicate(timeout=60)
    assert (said.startswith("contract total was not written: "), "File too large" in said) == (True, True), errors
    assert errors == ""
    assert (tmp_path / "total.txt").read_bytes() == kept
    assert os.listdir(tmp_path) == ["total.txt"]


@pytest.mark.slow
def test_two_processes_that_update_leave_one_whole_file(tmp_path: Path) -> None:
    texts = []
    for number, sums in enumerate((1, 3)):
        folder = tmp_path / str(number)
        assert writer(sums, folder, 0, 1).communicate(timeout=60) == ("", "")
        texts.append((folder / "total.txt").read_bytes())
    shared = tmp_path / "shared"
    both = [writer(sums, shared, 0, 20) for sums in (1, 3)]
    seen = set()
    while any(each.poll() is None for each in both):
        if (shared / "total.txt").exists():
            seen.add((shared / "total.txt").read_bytes())
    assert [each.communicate(timeout=60) for each in both] == [("", "")] * 2
    assert seen <= {*texts}
    assert (shared / "total.txt").read_bytes() in texts
    assert os.listdir(shared) == ["total.txt"]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        *[
            (each, xb.XbuildError, "is not a file name")
            for each in ("a\\b", "a\0b", "a\nb", "..", ".", "a:b", "/etc/x")
        ],
        ("x" * 201, xb.XbuildError, "the name has 201 bytes; the limit is 200"),
        (3, TypeError, "expected a str as name, got int"),
        (None, TypeError, "expected a str as name, got NoneType"),
        (b"total", TypeError, "expected a str as name, got bytes"),
    ],
)
def test_what_is_no_name(name: Any, error: type[Exception], words: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=words):
        attempt(tmp_path, name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("folder", [3, b"folder", ["folder"]], ids=str)
def test_what_is_no_folder(folder: Any) -> None:
    with pytest.raises(TypeError, match="contract: expected a str as folder, got "):
        attempt(folder)
