"""Functions of JAX as modules: the same values, the program of one device, the user's lines, clear refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Stopped, execute
from interpreter.engines import compare
from xbuild.core.op import OPS
from xbuild.text.header import origin, read_frames

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.oracle
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def same(result: Any, expected: Any, module: xb.Module) -> bool:
    leaves = tuple(map(np.asarray, jax.tree.leaves(expected)))
    shape = module.entry.root.shape
    rows = compare([result], [leaves if isinstance(shape, xb.TupleShape) else leaves[0]], [shape])
    return all(row.same for row in rows)


def layer(x: Any, weights: Any) -> Any:
    return {"mean": jax.nn.softmax(x @ weights["w"] + weights["b"]).mean(), "x": [x, jnp.cumsum(x, 1)]}


WEIGHTS = {"b": np.float32([1, -1]), "w": np.ones((4, 2), np.float32)}


def test_a_function_gives_what_jax_gives() -> None:
    module = xb.from_jax(layer, X, WEIGHTS)
    (result,) = execute(module, [[X, WEIGHTS["b"], WEIGHTS["w"]]])
    assert same(result, layer(X, WEIGHTS), module)
    assert module.num_devices == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "int4", "float32", "bool", "complex64"])
def test_arrays_of_jax_are_arguments(dtype: str) -> None:
    x = jnp.ones((2, 3), dtype)
    for value in (x, x[0, 0]):
        (result,) = execute(xb.from_jax(lambda x: x, value), [[value]])
        assert result.dtype == np.asarray(value).dtype
        assert np.array_equal(result, np.asarray(value))


def test_gradients_loops_and_branches_come_through() -> None:
    def loss(x: Any) -> Any:
        x = jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + i, x)
        return jax.lax.cond(x.sum() > 0, jnp.sum, lambda y: -y.sum(), x)

    module = xb.from_jax(jax.value_and_grad(loss), X)
    (result,) = execute(module, [[X]])
    assert same(result, jax.value_and_grad(loss)(X), module)


def test_shapes_stand_for_arrays_and_unused_arguments_stay() -> None:
    module = xb.from_jax(lambda x, pair: x, xb.bf16[2], xb.TupleShape((xb.s8[()], xb.pred[3])))
    assert str(module.entry.program_shape.plain()) == "(bf16[2], s8[], pred[3]) -> bf16[2]"


def test_jitted_traced_and_lowered_functions() -> None:
    @partial(jax.jit, static_argnums=1, static_argnames="way")
    def power(x: Any, times: int, way: str = "up") -> Any:
        return x**times if way == "up" else x**-times

    for module in (
        xb.from_jax(power, X, 3),
        xb.from_jax(power, X, 3, way="up"),
        xb.from_jax(power.trace(X, 3)),
        xb.from_jax(power.lower(X, 3), num_replicas=2),
    ):
        assert same(execute(module, [[X]] * module.num_replicas)[0], X**3, module)
    assert module.num_replicas == 2
    with pytest.raises(TypeError, match="expected no arguments for a function that is already traced"):
        xb.from_jax(power.lower(X, 3), X)
    with pytest.raises(TypeError, match="Compiled"):
        xb.from_jax(power.lower(X, 3).compile())
    with pytest.raises(TypeError, match="got int"):
        xb.from_jax(3)  # type: ignore[arg-type]


def mesh(*sizes: int) -> Any:
    names = "ij"[: len(sizes)]
    return jax.make_mesh(sizes, tuple(names), axis_types=(AxisType.Auto,) * len(sizes))


def shards(array: Any, sharding: Any) -> list[Any]:
    """What each device of the mesh holds of an array, in the order of the mesh."""
    places = sharding.devices_indices_map(np.shape(array))
    return [np.asarray(array)[places[device]] for device in sharding.mesh.devices.flat]


def test_a_shard_mapped_function_is_the_program_of_one_device() -> None:
    grid = mesh(2, 2)

    @jax.jit
    @partial(jax.shard_map, mesh=grid, in_specs=P("i", "j"), out_specs=P("i"))
    def summed(x: Any) -> Any:
        return jax.lax.psum(jnp.sin(x) * (1 + jax.lax.axis_index("i")), "j")[:, 0]

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    module = xb.from_jax(summed, x)
    assert (module.num_replicas, module.num_partitions) == (1, 4)
    assert xb.check(module).kind == "ok"
    results = execute(module, [[shard] for shard in shards(x, NamedSharding(grid, P("i", "j")))])
    for result, wanted in zip(results, shards(summed(x), NamedSharding(grid, P("i"))), strict=True):
        assert same(result, wanted, module)


def test_a_pmapped_function_is_the_program_of_one_device() -> None:
    step = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), axis_name="i")
    module = xb.from_jax(step, X)
    assert module.num_partitions == 3
    results = execute(module, [[row[None]] for row in X])
    for result, wanted in zip(results, np.asarray(step(X)), strict=True):
        assert same(result, wanted[None], module)


def test_the_text_before_xla_partitions_is_told_as_such() -> None:
    total = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh(4), in_specs=P("i"), out_specs=P())
    verdict = xb.check(xb.parse_hlo(jax.jit(total).lower(np.ones((8, 2), np.float32)).as_text(dialect="hlo")))
    assert (verdict.kind, [finding.kind for finding in verdict.findings]) == ("error", ["not_partitioned"])
    assert "turns f32[8,2] into f32[2,2]" in str(verdict)
    assert "xb.from_jax" in str(verdict)
    alone = jax.shard_map(lambda x: x + 1, mesh=mesh(1), in_specs=P("i"), out_specs=P("i"))
    module = xb.parse_hlo(jax.jit(alone).lower(np.ones(2, np.float32)).as_text(dialect="hlo"))
    assert execute(module, [[np.ones(2, np.float32)]])[0].tolist() == [2, 2]


def test_what_xla_partitions_itself_gets_its_collectives() -> None:
    grid = mesh(2, 2)
    whole, parts = np.ones((8, 4), np.float32), (NamedSharding(grid, P("i", "j")), NamedSharding(grid, P("j", None)))
    product = jax.jit(lambda x, w: (x @ w).sum(), in_shardings=parts)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    module = xb.from_jax(product, x, whole)
    opcodes = {i.opcode for computation in module.computations for i in computation.instructions}
    assert "all_reduce" in opcodes
    rows = list(zip(shards(x, parts[0]), shards(whole, parts[1]), strict=True))
    assert [float(result) for result in execute(module, rows)] == [float((x @ whole).sum())] * 4


@pytest.mark.parametrize("is_jitted", [False, True])
def test_the_module_names_the_axes_of_the_user_and_states_the_shards_of_results(is_jitted: bool) -> None:
    grid = mesh(2, 2)
    if is_jitted:
        specs = [NamedSharding(grid, P(*spec)) for spec in [("i", "j"), ("j", None)]]
        step: Any = jax.jit(lambda x, w: x @ w, in_shardings=specs, out_shardings=NamedSharding(grid, P("i")))
        lowered = step.lower(xb_like(4, 8), xb_like(8, 6))
        assert "over axis j: 2 of 4" in str(xb.cost(xb.from_jax(lowered)))
    else:
        step = partial(
            jax.shard_map, mesh=grid, in_specs=(P("i", "j"), P("j", None)), out_specs=P("i")
        )(lambda x, w: jax.lax.psum(x @ w, "j"))  # fmt: skip
    module = xb.from_jax(step, xb.f32[4, 8], xb.f32[8, 6])
    found = xb.cost(module)
    assert found.mesh == xb.Mesh(i=2, j=2)
    assert [row.axis for row in found.rows if row.collective is not None] == ["axis j"]
    assert xb.equivalent(xb.from_jax(lambda x, w: x @ w, xb.f32[4, 8], xb.f32[8, 6]), module).kind == "equal"


def xb_like(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, "float32")


def test_large_constants_are_whole() -> None:
    table = np.arange(3000, dtype=np.float32)
    module = xb.from_jax(lambda x: x + table, xb.f32[3000])
    assert np.array_equal(execute(module, [[table]])[0], table * 2)


def double(x: Any) -> Any:
    return x * jnp.tanh(x)  # the line that reports name


LINE = double.__code__.co_firstlineno + 1


def test_reports_name_the_line_of_python() -> None:
    module = xb.from_jax(double, X)
    source = module.entry.root.source
    assert source is not None
    assert (source.file, source.line, source.function) == (__file__, LINE, "double")
    assert module.entry.root.annotations["metadata"]["op_name"] == "jit(double)/mul"
    with pytest.raises(Stopped, match=rf"test_from_jax.py:{LINE} in double"):
        execute(xb.from_jax(lambda x: double(x[:, None]), xb.f32[3]), [[X[:, 0]]], limits=Limits(bytes=3))


@pytest.fixture
def without_tanh() -> Iterator[None]:
    """Afterwards all ops are there again, in their order."""
    kept = dict(OPS)
    del OPS["tanh"]
    yield
    OPS.clear()
    OPS.update(kept)


@pytest.mark.usefixtures("without_tanh")
def test_what_xbuild_lacks_is_refused_with_the_line_of_python() -> None:
    with pytest.raises(xb.HloParseError) as refused:
        xb.from_jax(double, X)
    assert refused.value.kind == "unknown_opcode"
    assert "xbuild has no op 'tanh'" in str(refused.value)
    assert f"test_from_jax.py:{LINE} in double" in str(refused.value)


def test_without_jax_the_advice_is_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(xb.XbuildError, match=r"pip install 'xbuild-hlo\[xla\]'") as refused:
        xb.from_jax(double, X)
    assert refused.value.kind == "missing_extra"


def test_64_bits_that_jax_would_drop_are_refused() -> None:
    assert not jax.config.jax_enable_x64
    with pytest.raises(xb.XbuildError, match=r"JAX would convert f64\[2\] from f64 to float32"):
        xb.from_jax(double, xb.f64[2])
    with jax.enable_x64(True):
        assert str(xb.from_jax(double, xb.f64[2]).entry.program_shape.result.plain()) == "f64[2]"


CACHED = """
import sys, jax, numpy as np, xbuild as xb
from pathlib import Path
folder = sys.argv[1]
for name, value in (("compilation_cache_dir", folder), ("persistent_cache_min_compile_time_secs", 0.0)):
    jax.config.update(f"jax_{name}", value)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
step = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
step(np.ones((2, 3), np.float32))
before = len(list(Path(folder).iterdir()))
for _ in range(2):
    assert xb.from_jax(step, np.ones((2, 3), np.float32)).num_partitions == 2
assert 0 < before == len(list(Path(folder).iterdir()))
assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.0
"""


def test_jax_s_cache_of_compiled_programs_is_neither_asked_nor_filled(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CACHED, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


TABLES = r"""FileNames
1 "a \"b\".py"
2 "c.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=2 function_name_id=9 line=4}
3 {file_name_id=7 line=5}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=8 parent_frame_id=1}
"""


def test_frames_that_are_whole_are_read() -> None:
    frames = read_frames(TABLES)
    assert {number: (f.file, f.line, f.function) for number, f in frames.items()} == {
        1: ('a "b".py', 3, "f"),
        2: ("c.py", 4, "<unknown>"),
    }
    assert origin(frames, {"stack_frame_id": 3}) is None
    assert str(origin({}, {"source_file": "m.py", "source_line": 7, "op_name": "f/mul"})) == "m.py:7 in f/mul"
    assert read_frames("") == {}


def test_hlo_text_tells_its_own_lines_unless_asked() -> None:
    text = (
        f"HloModule m\n{TABLES}\nENTRY e {{ x = f32[2] parameter(0)\n y = negate(x), metadata={{stack_frame_id=2}} }}"
    )
    text = text.replace("y = negate", "y = f32[2] negate")
    line = text[: text.index("y =")].count("\n") + 1
    assert str(xb.parse_hlo(text, "m.hlo").entry.root.source) == f"m.hlo:{line} in e"
    asked = xb.parse_hlo(text, "m.hlo", origins=True).entry
    assert [str(i.source) for i in asked.instructions] == [f"m.hlo:{line - 1} in e", "c.py:4 in <unknown>"]


@pytest.mark.slow
def test_a_training_step_of_a_transformer_is_within_the_stated_tolerance_of_xla() -> None:
    """Attention, layer norm, MLP, cross-entropy, gradients, Adam; the benchmark runs one of 10,000 instructions."""
    from benchmarks import transformer

    sizes = transformer.Sizes(layers=1)
    lowered = transformer.lowered(sizes)
    module = xb.from_jax(lowered)
    assert xb.check(module).kind == "ok"
    (result,) = execute(module, [transformer.leaves(sizes)])
    assert same(result, lowered.compile()(*transformer.arguments(sizes)), module)
    assert float(result[-1]) == pytest.approx(np.log(sizes.vocabulary), rel=0.5)


def test_ten_thousand_instructions_are_read_checked_and_run() -> None:
    from benchmarks import transformer

    sizes = transformer.Sizes()
    module = xb.from_jax(transformer.lowered(sizes))
    assert sum(len(computation.instructions) for computation in module.computations) > 10_000
    assert xb.check(module).kind == "ok"
    (result,) = execute(module, [transformer.leaves(sizes)])
    assert float(result[-1]) == pytest.approx(np.log(sizes.vocabulary), rel=0.5)
