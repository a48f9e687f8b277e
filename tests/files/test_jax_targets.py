"""What JAX returns is a program everywhere: jitted, traced, lowered, compiled and exported functions; real dumps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild

pytestmark = pytest.mark.oracle
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from jax import export  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

# JAX starts in the first test, not when tests are collected: others fork.


@cache
def mesh() -> Any:
    return jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def array(shape: tuple[int, ...], *spec: str | None) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh(), P(*spec)))


def on_mesh(body: Callable[..., Any], into: Any, out: Any) -> Callable[..., Any]:
    return jax.shard_map(body, mesh=mesh(), in_specs=into, out_specs=out)  # type: ignore[no-any-return]


@jax.jit
def layer(p: Any, unused: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["l0"]["up"]) @ p["l0"]["down"]


def arguments() -> tuple[Any, ...]:
    weights = {"l0": {"up": array((4, 8), None, "a"), "down": array((8, 2), "a", None)}}
    return weights, array((3,)), array((4, 4), "b", None)


@cache
def given(kind: str) -> Any:
    """What JAX returns for the layer, or a jitted function without arguments."""
    if kind == "jit":
        return jax.jit(lambda: jnp.ones(3) * 2)
    if kind == "Traced":
        return layer.trace(*arguments())
    return given("Traced").lower() if kind == "Lowered" else given("Lowered").compile()


KINDS = ("Traced", "Lowered", "Compiled", "jit")
USES: dict[str, Callable[[Any], Any]] = {
    "check": lambda p: xb.check(p).kind == "ok",
    "parse": lambda p: isinstance(xb.parse(p), xb.Module),
    "cost": lambda p: xb.cost(p).num_devices in (1, 4),
    "viz": lambda p: str(xb.viz(p).render("svg")).startswith("<svg"),
    "timeline": lambda p: xb.timeline(p, "v5e").seconds > 0,
    "equivalent": lambda p: bool(xb.equivalent(p, p)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_function_takes_what_jax_returns(kind: str, use: str) -> None:
    assert USES[use](given(kind))


def test_a_jitted_function_without_arguments_runs() -> None:
    (result,) = xb.execute(given("jit"), [[]])
    assert (result == 2).all()


def test_several_devices_as_from_jax_does() -> None:
    assert xb.parse(given("Lowered")).num_partitions == 4
    assert xb.same_structure(xb.parse(given("Lowered")), xb.from_jax(given("Lowered")))


def test_an_exported_function_is_global() -> None:
    exported = export.export(layer)(*arguments())
    module = xb.parse(exported)
    assert module.num_devices == 1
    assert bool(xb.equivalent(exported, given("Compiled")))


def test_a_function_with_arguments_needs_their_shapes() -> None:
    with pytest.raises(TypeError, match=r"layer takes p, unused, x, .* pass layer\.lower\(p, unused, x\) or xb\.from"):
        xb.check(layer)


def test_a_compiled_function_states_its_shardings() -> None:
    module = xb.parse(given("Compiled"))
    assert [str(each.annotations["sharding"]) for each in module.entry.parameters] == [
        "{mesh['a'=2,'b'=2], [{'a'}, {}]}", "{mesh['a'=2,'b'=2], [{}, {'a'}]}", "{mesh['a'=2,'b'=2], [{'b'}, {}]}",
    ]  # fmt: skip
    again = xb.parse(module.to_hlo())
    assert bool(xb.equivalent(given("Lowered"), again))


def product(x: Any, y: Any) -> Any:
    return x @ y


def several(x: Any) -> Any:
    return {"y": x.T, "z": (x.sum(), x * 2)}


def region(x: Any, w: Any) -> Any:
    return on_mesh(lambda x, w: jax.lax.psum(jnp.sum(x * w), "a"), (P("a"), P()), P())(x, w)


def region_inside(x: Any) -> Any:
    return jnp.tanh(on_mesh(lambda x: x + jax.lax.axis_index("a"), P("a"), P("a"))(x)) @ x


def loss(w: Any, x: Any) -> Any:
    body = on_mesh(lambda w, x: jax.lax.psum(x @ w, "a"), (P("a", None), P(None, "a")), P())
    return jnp.sum(body(w, x) ** 2)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {
    "product": (product, (((4, 4), "a", "b"), ((4, 4), "b", None))),
    "several results": (several, (((4, 2), "a"),)),
    "region": (region, (((4,),), ((2,),))),
    "region inside": (region_inside, (((4, 4), "a", None),)),
    "gradient of a region": (jax.grad(loss), (((4, 3), "a", None), ((2, 4), None, "a"))),
}


def lowered_case(name: str) -> Any:
    function, shapes = CASES[name]
    return jax.jit(function).lower(*(array(*shape) for shape in shapes))


@pytest.mark.parametrize("name", CASES)
def test_a_lowered_function_equals_the_compiled_one(name: str) -> None:
    lowered = lowered_case(name)
    assert xb.equivalent(lowered, lowered.compile()).kind == "equal"


@pytest.mark.parametrize("name", CASES)
def test_two_lowered_functions_are_compared_as_each_device_runs_them(name: str) -> None:
    assert xb.equivalent(lowered_case(name), lowered_case(name)).kind == "equal"


def test_a_region_that_differs_from_its_lowered_reference() -> None:
    def summed(scale: float) -> Any:
        body = on_mesh(lambda x, w: jax.lax.psum(jnp.sum(x * w) * scale, "a"), (P("a"), P()), P())
        return jax.jit(body).lower(array((4,)), array((2,)))

    reference = jax.jit(lambda x, w: jnp.sum(x.reshape(2, 2) * w)).lower(array((4,)), array((2,)))
    assert xb.equivalent(reference, summed(1.0)).kind == "equal"
    assert xb.equivalent(reference, summed(2.0)).kind == "different"
    assert xb.equivalent(summed(1.0), summed(2.0)).kind == "different"


def test_shardings_of_a_lowered_function_are_those_before_it_is_partitioned() -> None:
    partitioned = xb.shard.partition(given("Lowered"))
    assert partitioned.mesh == xb.Mesh(a=2, b=2)
    assert [each.opcode for each in partitioned.communications] == ["all_reduce"]
    assert xb.shard.propagate(given("Lowered")).mesh == partitioned.mesh
    with pytest.raises(TypeError, match="partition: expected a program, got 3"):
        xb.shard.partition(3)


def test_a_wrong_program_differs() -> None:
    wrong = on_mesh(lambda x, w: jax.lax.psum(jnp.sum(x + w), "a"), (P("a"), P()), P())
    compiled = jax.jit(wrong).lower(array((4,)), array((2,))).compile()
    assert xb.equivalent(lowered_case("region"), compiled).kind == "different"


FILE = """
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return x * 2

