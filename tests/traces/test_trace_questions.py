"""Questions about traces on the command line: births, differences, comparisons; and their pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from interpreter import trace
from xbuild.cli import main
from xbuild.traces import Trace, questions
from xbuild.traces.questions import compare_traces

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


def test_a_nan_from_another_device_is_not_born_in_the_sum() -> None:
    found = trace(pages.scattered().program, [[np.array([1, 2, -3, 4 + n], np.float32)] for n in range(4)])
    assert {found[birth.event].instruction.opcode for birth in questions.births(found)} == {"log"}


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
    assert "never reached 'log'" in call("trace", kept["logs"], "--of", "log").output
    assert call("trace", tmp_path).exit_code == 2
    page = tmp_path / "page.html"
    assert call("trace", kept["logs"], "--page", page).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")


def test_comparisons(kept: dict[str, Path], programs: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    call("run", f"{programs}:twice", "--random", 0, "--trace", some, "--trace-every", 2)
    done = call("trace", kept["twice"], some)
    assert done.exit_code == 0
    assert done.output == "the same: 86 values, 68 more not recorded on one side\n"
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
        ("--device 1", "--device applies only to the values of one instruction: --of add.3 --device 1"),
        ("--devices 0 1 --turn 1", "--turn applies only to the values of one instruction: --of add.3 --turn 1"),
        ("--eps 1", "--eps applies only to a comparison: use --differ, --devices A B, or a second trace"),
        ("--of tuple.3 --device 5", "the trace has no device 5; the devices are 0..1"),
        ("--of tuple.3 --turn 5", "no device reaches execution 5 of tuple.3"),
        ("--of tuple.3 --turn 5 --device 1", "device 1 never reaches execution 5 of tuple.3"),
        ("--devices 0 1 --of tupel.3", "the run never reached 'tupel.3'; did you mean 'tuple.3'?"),
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
    assert lines[-1] == "4 more executions without a recorded value"
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
    assert without.stdout == done.stdout.replace(f"wrote {page}: a page for any browser that replays the run\n", "")
    assert without.stderr == done.stderr
    done = call("run", f"{programs}:twice", "--random", 0, "--max-trips", 2, "--page", page)
    assert (done.exit_code, "limit_trips" in page.read_text()) == (1, True)
    assert call("run", f"{programs}:twice", "--random", 0, "--page", tmp_path / "no" / "page.html").exit_code == 2
