"""Traces in folders: what is read is what was written, a run that is cut off leaves what it had; questions; pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from interpreter import trace
from interpreter.tracing import tracer
from xbuild.cli import main
from xbuild.core.source_lines import line_of
from xbuild.traces import Summary, Trace, TraceError, births
from xbuild.traces.compare import compare_traces
from xbuild.traces.packed import packed
from xbuild.traces.pool import Pool
from xbuild.traces.summary import summary

from ..browser import pages

PROGRAMS = """
import numpy as np
import xbuild as xb

def _steps(factor):
    @xb.computation(xb.f32[3])
    def program(x):
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        def body(s):
            return xb.tuple_((s[0] + 1, xb.all_reduce(s[1] * factor, xb.add, ) - 1.0))
        return xb.while_(start, condition=lambda s: xb.lt(s[0], 4), body=body)[1]
    return xb.Module("steps", program, num_replicas=2)

def twice():
    return _steps(2.0)

def thrice():
    return _steps(3.0)

def logs():
    @xb.computation(xb.f32[2])
    def program(x):
        return xb.add(xb.all_reduce(xb.log(x - 9.0), xb.add), x)
    return xb.Module("logs", program, num_replicas=2)

def lonely():
    @xb.computation(xb.f32[2])
    def program(x):
        first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
        return xb.conditional(first, x, lambda v: xb.all_reduce(v, xb.add), x, lambda v: v * 2.0)
    return xb.Module("lonely", program, num_replicas=2)

def unlike():
    def one(device):
        builder = xb.Builder(f"d{device}")
        token = xb.after_all(builder=builder)
        if device:
            return builder.build(xb.recv_done(xb.recv(token, shape=xb.f32[3], channel_id=1), channel_id=1)[0])
        x = xb.parameter(builder, number=0, shape=xb.f32[2])
        xb.send_done(xb.send(x, token, channel_id=1), channel_id=1)
        return builder.build(x)
    return xb.ModuleGroup({n: xb.Module(f"d{n}", one(n)) for n in range(2)})
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "kept_programs.py"
    path.write_text(PROGRAMS)
    return path


def call(*arguments: Any, given: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], input=given)


@pytest.fixture(scope="module")
def kept(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces of three programs, by name."""
    folders = {}
    for name in ("twice", "thrice", "logs"):
        folders[name] = tmp_path_factory.mktemp("kept") / name
        done = call("run", f"{programs}:{name}", "--random", 0, "--trace", folders[name])
        assert done.exit_code == 0, done.output
    return folders


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
    with pytest.raises(TraceError, match=r"holds 'mine.txt'"):
        found.save(tmp_path)
    with pytest.raises(TraceError, match=r"no index.json"):
        Trace.load(tmp_path)
    folder = found.save(tmp_path / "trace")
    assert len(Trace.load(found.save(folder))) == len(found)
    (folder / "index.json").write_text("{")
    with pytest.raises(TraceError, match="no trace that can be read"):
        Trace.load(folder)


def test_a_run_that_is_cut_off_leaves_what_it_had(tmp_path: Path) -> None:
    """The process is gone in the middle of a loop: the chunks until then are a trace."""
    script = dedent("""
        import os, sys
        import numpy as np
        import xbuild as xb
        from interpreter import tracing, trace
        from interpreter.tracing import tracer

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
    assert "cut off" in found.left_out
    assert found.results is None
    last = max(
        found.where("add.9" if any(True for _ in found.where("add.9")) else "add.8"), key=lambda event: event.number
    )
    assert int(found.values[last.number]) == last.count + 1
    assert found.trips(last.number)[0][1] == last.count + 1


def test_chunks_are_as_good_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "CHUNK", 7)
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
    assert "one turn in 2 is kept" in found.left_out


def test_a_nan_from_another_device_is_not_born_in_the_sum() -> None:
    found = trace(pages.scattered().program, [[np.array([1, 2, -3, 4 + n], np.float32)] for n in range(4)])
    assert {found[birth.event].instruction.opcode for birth in births.births(found)} == {"log"}


def test_the_first_difference(kept: dict[str, Path]) -> None:
    a, b = Trace.load(kept["twice"]), Trace.load(kept["thrice"])
    difference = compare_traces(a, b).difference
    assert difference is not None
    assert a[difference.first].instruction.opcode == "constant"
    assert compare_traces(a, a).difference is None
    assert compare_traces(a, b, eps=1e9).difference is None
    between = compare_traces(a, a, (0, 1)).difference
    assert between is not None
    assert a[between.first].instruction.opcode == "parameter"


