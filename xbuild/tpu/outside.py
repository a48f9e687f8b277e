"""outside_compilation: a part of the computation that Python runs on the host, reached by sends and receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape, XbuildError

from .. import derived, ops
from ..core.builder import Value, stands_for
from ..core.context import annotated
from ..properties.host import HostFunction
from .support import structures
from .support.arguments import callable_
from .support.arrays import is_shape, shape_of
from .support.context import Operation, Tracing, current, current_core, is_on_host, on_host
from .support.refusals import TpuError, TpuNestingError, refuse


def outside_compilation(computation: Callable[..., Any], *args: Any, result_shapes: Any = None, **kwargs: Any) -> Any:
    """Run a Python function on the host, once for each replica, with arrays for the values among its arguments.

    Values go to the host by a send each, results come back by a recv each, on channels of their own.
    `result_shapes` is the structure of what the function returns, with a shape for each array: nobody can know it
    before the function runs. Without it the function returns None, and an Operation is given.
    Outside of a computation it is simply called. A function that raises or does not return ends the run with a report
    that names it. Raises nested_replicate (NotImplementedError) inside of another outside_compilation, or where the
    function uses xb.tpu; invalid_operand for result_shapes that are no shapes, and (TypeError) for what is no function.

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
            "Cannot nest outside_compilation clusters: the host function of one uses another",
            "call the inner function itself: the outer one runs on the host already",
            error=TpuNestingError,
        )
    callable_("outside_compilation: the host function", computation)
    tracing = current()
    if tracing is None:
        return computation(*args, **kwargs)
    return _recorded(tracing, computation, (args, kwargs), result_shapes)


def _recorded(tracing: Tracing, computation: Callable[..., Any], arguments: Any, result_shapes: Any) -> Any:
    leaves = [stands_for(leaf) for leaf in structures.flatten(arguments)]
    values = [leaf for leaf in leaves if isinstance(leaf, Value)]
    builder = values[0].builder if values else tracing.builder
    shapes = [_shape(leaf) for leaf in structures.flatten(result_shapes)] if result_shapes is not None else []
    label = getattr(computation, "__name__", type(computation).__name__)
    cluster, tracing.clusters = tracing.clusters, tracing.clusters + 1
    function = HostFunction(
        rendezvous=f"host_compute_channel_{cluster}_{tracing.builder.name}",
        label=label,
        function=_caller(computation, label, arguments, leaves, result_shapes),
        sends=tuple(tracing.next_channel() for _ in range(len(values) or 1)),
        receives={tracing.next_channel(): shape for shape in shapes},
    )
    tagged = function.annotations()
    tagged["frontend_attributes"] |= {"_xla_outside_compilation": str(cluster)}
    if core := current_core():
        tagged["frontend_attributes"] |= {"_xla_host_compute_core": core}
    results = _transfers(function, values or [ops.replica_id(builder)], tagged)
    if result_shapes is None:
        return Operation(f"outside_compilation_{cluster}")
    return structures.packed(result_shapes, results)


def _transfers(function: HostFunction, values: list[Value], tagged: dict[str, Any]) -> list[Value]:
    """The sends of all operands, then the receives, each after the one before."""
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


def _shape(leaf: Any) -> AnyShape:
    if not is_shape(leaf) and not isinstance(leaf, np.ndarray | np.generic):
        refuse(
            "invalid_operand",
            f"outside_compilation: result_shapes has {leaf!r}",
            "a shape such as xb.f32[2,3] is wanted",
        )
    found: Shape = shape_of(leaf)
    return found


def _caller(
    computation: Callable[..., Any], label: str, arguments: Any, leaves: list[Any], result_shapes: Any
) -> Callable[[list[Any]], list[Any]]:
    """The function of the operands' arrays: the other arguments stay as they were given, the results are flattened."""
    places = [isinstance(leaf, Value) for leaf in leaves]
    constants = [None if isinstance(leaf, Value) else leaf for leaf in leaves]

    def call(arrays: list[Any]) -> list[Any]:
        given = iter(arrays)
        filled = [next(given) if is_value else leaf for is_value, leaf in zip(places, constants, strict=True)]
        args, kwargs = structures.packed(arguments, filled)
        with on_host():
            return _flattened(label, _called(label, computation, args, kwargs), result_shapes)

    return call


def _called(label: str, computation: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What the function returns; a value or a variable of the computation that it closes over is no array."""
    try:
        return computation(*args, **kwargs)
    except XbuildError as error:
        if error.kind not in ("builder_finished", "no_builder"):
            raise
        raise TpuError(
            "foreign_value",
            f"the host function {label!r} uses a value or a variable that is not among its arguments "
            f"({error.message}); outside_compilation({label}, value) hands its array over [foreign_value]",
        ) from error


def _flattened(label: str, results: Any, result_shapes: Any) -> list[Any]:
    if result_shapes is None:
        if results is not None:
            raise _wrong(
                f"the host function {label!r} returned {results!r}, and no result_shapes were given with it: "
                "result_shapes=xb.f32[()] is one scalar"
            )
        return []
    wanted, found = structures.flatten(result_shapes), structures.flatten(results)
    if not structures.is_nested(result_shapes):
        return [results]
    if structures.form_of(results) != structures.form_of(result_shapes):
        raise _wrong(
            f"the host function {label!r} returned {len(found)} arrays in {type(results).__name__}, and result_shapes "
            f"has {len(wanted)} in {type(result_shapes).__name__}"
        )
    return found


def _wrong(message: str) -> TpuError:
    return TpuError("structure_mismatch", f"{message} [structure_mismatch]")
