"""Changes of a trace: each field of its index, each column, each file, the text of its program."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tests.fuzzing.trace_seeds import Files, seeds


class Tamperer:
    """Changes a trace at random; a seed makes one change, or a few."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.changes: list[str] = []

    def files(self) -> tuple[str, Files]:
        name = self.random.choice(sorted(seeds()))
        files: Files = dict(seeds()[name])
        for _ in range(1 if self.random.random() < 0.8 else self.random.randint(2, 4)):
            change = self.random.choice(CHANGES)
            change(self, files)
        return name, files

    def pick(self, given: Iterable[Any]) -> Any:
        """One of several; nothing, where there are none."""
        return self.random.choice(sorted(given) or [""])

    def note(self, *words: Any) -> None:
        self.changes.append(" ".join(map(str, words))[:200])

    def odd(self, value: Any = None) -> Any:
        """Something else than what stands there."""
        whole = value if isinstance(value, int) else 3
        return self.random.choice([
            None, True, False, -1, 0, 1, 2, whole + 1, whole - 1, -whole, 2**31, 2**63, 10**30, 1.5, 1e300, "", "x",
            "\ud800", "a\x00\x1b[31mb", "../../x", [], {}, [[]], [0] * 1000, {"": None}, [None], value, [value],
            "v" * 9999, {"device": 0}, str(value)[:50], "y in while.1", "x branch 9",
        ])  # fmt: skip


def _holders(value: Any) -> list[tuple[Any, Any]]:
    """Each place of JSON: what holds it, and where in that."""
    found, stack = [], [value]
    while stack:
        holder = stack.pop()
        keys = [*holder] if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        stack += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


def index(tamperer: Tamperer, files: Files) -> None:
    """A place of the index: deleted, replaced, doubled, exchanged with another."""
    if not isinstance(files.get("index.json"), bytes):
        return
    try:
        told = json.loads(files["index.json"])
        holder, key = tamperer.random.choice(_holders(told))
    except (ValueError, TypeError, IndexError):
        return
    how = tamperer.random.choice(["delete", "odd", "odd", "odd", "swap", "double", "key"])
    tamperer.note("index", how, key, repr(holder[key])[:60])
    if how == "delete":
        del holder[key]
    elif how == "odd":
        holder[key] = tamperer.odd(holder[key])
    elif how == "swap":
        other, place = tamperer.random.choice(_holders(told))
        holder[key], other[place] = other[place], holder[key]
    elif how == "double" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif isinstance(holder, dict):
        holder[str(tamperer.odd(key))[:30]] = holder.pop(key)
    try:
        files["index.json"] = json.dumps(told).encode()
    except (ValueError, RecursionError):  # it holds itself now
        files["index.json"] = b"{}"


def letters(tamperer: Tamperer, files: Files) -> None:
    """Bytes of any file: cut off, changed, doubled."""
    name = tamperer.pick(name for name, content in files.items() if isinstance(content, bytes))
    content = bytearray(files.get(name, b""))
    place = tamperer.random.randrange(len(content) + 1)
    how = tamperer.random.choice(["cut", "flip", "flip", "insert", "empty", "twice"])
    tamperer.note("bytes of", name, how, place)
    if how == "cut":
        del content[place:]
    elif how == "flip" and place < len(content):
        content[place] ^= 1 << tamperer.random.randrange(8)
    elif how == "insert":
        content[place:place] = tamperer.random.choice(
            [b"\x00", b"\xff\xfe", b"[" * 10**5, b'{"a":' * 10**4, b"9" * 5000, b"NaN"]
        )
    elif how == "empty":
        content.clear()
    else:
        content *= 2
    files[name] = bytes(content)


