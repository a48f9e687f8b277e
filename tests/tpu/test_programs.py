"""Programs that are built and not run: module, verdict, runs with other inputs, traces, commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import Limits, Refused, Stopped, StrictFailure, execute, trace
from tests.tpu.support import F32, plain, refused
from xbuild.cli import main


def total(x: Any) -> Any:
    return xb.tpu.cross_replica_sum(x)


def test_a_program_is_built_and_checked_without_a_run() -> None:
    program = xb.tpu.replicate.program(total, [[1.0], [2.0]])
    assert isinstance(program.module, xb.Module)
    assert (program.module.num_replicas, program.num_replicas) == (2, 2)
    assert program.verdict.kind == "ok"
    assert "all-reduce" in str(program)
    assert "<svg" in program._repr_svg_()
    assert "2 replicas" in repr(program)
    assert xb.check(program).kind == "ok"
    assert plain(execute(program, [[F32(1)], [F32(2)]])) == [(3.0,), (3.0,)]
    assert len(trace(program, [[F32(1)], [F32(2)]]).results) == 2


@pytest.mark.parametrize("name", ["while", "a b/c", "f32", "ROOT", "1st", "", "\u00e9"])
def test_any_name_becomes_one_of_hlo(name: str) -> None:
    w = xb.tpu.Variable(1.0, name=name)
    program = xb.tpu.rewrite.program(lambda x: x + w, [1.0], name=name)
    assert str(xb.parse_hlo(str(program))) == str(program)
    assert plain(program.run()) == [2.0]


def test_shapes_stand_for_inputs_of_a_program() -> None:
    program = xb.tpu.replicate.program(total, [[xb.f32[2]], [xb.f32[2]]])
    assert plain(program.run([[F32([1, 2])], [F32([10, 20])]])) == [[[11.0, 22.0]]] * 2
    refused("argument_mismatch", program.run, "pass the arrays to run(inputs)")
    sharded = xb.tpu.shard.program(lambda x: x + 1.0, [xb.f32[4]], num_shards=2)
    assert plain(sharded.run([F32([1, 2, 3, 4])])) == [[2.0, 3.0, 4.0, 5.0]]


def test_a_run_with_other_inputs() -> None:
    program = xb.tpu.replicate.program(total, [[1.0], [2.0]])
    assert plain(program.run()) == [[3.0], [3.0]]
    assert plain(program.run([[10.0], [20.0]])) == [[30.0], [30.0]]
    refused("argument_mismatch", lambda: program.run([[1.0], [2.0], [3.0]]), "3 replicas")
    refused("argument_mismatch", lambda: program.run([[F32([1])], [F32([2])]]), "f32[1]")
    rewritten = xb.tpu.rewrite.program(total, [1.0])
    assert plain(rewritten.run([5.0])) == [5.0]


def test_options_are_those_of_a_run() -> None:
    loop = lambda x: xb.while_(x, condition=lambda s: s < 10.0, body=lambda s: s + 0.0)  # noqa: E731
    with pytest.raises(Stopped, match="limit_trips"):
        xb.tpu.rewrite(loop, [1.0], limits=Limits(trips=5))
    program = xb.tpu.rewrite.program(lambda x: xb.divide(x, 0), [1])
    with pytest.raises(StrictFailure):
        program.run(strict=True)


def test_a_trace_keeps_what_happens_and_changes_no_variable() -> None:
    w = xb.tpu.Variable(1.0, name="w")
    program = xb.tpu.replicate.program(lambda x: w.assign(w + x), [[1.0], [2.0]])
    trace = program.trace()
    assert any(event.instruction.opcode == "add" for event in trace)
    assert plain(w.values) == [1.0]


def test_a_collective_under_a_condition_on_the_replica_is_refused_before_the_run() -> None:
    seen: list[Any] = []

    def computation(x: Any) -> Any:
        xb.tpu.outside_compilation(seen.append, x)
        even = xb.convert(xb.replica_id(xb.tpu.builder()) % np.uint32(2), xb.s32) == 0
        return xb.conditional(even, x, xb.tpu.cross_replica_sum, x, lambda v: v)

    with pytest.raises(Refused, match="replica"):
        xb.tpu.replicate(computation, [[1.0], [2.0]])
    assert seen == []
    assert xb.tpu.replicate.program(computation, [[1.0], [2.0]]).verdict.refused


FILE = """
import numpy as np
import xbuild as xb

def step(x):
    return xb.tpu.cross_replica_sum(x * 2.0)

program = xb.tpu.replicate.program(step, [[np.float32([1, 2])], [np.float32([3, 4])]])

def later():
    return program
"""


@pytest.mark.parametrize("name", ["program", "later"])
@pytest.mark.parametrize(
    ("command", "says"),
    [(["show"], "all-reduce"), (["check"], "ok"), (["viz"], ""), (["run", "--random", "0"], "device 1")],
)
def test_commands_take_a_program(tmp_path: Path, name: str, command: list[str], says: str) -> None:
    (tmp_path / "script.py").write_text(FILE)
    target = f"{tmp_path / 'script.py'}:{name}"
    extra = ["-o", str(tmp_path / "p.svg")] if command[0] == "viz" else []
    result = CliRunner().invoke(main, [command[0], target, *command[1:], *extra])
    assert result.exit_code == 0, result.output
    assert says in result.output


def test_a_page_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FILE)
    page = tmp_path / "page.html"
    target = f"{tmp_path / 'script.py'}:program"
    result = CliRunner().invoke(main, ["run", target, "--random", "0", "--page", str(page)])
    assert result.exit_code == 0, result.output
    assert "all-reduce" in page.read_text()
