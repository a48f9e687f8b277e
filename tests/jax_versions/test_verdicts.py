"""With the JAX that is installed, whichever it is, each program and each contract gets the verdict that is listed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.oracle


@pytest.mark.slow
@pytest.mark.parametrize("module", ["programs", "contracts"])
def test_verdicts_are_those_of_every_other_jax(module: str) -> None:
    pytest.importorskip("jax")
    command = [sys.executable, "-m", f"tests.jax_versions.{module}"]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, f"{child.stdout}\n{child.stderr[-2000:]}"
    assert "0 failed" in child.stdout
