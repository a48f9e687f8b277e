"""replicate and rewrite: a computation on several replicas, traced once for each signature."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from ..core.identifiers import nearest
from .infeed import InfeedQueue
from .inputs import Inputs, read
from .padding import PaddingSpec
from .program import Program
from .programs import with_program
from .scopes import STORE
from .support.arguments import callable_
from .support.context import current, is_on_host
from .support.refusals import TpuNestingError, TpuTypeError, refuse
from .system import placed
from .traced import traced

Computation = Callable[..., Any]
_ATTRIBUTE = "_xbuild_tpu_programs"
_SIGNATURES = "signatures"


@frozen
class XLAOptions:
    """Options of TensorFlow's compiler; the dynamic padder alone means something here.

    >>> import xbuild as xb
    >>> xb.tpu.XLAOptions(enable_xla_dynamic_padder=False).use_spmd_for_xla_partitioning
    True

    Source: tensorflow/python/tpu/tpu.py, XLAOptions.
    """

    use_spmd_for_xla_partitioning: bool = True
    enable_xla_dynamic_padder: bool = True
    use_shardy_partitioner: bool = False


def _replicated(
    computation: Computation,
    inputs: Any = None,
    infeed_queue: InfeedQueue | None = None,
    device_assignment: Any = None,
    name: str | None = None,
    maximum_shapes: Any = None,
    padding_spec: PaddingSpec | None = None,
    xla_options: XLAOptions | None = None,
    *,
    finish: Callable[[list[Any]], Any] = lambda results: results,
    prepare: Callable[[Any], Any] = lambda inputs: inputs,
    **options: Any,
) -> Program:
    """The program of `replicate`; `prepare` and `finish` are what `rewrite` and `shard` do before and after."""

    cache = _cache(callable_("the computation", computation))
    _check_options(infeed_queue, xla_options)
    known = cache.setdefault(_SIGNATURES, {})

    def found(given: Any) -> Inputs:
        return read(computation, prepare(given), infeed_queue, maximum_shapes, padding_spec, known)

    rows = found(inputs)
    if current() is not None or is_on_host():
        refuse(
            "nested_replicate",
            "TPU computations cannot be nested",
            "call the function itself inside of the computation, or of its host function",
            error=TpuNestingError,
        )
    where = placed(rows.num_replicas, device_assignment)
    if infeed_queue is not None:
        infeed_queue.set_number_of_shards(rows.num_replicas)
    padder = xla_options is None or xla_options.enable_xla_dynamic_padder
    cores = 1 if where is None else where.num_cores_per_replica
    label = _label(computation if name is None else name)
    fed = None if infeed_queue is None else infeed_queue.signature
    key = rows.form, rows.shapes, rows.padded, rows.num_replicas, cores, label, padder, STORE.generation, fed
    program = cache.get(key)
    if program is None:
        program = cache[key] = traced(computation, rows, infeed_queue, cores, label, padder)
    return Program(program, rows, found, finish, infeed_queue, options)


def _check_options(infeed_queue: Any, xla_options: Any) -> None:
    for what, given, wanted in (
        ("infeed_queue", infeed_queue, InfeedQueue),
        ("xla_options", xla_options, XLAOptions),
    ):
        if given is not None and not isinstance(given, wanted):
            refuse(
                "invalid_attribute",
                f"{what} is {given!r}, and an xb.tpu.{wanted.__name__} is wanted",
                error=TpuTypeError,
            )


@define(eq=False)
class _Programs:
    """The programs of a function that were traced, kept with it: they may hold it themselves, and go with it."""

    owner: Callable[[], Any] = lambda: None
    by_function: dict[Any, dict[Any, Any]] = field(factory=dict)

    def __reduce__(self) -> Any:
        return _Programs, ()  # a copy of the owner traces anew


def _cache(computation: Computation) -> dict[Any, Any]:
    """The programs of a function, of a bound method with its object; nothing is kept where there is no room for it."""
    is_method = isinstance(computation, types.MethodType)
    owner = computation.__self__ if isinstance(computation, types.MethodType) else computation
    space = getattr(owner, "__dict__", None)
    if not isinstance(space, dict):
        return {}
    found = space.get(_ATTRIBUTE)
    if not isinstance(found, _Programs) or found.owner() is not owner:  # functools.wraps hands attributes on
        found = space[_ATTRIBUTE] = _Programs(weakref.ref(owner))
    key = getattr(computation, "__func__", None) if is_method else None
    return found.by_function.setdefault(key, {})


def _label(named: Any) -> str:
    """A name for the program: what is given, or the nearest that HLO text could hold."""
    return nearest(named if isinstance(named, str) else getattr(named, "__name__", type(named).__name__))


def _replicate(
    computation: Computation,
    inputs: Any = None,
    infeed_queue: InfeedQueue | None = None,
    device_assignment: Any = None,
    name: str | None = None,
    maximum_shapes: Any = None,
    padding_spec: PaddingSpec | None = None,
    xla_options: XLAOptions | None = None,
    **options: Any,
) -> Program:
    """Run a computation on as many replicas as `inputs` has lists; gives a list of the results of each.

    `inputs[r]` are the arguments of replica r, nested structures of arrays; None is one replica without arguments. The
    computation, a function of values, is traced once for each signature. With `infeed_queue` each replica takes one
    item, whose elements are its last arguments; with `maximum_shapes` inputs of different extents are padded.
    `options` are those of `interpreter.execute`: `outfeed`, `limits`, `seed`, `strict`, `observer`.
    `replicate.program(...)` takes the same arguments and gives the program without running it.

    Of one replica: a list of the values that the computation returned flat, or the nested structure that it returned;
    an Operation where it returned none.
    Raises, in this order: invalid_operand (TypeError) for inputs that are no list of lists; no_replicas;
    structure_mismatch; element_type_mismatch; arity_mismatch (TypeError); invalid_attribute for maximum_shapes with an
    infeed; shape_mismatch; nested_replicate (NotImplementedError); divisibility for an infeed that cannot be cut;
    bad_order, invalid_operand for what the computation returns; invalid_attribute (TypeError) for an argument of
    another Python type; Refused and Stopped, as `execute`.

    >>> import xbuild as xb
    >>> xb.tpu.replicate(lambda x, y: (x + y, x - y), [[1.0, 2.0], [3.0, 4.0]])
    [[array(3., dtype=float32), array(-1., dtype=float32)], [array(7., dtype=float32), array(-1., dtype=float32)]]

    Source: tf.compat.v1.tpu.replicate.
    """
    return _replicated(
        computation, inputs, infeed_queue, device_assignment, name, maximum_shapes, padding_spec, xla_options, **options
    )


def _rewrite(
    computation: Computation,
    inputs: Any = None,
    infeed_queue: InfeedQueue | None = None,
    device_assignment: Any = None,
    name: str | None = None,
    xla_options: XLAOptions | None = None,
    **options: Any,
) -> Program:
    """Run a computation on one replica: `replicate(computation, [inputs])[0]`.

    Raises: as xb.tpu.replicate.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> xb.tpu.rewrite(lambda x: x * 2.0, [np.float32([1.0, 2.0])])
    [array([2., 4.], dtype=float32)]

    Source: tf.compat.v1.tpu.rewrite.
    """
    return _replicated(
        computation,
        inputs,
        infeed_queue,
        device_assignment,
        name,
        xla_options=xla_options,
        prepare=lambda given: None if given is None else [given],
        finish=lambda results: results[0],
        **options,
    )


replicate = with_program(_replicate)
rewrite = with_program(_rewrite)
