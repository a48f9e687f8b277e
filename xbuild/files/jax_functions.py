"""Modules from JAX functions: JAX lowers a function, XLA partitions it for one device, and the HLO text is parsed.

Sections:

    from_jax, for a function and the shapes of its arguments
    What JAX returns as a program: jitted, traced, lowered, compiled and exported functions
    The program of one device, as XLA partitions it
    Reading the text
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from shape_inference import Shape, TupleShape, XbuildError, leaves

from ..core.graph import COMPILED, LOWERED, Module
from ..properties.mesh import MESH, Mesh, mesh_of
from ..sharding.hlo_text import hlo_text
from ..sharding.sharding import Axis, shard_dims
from ..sharding.stated_shardings import on_one_mesh, with_stated_shardings
from ..stablehlo.reading.reader import parse_stablehlo
from ..text.annotations import frontend_text, read_frontend_text
from ..text.header import origin, read_frames
from ..text.reader import parse_hlo
from ..text.scanner import HloParseError
from . import temporary

# The compiled program is not used, so these options disable most of its optimization.
_DUMPED = {
    "xla_dump_hlo_pass_re": "spmd-partitioning",
    "xla_dump_large_constants": True,
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")

# ----------------------------------------------------------------------------
# from_jax, for a function and the shapes of its arguments


def from_jax(
    function: Callable[..., Any],
    *arguments: Any,
    num_replicas: int = 1,
    partition: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    **named: Any,
) -> Module:
    """Return the module to which JAX lowers a function for arguments of these shapes.

    The function is one that JAX can trace, a result of `jax.jit` or `jax.pmap` (which define static arguments), or a
    result of `.trace(...)` or `.lower(...)`; a traced or lowered function takes no arguments here. Only the shape and
    element type of an argument are used: a shape such as `xb.f32[2,3]` can replace an array. The parameters of the
    module are the leaves of the arguments in JAX's order.

    A function for several devices (`jax.shard_map`, `jax.pmap`, sharded arguments) becomes the program of one device,
    as XLA partitions it: the parameters and results are shards, and `num_partitions` is the number of devices in the
    mesh. `num_replicas` is the number of replicas of this program. Reports name the user's Python lines.

    With `partition=False`, the module is the global program before partitioning, with the shardings of arguments
    (`jax.ShapeDtypeStruct(..., sharding=...)`, `in_shardings` of `jax.jit`), of constraints and of results. It needs no
    devices: the mesh may be a `jax.sharding.AbstractMesh`. `xb.shard.partition` then creates the program for each
    device. `kwargs` are keyword arguments of the function, including those whose names are also parameters of from_jax.

    Raises XbuildError (missing_extra) if JAX is not installed, and TypeError if `function` is none of the above. Raises
    HloParseError with the Python line if xbuild does not support the lowered text. Also raises any error that JAX
    raises.

    >>> import jax
    >>> from xbuild import f32
    >>> print(from_jax(lambda x, y: jax.numpy.tanh(x) * y, f32[3], f32[3]).entry)
    ENTRY main.1 {
      x.1 = f32[3]{0} parameter(0)
      tanh.1 = f32[3]{0} tanh(x.1)
      y.1 = f32[3]{0} parameter(1)
      ROOT mul.1 = f32[3]{0} multiply(tanh.1, y.1)
    }

    Source: JAX, Ahead-of-time lowering and compilation.
    """
    if not partition:
        return _global(function, arguments, {**named, **(kwargs or {})}, num_replicas)
    traced = _traced(function, arguments, {**named, **(kwargs or {})})
    lowered = _of_trace(traced, False) if hasattr(traced, "lower") else traced
    if _partitions(lowered) > 1:
        module = _with_mesh_of(traced, _partitioned(lowered))
    else:
        module = _read(lowered.as_text(dialect="hlo", debug_info=True))
    return evolve(module, num_replicas=num_replicas) if num_replicas != 1 else module


def _global(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], num_replicas: int) -> Module:
    """The program before it is partitioned, by way of StableHLO, with shardings of Shardy or of HLO on one mesh."""
    traced = _traced(function, arguments, named)
    lowered = _of_trace(traced, True) if hasattr(traced, "lower") else traced
    return _global_module(lowered.as_text(dialect="stablehlo", debug_info=True), num_replicas)


def _global_module(text: str, num_replicas: int = 1) -> Module:
    module = parse_stablehlo(text, LOWERED)
    return evolve(on_one_mesh(module), num_replicas=num_replicas, num_partitions=1)


def _traced(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The Traced of a function for its arguments; the Lowered of a function that is lowered or cannot be traced."""
    try:
        import jax
        from jax.extend import source_info_util
    except ImportError as error:
        raise XbuildError(
            "missing_extra",
            f"from_jax needs JAX, which cannot be imported ({error}): pip install 'xbuild-hlo[xla]' [missing_extra]",
        ) from error
    if isinstance(function, jax.stages.Lowered | jax.stages.Traced):
        if arguments or named:
            raise TypeError("expected no arguments for a function that is already traced or lowered")
        return function
    if isinstance(function, jax.stages.Compiled) or not callable(function):
        raise TypeError(f"expected a plain, jitted, traced or lowered function, got {type(function).__name__}")
    if not hasattr(function, "lower"):
        function = jax.jit(function, keep_unused=True)
    source_info_util.register_exclusion(__file__)  # metadata name the user's line instead
    arguments, named = jax.tree.map(_like, (arguments, named), is_leaf=_is_shape)
    return (function.trace if hasattr(function, "trace") else function.lower)(*arguments, **named)