def file(tamperer: Tamperer, files: Files) -> None:
    """A whole file: away, another's, a folder, a pipe, a link, or one more."""
    name = tamperer.pick(files)
    if not name:
        return
    how = tamperer.random.choice(["missing", "other", "folder", "pipe", "link", "zero", "more", "vast"])
    tamperer.note("file", name, how)
    if how == "missing":
        del files[name]
    elif how == "other":
        files[name] = files[tamperer.pick(files)]
    elif how == "folder":
        files[name] = lambda path: path.mkdir()
    elif how == "pipe":
        files[name] = lambda path: os.mkfifo(path)
    elif how == "link":
        files[name] = lambda path: path.symlink_to("/etc/hostname")
    elif how == "zero":
        files[name] = lambda path: path.symlink_to("/dev/zero")
    elif how == "vast":
        content = files[name] if isinstance(files[name], bytes) else b""
        files[name] = lambda path: (path.write_bytes(content), os.truncate(path, 1 << 40))
    else:
        files[tamperer.pick(["chunk-00001.npz", "program-1.hlo", "time.npz", "results.npz", "mine.txt"])] = files[name]


def column(tamperer: Tamperer, files: Files) -> None:
    """A column of an npz file: values, type, extents, name."""
    name = tamperer.pick(name for name in files if name.endswith(".npz"))
    if not isinstance(files.get(name), bytes):
        return
    try:
        with np.load(io.BytesIO(files[name])) as archive:
            columns: dict[str, Any] = {key: archive[key] for key in archive.files}
    except Exception:  # an earlier change made it no archive
        return
    key = tamperer.pick(columns)
    if not key:
        return
    how = tamperer.pick(COLUMN_CHANGES)
    tamperer.note("column", name, key, how)
    COLUMN_CHANGES[how](tamperer, columns, key)
    files[name] = _archive(columns, tamperer.random.random() < 0.1)


def _archive(columns: Mapping[str, Any], is_packed: bool) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if is_packed else np.savez)(file, **columns)
    return file.getvalue()


def _one(tamperer: Tamperer, columns: dict[str, Any], key: str) -> None:
    """One number, as another that is near, far, or of no use."""
    array = columns[key]
    if array.size and array.dtype.kind in "iuf":
        array = columns[key] = array.copy()
        place = tamperer.random.randrange(array.size)
        near = int(array.flat[place]) if np.isfinite(array.flat[place]) else 0
        wanted = tamperer.random.choice(
            [near + 1, near - 1, -near, 0, -1, 1, 2, 127, 255, 2**31 - 1, -(2**31), 2**62, -(2**63)]
        )
        with np.errstate(all="ignore"):
            array.flat[place] = np.array(wanted).astype(array.dtype)
    elif array.dtype.kind == "U":
        _kinds(tamperer, columns, key)


def _kinds(tamperer: Tamperer, columns: dict[str, Any], key: str) -> None:
    """A place in the kinds of values."""
    if columns[key].dtype.kind != "U" or columns[key].ndim:
        return
    told = json.loads(str(columns[key]))
    if places := _holders(told):
        holder, place = tamperer.random.choice(places)
        holder[place] = tamperer.odd(holder[place])
        text = json.dumps(told, ensure_ascii=True)
        columns[key] = np.array(text.replace("\x00", " "))


def _bomb(tamperer: Tamperer, columns: dict[str, Any], key: str) -> None:
    """Tuples of two that share what they hold, as deep as there is room."""
    depth = tamperer.random.choice([3, 40, 400])
    refs = np.array([[max(0, n - 1)] * 2 for n in range(1, depth + 1)], np.int32)
    if {"kinds", "kind", "at", "letters", "refs"} <= columns.keys():
        columns |= {
            "kinds": np.array('[{"t": "f32", "d": [], "f": "f32"}, {"of": 2}]'),
            "kind": np.array([0] + [1] * depth, np.int32),
            "at": np.array([0] + [4 + 8 * n for n in range(depth)], np.int64),
            "letters": np.concatenate([np.zeros(4, np.uint8), np.frombuffer(refs.tobytes(), np.uint8)]),
            "refs": np.array([[0, depth]], np.int64),
        }  # fmt: skip


