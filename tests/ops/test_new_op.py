"""A new op works in every reading after the steps of CONTRIBUTING.md; without one of them, readings refuse it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = {
    "shape": ("shape_inference/ops/elementwise.py", '    "erf": FLOAT,', '    "erf": FLOAT, "softplus": FLOAT,'),
    "declaration": (
        "xbuild/ops/elementwise.py",
        "\nexponential = _unary(",
        '\nsoftplus = _unary("softplus", "a test", "log(1 + exp(x))", '
        '"xb.f32[1]: [0.0] -> array([0.6931472], dtype=float32)")\n__all__ += ["softplus"]\nexponential = _unary(',
    ),
    "value": (
        "interpreter/kernels/elementwise.py",
        '    "erf": by_kind(',
        '    "softplus": by_kind(f=lambda x: np.logaddexp(x, np.zeros((), x.dtype))),\n    "erf": by_kind(',
    ),
    "names": (
        "xbuild/reference/op_names.py", "\nerf  ", f"\n{'softplus':25} {'-':35} HloOpcode\nerf  ",
    ),
}  # fmt: skip
"""The file of each step that is written by hand, besides the cases; what is there; what stands there afterwards."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, to which steps are applied."""
    found = tmp_path_factory.mktemp("packages")
    for package in ("shape_inference", "xbuild", "interpreter"):
        shutil.copytree(ROOT / package, found / package)
    shutil.copy(ROOT / "tests" / "ops" / "new_op_readings.py", found / "readings.py")
    return found


def outcomes(folder: Path, without: str = "") -> dict[str, str]:
    """What each reading gives with all steps but one."""
    for step, (file, before, after) in STEPS.items():
        text = (ROOT / file).read_text()
        assert text.count(before) == 1, f"{file} has no single {before!r}"
        (folder / file).write_text(text if step == without else text.replace(before, after))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "readings.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t", 1) for line in done.stderr.splitlines() if "\t" in line)


def test_an_op_that_is_added_by_the_steps_works_in_every_reading(folder: Path) -> None:
    found = outcomes(folder)
    assert len(found) > 15
    assert {name: outcome for name, outcome in found.items() if outcome != "ok"} == {}


FAILS = {
    "shape": {"import"},
    "value": {"value", "value in a region", "strict", "denormals by arrays", "run on two devices", "trace"},
    "names": set[str](),
}


@pytest.mark.parametrize("step", FAILS)
def test_without_a_step_readings_refuse_clearly(folder: Path, step: str) -> None:
    refused = {name: outcome for name, outcome in outcomes(folder, without=step).items() if outcome != "ok"}
    assert refused.keys() == FAILS[step]
    for name, outcome in refused.items():
        kinds, _, message = outcome.partition(": ")
        assert {"MissingRule", "XbuildError"} & {*kinds.split("/")}, (name, outcome)
        assert "softplus" in message