def test_questions(kept: dict[str, Path], tmp_path: Path) -> None:
    logs = call("trace", kept["logs"])
    assert "the first NaN is born at step 5 on device 0, in log.5" in logs.output
    facts = json.loads(call("trace", kept["logs"], "--json").output)
    assert [row["at"] for row in facts["born"][0]["chain"]][-1] == "log.5"
    assert facts["devices"] == 2
    spots = {spot.instruction.name for spot in Trace.load(kept["twice"]).spots}
    name = next(each for each in spots if each.startswith("all-reduce"))
    rows = json.loads(call("trace", kept["twice"], "--of", name, "--device", 1, "--json").output)
    assert [row["turn"] for row in rows] == [0, 1, 2, 3]
    assert [next(iter(row["trips"].values())) for row in rows] == [1, 2, 3, 4]
    two = call("trace", kept["twice"], kept["thrice"])
    assert two.exit_code == 1
    assert two.output.startswith("first difference: constant.")
    assert call("trace", kept["twice"], kept["twice"]).exit_code == 0
    assert call("trace", kept["twice"], "--devices", 0, 1).exit_code == 1
    assert call("trace", kept["twice"], "--devices", 0, 7).exit_code == 2
    assert "never came to 'log'" in call("trace", kept["logs"], "--of", "log").output
    assert call("trace", tmp_path).exit_code == 2
    page = tmp_path / "page.html"
    assert call("trace", kept["logs"], "--page", page).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")


def test_comparisons(kept: dict[str, Path], programs: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    call("run", f"{programs}:twice", "--random", 0, "--trace", some, "--trace-every", 2)
    done = call("trace", kept["twice"], some)
    assert done.exit_code == 0
    assert done.output == "the same: 86 values, 68 more of which one side was not kept\n"
    lines = call("trace", kept["twice"], kept["logs"]).output.splitlines()
    assert lines[0] == "first difference: parameter.1, f32[3] and f32[2]; an input of the program"
    assert lines[1].split()[0] == str(kept["twice"])
    assert lines[-1] == "  1 value compared"
    assert call("trace", kept["twice"], kept["thrice"], "--of", "parameter.1").output == "the same: 2 values\n"
    assert call("trace", kept["twice"], "--devices", 0, 1, "--of", "tuple.3", "--eps", 99).output.startswith(
        "the same: 1"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--device 1", "--device is for the values of one instruction, as in --of add.3 --device 1"),
        ("--devices 0 1 --turn 1", "--turn is for the values of one instruction, as in --of add.3 --turn 1"),
        ("--eps 1", "--eps is for a comparison, with a second trace or --devices A B"),
        ("--of tuple.3 --device 5", "device 5 is none of 0..1"),
        ("--of tuple.3 --turn 5", "no device comes to a turn 5 of tuple.3"),
        ("--of tuple.3 --turn 5 --device 1", "device 1 never comes to a turn 5 of tuple.3"),
        ("--devices 0 1 --of tupel.3", "the run never came to 'tupel.3'; did you mean 'tuple.3'?"),
    ],
)
def test_questions_that_have_no_answer(kept: dict[str, Path], options: str, message: str) -> None:
    done = call("trace", kept["twice"], *options.split())
    assert done.exit_code == 2
    assert f"Error: {message}\n" in done.output


def test_turns_without_a_value_are_counted(programs: Path, tmp_path: Path) -> None:
    call("run", f"{programs}:twice", "--random", 0, "--trace", tmp_path / "some", "--trace-every", 2)
    name = next(s.instruction.name for s in Trace.load(tmp_path / "some").spots if "all_reduce" in s.instruction.opcode)
    lines = call("trace", tmp_path / "some", "--of", name).output.splitlines()
    assert len(lines) == 5
    assert lines[-1] == "4 more turns without a value that was kept"
    rows = json.loads(call("trace", tmp_path / "some", "--of", name, "--json").output)
    assert len(rows) == 8


@pytest.mark.parametrize(
    ("name", "code", "words"), [("twice", 0, ""), ("lonely", 1, "deadlock"), ("unlike", 1, "shape_mismatch")]
)
def test_a_page_of_every_end(programs: Path, tmp_path: Path, name: str, code: int, words: str) -> None:
    page = tmp_path / "page.html"
    done = call("run", f"{programs}:{name}", "--random", 0, "--page", page)
    assert done.exit_code == code
    assert words in done.output
    assert words in page.read_text()
    page.unlink()
    assert call("check", f"{programs}:{name}", "--random", 0, "--page", page).exit_code == code
    assert words in page.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_of_a_strict_run_and_of_a_limit(programs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = call("run", f"{programs}:logs", "--random", 0, "--strict", "--page", page)
    assert (done.exit_code, "nan_born: at" in page.read_text()) == (1, True)
    without = call("run", f"{programs}:logs", "--random", 0, "--strict")
    assert without.output == done.output
    done = call("run", f"{programs}:twice", "--random", 0, "--max-trips", 2, "--page", page)
    assert (done.exit_code, "limit_trips" in page.read_text()) == (1, True)
    assert call("run", f"{programs}:twice", "--random", 0, "--page", tmp_path / "no" / "page.html").exit_code == 2
