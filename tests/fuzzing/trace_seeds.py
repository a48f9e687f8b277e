"""Small traces of every kind: loops, meetings, transfers, types, summaries, runs that are stuck, strict or cut off."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import xbuild as xb
from examples.gallery.deadlocks import exchange
from interpreter.tracing import run_traced
from xbuild.traces import Trace

from ..browser import pages

PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}"
SWAP = f"""HloModule swap, replica_count=2, is_scheduled=true
ENTRY main {{ x = f32[2] parameter(0)  t = token[] after-all()
              r = (f32[2], u32[], token[]) recv(t), channel_id=1, {PAIRS}
              s = (f32[2], u32[], token[]) send(x, t), channel_id=1, {PAIRS}
              sent = token[] send-done(s), channel_id=1
              ROOT came = (f32[2], token[]) recv-done(r), channel_id=1 }}"""


def loop(place: Path) -> Path:
    return pages.loop().save(place)


def swap(place: Path) -> Path:
    inputs = [[np.array([n, -n], np.float32)] for n in range(2)]
    return run_traced(xb.parse_hlo(SWAP), inputs, check=False)[0].save(place)


def two_programs(place: Path) -> Path:
    return pages.in_stages().save(place)


def stuck(place: Path) -> Path:
    return run_traced(exchange(2, "send recv done"), [[np.zeros(4, np.float32)]] * 2, check=False)[0].save(place)


def kinds(place: Path) -> Path:
    """Elements of less than a byte, truth values, summaries, tuples in tuples, NaN and infinity."""

    @xb.computation(xb.f32[20, 20], xb.s4[3], xb.pred[2], xb.bf16[2], xb.c64[2])
    def program(x: xb.Value, *others: xb.Value) -> xb.Value:
        return xb.tuple_((xb.log(x), xb.tuple_((*others, x)), xb.reduce(x, np.float32(0), xb.add, (0, 1))))

    numbers = {xb.s4: [-8, 0, 7], xb.pred: [True, False], xb.bf16: [1, np.nan], xb.c64: [1j, 2]}
    inputs = [np.arange(-9, 391).reshape(20, 20).astype(np.float32)]
    inputs += [np.array(each).astype(kind.dtype) for kind, each in numbers.items()]
    return run_traced(xb.Module("kinds", program), [inputs], elements=100)[0].save(place)


def strict(place: Path) -> Path:
    @xb.computation(xb.f32[3])
    def program(x: xb.Value) -> xb.Value:
        return xb.add(xb.log(x), x)

    found, _ = run_traced(xb.Module("strict", program), [[np.array([1, 0, -1], np.float32)]], strict=True)
    return found.save(place)


def cut_off(place: Path) -> Path:
    """As a run leaves it that is killed after its first chunk."""
    loop(place)
    for name in ("time.npz", "results.npz"):
        (place / name).unlink()
    index = json.loads((place / "index.json").read_text())
    for key in ("stop", "left_out", "findings", "results"):
        del index[key]
    (place / "index.json").write_text(json.dumps(index | {"finished": False}))
    assert "interrupted" in Trace.load(place).left_out
    return place


SEEDS: dict[str, Callable[[Path], Path]] = {
    each.__name__: each for each in (loop, swap, two_programs, stuck, kinds, strict, cut_off)
}

Files: TypeAlias = dict[str, Any]
"""The bytes of each file; for what is no file a function that makes it."""


@cache
def seeds() -> dict[str, Files]:
    """Small traces as bytes, by name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in SEEDS.items():
            place = make(Path(folder, name))
            found[name] = {each.name: each.read_bytes() for each in sorted(place.iterdir())}
    return found


def written(files: Files, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, content in files.items():
        content(place / name) if callable(content) else (place / name).write_bytes(content)
    return place
