"""Modules from JAX functions: JAX lowers a function, XLA partitions it for one device, and the HLO text is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from shape_inference import Shape, TupleShape, XbuildError

from ..core.graph import Module
from ..sharding.stored import on_one_mesh
from ..stablehlo.reading.parse import parse_stablehlo
from ..text.reading.frames import origin, read_frames
from ..text.reading.reader import parse_hlo
from ..text.spelling.faults import HloParseError
from . import temporary

# The compiled program is not used, so these options disable most of its optimization.
_DUMPED = {
    "xla_dump_hlo_pass_re": "spmd-partitioning",
    "xla_dump_large_constants": True,
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")


def from_jax(
    function: Callable[..., Any],
    *arguments: Any,
    num_replicas: int = 1,
    partition: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    **named: Any,
) -> Module:
    """The module that JAX lowers a function to, for arguments of these shapes.

    The function is one that JAX can trace, or a result of `jax.jit` or `jax.pmap` (which define static arguments), or
    a result of `.trace(...)` or `.lower(...)`, which takes no arguments here. Only the shape and element type of an
    argument are used: a shape such as `xb.f32[2,3]` can replace an array. The parameters of the module are the leaves
    of the arguments in JAX's order.

    A function for several devices (`jax.shard_map`, `jax.pmap`, sharded arguments) gives the program of one device, as
    XLA partitions it: the parameters and results are shards, and `num_partitions` is the number of devices of the mesh.
    `num_replicas` is the number of replicas of this program. Reports name the user's Python lines.

    With `partition=False` it is the program for all devices, not yet cut, with the shardings of arguments
    (`jax.ShapeDtypeStruct(..., sharding=...)`, `in_shardings` of `jax.jit`), of constraints and of results. It needs no
    devices: the mesh may be a `jax.sharding.AbstractMesh`. `xb.shard.partition` then makes the program of a device.
    `kwargs` are keyword arguments of the function, among them those whose names from_jax has itself.

    Raises XbuildError (missing_extra) where JAX is not installed, HloParseError with the Python line where xbuild does
    not support the lowered text, TypeError where `function` is none of the above, and the errors of JAX.

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
    lowered = _lowered(function, arguments, {**named, **(kwargs or {})})
    text = _partitioned_text(lowered) if _partitions(lowered) > 1 else lowered.as_text(dialect="hlo", debug_info=True)
    module = _read(text)
    return evolve(module, num_replicas=num_replicas) if num_replicas != 1 else module


def _global(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], num_replicas: int) -> Module:
    """The program before it is partitioned, by way of StableHLO, with shardings of Shardy or of HLO on one mesh."""
    lowered = _lowered(function, arguments, named, is_global=True)
    module = parse_stablehlo(lowered.as_text(dialect="stablehlo", debug_info=True), "<lowered by JAX>")
    return evolve(on_one_mesh(module), num_replicas=num_replicas, num_partitions=1)


def _lowered(function: Any, arguments: tuple[Any, ...], named: dict[str, Any], is_global: bool = False) -> Any:
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
            raise TypeError("arguments are given with a function that is traced with its own already")
        return function if isinstance(function, jax.stages.Lowered) else _of_trace(function, is_global)
    if isinstance(function, jax.stages.Compiled) or not callable(function):
        raise TypeError(f"a function is wanted, jitted or lowered or as it is, and {type(function).__name__} is given")
    if not hasattr(function, "lower"):
        function = jax.jit(function, keep_unused=True)
    source_info_util.register_exclusion(__file__)  # metadata name the user's line instead
    arguments, named = jax.tree.map(_like, (arguments, named), is_leaf=_is_shape)
    if is_global and hasattr(function, "trace"):
        return _of_trace(function.trace(*arguments, **named), is_global)
    return function.lower(*arguments, **named)


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
            f"{argument} is given, and JAX would make {jax.dtypes.canonicalize_dtype(dtype)} of {argument.dtype}: "
            "jax.config.update('jax_enable_x64', True) lets it have 64 bits [element_type_mismatch]",
        )
    return jax.ShapeDtypeStruct(argument.dims, dtype)


def _partitions(lowered: Any) -> int:
    attributes = lowered.compiler_ir("stablehlo").operation.attributes
    return attributes["mhlo.num_partitions"].value if "mhlo.num_partitions" in attributes else 1


def _partitioned_text(lowered: Any) -> str:
    """The program of one device, which is the dump of XLA after its SPMD partitioner."""
    with temporary.folder() as folder, _uncached():
        failure = None
        try:
            lowered.compile(compiler_options={**_DUMPED, "xla_dump_to": str(folder)})
        except Exception as error:  # it may be an error of a later pass
            failure = error
        found = sorted(folder.glob("*.after_spmd-partitioning.*.txt"))
        if found:
            return found[-1].read_text(encoding="utf-8")
    if failure is not None:
        raise failure
    raise XbuildError(
        "engine_unsupported", "this build of XLA does not dump the partitioned program [engine_unsupported]"
    )


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


def _read(text: str) -> Module:
    try:
        return parse_hlo(text, "<lowered by JAX>", origins=True)
    except HloParseError as error:
        raise _located(error, text) from None


def _located(error: HloParseError, text: str) -> HloParseError:
    """The error with the Python line of each fault that has one."""
    lines, frames = text.splitlines(), read_frames(text)
    places = [_FRAME.search(lines[fault.line - 1]) for fault in error.faults if fault.line <= len(lines)]
    sources = [origin(frames, {"stack_frame_id": int(place[1])}) for place in places if place]
    told = dict.fromkeys(f"  from {source}" for source in sources if source)
    return HloParseError(error.faults, "\n".join([str(error), *told]))
