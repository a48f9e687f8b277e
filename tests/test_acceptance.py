"""The runner of the acceptance cases on copies of open cases, and what a runner itself must do."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.acceptance import failure, main
from tests.conformance.families.judging import differing, same

ROOT = Path(__file__).parents[1]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "data" / "acceptance_b.json").read_text())["cases"]
GRIDS: list[dict[str, Any]] = json.loads((ROOT / "tests" / "data" / "acceptance_c.json").read_text())["cases"]
BY_ID = {case["id"]: case for case in (*CASES, *GRIDS)}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_varying_and_invariant_types(case: dict[str, Any]) -> None:
    assert failure(case) is None


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in GRIDS])
def test_the_shard_dialect(case: dict[str, Any]) -> None:
    assert failure(case) is None


def changed(name: str, change: Any) -> dict[str, Any]:
    case = copy.deepcopy(BY_ID[name])
    change(case)
    return case


def _set(*path: Any) -> Any:
    *way, key, value = path

    def change(case: Any) -> None:
        for each in way:
            case = case[each]
        case[key] = value

    return change


WRONG = [
    ("B-001", _set("expect", "outputs", "y", [[4, 6, 8, 11]] * 2)),
    ("B-001", _set("expect", "types", "y", {"varying": ["i"], "unreduced": [], "reduced": []})),
    ("B-001", _set("expect", {"error": "mixed_axis_state"})),
    ("B-001", _set("op", "no_such_op")),
    ("B-001", _set("family", "Z")),
    ("B-031", _set("attrs", "axes", ["j"])),
    ("B-041", _set("expect", "outputs", "ct_x", [[1, 2, 3, 4]] * 2)),
    ("B-047", _set("expect", "outputs", "ct_w", [[6, 10, 14]] * 2)),
    ("B-051", _set("expect", "error", "state_mismatch")),
    ("B-051", _set("expect", {"outputs": {"y": [[0, 0]]}, "types": {}})),
    ("B-053", _set("expect", "error", "branch_type_mismatch")),
    ("C-001", _set("attrs", "grid_axes", [0])),
    ("C-037", _set("attrs", "halo_sizes", [0, 2])),
    ("C-045", _set("expect", "outputs", "plan", [{"op": "all_gather", "grid_axes": [0], "gather_axis": 0}])),
    ("C-053", _set("expect", "outputs", "shardings", "b", [[0]])),
    ("C-063", _set("attrs", "allowed", True)),
    ("C-074", _set("expect", "error", "grid_axis_negative")),
]


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_a_runner_tells_what_is_wrong(name: str, change: Any) -> None:
    assert failure(changed(name, change))


def test_where_the_case_says_null_any_value_is_right() -> None:
    assert same([None, [1.0, None]], [[5], [1.0, 7]], 0.0)
    assert not same([1.0, 2.0], [1.0], 0.0)
    assert not same([1.0], 1.0, 0.0)
    assert differing({"expect": {"outputs": {"y": [1]}}, "dtype": "s32"}, {"z": [1]})


def test_a_runner_counts_and_tells_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = changed("B-001", _set("op", "no_such_op"))
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [wrong, BY_ID["B-003"], {**wrong, "id": "A-999", "family": "A"}]}))
    assert main([str(file), "--family", "B"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("B-001: outputs expected, AttributeError came")
    assert lines[1:] == ["1 passed, 1 failed"]
    assert main([str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 2 failed"


def test_a_runner_is_a_program(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [BY_ID["B-001"], BY_ID["B-051"]]}))
    command = [sys.executable, "-m", "tests.conformance.acceptance", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2 passed, 0 failed\n"), done.stderr