def _of_trace(traced: Any, is_global: bool) -> Any:
    """What a traced function is lowered to; a program for all devices for the CPU, whether or not there are so many."""
    return traced.lower(lowering_platforms=("cpu",)) if is_global else traced.lower()


def _is_shape(argument: Any) -> bool:
    return isinstance(argument, Shape | TupleShape)


def _like(argument: Any) -> Any:
    """The ShapeDtypeStruct of JAX for a shape of xbuild; another argument is returned unchanged."""
    import jax

    if isinstance(argument, TupleShape):
        return tuple(map(_like, argument.elements))
    if not isinstance(argument, Shape):
        return argument
    dtype = argument.dtype.dtype
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise XbuildError(
            "element_type_mismatch",
            f"JAX would convert {argument} from {argument.dtype} to {jax.dtypes.canonicalize_dtype(dtype)}; call "
            "jax.config.update('jax_enable_x64', True) to keep 64 bits [element_type_mismatch]",
        )
    return jax.ShapeDtypeStruct(argument.dims, dtype)


# ----------------------------------------------------------------------------
# What JAX returns as a program: jitted, traced, lowered, compiled and exported functions


class NeedsArgumentsError(TypeError):
    """The error for a jitted function that takes arguments, whose shapes a program needs."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.arguments = tuple(arguments)
        super().__init__(self.sentence(name if name.isidentifier() else "f"))

    def sentence(self, name: str) -> str:
        """The message for a function that the user calls by this name."""
        shown = ", ".join(self.arguments)
        return (
            f"{name} takes {shown}, and a program needs the shapes of all arguments; pass {name}.lower({shown}) or "
            f"xb.from_jax({name}, {shown}), which also accepts shapes such as xb.f32[2, 3]"
        )


def program_of_jax(thing: Any, *, is_global: bool = False) -> Module:
    """The program of a jitted function without arguments, or of a Traced, Lowered, Compiled or Exported.

    A lowered function for several devices becomes what `from_jax` returns, or with `is_global` the program before it is
    partitioned, as an exported one always does. A compiled function is the program that XLA made of it, with the
    shardings of its arguments and results.
    """
    kind = type(thing).__name__
    if kind == "Compiled":
        return _module_of_compiled(thing)
    if kind == "Exported":
        return _global_module(thing.mlir_module())
    if kind not in ("Traced", "Lowered"):
        _refuse_without_arguments(thing)
    return from_jax(thing, partition=not is_global)


def _refuse_without_arguments(function: Any) -> None:
    """Raise NeedsArgumentsError if a function cannot do without arguments."""
    if needed := _required_arguments(function):
        raise NeedsArgumentsError(getattr(function, "__name__", ""), needed)


def _required_arguments(function: Any) -> list[str]:
    """The names of the arguments that a jitted function cannot do without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in free]


