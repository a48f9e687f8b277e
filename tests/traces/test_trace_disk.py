"""Traces in folders: what is read is what was written; a run that is cut off leaves what it had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from interpreter.tracing import run
from xbuild.core.source_lines import line_of
from xbuild.traces import Summary, Trace, TraceError
from xbuild.traces.pool import Pool, packed
from xbuild.traces.summary import summary

from ..browser import pages


@pytest.mark.parametrize("which", ["scattered", "loop", "deadlock"])
def test_what_is_read_is_what_was_written(which: str, tmp_path: Path) -> None:
    wanted = pages.PAGES[which]()
    found = Trace.load(wanted.save(tmp_path / "trace"))
    for name in ("device", "spot", "count", "time", "since"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert list(map(str, found.spots)) == list(map(str, wanted.spots))
    sources = [[str(spot.instruction.source) for spot in each.spots] for each in (found, wanted)]
    assert sources[0] == sources[1]
    lines = [[line_of(spot.instruction) for spot in each.spots] for each in (found, wanted)]
    assert lines[0] == lines[1]
    assert list(found.transfers) == list(wanted.transfers)
    assert [(m.group, m.time, m.events) for m in found.meetings] == [
        (m.group, m.time, m.events) for m in wanted.meetings
    ]
    assert found.values.keys() == wanted.values.keys()
    for number, value in wanted.values.items():
        np.testing.assert_equal(found.values[number], value)
    assert found.stop == wanted.stop
    assert [found.standing(n) for n in range(len(found))] == [wanted.standing(n) for n in range(len(wanted))]
    np.testing.assert_equal(found.results, wanted.results)


TYPES = [
    xb.pred,
    xb.s4,
    xb.u8,
    xb.s64,
    xb.u64,
    xb.bf16,
    xb.f16,
    xb.f8e4m3fn,
    xb.f6e2m3fn,
    xb.f6e3m2fn,
    xb.f64,
    xb.c64,
    xb.c128,
]


def test_every_type_of_value_comes_back() -> None:
    arrays = [np.arange(6).reshape(2, 3).astype(each.dtype) for each in TYPES]
    values = [
        *arrays,
        np.float32(2.5),
        ml_dtypes.bfloat16(1.5),
        (arrays[0], None, (arrays[5],)),
        np.zeros((0, 3), np.int8),
    ]
    large = summary(np.array([[np.nan, 1.0], [np.inf, 3.0]]))
    pool = Pool()
    numbers = [pool.add(value) for value in [*values, large, arrays[0]]]
    assert numbers[-1] == numbers[0]
    columns = dict(zip(("kind", "at", "letters"), pool.columns, strict=True))
    read = packed({"kinds": np.array(json.dumps(pool.kinds)), **columns}, "here")
    for number, value in zip(numbers, values, strict=False):
        np.testing.assert_equal(read[number], value)
        assert getattr(read[number], "dtype", None) == getattr(value, "dtype", None)
    told = read[numbers[-2]]
    assert isinstance(told, Summary)
    assert (told.low, told.high, told.mean, told.nans, told.infs) == (1.0, 3.0, 2.0, 1, 1)
    np.testing.assert_array_equal(told.cells, large.cells)


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    found = pages.loop()
    with pytest.raises(TraceError, match=r"contains 'mine.txt'"):
        found.save(tmp_path)
    with pytest.raises(TraceError, match=r"index.json is missing"):
        Trace.load(tmp_path)
    folder = found.save(tmp_path / "trace")
    assert len(Trace.load(found.save(folder))) == len(found)
    (folder / "index.json").write_text("{")
    with pytest.raises(TraceError, match="not a readable trace"):
        Trace.load(folder)


def test_a_run_that_is_cut_off_leaves_what_it_had(tmp_path: Path) -> None:
    """The process is gone in the middle of a loop: the chunks until then are a trace."""
    script = dedent("""
        import os, sys
        import numpy as np
        import xbuild as xb
        from interpreter import tracing, trace
        import interpreter.tracing.run as tracer

        tracer.CHUNK = 50

        @xb.computation(xb.s32[()])
        def program(n):
            def body(n):
                return xb.custom_call(n, custom_call_target="cut", shape=xb.s32[()]) + 1
            return xb.while_(n, condition=lambda n: xb.lt(n, 1000), body=body)

        @xb.custom_call_target("cut")
        def cut(n):
            if n == 100:
                os._exit(9)
            return n

        trace(xb.Module("cut", program), [[0]], folder=sys.argv[1])
    """)
    folder = tmp_path / "trace"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 9
    found = Trace.load(folder)
    assert len(found) >= 400
    assert len(found) % 50 == 0
    assert "interrupted" in found.left_out
    assert found.results is None
    last = max(
        found.where("add.9" if any(True for _ in found.where("add.9")) else "add.8"), key=lambda event: event.number
    )
    assert int(found.values[last.number]) == last.count + 1
    assert found.trips(last.number)[0][1] == last.count + 1


def test_chunks_are_as_good_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNK", 7)
    program = pages.loop().program
    inputs = [[np.ones(2, np.float32)]] * 2
    found = trace(program, inputs, folder=tmp_path / "trace")
    wanted = trace(program, inputs)
    assert len([*(tmp_path / "trace").glob("chunk-*")]) > 3
    np.testing.assert_array_equal(found.time, wanted.time)
    for number, value in wanted.values.items():
        np.testing.assert_equal(found.values[number], value)


def test_only_each_second_turn_is_kept() -> None:
    found = trace(pages.loop().program, [[np.ones(2, np.float32)]] * 2, every=2)
    sums = [event for event in found if event.instruction.opcode == "all_reduce"]
    assert {event.count for event in sums if event.number in found.values} == {0, 2}
    assert "keeps one execution in 2 of each instruction" in found.left_out
