"""replicate and rewrite: a computation is traced once for each signature into the program of all replicas.

Sections:

    What a traced computation returns
    Tracing
    A built program
    Calls that run the program they build
    replicate and rewrite
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, ParamSpec

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape, TokenShape, TupleShape, XbuildError, s32

from .. import derived, ops, running
from ..checking import Refused, Verdict, check
from ..core.builder import Builder, Value, stands_for
from ..core.context import apart
from ..core.graph import Module
from ..core.hooks import Showable
from ..core.identifiers import nearest
from ..derived.support import as_value
from ..editing import eliminate_dead_code
from ..text.header import ALIASES, alias, entries_text
from . import structures
from .arguments import TpuError, TpuNestingError, TpuTypeError, check_callable, refuse
from .context import Operation, Tracing, current, is_on_host, tracing
from .infeed import InfeedQueue
from .inputs import Inputs, PaddingSpec, read_inputs
from .system import assign_devices
from .variables import STORE, Variable, read_variable

# ----------------------------------------------------------------------------
# What a traced computation returns
#
# TensorFlow's rules for values, operations, None and nested structures.


@frozen(eq=False)
class Results:
    """The results of one replica: `form` is their structure with numbers of results and None; None itself is a NoOp."""

    values: tuple[Value, ...]
    form: Any
    is_flat: bool

    def of(self, results: Sequence[Any]) -> Any:
        """The structure filled with the results of one replica, or an Operation."""
        if self.form is None:
            return Operation("NoOp")
        if self.is_flat:
            return [None if number is None else results[number] for number in self.form]
        return structures.map_leaves(lambda number: None if number is None else results[number], self.form)


def read_results(outputs: Any, builder: Builder) -> Results:
    """Find the values among what a computation returned, and its structure.

    Refuses an operation before a value, an operation in a nested structure, and anything that is not a value.
    """
    outputs = _open_tuples(outputs)
    return _read_flat(outputs, builder) if structures.is_flat(outputs) else _read_nested(outputs, builder)


def _open_tuples(outputs: Any) -> Any:
    """Replace tuple values by tuples of their elements, at any depth."""
    if isinstance(outputs, Value) and isinstance(outputs.shape, TupleShape):
        return tuple(_open_tuples(element) for element in outputs)
    if isinstance(outputs, list | tuple):
        opened = [_open_tuples(element) for element in outputs]
        return type(outputs)(*opened) if hasattr(outputs, "_fields") else type(outputs)(opened)
    return outputs


def _read_flat(outputs: Any, builder: Builder) -> Results:
    many = [] if outputs is None else list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    converted = [_convert_output(output, builder) for output in many]
    kinds = [isinstance(output, Operation) for output in converted]
    if kinds != sorted(kinds):
        refuse(
            "bad_order",
            "TPU functions must return zero-or more Tensor values followed by zero or more Operations.",
            f"return the {kinds.count(False)} values first",
            given={"returned": outputs},
        )
    tensors = [output for output in converted if not isinstance(output, Operation)]
    if not tensors:
        return Results((), None, True)
    values, form = _number_values(tensors)
    return Results(values, form, True)


def _read_nested(outputs: Any, builder: Builder) -> Results:
    converted = [_convert_output(output, builder) for output in structures.flatten(outputs)]
    for output in converted:
        if isinstance(output, Operation):
            refuse(
                "invalid_operand",
                f"tpu.rewrite does not support Operation as return value in non-flat output structure: {output.name}",
                "operations run even if they are not returned; return only values, or a flat list that ends with "
                "operations",
                given={"returned": outputs},
            )
    if not converted:
        return Results((), None, True)
    values, numbers = _number_values([output for output in converted if not isinstance(output, Operation)])
    return Results(values, structures.pack(outputs, numbers), False)


def _number_values(leaves: Sequence[Value | None]) -> tuple[tuple[Value, ...], list[int | None]]:
    values: list[Value] = []
    numbers: list[int | None] = []
    for leaf in leaves:
        numbers.append(None if leaf is None else len(values))
        values += [] if leaf is None else [leaf]
    return tuple(values), numbers


def _convert_output(output: Any, builder: Builder) -> Value | Operation | None:
    if output is None or isinstance(output, Operation):
        return output
    output = stands_for(output)
    if isinstance(output, Value) and output.builder is not builder:
        refuse(
            "foreign_value",
            f"the computation returned %{output.name}, which belongs to {output.builder.name!r}",
            "to use a value outside a loop or a branch, return it from the function of that loop or branch",
        )
    try:
        value = as_value(builder, output)
    except XbuildError as error:
        raise _conversion_error(output, error) from None
    if isinstance(value.shape, TokenShape):
        return Operation(value.name)
    if not isinstance(value.shape, Shape):
        refuse("not_array", f"the computation returned %{value.name}, which is {value.shape}")
    return value


def _conversion_error(output: Any, error: XbuildError) -> TpuError:
    try:
        refuse(
            "invalid_operand",
            "TPU function return values must all either be Operations or convertible to Tensors. Got error: "
            f"{error.message}",
            given={"returned": output},
        )
    except TpuError as refused:
        return refused


# ----------------------------------------------------------------------------
# Tracing
#
# A computation is called once with values; its parameters, results and variables make the program.


@frozen(eq=False)
class Traced:
    """The program of a computation; it returns the results, followed by the variables that it assigned."""

    module: Module
    results: Results
    variables: tuple[Variable, ...]
    assigned: tuple[Variable, ...]

    @property
    def num_replicas(self) -> int:
        """The number of replicas of the program."""
        return self.module.num_replicas


def trace(
    computation: Callable[..., Any],
    inputs: Inputs,
    queue: InfeedQueue | None,
    num_partitions: int,
    name: str,
    has_dynamic_padder: bool,
) -> Traced:
    """Call the computation once with values, and build the program of what its results and effects need."""
    builder = Builder(name)
    tracing_state = Tracing(builder, inputs.num_replicas, num_partitions)
    with apart(), tracing(tracing_state):
        arguments = _record_arguments(tracing_state, inputs, has_dynamic_padder)
        if queue is not None:
            arguments += queue.generate_dequeue_op(tracing_state)
        results = read_results(computation(*arguments), builder)
        for variable in tracing_state.assigned:
            read_variable(tracing_state, variable)
        state = [tracing_state.reads[variable] for variable in tracing_state.assigned]
        root = ops.tuple_([*results.values, *state], builder=builder)
    variables = sorted(tracing_state.numbers, key=lambda variable: tracing_state.numbers[variable])
    module = Module(
        name,
        builder.build(root),
        num_replicas=inputs.num_replicas,
        num_partitions=num_partitions,
        annotations=_aliases(
            len(results.values), [tracing_state.numbers[variable] for variable in tracing_state.assigned]
        ),
    )
    return Traced(eliminate_dead_code(module), results, tuple(variables), tuple(tracing_state.assigned))


def _record_arguments(tracing: Tracing, inputs: Inputs, has_dynamic_padder: bool) -> list[Any]:
    """The arguments of the computation: a parameter for each leaf, None for None."""
    leaves = [None if shape is None else _record_parameter(tracing, shape) for shape in inputs.shapes]
    sizes = [_record_parameter(tracing, s32[()]) for _ in inputs.padded]
    if has_dynamic_padder:
        for dim, size in zip(inputs.padded, sizes, strict=True):
            padded = leaves[dim.arg_index]
            assert padded is not None
            leaves[dim.arg_index] = derived.set_dimension_size(padded, size, dim.shape_index)
    return list(structures.pack(inputs.structure, leaves))


def _record_parameter(tracing: Tracing, shape: Any) -> Value:
    number = tracing.next_parameter()
    return ops.parameter(tracing.builder, number=number, shape=shape, name=f"input_{number}")


def _aliases(first: int, numbers: Sequence[int]) -> dict[str, Any]:
    """Each assigned variable is returned in the memory of its parameter."""
    if not numbers:
        return {}
    return {ALIASES: entries_text(alias((first + n,), number, (), "may-alias") for n, number in enumerate(numbers))}


# ----------------------------------------------------------------------------
# A built program
#
# Its module, verdict and picture, and its runs.


_GIVEN = object()


@define(eq=False, repr=False, slots=False)
class TpuProgram(Showable):
    """What `replicate.program`, `rewrite.program`, `shard.program` and `batch_parallel.program` return.

    `module` is the program of all replicas and `str()` its HLO text; a notebook draws it. `run()` runs it with the
    inputs it was built with, `run(inputs)` with different inputs of the same shapes, in the form that the call takes.

    >>> import xbuild as xb
    >>> program = xb.tpu.shard.program(lambda x: x * 2.0, [[1.0, 2.0]], num_shards=2)
    >>> program.verdict.kind, program.run(), program.run([[3.0, 4.0]])
    ('ok', [array([2., 4.], dtype=float32)], [array([6., 8.], dtype=float32)])
    """

    traced: Traced
    inputs: Inputs
    read: Callable[[Any], Inputs]
    finish: Callable[[list[Any]], Any]
    infeed_queue: InfeedQueue | None = None
    options: dict[str, Any] = field(factory=dict)

    @property
    def module(self) -> Module:
        """The program of all replicas."""
        return self.traced.module

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return self.traced.num_replicas

    @cached_property
    def verdict(self) -> Verdict:
        """The check of the program for deadlocks."""
        return check(self.module)

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        return f"<tpu.Program {self.module.name!r} of {self.num_replicas} replicas>"

    def run(self, inputs: Any = _GIVEN, **options: Any) -> Any:
        """Run it and return the results like the call that built it; variables then have their new values.

        `options` are those of `interpreter.execute` (`limits`, `seed`, `strict`, `observer`, ...), and `outfeed`.
        Raises argument_mismatch if the shapes of the inputs differ from those it was built for; Refused, also if an
        infeed queue is empty; Stopped if the run does not finish.
        """
        rows, run_options = self._rows(inputs), self._options(options)
        results = running.execute(self.module, rows, **run_options)
        return self.finish(self._unpack_results(results))

    def trace(self, inputs: Any = _GIVEN, **options: Any) -> Any:
        """Run it and record what happens, with the options of `interpreter.trace`; `trace.page()` shows it.

        Variables keep their old values.
        """
        return running.trace(self.module, self._rows(inputs), **self._options(options))

    def _rows(self, inputs: Any) -> list[list[Any]]:
        """The arguments of each device: inputs, sizes, variables."""
        checked = self.inputs if inputs is _GIVEN else self.read(inputs)
        if checked is not self.inputs and (checked.shapes, checked.form) != (self.inputs.shapes, self.inputs.form):
            refuse(
                "argument_mismatch",
                f"{self!r} was built for {_describe(self.inputs)}, but got {_describe(checked)}",
                "for different shapes, call xb.tpu.replicate, shard or rewrite again",
            )
        if not checked.has_data:
            refuse("argument_mismatch", f"{self!r} was built from shapes: pass the arrays to run(inputs)")
        if checked.num_replicas != self.num_replicas:
            refuse(
                "argument_mismatch",
                f"{self!r} got inputs for {checked.num_replicas} replicas; expected inputs for {self.num_replicas}",
            )
        return self._with_state(checked.rows)

    def _with_state(self, rows: Sequence[list[Any]]) -> list[list[Any]]:
        columns = [variable.on(self.num_replicas) for variable in self.traced.variables]
        whole = [[*row, *(column[replica] for column in columns)] for replica, row in enumerate(rows)]
        cores = self.module.num_partitions
        return whole if cores == 1 else [row for row in whole for _ in range(cores)]

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        merged = {**self.options, **options}
        queue, cores = self.infeed_queue, self.module.num_partitions
        if queue is not None and "infeed" not in merged:
            self._check_queue(queue)
            merged["infeed"] = queue.feeds(cores)
        if cores > 1 and merged.get("outfeed") is not None:
            outfeed = merged["outfeed"]
            merged["outfeed"] = lambda device, item: None if device % cores else outfeed(device // cores, item)
        return merged

    def _check_queue(self, queue: InfeedQueue) -> None:
        """Refuse an empty queue before the run."""
        counts = queue.counts()
        if queue.is_endless or min(counts) > 0:
            return
        verdict = check(self.module, infeed=[count for count in counts for _ in range(self.module.num_partitions)])
        if verdict.refused:
            raise Refused(verdict)

    def _unpack_results(self, results: list[Any]) -> list[Any]:
        """The results of each replica in TensorFlow's structure; variables are updated."""
        mine = results[:: self.module.num_partitions]
        count = len(self.traced.results.values)
        for n, variable in enumerate(self.traced.assigned):
            variable.values = [np.asarray(row[count + n]) for row in mine]
        return [self.traced.results.of([np.asarray(value) for value in row[:count]]) for row in mine]


