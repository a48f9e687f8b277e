"""Faulty npz files, each from a seed: faults in names, headers, elements, and the zip file itself."""

from __future__ import annotations

import io
import random
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import xbuild as xb
from shape_inference import AnyShape, TupleShape
from xbuild.files import arrays
from xbuild.files.arrays import ArchiveError, to_bits

PARAMETERS: tuple[tuple[tuple[AnyShape, ...], ...], ...] = (
    ((xb.f32[4],),),
    ((xb.f32[2, 3], xb.s32[()]),) * 2,
    ((xb.bf16[2], xb.s4[3], TupleShape([xb.c64[2], TupleShape([xb.pred[()], xb.u8[0]])])),),
    ((xb.f64[()],), (xb.f64[2], xb.f16[2])),
)
MOST = 1 << 24
_NAMES = (
    "arg0", "arg1", "d0_arg0", "d1_arg0", "d9_arg0", "arg00", "arg-1", "ARG0", "arg0.npy", "arg0:bf16", "arg0:f99",
    "arg0:", "d0_out0", "infeed0", "infeed1", "infeed0_0", "infeed0_999999999", "d0_infeed0_1", "infeed0" + "_0" * 50,
    "infeed0" + "_0" * 3000, "infeed999999999", "arg" + "9" * 5000, "", "/", "../../arg0", "a/b", "zz", "\x1b[31m",
    "\u202e", "arg\u0663", "arg0\n", "a" * 60000,
)  # fmt: skip
_DESCRS = (
    "'<f4'", "'>f4'", "'<f8'", "'<i4'", "'|b1'", "'|u1'", "'<c8'", "'|O'", "'<U5'", "'|S900000000'", "'<M8[s]'", "'V2'",
    "'|V0'", "'<f2'", "[('a', '<f4')]", "[('a', '<f4', (1000000,))]", "('<f4', (1000,))", "'<f3'", "''", "None", "1",
    "'" + "<" * 9000 + "'", "'(1000000,1000000)f4'",
)  # fmt: skip
_SHAPES = (
    "()", "(4,)", "(2, 3)", "(0,)", "(-1,)", "(4,", "4", "(4.0,)", "(True,)", "(None,)", "('4',)", "(1000000000000,)",
    "(0, 1000000000000000000000)", "(9223372036854775807, 9223372036854775807)", "(" + "1, " * 70 + ")",
    "(" * 3000 + ")" * 3000, "(" + "9" * 5000 + ",)", "((4,),)", "[4]", "(lambda: 4,)", "(1e400,)", "(4,) * 3",
)  # fmt: skip

Archive: TypeAlias = tuple[bytes, int]


