"""Dumps from a stranger: pickles that name classes or reserve memory, vast counts, cycles, damaged and other files."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hangs.jobs import find
from xbuild.hangs import DumpError
from xbuild.hangs.plain_pickles import read_plain_pickle


class _Runs:
    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return os.system, ("false",)


class _State:
    def __init__(self) -> None:
        self.x = 1


def _cycle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def _shared() -> list[object]:
    found: list[object] = [0]
    for _ in range(9):
        found = [found] * 20
    return found


REFUSED = [
    (pickle.dumps({"entries": _Runs()}), "class|function|object"),
    (pickle.dumps(_Runs(), protocol=0), "class|opcode"),
    (pickle.dumps({"entries": _State()}), "class|object"),
    (pickle.dumps({"entries": {1, 2}}), "opcode"),
    (b"\x80\x02}r\xff\xff\xff\xff.", "reserves more memory"),
    (b"\x80\x02X\xff\xff\xff\xff.", "cut off"),
    (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "opcode"),
    (b"\x80\x02\x8b\xff\xff\xff\x7f.", "opcode"),
    (b"\x80\x02(" * 3, "opcode|cut off"),
    (b"\x80\x02", "cut off"),
    (b"\x80\x02e.", "damaged"),
    (pickle.dumps({"version": "2.9", "entries": _cycle()}), "nested|contain themselves"),
    (pickle.dumps({"version": "2.9", "entries": _shared()}), "more than .* values"),
]


@pytest.mark.parametrize(("data", "sentence"), REFUSED)
def test_a_pickle_of_anything_else_is_refused_in_a_sentence(data: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "_dump_0").write_bytes(data if data[:1] == b"\x80" else b"\x80\x02" + data)
    with pytest.raises(DumpError, match=sentence) as refusal:
        find(tmp_path)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith("_dump_0: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"entries": [}', "damaged"),
        ('{"version": "3.0", "entries": []}', "version 3.0"),
        ('{"version": "2.9", "entries": [1]}', "list of dicts"),
        ('{"version": "2.9", "entries": [], "pg_config": {"0": {"ranks": "[999999999]"}}}', "the limit is"),
        ("[[[[" * 5000, "nested too deep|damaged"),
        ('{"a":' * 20 + "1" + "}" * 20, "nested|no files|none of"),
        ("plain words", "is not a dump; docs/hangs.md"),
    ],
)
def test_a_text_of_anything_else_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "trace_0.json").write_text(text)
    with pytest.raises(DumpError, match=sentence):
        find(tmp_path)


def test_a_folder_without_files_and_a_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no files"):
        find(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DumpError, match="pipe"):
        find(tmp_path / "pipe")


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(plain, st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_plain_data_are_read_as_pickle_reads_them(data: object, protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps(data, protocol), 10_000) == data


@given(st.binary(max_size=60))
@settings(max_examples=150, deadline=None)
def test_random_bytes_end_in_data_or_in_a_refusal(data: bytes) -> None:
    with contextlib.suppress(DumpError):
        read_plain_pickle(b"\x80\x02" + data, 10_000)


def test_a_real_dump_with_any_byte_changed_ends_in_a_result_or_in_a_refusal(tmp_path: Path) -> None:
    entry = {"pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 1, "profiling_name": "nccl:barrier"}
    whole = pickle.dumps({"version": "2.9", "entries": [entry], "pg_status": {"0": {"last_enqueued_collective": 1}}}, 2)
    path = tmp_path / "_dump_0"
    for place in range(2, len(whole), 2):
        for value in (0xFF, ord("r"), whole[place] ^ 1):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            with contextlib.suppress(DumpError):
                find(path)
