"""Each example runs and gives what it says; the README shows the real output."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples import fibonacci, infeed_loop, parameter_server, pipeline, refusals, ring
from interpreter import evaluate, execute

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "extras"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_runs(name: str) -> None:
    if name in ("shard_map", "train", "miscompiled"):
        pytest.importorskip("jaxlib")
    command = [sys.executable, "-W", "error", "-m", f"examples.{name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("digits", "rich"),
        ("miscompiled", "jax"),
        ("notebook", "nbformat"),
        ("shard_map", "jax"),
        ("train", "jax"),
        ("two_processes", "jax"),
    ],
)
def test_what_is_not_installed_is_named(name: str, package: str) -> None:
    code = (
        f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_module('examples.{name}', run_name='__main__')"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"this example needs {package}, which is not installed: pip install 'xbuild-hlo[")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_four_shardings_of_a_block_and_their_costs(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.sharding", "--pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("check ok; prime fields: equal; a run on four devices is ") == 8
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[1:] for row in rows if row[:1] == ["collectives"]] == [["0", "2", "2", "6"], ["6", "3", "10", "12"]]
    forward, step = ([row[-4], row[-1]] for row in rows if row[:3] == ["bytes", "over", "data"])
    assert (forward, step) == (["0", "10,752"], ["21,504", "21,504"])  # gathers and reduce-scatters are an all-reduce
    assert "all-gather.39, 1,536 bytes: " in done.stdout
    assert len([*tmp_path.glob("*.svg")]) == 8


def test_fibonacci() -> None:
    assert [int(evaluate(fibonacci.fibonacci, n)) for n in (0, 1, 2, 10, 93)] == [0, 1, 1, 55, 12200160415121876738]


def test_the_ring_gives_the_sum_to_every_replica() -> None:
    inputs = np.random.default_rng(0).integers(0, 100, (4, 16)).astype(np.float32)
    assert xb.check(ring.program()).kind == "ok"
    for result in execute(ring.program(), [[row] for row in inputs]):
        assert np.array_equal(result, inputs.sum(axis=0))


def test_the_pipeline_is_checked_and_gives_the_means() -> None:
    rng = np.random.default_rng(0)
    weights, batches = rng.standard_normal((3, 4), np.float32), rng.standard_normal((3, 2, 3), np.float32)
    last = np.ones((4, 1), np.float32)
    assert xb.check(pipeline.program()).kind == "ok"
    found = execute(pipeline.program(), {0: [weights, batches], 1: [last]})[1]
    assert np.allclose(found, (np.tanh(batches @ weights) @ last).mean(axis=(1, 2)), rtol=1e-6)


def test_the_parameter_server_steps_by_every_gradient() -> None:
    zeros, ones, fives = (np.full(3, value, np.float32) for value in (0, 1, 5))
    results = execute(parameter_server.program(), {0: [zeros], 1: [zeros, ones], 2: [zeros, fives]})
    for result in results:
        assert np.allclose(result, 0.6, rtol=1e-6)


def test_the_infeed_loop_runs_until_the_feed_says_so() -> None:
    total, seen = infeed_loop.main()
    assert total.tolist() == [111.0, 222.0]
    assert [item.tolist() for item in seen] == [[1.0, 2.0], [11.0, 22.0], [111.0, 222.0]]


@pytest.mark.slow
def test_the_digits_are_learned_and_four_replicas_equal_one() -> None:
    pytest.importorskip("sklearn")
    from examples.digits import train

    for dtype, most in ((xb.f32, 1e-5), (xb.f64, 1e-12)):
        *_, four = train.train(4, 20, dtype)
        *_, one = train.train(1, 20, dtype)
        assert four.accuracy >= 0.95
        for a, b in zip(four.parameters, one.parameters, strict=True):
            assert np.linalg.norm(a - b) <= most * np.linalg.norm(b)
            if dtype is xb.f64:
                assert np.abs(a - b).max() <= 1e-9


def test_the_gradient_of_the_digits_equals_the_one_by_hand() -> None:
    pytest.importorskip("sklearn")
    from examples.digits import by_hand, data, model

    parameters = model.initial_parameters(np.float64)
    digits, _ = data.load(np.float64)
    images, labels = digits.images[: data.BATCH], digits.labels[: data.BATCH]
    shapes = [xb.f64[np.shape(each)] for each in (*parameters, images, labels)]

    def results(gradients: Any) -> Any:
        step = xb.computation(*shapes)(lambda *given: gradients(given[:4], *given[4:]))
        value, found = evaluate(step, *parameters, images, labels)
        return [value, *found]

    for one, other in zip(results(model.gradients), results(by_hand.gradients), strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-15)


def test_the_digits_are_checked_and_the_swapped_step_is_refused() -> None:
    pytest.importorskip("sklearn")
    from examples.digits import refusal, train

    assert xb.check(train.program(4, 22)).kind == "ok"
    verdict = refusal.verdict(4)
    assert verdict.kind == "deadlock"
    assert verdict.repair is not None
    assert "all-reduce" in str(verdict)
    assert "refusal.py" in str(verdict)


def test_the_readme_shows_what_its_program_prints() -> None:
    text = (ROOT / "README.md").read_text()
    program, shown = re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", text, re.DOTALL)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == shown


def test_the_page_on_refusals_shows_the_refusals_and_the_deadlock() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text()
    for refusal in refusals.refusals():
        assert refusal.partition("  at ")[0] in text
    pytest.importorskip("sklearn")
    from examples.digits.refusal import verdict

    assert str(verdict(2)).partition(" in every order")[0] in text


@pytest.mark.oracle
def test_the_readme_begins_with_what_the_check_says_of_a_shard_map() -> None:
    pytest.importorskip("jaxlib")
    command = [sys.executable, "-m", "xbuild", "check", "examples/shard_map.py:program"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0] == done.stderr
    (line,) = re.findall(r"norm = .*", text)
    assert line in (ROOT / "examples" / "shard_map.py").read_text()


@pytest.mark.oracle
def test_a_wrong_program_of_xla_is_refuted() -> None:
    """The first combination of the example, in a process of its own: XLA's answer is wrong, and the verdict says so."""
    if pytest.importorskip("jax").__version__ != "0.10.2":
        pytest.skip("newer versions of JAX refuse the program")
    command = [sys.executable, "-m", "examples.miscompiled"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("different: ")
    error = re.search(r"largest error is (\d+\.\d+)", done.stdout)
    assert error is not None
    assert float(error[1]) > 1.0


@pytest.mark.oracle
def test_the_guard_stops_the_training_script_of_the_readme() -> None:
    pytest.importorskip("jaxlib")
    assert "xbuild guard examples/train.py --log-norm" in (ROOT / "README.md").read_text()
    command = [sys.executable, "-m", "xbuild", "guard", "examples/train.py", "--log-norm"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is refused; it was stopped before it ran" in done.stderr
    assert "step 0" not in done.stdout


def test_commands_and_links_of_the_readme_name_files_that_there_are() -> None:
    text = (ROOT / "README.md").read_text()
    files = re.findall(r"examples/[\w/]+\.py", text) + re.findall(r"\]\(([^):#]+)\)", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
