"""The folder of compiled parts: private, bounded, and never the source of bytes that xbuild did not write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter.auto import folder, native
from interpreter.auto.folder import CompiledFolder, cache_folder
from interpreter.auto.parts import Outlined

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners of files")

KEY = "0" * 64


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "xbuild" / "compiled"


def test_what_is_written_is_read(place: Path) -> None:
    own = CompiledFolder(place)
    assert own.read(KEY) is None
    own.write(KEY, b"code")
    assert (own.read(KEY), own.trouble) == (b"code", "")
    assert place.stat().st_mode & 0o777 == 0o700
    (file,) = place.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_open_is_not_used(place: Path, mode: int) -> None:
    CompiledFolder(place).write(KEY, b"code")
    place.chmod(mode)
    own = CompiledFolder(place)
    assert own.read(KEY) is None
    assert "is not a private folder of this user (mode 0700)" in own.trouble
    own.write(KEY, b"other")
    place.chmod(0o700)
    assert CompiledFolder(place).read(KEY) == b"code"


def test_a_file_that_others_can_open_is_not_read(place: Path) -> None:
    CompiledFolder(place).write(KEY, b"code")
    (place / f"{KEY}.part").chmod(0o640)
    own = CompiledFolder(place)
    assert own.read(KEY) is None
    assert "is not a private file of this user" in own.trouble


def test_files_of_other_owners_are_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CompiledFolder(place).write(KEY, b"code")
    monkeypatch.setattr(folder.os, "geteuid", lambda: 12345)
    assert CompiledFolder(place).read(KEY) is None


def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    CompiledFolder(place).write(KEY, b"code")
    target = tmp_path / "elsewhere"
    (place / f"{KEY}.part").rename(target)
    (place / f"{KEY}.part").symlink_to(target)
    assert CompiledFolder(place).read(KEY) is None
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    own = CompiledFolder(place)
    assert own.read(KEY) is None
    assert "is not a private folder" in own.trouble


@pytest.mark.parametrize("place_of_change", [0, 10, 30, 60, -1])
def test_a_damaged_file_is_removed(place: Path, place_of_change: int) -> None:
    CompiledFolder(place).write(KEY, b"code" * 10)
    file = place / f"{KEY}.part"
    content = bytearray(file.read_bytes())
    content[place_of_change] ^= 1
    file.write_bytes(content)
    assert CompiledFolder(place).read(KEY) is None
    assert not file.exists()


def test_a_cut_or_renamed_file_is_damaged(place: Path) -> None:
    own, other = CompiledFolder(place), "1" * 64
    own.write(KEY, b"code")
    file = place / f"{KEY}.part"
    (place / f"{other}.part").write_bytes(file.read_bytes())
    (place / f"{other}.part").chmod(0o600)
    file.write_bytes(file.read_bytes()[:30])
    assert (own.read(KEY), own.read(other)) == (None, None)


def test_the_oldest_files_are_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MOST_BYTES", 500)
    own = CompiledFolder(place)
    for number in range(5):
        own.write(f"{number}", b"x" * 100)
        os.utime(place / f"{number}.part", (number, number))
    own.write("5", b"x" * 100)
    assert sorted(each.name for each in place.iterdir()) == ["3.part", "4.part", "5.part"]


def test_a_full_disk_is_no_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    own = CompiledFolder(place)
    own.write(KEY, b"code")
    monkeypatch.setattr(folder.os, "replace", fail)
    own.write(KEY, b"other")
    assert own.trouble.endswith("No space left on device; compiled parts are not saved")
    assert [each.name for each in place.iterdir()] == [f"{KEY}.part"]


@pytest.mark.oracle
def test_compiled_parts_are_saved_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outlined = Outlined(least=0.0)
    outlined.computation(xb.computation(xb.f32[4])(lambda x: xb.exp(x) + x))
    (part,) = outlined.parts
    own, given = CompiledFolder(cache_folder()), np.float32([1, 2, 3, 4])
    first = native.compiled(part, folder=own)
    assert isinstance(first, native.Native)
    assert native.is_saved(part)
    monkeypatch.setattr(native, "_compile", lambda *_: pytest.fail("compiles again"))
    second = native.compiled(part, folder=own)
    assert isinstance(second, native.Native)
    assert np.array_equal(first(given)[0], second(given)[0])
    monkeypatch.undo()
    body = own.read(key := native.key_of(part))
    assert body is not None
    own.write(key, body[:100])  # XLA does not read it, although the digest is right
    third = native.compiled(part, folder=own)
    assert isinstance(third, native.Native)
    assert own.read(key) is not None
    assert len(own.read(key) or b"") > 100


@pytest.mark.oracle
def test_the_key_holds_what_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    outlined = Outlined(least=0.0)
    outlined.computation(xb.computation(xb.f32[4])(lambda x: xb.exp(x) + x))
    outlined.computation(xb.computation(xb.f32[5])(lambda x: xb.exp(x) + x))
    keys = {native.key_of(part) for part in outlined.parts}
    monkeypatch.setenv("XLA_FLAGS", "--xla_something=1")
    keys |= {native.key_of(part) for part in outlined.parts}
    monkeypatch.setattr(native, "_machine", lambda: "another")
    keys |= {native.key_of(part) for part in outlined.parts}
    assert len(keys) == 6
