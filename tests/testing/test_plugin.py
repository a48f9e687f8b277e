"""What pytest adds: a guard around tests, reports in full, files written on request, and nothing imported before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HANGS = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:2]), ("d",))


def body(v):
    return jax.lax.cond(jax.lax.axis_index("d") == 0, lambda v: jax.lax.psum(v, "d"), lambda v: v, v)


hang = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False))
x = jnp.ones(4)
"""


def run(folder: Path, text: str, *options: str) -> str:
    """The output of pytest for a file with this text, with no other plug-in than the installed one.

    Pytest prints more of a failed assertion where these variables say that it runs in CI.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    (folder / "test_user.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, "test_user.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert not done.stderr or "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_a_run_without_contracts_imports_nothing(tmp_path: Path) -> None:
    text = "import sys\ndef test_it(): assert not {m for m in sys.modules if m.startswith(('xbuild.', 'numpy'))}\n"
    assert "1 passed" in run(tmp_path, text)


def test_verdicts_of_a_failing_line_are_printed_in_full(tmp_path: Path) -> None:
    text = """
import xbuild as xb
program = xb.computation(xb.f32[2])(lambda v: xb.collective_permute(v, [(0, 9)]))
module = xb.Module("step", program, num_replicas=2)
def test_asserted(): assert xb.check(module).kind == "ok"
def test_named():
    verdict = xb.check(module)
    assert not verdict.refused
def test_refused(): xb.check(module).raise_if_refused()
"""
    said = run(tmp_path, text)
    assert "3 failed" in said
    assert "xbuild report of the assertion" in said
    assert "xbuild report of verdict" in said
    assert len(re.findall(r"^(?:E  )? +fix    name an existing device in the pairs", said, re.MULTILINE)) == 3


def test_contract_files_are_written_on_request_beside_the_test(tmp_path: Path) -> None:
    text = """
import xbuild as xb
module = xb.Module("step", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
def test_step(): xb.testing.contract("step", module)
"""
    missing = run(tmp_path, text)
    assert "1 failed" in missing
    assert "has no file" in missing
    assert "--xbuild-update" in missing
    assert "1 passed" in run(tmp_path, text, "--xbuild-update")
    assert "all-reduce" in (tmp_path / "contracts" / "step.txt").read_text()
    assert "1 passed" in run(tmp_path, text)
    changed = run(tmp_path, text.replace("f32[2]", "f32[4]"))
    assert "1 failed" in changed
    assert "has changed" in changed


@pytest.mark.oracle
@pytest.mark.slow
def test_the_guard_fails_one_test_and_the_others_run(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    text = (
        HANGS
        + """
def test_hang(xbuild_guard): hang(x)
def test_fine(xbuild_guard):
    jax.jit(lambda x: x * 2)(x)
    assert xbuild_guard.programs
"""
    )
    said = run(tmp_path, text)
    assert "1 failed, 1 passed" in said
    assert "never reach" in said
    for option in ([], ["-o", "xbuild_guard=stop"], ["--xbuild-guard", "stop"]):
        guarded = HANGS + "def test_hang():\n    if GUARDED: hang(x)\ndef test_fine(): assert True\n"
        said = run(tmp_path, guarded.replace("GUARDED", str(bool(option))), *option)
        assert ("1 failed, 1 passed" if option else "2 passed") in said


@pytest.mark.oracle
@pytest.mark.slow
def test_a_checked_function_does_not_run_what_hangs(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    text = (
        HANGS
        + """
import pytest, xbuild as xb

@xb.checked
def step(): return hang(x)

def test_step():
    with pytest.raises(xb.testing.ContractError, match="never reach"):
        step()
"""
    )
    assert "1 passed" in run(tmp_path, text)


def test_pytest_does_not_rewrite_the_asserts_of_the_package(tmp_path: Path) -> None:
    text = """
import xbuild.core.graph
def test_it(request):
    hook = request.config.pluginmanager.rewrite_hook
    assert not {"xbuild", "interpreter", "shape_inference", "examples"} & hook._must_rewrite
    assert not isinstance(xbuild.core.graph.__spec__.loader, type(hook))
"""
    assert "1 passed" in run(tmp_path, text)