def compiled_by_jax(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Module:
    """The program that XLA compiles for a function, plain or jitted, and arguments that may be shapes of xbuild.

    If no sharding of an argument names the axes, they are those of the mesh that the function names.
    """
    traced = _traced(function, tuple(arguments), dict(named))
    lowered = _of_trace(traced, False) if hasattr(traced, "lower") else traced
    return _compiled(traced, lowered)


def lowered_and_compiled(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Module, Module]:
    """The global program to which JAX lowers a function, and the program of each device that XLA compiles from it.

    The function may also be a Traced or a Lowered, without arguments. Raises NeedsArgumentsError if another function
    gets no arguments and needs some.
    """
    traced, lowered = _traced_and_lowered(function, arguments, named)
    text = lowered.as_text(dialect="stablehlo", debug_info=True)
    return _global_module(text), _compiled(traced, lowered)


def dump_passes(function: Any, arguments: Sequence[Any], named: Mapping[str, Any], folder: str) -> None:
    """Compile a function with XLA, which writes the text after each pass into a folder.

    Functions and errors are those of `lowered_and_compiled`. A program in JAX's compilation cache is compiled again.
    """
    import jax

    _, lowered = _traced_and_lowered(function, arguments, named)
    caches = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        lowered.compile({"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_pass_re": ".*"})
    finally:
        jax.config.update("jax_enable_compilation_cache", caches)


def _traced_and_lowered(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, Any]:
    if not (arguments or named) and type(function).__name__ not in ("Traced", "Lowered"):
        _refuse_without_arguments(function)
    traced = _traced(function, tuple(arguments), dict(named))
    return traced, _of_trace(traced, False) if hasattr(traced, "lower") else traced


def _compiled(traced: Any, lowered: Any) -> Module:
    """The compiled program, with a mesh that names its axes."""
    return _with_mesh_of(traced, _module_of_compiled(lowered.compile()))


def _with_mesh_of(traced: Any, module: Module) -> Module:
    """A module whose mesh is the one of the shardings of its arguments, else one that the traced function names."""
    if module.num_devices == 1 or mesh_of(module) is not None or not hasattr(traced, "jaxpr"):
        return module
    return _with_mesh(module, _meshes_in(traced.jaxpr))


def _with_mesh(module: Module, meshes: Iterable[Mesh]) -> Module:
    """A module that names, in its header, the first of these meshes with its number of devices."""
    mesh = next((each for each in meshes if each.num_devices == module.num_devices), None)
    if mesh is None:
        return module
    notes = {**read_frontend_text(str(module.annotations.get("frontend_attributes", "{}"))), MESH: mesh.spelled()}
    return evolve(module, annotations={**module.annotations, "frontend_attributes": frontend_text(notes)})


def _meshes_in(jaxpr: Any) -> Iterator[Mesh]:
    """The meshes that a traced function and what it calls name: those of shard_map and of shardings."""
    import jax

    meshes = jax.sharding.Mesh | jax.sharding.AbstractMesh
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        for value in equation.params.values():
            for each in value if isinstance(value, tuple | list) else (value,):
                stated = each if isinstance(each, meshes) else getattr(each, "mesh", None)
                if isinstance(stated, meshes) and stated.axis_names:
                    yield Mesh(dict(stated.shape))
                elif hasattr(getattr(each, "jaxpr", each), "eqns"):
                    yield from _meshes_in(each)


def _module_of_compiled(compiled: Any) -> Module:
    """The compiled program, annotated with the shardings of arguments and results, which its text lacks."""
    module = _read(compiled.as_text(), COMPILED)
    return _with_shardings_of(compiled, module) if module.num_partitions > 1 else module


def _with_shardings_of(compiled: Any, module: Module) -> Module:
    """A program of one device with the shardings of the arguments and results of what JAX compiled, and their mesh."""
    import jax

    inputs = _sharding_texts(compiled.input_shardings, [each.shape for each in module.entry.parameters])
    outputs = _sharding_texts(compiled.output_shardings, [*leaves(module.entry.root.shape)])
    stated = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    meshes = (Mesh(dict(each.mesh.shape)) for each in stated if isinstance(each, jax.sharding.NamedSharding))
    return _with_mesh(with_stated_shardings(module, inputs, outputs), meshes)


def _sharding_texts(stated: Any, shapes: Sequence[Any]) -> list[str] | None:
    """The texts of the shardings of these arrays; None if there is not one for each, as with arguments of effects."""
    import jax

    found = jax.tree.leaves(stated)
    if len(found) != len(shapes):
        return None
    return [_sharding_text(sharding, getattr(shape, "rank", 0)) for sharding, shape in zip(found, shapes, strict=True)]


def _sharding_text(stated: Any, rank: int) -> str:
    """The HLO text of a sharding of JAX, by the names of axes if it has any; devices are counted as in its mesh."""
    import jax

    if not isinstance(stated, jax.sharding.NamedSharding):
        return str(stated._to_xla_hlo_sharding(rank))
    mesh = Mesh(dict(stated.mesh.shape))
    entries = [each if isinstance(each, tuple) else (each,) for each in (*stated.spec, *((),) * rank)]
    dims = [[Axis(name, mesh.size(name)) for name in entry if isinstance(name, str)] for entry in entries[:rank]]
    unreduced = [Axis(name, mesh.size(name)) for name in sorted(getattr(stated.spec, "unreduced", ()))]
    return hlo_text(shard_dims(mesh, dims, unreduced), rank)


# ----------------------------------------------------------------------------
# The program of one device, as XLA partitions it


def _partitions(lowered: Any) -> int:
    attributes = lowered.compiler_ir("stablehlo").operation.attributes
    return attributes["mhlo.num_partitions"].value if "mhlo.num_partitions" in attributes else 1


def _partitioned(lowered: Any) -> Module:
    """The program of one device, which XLA dumps after its SPMD partitioner, with the shardings that JAX states."""
    text, compiled = _dumped(lowered)
    if text is None and "PartitionId" in str(compiled):
        with _manual_ids(lowered):
            text, compiled = _dumped(lowered)
    if text is not None:
        module = _read(text)
        return module if isinstance(compiled, Exception) else _with_shardings_of(compiled, module)
    if isinstance(compiled, Exception):
        raise compiled
    raise XbuildError(
        "engine_unsupported", "this build of XLA does not dump the partitioned program [engine_unsupported]"
    )


def _dumped(lowered: Any) -> tuple[str | None, Any]:
    """The text that XLA dumps while it compiles, None if it dumps nothing; and what it compiles, or the error."""
    with temporary.folder() as folder, _uncached():
        try:
            compiled = lowered.compile(compiler_options={**_DUMPED, "xla_dump_to": str(folder)})
        except Exception as error:  # it may be an error of a later pass
            compiled = error
        found = sorted(folder.glob("*.after_spmd-partitioning.*.txt"))
        return (found[-1].read_text(encoding="utf-8") if found else None), compiled


@contextmanager
def _manual_ids(lowered: Any) -> Iterator[None]:
    """Mark each partition-id inside the block as one of a manual region, which JAX before 0.7 leaves to XLA to find."""
    from jax.extend.mlir import ir

    module = lowered.compiler_ir("stablehlo")
    marked = [each for each in _partition_ids(module.operation) if "mhlo.sharding" not in each.attributes]
    with module.context:
        for each in marked:
            each.attributes["mhlo.sharding"] = ir.StringAttr.get("{manual}")
        try:
            yield
        finally:
            for each in marked:
                del each.attributes["mhlo.sharding"]


def _partition_ids(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.partition_id":
                    yield inner.operation
                yield from _partition_ids(inner.operation)


@contextmanager
def _uncached() -> Iterator[None]:
    """Disable JAX's persistent compilation cache inside the block, so that XLA compiles and dumps the program."""
    import jax

    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    jax.config.update(name, float("inf"))
    try:
        yield
    finally:
        jax.config.update(name, before)


# ----------------------------------------------------------------------------
# Reading the text


def _read(text: str, file: str = LOWERED) -> Module:
    try:
        return parse_hlo(text, file, origins=True)
    except HloParseError as error:
        raise _located(error, text) from None


def _located(error: HloParseError, text: str) -> HloParseError:
    """The error with the Python line of each fault that has one."""
    lines, frames = text.splitlines(), read_frames(text)
    places = [_FRAME.search(lines[fault.line - 1]) for fault in error.faults if fault.line <= len(lines)]
    sources = [origin(frames, {"stack_frame_id": int(place[1])}) for place in places if place]
    told = dict.fromkeys(f"  from {source}" for source in sources if source)
    return HloParseError(error.faults, "\n".join([str(error), *told]))