def _describe(inputs: Inputs) -> str:
    shapes = ", ".join("None" if shape is None else str(shape) for shape in inputs.shapes)
    return f"inputs ({shapes}) of {inputs.num_replicas} replicas"


# ----------------------------------------------------------------------------
# Calls that run the program they build
#
# Their `program` only builds it.


P = ParamSpec("P")


class TpuCall(Generic[P]):
    """A function that builds a program and runs it; `program` only builds it."""

    __name__: str
    __qualname__: str

    def __init__(self, build: Callable[P, TpuProgram]) -> None:
        functools.update_wrapper(self, build)
        self.__name__ = self.__qualname__ = build.__name__.strip("_")
        self._build = build

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> Any:
        return self._build(*arguments, **keywords).run()

    def program(self, *arguments: P.args, **keywords: P.kwargs) -> TpuProgram:
        """Build the program that the call would run."""
        return self._build(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<function xb.tpu.{self.__name__}>"


def with_program(build: Callable[P, TpuProgram]) -> TpuCall[P]:
    """Make a call from a function that builds a program."""
    return TpuCall(build)


# ----------------------------------------------------------------------------
# replicate and rewrite


Computation = Callable[..., Any]
_ATTRIBUTE = "_xbuild_tpu_programs"
_SIGNATURES = "signatures"


@frozen
class XLAOptions:
    """Options of TensorFlow's compiler; only the dynamic padder has an effect here.

    >>> import xbuild as xb
    >>> xb.tpu.XLAOptions(enable_xla_dynamic_padder=False).use_spmd_for_xla_partitioning
    True

    Source: tensorflow/python/tpu/tpu.py, XLAOptions.
    """

    use_spmd_for_xla_partitioning: bool = True
    enable_xla_dynamic_padder: bool = True
    use_shardy_partitioner: bool = False


def _build_program(
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
) -> TpuProgram:
    """Build the program of `replicate`; `rewrite` and `shard` adapt inputs and results by `prepare` and `finish`."""

    cache = _program_cache(check_callable("the computation", computation))
    _check_options(infeed_queue, xla_options)
    known = cache.setdefault(_SIGNATURES, {})

    def read(given: Any) -> Inputs:
        return read_inputs(computation, prepare(given), infeed_queue, maximum_shapes, padding_spec, known)

    rows = read(inputs)
    if current() is not None or is_on_host():
        refuse(
            "nested_replicate",
            "TPU computations cannot be nested",
            "call the function directly inside the computation or its host function",
            error=TpuNestingError,
        )
    where = assign_devices(rows.num_replicas, device_assignment)
    if infeed_queue is not None:
        infeed_queue.set_number_of_shards(rows.num_replicas)
    padder = xla_options is None or xla_options.enable_xla_dynamic_padder
    cores = 1 if where is None else where.num_cores_per_replica
    label = _program_name(computation if name is None else name)
    fed = None if infeed_queue is None else infeed_queue.signature
    key = rows.form, rows.shapes, rows.padded, rows.num_replicas, cores, label, padder, STORE.generation, fed
    program = cache.get(key)
    if program is None:
        program = cache[key] = trace(computation, rows, infeed_queue, cores, label, padder)
    return TpuProgram(program, rows, read, finish, infeed_queue, options)


def _check_options(infeed_queue: Any, xla_options: Any) -> None:
    for what, given, wanted in (
        ("infeed_queue", infeed_queue, InfeedQueue),
        ("xla_options", xla_options, XLAOptions),
    ):
        if given is not None and not isinstance(given, wanted):
            refuse(
                "invalid_attribute",
                f"{what}: expected an xb.tpu.{wanted.__name__}, got {given!r}",
                error=TpuTypeError,
            )


@define(eq=False)
class _Programs:
    """The traced programs of a function, stored on the function; they may refer to it and are freed with it."""

    owner: Callable[[], Any] = lambda: None
    by_function: dict[Any, dict[Any, Any]] = field(factory=dict)

    def __reduce__(self) -> Any:
        return _Programs, ()  # a copy of the owner traces again


def _program_cache(computation: Computation) -> dict[Any, Any]:
    """The traced programs of a function, or of a bound method by object; an empty cache if attributes cannot be set."""
    is_method = isinstance(computation, types.MethodType)
    owner = computation.__self__ if isinstance(computation, types.MethodType) else computation
    space = getattr(owner, "__dict__", None)
    if not isinstance(space, dict):
        return {}
    programs = space.get(_ATTRIBUTE)
    if not isinstance(programs, _Programs) or programs.owner() is not owner:  # functools.wraps copies attributes
        programs = space[_ATTRIBUTE] = _Programs(weakref.ref(owner))
    key = getattr(computation, "__func__", None) if is_method else None
    return programs.by_function.setdefault(key, {})


def _program_name(named: Any) -> str:
    """The name of the program, changed if HLO text cannot hold it."""
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
) -> TpuProgram:
    """Run a computation on as many replicas as `inputs` has lists; returns a list with the results of each.

    `inputs[r]` are the arguments of replica r, nested structures of arrays; None is one replica without arguments. The
    computation, a function of values, is traced once for each signature. With `infeed_queue`, each replica takes one
    item, whose elements are its last arguments; with `maximum_shapes`, inputs of different extents are padded.
    `options` are those of `interpreter.execute`: `outfeed`, `limits`, `seed`, `strict`, `observer`.
    `replicate.program(...)` takes the same arguments and returns the program without running it.

    The result of a replica is the list of the values that the computation returned, or the nested structure that it
    returned; an Operation if it returned no value.
    Raises, in this order: invalid_operand (TypeError) for inputs that are not a list of lists; no_replicas;
    structure_mismatch; element_type_mismatch; arity_mismatch (TypeError); invalid_attribute for maximum_shapes with an
    infeed; shape_mismatch; nested_replicate (NotImplementedError); divisibility for an infeed that cannot be split;
    bad_order, invalid_operand for what the computation returns; invalid_attribute (TypeError) for an argument of the
    wrong Python type; Refused and Stopped, as `execute`.

    >>> import xbuild as xb
    >>> xb.tpu.replicate(lambda x, y: (x + y, x - y), [[1.0, 2.0], [3.0, 4.0]])
    [[array(3., dtype=float32), array(-1., dtype=float32)], [array(7., dtype=float32), array(-1., dtype=float32)]]

    Source: tf.compat.v1.tpu.replicate.
    """
    return _build_program(
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
) -> TpuProgram:
    """Run a computation on one replica: `replicate(computation, [inputs])[0]`.

    Raises: as xb.tpu.replicate.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> xb.tpu.rewrite(lambda x: x * 2.0, [np.float32([1.0, 2.0])])
    [array([2., 4.], dtype=float32)]

    Source: tf.compat.v1.tpu.rewrite.
    """
    return _build_program(
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