class Archives:
    """Makes the file of one seed; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.which = self.random.randrange(len(PARAMETERS))

    def file(self) -> Archive:
        """The bytes, and whose parameters they are for."""
        entries = [[name, self._header(array), self._elements(array)] for name, array in self._arrays()]
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            if entries:
                self.random.choice(_ENTRIES)(self, entries)
        data = self._zipped(entries)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            data = self.random.choice(_BYTES)(self, data)
        return data, self.which

    def _arrays(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        is_infeed = self.random.random() < 0.3
        for device, shapes in enumerate(PARAMETERS[self.which]):
            flat = [leaf for shape in shapes for leaf in _leaves(shape)]
            for number, leaf in enumerate(flat):
                array = to_bits(np.zeros(leaf.dims, leaf.dtype.dtype), leaf.dtype)
                name = f"infeed{number}" if is_infeed else f"arg{number}"
                if device or self.random.random() < 0.5:
                    name = f"d{device}_{name}"
                found.append((name, array))
        return found

    def _header(self, array: Any) -> bytes:
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        return stream.getvalue()

    def _elements(self, array: Any) -> bytes:
        return bytes(self.random.randrange(256) for _ in range(array.nbytes))

    def _zipped(self, entries: list[list[Any]]) -> bytes:
        packed = io.BytesIO()
        methods = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA
        (method,) = self.random.choices(methods, (20, 20, 2, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a name that is there twice
            with zipfile.ZipFile(packed, "w", method) as file:
                for name, header, elements in entries:
                    file.writestr(f"{name}.npy", header + elements)
        return packed.getvalue()


def _leaves(shape: AnyShape) -> list[Any]:
    return [leaf for each in shape.elements for leaf in _leaves(each)] if isinstance(shape, TupleShape) else [shape]


Entries: TypeAlias = list[list[Any]]


def renamed(made: Archives, entries: Entries) -> None:
    made.random.choice(entries)[0] = made.random.choice(_NAMES)


def another(made: Archives, entries: Entries) -> None:
    """An entry more, or one twice, or one less."""
    entry = made.random.choice(entries)
    made.random.choice((
        lambda: entries.append([made.random.choice(_NAMES), *entry[1:]]), lambda: entries.append([*entry]),
        lambda: entries.remove(entry), lambda: entries.reverse(),
    ))()  # fmt: skip


def claimed(made: Archives, entries: Entries) -> None:
    """A header that says something else."""
    entry = made.random.choice(entries)
    order = made.random.choice(("False", "True", "0", "None"))
    shape = made.random.choice((*_SHAPES, "(4,)", "()"))
    text = f"{{'descr': {made.random.choice(_DESCRS)}, 'fortran_order': {order}, 'shape': {shape}, }}"
    if made.random.random() < 0.2:
        text = made.random.choice(
            ("", "{}", "1", "{" * 5000, text[: len(text) // 2], text.replace("shape", "sháp"), "\x00")
        )
    raw = text.encode("utf-8")
    version = made.random.choice((b"\x01\x00",) * 4 + (b"\x02\x00", b"\x03\x00", b"\x00\x00", b"\xff\xff"))
    length = made.random.choice((len(raw),) * 4 + (0, 65535, len(raw) + 1))
    width = "<H" if version == b"\x01\x00" else "<I"
    entry[1] = b"\x93NUMPY" + version + struct.pack(width, min(length, 65535)) + raw


def lengthened(made: Archives, entries: Entries) -> None:
    entry = made.random.choice(entries)
    entry[2] = made.random.choice((b"", entry[2][:-1], entry[2] + b"\x00", bytes(100_000)))


def header_flipped(made: Archives, entries: Entries) -> None:
    entry = made.random.choice(entries)
    entry[1] = flipped(made, entry[1])


def flipped(made: Archives, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(made.random.choice((1, 1, 2, 8))):
        if found:
            found[made.random.randrange(len(found))] ^= 1 << made.random.randrange(8)
    return bytes(found)


def cut(made: Archives, data: bytes) -> bytes:
    place = made.random.randrange(len(data) + 1)
    return made.random.choice((data[:place], data[place:], data[:place] + data[place + 20 :]))


def number_changed(made: Archives, data: bytes) -> bytes:
    """A field of the zip's directory: sizes, offsets, methods, flags."""
    begin = data.find(b"PK\x01\x02", made.random.randrange(len(data) + 1))
    begin = data.find(b"PK\x01\x02") if begin < 0 else begin
    if begin < 0:
        return data
    place = begin + made.random.randrange(4, 46)
    value = made.random.choice((b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00", b"\xff\xff\xff\x7f"))
    width = made.random.choice((1, 2, 4))
    return data[:place] + value[:width] + data[place + width :]


def surrounded(made: Archives, data: bytes) -> bytes:
    return made.random.choice(
        (data + data, bytes(100) + data, data + bytes(100), b"\x93NUMPY" + data, b"", b"PK", data * 3)
    )


_ENTRIES: tuple[Callable[[Archives, Entries], None], ...] = (
    renamed, another, claimed, claimed, lengthened, header_flipped,
)  # fmt: skip
_BYTES: tuple[Callable[[Archives, bytes], bytes], ...] = (
    flipped,
    flipped,
    cut,
    number_changed,
    number_changed,
    surrounded,
)


def verdict(archive: Archive) -> str:
    """`read` or `refused`, for arguments and for an infeed; AssertionError where it is neither."""
    data, which = archive
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        file.write(data)
        file.flush()
        path, parameters = Path(file.name), PARAMETERS[which]
        said = [
            _said(lambda: arrays.read_arguments(path, parameters, MOST)),
            _said(lambda: arrays.read_infeed(path, len(parameters), MOST)),
        ]
    return ", ".join(said)


def _said(reads: Callable[[], list[list[Any]]]) -> str:
    try:
        found = reads()
    except ArchiveError as refusal:
        report = str(refusal)
    else:
        arrays = [leaf for each in found for value in each for leaf in _arrays_of(value)]
        assert all(isinstance(array, np.ndarray) and array.dtype.kind != "O" for array in arrays)
        return "read"
    assert 0 < len(report) < 1000, f"a report of {len(report)} characters"
    return "refused"


def _arrays_of(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in _arrays_of(each)] if isinstance(value, tuple) else [value]