@jax.jit
def total():
    return jnp.arange(3).sum()

@jax.jit
def broken():
    return jnp.ones(2) @ jnp.ones(3)

lowered = step.lower(jnp.ones(3))
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
split = jax.jit(lambda x: x.sum(), in_shardings=rows).lower(jnp.ones(4))
text = lowered.as_text()

def compiled():
    return lowered.compile()

def exported():
    return jax.export.export(step)(jnp.ones(3))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / f"train_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(FILE)
    return path


def test_a_name_of_a_file_may_return_what_jax_returns(file: Path) -> None:
    for name in ("total", "lowered", "text", "compiled", "exported"):
        assert xbuild("check", f"{file}:{name}").stdout.startswith("ok: "), name
    assert xbuild("equivalent", f"{file}:lowered", f"{file}:compiled").stdout.startswith("equal")
    assert xbuild("shard", f"{file}:split").stdout.startswith("partitioned by xbuild: 1 collective inserted")
    assert "step takes x, and a program needs the shapes of all arguments; pass step.lower(x)" in usage(
        xbuild("run", f"{file}:step")
    )
    failed = xbuild("check", f"{file}:broken")
    assert failed.exit_code == 1
    assert "return jnp.ones(2) @ jnp.ones(3)" in failed.stderr
    assert "xbuild/files" not in failed.stderr


SCRIPT = """
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
step = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P()))
step(jnp.ones(8))
"""


@pytest.mark.parametrize("form", ["text", "proto"])
def test_dumps_of_the_jax_that_is_installed(tmp_path: Path, form: str) -> None:
    flags = f"--xla_dump_to={tmp_path}/xla --xla_dump_hlo_as_{form}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_DUMP_IR_TO": str(tmp_path / "ir")}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True)
    result = xbuild("check", tmp_path / "xla")
    assert result.exit_code == 0
    assert "has 1 collective" in result.stdout
    name = next(line.split()[0] for line in result.stdout.splitlines() if "1 collective" in line)
    for target, stage in ((f"{tmp_path}/xla#{name}", ("--stage", "before")), (f"{tmp_path}/ir#{name}", ())):
        run = xbuild("run", target, *stage, "--partition", "--random", 0)
        assert run.stdout.startswith("global  out0  f32[4]"), run.output
    numbers = xb.execute(f"{tmp_path}/xla#{name}", [[np.ones(4, np.float32)]] * 2)
    assert (numbers[0] == 2).all()
