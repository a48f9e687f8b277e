"""What a traced computation returns: TensorFlow's rules for values, operations, None and nested structures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from shape_inference import Shape, TokenShape, TupleShape, XbuildError

from ..core.builder import Builder, Value, stands_for
from ..derived.support.operands import as_value
from .support import structures
from .support.context import Operation
from .support.refusals import TpuError, refuse


@frozen(eq=False)
class Results:
    """How the results of one replica are given: `form` holds numbers of results and None, or is None for a NoOp."""

    values: tuple[Value, ...]
    form: Any
    is_flat: bool

    def of(self, results: Sequence[Any]) -> Any:
        """The structure of one replica with its results, or an Operation."""
        if self.form is None:
            return Operation("NoOp")
        if self.is_flat:
            return [None if number is None else results[number] for number in self.form]
        return structures.mapped(lambda number: None if number is None else results[number], self.form)


def results_of(outputs: Any, builder: Builder) -> Results:
    """The values among what a computation returned, and how they are put together again.

    Refuses an operation before a value, an operation in a nested structure, and what is no value.
    """
    outputs = _opened(outputs)
    return _flat(outputs, builder) if structures.is_flat(outputs) else _nested(outputs, builder)


def _opened(outputs: Any) -> Any:
    """A tuple value as a tuple of its elements, at any depth."""
    if isinstance(outputs, Value) and isinstance(outputs.shape, TupleShape):
        return tuple(_opened(each) for each in outputs)
    if isinstance(outputs, list | tuple):
        opened = [_opened(each) for each in outputs]
        return type(outputs)(*opened) if hasattr(outputs, "_fields") else type(outputs)(opened)
    return outputs


def _flat(outputs: Any, builder: Builder) -> Results:
    many = [] if outputs is None else list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    found = [_converted(each, builder) for each in many]
    kinds = [isinstance(each, Operation) for each in found]
    if kinds != sorted(kinds):
        refuse(
            "bad_order",
            "TPU functions must return zero-or more Tensor values followed by zero or more Operations.",
            f"return the {kinds.count(False)} values first",
            given={"returned": outputs},
        )
    tensors = [each for each in found if not isinstance(each, Operation)]
    if not tensors:
        return Results((), None, True)
    values, form = _numbered(tensors)
    return Results(values, form, True)


def _nested(outputs: Any, builder: Builder) -> Results:
    found = [_converted(each, builder) for each in structures.flatten(outputs)]
    for each in found:
        if isinstance(each, Operation):
            refuse(
                "invalid_operand",
                f"tpu.rewrite does not support Operation as return value in non-flat output structure: {each.name}",
                "operations run anyway; return the values alone, or operations at the end of a flat list",
                given={"returned": outputs},
            )
    if not found:
        return Results((), None, True)
    values, numbers = _numbered([each for each in found if not isinstance(each, Operation)])
    return Results(values, structures.packed(outputs, numbers), False)


def _numbered(leaves: Sequence[Value | None]) -> tuple[tuple[Value, ...], list[int | None]]:
    values: list[Value] = []
    numbers: list[int | None] = []
    for each in leaves:
        numbers.append(None if each is None else len(values))
        values += [] if each is None else [each]
    return tuple(values), numbers


def _converted(output: Any, builder: Builder) -> Value | Operation | None:
    if output is None or isinstance(output, Operation):
        return output
    output = stands_for(output)
    if isinstance(output, Value) and output.builder is not builder:
        refuse(
            "foreign_value",
            f"the computation returned %{output.name}, which belongs to {output.builder.name!r}",
            "a loop and a branch give what their function returns",
        )
    try:
        value = as_value(builder, output)
    except XbuildError as error:
        raise _unconvertible(output, error) from None
    if isinstance(value.shape, TokenShape):
        return Operation(value.name)
    if not isinstance(value.shape, Shape):
        refuse("not_array", f"the computation returned %{value.name}, which is {value.shape}")
    return value


def _unconvertible(output: Any, error: XbuildError) -> TpuError:
    try:
        refuse(
            "invalid_operand",
            "TPU function return values must all either be Operations or convertible to Tensors. Got error: "
            f"{error.message}",
            given={"returned": output},
        )
    except TpuError as refused:
        return refused
