"""A computation traced once into the program of all replicas: its parameters, its results, its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from shape_inference import s32

from .. import derived, ops
from ..core.builder import Builder, Value
from ..core.context import apart
from ..core.graph import Module
from ..editing import eliminate_dead_code
from ..text.spelling.notes import Raw
from .infeed import InfeedQueue
from .inputs import Inputs
from .outputs import Results, results_of
from .support import structures
from .support.context import Tracing, tracing
from .variables import Variable, read_in


@frozen(eq=False)
class Traced:
    """The program of a computation: what it gives first are the results, then the variables that it assigned."""

    module: Module
    results: Results
    variables: tuple[Variable, ...]
    assigned: tuple[Variable, ...]

    @property
    def num_replicas(self) -> int:
        """How many replicas the program is for."""
        return self.module.num_replicas


def traced(
    computation: Callable[..., Any],
    inputs: Inputs,
    queue: InfeedQueue | None,
    num_partitions: int,
    name: str,
    has_dynamic_padder: bool,
) -> Traced:
    """Call the computation once with values, and make the program of what its results and effects need."""
    builder = Builder(name)
    found = Tracing(builder, inputs.num_replicas, num_partitions)
    with apart(), tracing(found):
        arguments = _arguments(found, inputs, has_dynamic_padder)
        if queue is not None:
            arguments += queue.generate_dequeue_op(found)
        results = results_of(computation(*arguments), builder)
        for variable in found.assigned:
            read_in(found, variable)
        state = [found.reads[variable] for variable in found.assigned]
        root = ops.tuple_([*results.values, *state], builder=builder)
    variables = sorted(found.numbers, key=lambda each: found.numbers[each])
    module = Module(
        name,
        builder.build(root),
        num_replicas=inputs.num_replicas,
        num_partitions=num_partitions,
        annotations=_aliases(len(results.values), [found.numbers[variable] for variable in found.assigned]),
    )
    return Traced(eliminate_dead_code(module), results, tuple(variables), tuple(found.assigned))


def _arguments(found: Tracing, inputs: Inputs, has_dynamic_padder: bool) -> list[Any]:
    """The arguments of the computation: a parameter for each leaf, None where the input is None."""
    leaves = [None if shape is None else _parameter(found, shape) for shape in inputs.shapes]
    sizes = [_parameter(found, s32[()]) for _ in inputs.padded]
    if has_dynamic_padder:
        for dim, size in zip(inputs.padded, sizes, strict=True):
            padded = leaves[dim.arg_index]
            assert padded is not None
            leaves[dim.arg_index] = derived.set_dimension_size(padded, size, dim.shape_index)
    return list(structures.packed(inputs.structure, leaves))


def _parameter(found: Tracing, shape: Any) -> Value:
    number = found.next_parameter()
    return ops.parameter(found.builder, number=number, shape=shape, name=f"input_{number}")


def _aliases(first: int, numbers: Sequence[int]) -> dict[str, Any]:
    """Each assigned variable is given back in the memory of its parameter."""
    if not numbers:
        return {}
    words = ", ".join(f"{{{first + n}}}: ({number}, {{}}, may-alias)" for n, number in enumerate(numbers))
    return {"input_output_alias": Raw(f"{{ {words} }}")}
