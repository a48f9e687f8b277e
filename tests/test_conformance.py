"""The conformance runners on the copies of the open cases, and what a runner itself must do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance import jax as jax_runner
from tests.conformance.shape import failure, main
from tests.conformance.shape_calls import function_of

ROOT = Path(__file__).parents[1]
SHAPES = Path(__file__).parent / "data" / "shape_cases.json"
CASES: list[dict[str, Any]] = json.loads(SHAPES.read_text())["cases"]


def exists(op: str) -> bool:
    try:
        return callable(function_of(op))
    except LookupError:
        return False


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if exists(case["op"])])
def test_shape(case: dict[str, Any]) -> None:
    assert failure(case) is None


WRONG = [
    {"id": "a.1", "op": "add", "operands": ["f32[2]", "f32[2]"], "attrs": {}, "expect": "f32[3]"},
    {"id": "a.2", "op": "add", "operands": ["f32[2]", "f32[3]"], "attrs": {}, "expect": "f32[2]"},
    {"id": "a.3", "op": "add", "operands": ["f32[2]", "f32[2]"], "attrs": {}, "error": "rank_mismatch"},
    {"id": "a.4", "op": "add", "operands": ["f32[2]", "f32[3]"], "attrs": {}, "error": "rank_mismatch"},
    {"id": "a.5", "op": "add", "operands": ["f32[2]", "f32[3]"], "attrs": {}, "error": "dimension_mismatch",
     "must_name": ["f32[4]"]},
    {"id": "a.6", "op": "no-such-op", "operands": ["f32[2]"], "attrs": {}, "expect": "f32[2]"},
    {"id": "a.7", "op": "add", "operands": ["f32[2]", "f32[2]"], "attrs": {"no_such": 1}, "expect": "f32[2]"},
    {"id": "a.8", "op": "add", "operands": ["nonsense"], "attrs": {}, "expect": "f32[2]"},
]  # fmt: skip
RIGHT = [
    {"id": "b.1", "op": "add", "operands": ["f32[2]", "f32[2]"], "attrs": {}, "expect": "f32[2]"},
    {"id": "b.2", "op": "add", "operands": ["f32[2]", "f32[3]"], "attrs": {}, "error": "dimension_mismatch",
     "must_name": ["add", "F32[ 2 ]", "2", "3"]},
    {"id": "b.3", "op": "add", "operands": ["f32[2]", "f32[3]"], "attrs": {}, "error": "rank_mismatch", "must_name": [],
     "also_accept": "error:dimension_mismatch"},
    {"id": "b.4", "op": "call", "operands": ["s8[<=4]"], "attrs": {},
     "computations": {"to_apply": "(s8[<=4]) -> (s8[<=4], f32[2,2], ())"}, "expect": "(s8[<=4], f32[2,2], ())"},
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case["id"])
def test_a_runner_tells_what_is_wrong(case: dict[str, Any]) -> None:
    assert failure(case)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case["id"])
def test_a_runner_lets_pass_what_is_right(case: dict[str, Any]) -> None:
    assert failure(case) is None


def test_a_runner_counts_and_tells_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"meta": {}, "cases": [*WRONG, *RIGHT]}))
    assert main([str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [case["id"] for case in WRONG]
    assert lines[-1] == f"{len(RIGHT)} passed, {len(WRONG)} failed"


def test_a_runner_is_a_program(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"meta": {}, "cases": RIGHT}))
    command = [sys.executable, "-m", "tests.conformance.shape", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(RIGHT)} passed, 0 failed\n"), done.stderr


SAMPLE = list(jax_runner.cases_of(ROOT / "tests" / "data" / "jax_programs.jsonl.gz"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SAMPLE])
def test_program_of_jax(case: dict[str, Any]) -> None:
    assert jax_runner.failure(case) is None


def _of(name: str) -> dict[str, Any]:
    return next(case for case in SAMPLE if case["id"] == name)


def _with_results(name: str, key: str, change: Any) -> dict[str, Any]:
    """A case whose first captured result is changed, on all devices."""

    def changed(given: Any) -> Any:
        if isinstance(given, list):
            return [changed(each) for each in given]
        return jax_runner.stored(change(jax_runner.array_of(given)))

    case = _of(name)
    first, *rest = case["values"][key]
    return {**case, "values": {**case["values"], key: [changed(first), *rest]}}


def _at_one_place(array: Any) -> Any:
    moved = array.copy()
    moved.flat[0] += np.asarray(1, array.dtype)
    return moved


JAX_WRONG = [
    (_with_results("matmul", "gout", _at_one_place), "the partitioned program: device 0, result 0 at [0, 0]"),
    (_with_results("matmul", "out", _at_one_place), "the compiled program: device 0, result 0 at [0, 0]"),
    (_with_results("sort_by_key", "out", lambda array: array[::-1]), "result 0 at"),
    (_with_results("eigh", "out", lambda array: array * 1.01), "result 0 at"),
    (_with_results("eigh", "out", lambda array: array[1:]), "is JAX's"),
    ({**_of("fft"), "hlo": _of("matmul")["hlo"]}, "Error"),
    ({**_of("fft"), "stablehlo": "nonsense"}, "HloParseError"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "reason"), JAX_WRONG, ids=lambda each: each["id"] if isinstance(each, dict) else None)
def test_the_runner_of_jax_tells_what_is_wrong(case: dict[str, Any], reason: str) -> None:
    assert reason in (jax_runner.failure(case) or "")


def test_the_runner_of_jax_knows_what_decompositions_leave_free() -> None:
    assert jax_runner.failure(_with_results("svd_and_qr", "out", lambda array: array[::-1])) is None
    turned = _of("eigh")
    vectors = turned["values"]["out"][1][0]
    stored = jax_runner.stored(jax_runner.array_of(vectors) * np.float32([1, -1, 1, -1, 1]))
    results = [turned["values"]["out"][0], [stored]]
    assert jax_runner.failure({**turned, "values": {**turned["values"], "out": results}}) is None


@pytest.mark.slow
def test_the_runner_of_jax_is_a_program(tmp_path: Path) -> None:
    file = tmp_path / "programs.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in [*SAMPLE[:6], JAX_WRONG[0][0]]))
    command = [sys.executable, "-m", "tests.conformance.jax", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines), lines[-1]) == (1, 2, "6 passed, 1 failed"), done.stderr
    assert lines[0].startswith("matmul: the partitioned program: ")