COLUMN_CHANGES: dict[str, Callable[[Tamperer, dict[str, Any], str], Any]] = {
    "one": _one,
    "one more": _one,
    "one of many": _one,
    "kinds": lambda tamperer, columns, key: _kinds(tamperer, columns, "kinds" if "kinds" in columns else key),
    "bomb": _bomb,
    "gone": lambda _, columns, key: columns.pop(key),
    "more": lambda _, columns, key: columns.update(more=columns[key]),
    "renamed": lambda tamperer, columns, key: columns.update({tamperer.pick(columns): columns[key]}),
    "shifted": lambda _, columns, key: columns.update({key: np.roll(columns[key], 1)}),
    "reversed": lambda _, columns, key: columns.update({key: np.flip(columns[key]).copy()}),
    "shorter": lambda _, columns, key: columns.update({key: columns[key][:-1] if columns[key].ndim else columns[key]}),
    "twice": lambda _, columns, key: columns.update({key: np.concatenate([np.atleast_1d(columns[key])] * 2)}),
    "flat": lambda _, columns, key: columns.update({key: columns[key].ravel()}),
    "deeper": lambda _, columns, key: columns.update({key: columns[key][..., None]}),
    "wide": lambda _, columns, key: columns.update({key: _as(columns[key], np.int64)}),
    "float": lambda _, columns, key: columns.update({key: _as(columns[key], np.float64) * np.nan}),
    "text": lambda _, columns, key: columns.update({key: columns[key].astype(str)}),
    "objects": lambda _, columns, key: columns.update({key: columns[key].astype(object)}),
    "swapped bytes": lambda _, columns, key: columns.update(
        {key: columns[key].astype(columns[key].dtype.newbyteorder())}
    ),
    "zeros": lambda _, columns, key: columns.update({key: np.zeros_like(columns[key])}),
    "vast": lambda _, columns, key: columns.update({key: np.broadcast_to(np.zeros(1, np.int64), 10**5).copy()}),
}


def _as(array: Any, dtype: Any) -> Any:
    return array.astype(dtype) if array.dtype.kind in "iuf" else np.zeros(array.shape, dtype)


def claim(tamperer: Tamperer, files: Files) -> None:
    """An array whose header claims more than there is, or an archive that packs far more than it takes."""
    name = tamperer.pick(name for name in files if name.endswith(".npz"))
    if not isinstance(files.get(name), bytes):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(files[name])) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
    except zipfile.BadZipFile:
        return
    if not members:
        return
    key = tamperer.pick(members)
    how = tamperer.random.choice(["shape", "bomb", "pickle", "fortran", "doubled"])
    tamperer.note("claim", name, key, how)
    shape = {"shape": (10**12,), "bomb": (1 << 28,)}.get(how, (1,))
    header = io.BytesIO()
    told = {"descr": "|O" if how == "pickle" else "|u1", "fortran_order": how == "fortran", "shape": shape}
    np.lib.format.write_array_header_1_0(header, told)
    members[key] = header.getvalue() + (bytes(1 << 24) if how == "bomb" else b"\x80\x04]\x94.")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED if how == "bomb" else zipfile.ZIP_STORED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
        if how == "doubled":
            archive.writestr(f"../{key}", members[key])
    files[name] = packed.getvalue()


def program(tamperer: Tamperer, files: Files) -> None:
    """Numbers and words of the program's text."""
    name = tamperer.pick(name for name in files if name.endswith(".hlo"))
    if not isinstance(files.get(name), bytes):
        return
    words = files[name].decode(errors="replace").split(" ")
    place = tamperer.random.randrange(len(words))
    other = [
        "f32[400000000000]",
        "replica_count=100000000",
        "pred[]",
        "s32[]",
        "0",
        "",
        "}",
        "(f32[2],",
        tamperer.random.choice(words),
    ]
    tamperer.note("program", name, words[place])
    words[place] = tamperer.random.choice(other)
    files[name] = (
        " ".join(words)
        .replace("replica_count=2", tamperer.random.choice(["replica_count=2", "replica_count=99999999"]))
        .encode()
    )


CHANGES = [index, index, index, letters, file, column, column, column, column, claim, program]
