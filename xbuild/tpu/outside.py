"""outside_compilation: a part of the computation that runs in Python on the host, reached by sends and receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape, XbuildError

from .. import derived, ops
from ..core.builder import Value, stands_for
from ..core.context import annotated
from ..properties.effects import HostFunction
from . import structures
from .arguments import TpuError, TpuNestingError, check_callable, is_shape, refuse, shape_of
from .context import Operation, Tracing, current, current_core, is_on_host, on_host


def outside_compilation(computation: Callable[..., Any], *args: Any, result_shapes: Any = None, **kwargs: Any) -> Any:
    """Run a Python function on the host, once per replica, with arrays in place of the values among its arguments.

    Each value travels to the host by a send and each result back by a recv, on channels of their own.
    `result_shapes` is the structure of the function's result with a shape for each array, which must be known before
    the function runs. Without it the function must return None, and an Operation is returned.
    Outside of a computation the function is simply called. A function that raises or does not return ends the run with
    a report that names it. Raises nested_replicate (NotImplementedError) inside another outside_compilation, or if the
    function uses xb.tpu; invalid_operand if result_shapes are not shapes, and (TypeError) if it is not a function.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> def halves(x):
    ...     return xb.tpu.outside_compilation(lambda a: a / 2, x, result_shapes=xb.f32[2]) + 1.0
    >>> xb.tpu.replicate(halves, [[np.float32([2, 4])], [np.float32([6, 8])]])
    [[array([2., 3.], dtype=float32)], [array([4., 5.], dtype=float32)]]

    Source: tf.compat.v1.tpu.outside_compilation.
    """
    if is_on_host():
        refuse(
            "nested_replicate",
            "Cannot nest outside_compilation clusters: a host function calls outside_compilation itself",
            "call the inner function directly: the outer function already runs on the host",
            error=TpuNestingError,
        )
    check_callable("outside_compilation: the host function", computation)
    tracing = current()
    if tracing is None:
        return computation(*args, **kwargs)
    return _record(tracing, computation, (args, kwargs), result_shapes)


def _record(tracing: Tracing, computation: Callable[..., Any], arguments: Any, result_shapes: Any) -> Any:
    leaves = [stands_for(leaf) for leaf in structures.flatten(arguments)]
    values = [leaf for leaf in leaves if isinstance(leaf, Value)]
    builder = values[0].builder if values else tracing.builder
    shapes = [_read_shape(leaf) for leaf in structures.flatten(result_shapes)] if result_shapes is not None else []
    label = getattr(computation, "__name__", type(computation).__name__)
    cluster, tracing.clusters = tracing.clusters, tracing.clusters + 1
    function = HostFunction(
        rendezvous=f"host_compute_channel_{cluster}_{tracing.builder.name}",
        label=label,
        function=_host_function(computation, label, arguments, leaves, result_shapes),
        sends=tuple(tracing.next_channel() for _ in range(len(values) or 1)),
        receives={tracing.next_channel(): shape for shape in shapes},
    )
    tagged = function.annotations()
    tagged["frontend_attributes"] |= {"_xla_outside_compilation": str(cluster)}
    if core := current_core():
        tagged["frontend_attributes"] |= {"_xla_host_compute_core": core}
    results = _record_transfers(function, values or [ops.replica_id(builder)], tagged)
    if result_shapes is None:
        return Operation(f"outside_compilation_{cluster}")
    return structures.pack(result_shapes, results)


def _record_transfers(function: HostFunction, values: list[Value], tagged: dict[str, Any]) -> list[Value]:
    """Record the sends of all operands, then the receives, one after the other."""
    token, results = derived.after_all(builder=values[0].builder), []
    for value, channel in zip(values, function.sends, strict=True):
        with annotated(**tagged):
            context = derived.send(value, token, channel_id=channel, is_host_transfer=True)
        token = derived.send_done(context, channel_id=channel, is_host_transfer=True)
    for channel, shape in function.receives.items():
        with annotated(**tagged):
            posted = derived.recv(token, shape, channel_id=channel, is_host_transfer=True)
        value, token = derived.recv_done(posted, channel_id=channel, is_host_transfer=True)
        results.append(value)
    return results


def _read_shape(leaf: Any) -> AnyShape:
    if not is_shape(leaf) and not isinstance(leaf, np.ndarray | np.generic):
        refuse(
            "invalid_operand",
            f"outside_compilation: result_shapes has {leaf!r}; expected shapes",
            "pass a shape such as xb.f32[2,3]",
        )
    shape: Shape = shape_of(leaf)
    return shape


def _host_function(
    computation: Callable[..., Any], label: str, arguments: Any, leaves: list[Any], result_shapes: Any
) -> Callable[[list[Any]], list[Any]]:
    """A function of the operands' arrays; it fills in the other arguments and flattens the results."""
    places = [isinstance(leaf, Value) for leaf in leaves]
    constants = [None if isinstance(leaf, Value) else leaf for leaf in leaves]

    def call(arrays: list[Any]) -> list[Any]:
        given = iter(arrays)
        filled = [next(given) if is_value else leaf for is_value, leaf in zip(places, constants, strict=True)]
        args, kwargs = structures.pack(arguments, filled)
        with on_host():
            return _flatten_results(label, _call_host(label, computation, args, kwargs), result_shapes)

    return call


def _call_host(label: str, computation: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the host function; refuse values and variables of the computation that it closes over."""
    try:
        return computation(*args, **kwargs)
    except XbuildError as error:
        if error.kind not in ("builder_finished", "no_builder"):
            raise
        raise TpuError(
            "foreign_value",
            f"the host function {label!r} uses a value or a variable that is not among its arguments "
            f"({error.message}); pass it as an argument: outside_compilation({label}, value) [foreign_value]",
        ) from error


def _flatten_results(label: str, results: Any, result_shapes: Any) -> list[Any]:
    if result_shapes is None:
        if results is not None:
            raise _mismatch(
                f"the host function {label!r} returned {results!r}, but outside_compilation got no result_shapes: "
                "pass result_shapes=xb.f32[()] for a scalar"
            )
        return []
    shapes, arrays = structures.flatten(result_shapes), structures.flatten(results)
    if not structures.is_nested(result_shapes):
        return [results]
    if structures.read_form(results) != structures.read_form(result_shapes):
        raise _mismatch(
            f"the host function {label!r} returned type {type(results).__name__} ({_count(arrays, 'array')}), but "
            f"result_shapes has type {type(result_shapes).__name__} ({_count(shapes, 'shape')})"
        )
    return arrays


def _count(leaves: list[Any], noun: str) -> str:
    return f"{len(leaves)} {noun}{'s' * (len(leaves) != 1)}"


def _mismatch(message: str) -> TpuError:
    return TpuError("structure_mismatch", f"{message} [structure_mismatch]")
