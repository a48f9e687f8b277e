"""Programs that JAX compiles for eight CPU devices, in a child process: which are wrong, and what the proof says."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.proving import ROOT
from tests.proving.miscompiled import judged

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
import xbuild as xb
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("d",))
weights, samples = jnp.array([1.0, 2.0]), jnp.arange(16.0).reshape(8, 2)

def gradient(x):
    return jax.grad(lambda p, y: jnp.dot(p, y))(weights, x)

one = jax.jit(jax.vmap(gradient))
eight = jax.jit(jax.shard_map(jax.vmap(gradient), mesh=mesh, in_specs=P("d"), out_specs=P("d")))
found = xb.prove(one.lower(samples), eight.lower(samples).compile())
print(found.kind, found.verdict.difference.other.name, found.verdict.difference.other.source)
print(xb.prove(eight, samples).kind, xb.prove(eight.trace(samples)).kind, xb.prove(eight.lower(samples)).kind)

rows = NamedSharding(mesh, P("d"))
columns = NamedSharding(mesh, P(None, "d"))
layer = jax.jit(lambda x, w: jnp.tanh(x @ w), in_shardings=(rows, None), out_shardings=columns)
print(xb.prove(layer, xb.f32[8, 4], xb.f32[4, 16]).kind)
lowered = layer.lower(jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((4, 16), "float32"))
text = lowered.compile().as_text()
print(xb.prove(lowered, text).kind, xb.prove(lowered, text, out_specs=P(None, "d")).kind)
print(xb.prove(lowered, text.replace("tanh(", "sine(")).kind)
print(xb.prove(lambda x, y=0: x + y, xb.f32[3], y=xb.f32[3]).kind)
for program in (eight, lowered.compile()):
    try:
        xb.prove(program)
    except TypeError as error:
        print(str(error).partition(";")[0])
"""


@pytest.fixture(autouse=True)
def _needs_jax() -> None:
    try:
        if version("jaxlib") != "0.10.2":
            pytest.skip("other versions of jaxlib refuse these programs")
    except PackageNotFoundError:
        pytest.skip("needs jaxlib")


def test_the_guilty_pass_of_an_embedding_gradient(tmp_path: Path) -> None:
    """xla#42481: two wrong programs and a right one, of 105."""
    found = {each.number: each for each in judged(tmp_path, [0, 94, 34])}
    assert [each.number for each in found.values() if each.is_missed] == []
    guilty = {number: each.proof.guilty for number, each in found.items()}
    assert guilty == {0: "spmd-partitioner: shardy-xla", 94: "spmd-partitioner: spmd-partitioning", 34: None}
    for number in (0, 94):
        assert any("miscompiled.py" in str(each.source) for each in found[number].proof.instructions)


def test_functions_of_jax() -> None:
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **flags})
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    kind, name, source = lines[0].split(maxsplit=2)
    assert (kind, name.partition(".")[0]) == ("different", "psum_invariant")  # jax#36886
    assert "in gradient.<locals>.<lambda>" in source
    assert lines[1:6] == ["equal equal equal", "equal", "equal equal", "different", "equal"]
    assert lines[6].startswith("gradient takes x, and a program needs the shapes of all arguments")
    assert lines[7].startswith("prove: a compiled")
    assert len(lines) == 8


STEP = """
import jax, jax.numpy as jnp

layer = jax.jit(lambda x, w: jax.nn.relu(x @ w))
arguments = jnp.ones((4, 8)), jnp.ones((8, 3))
pair, lowered = (layer, arguments), layer.lower(*arguments)
both, step = (lowered, lowered.compile()), lambda: lowered
wrong = layer.lower(*arguments), jax.jit(lambda x, w: jax.nn.gelu(x @ w)).lower(*arguments).compile()
three = 3
"""
RUN = """
import sys
from click.testing import CliRunner
from xbuild.cli import main
for name in sys.argv[1:]:
    found = CliRunner().invoke(main, ["prove", f"step.py:{name}"])
    print(name, found.exit_code, " ".join(found.output.split())[:400])
"""


def test_targets_of_jax(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(STEP)
    names = ["pair", "lowered", "both", "step", "wrong", "layer", "three", "nothing"]
    flags = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **flags},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [(name, int(code)) for name, code, _ in rows] == [*zip(names, [0, 0, 0, 0, 1, 2, 2, 2], strict=True)]
    texts = {name: text for name, _, text in rows}
    assert all(texts[name].startswith("equal: ") for name in names[:4])
    assert texts["wrong"].startswith("different: ")
    assert "takes x, w, and a program needs the shapes of all arguments" in texts["layer"]
    assert "step.py:three is of type int; expected a jitted function" in texts["three"]
    assert "step.py has no 'nothing'" in texts["nothing"]
