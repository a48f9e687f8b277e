"""Rules of ops whose extents are operands, and programs with open dimensions, read for given sizes.

Sections:

    Operations read by the rule of another
    Ops whose extents are operands
    Programs with unknown dimensions, read for given sizes
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import AnyShape, PrimitiveType, Shape, ShapeError, refuse
from shape_inference.bounds import LONGEST_EXPRESSION, MAX_EXTENT

from ...core.graph import NOTHING, Instruction
from ...running import Evaluator
from ..reading.operation import OperationReading
from ..reading.reader import StablehloReader
from ..reading.rules import RULES, Results, Rule, hlo_names, rule, wrap_rule
from ..reading.scope import Scope
from ..syntax.trees import Argument, Dense, Form, ParsedOperation, Region, TensorType, Type
from .arrays import bounded_reshape

# ----------------------------------------------------------------------------
# Operations read by the rule of another, on other operands, attributes or types


def apply_rule(
    op: OperationReading,
    name: str,
    operands: tuple[Instruction, ...],
    *,
    attributes: Mapping[str, Any] | None = None,
    results: tuple[Type, ...] | None = None,
    by: Rule | None = None,
) -> Results:
    """Apply the rule of the operation `name`, or the rule `by`, to these operands, attributes and result types."""
    form = Form(
        name,
        op.attributes if attributes is None else attributes,
        tuple([each.shape for each in operands]),
        op.operation.result_types if results is None else results,
    )
    reading = OperationReading(op.scope, evolve(op.operation, form=form), operands)
    found = (by or RULES[name])(reading)
    op.keys_read |= reading.keys_read
    return found


# ----------------------------------------------------------------------------
# Ops whose extents are operands: each becomes the static op if the extents follow from constants or types

MOST_EVALUATED = 4096
"""The limit of instructions evaluated for one extent."""


def evaluate_constant(instruction: Instruction) -> Any:
    """The value of an instruction that depends only on constants and static extents; None for any other."""
    evaluator, known = Evaluator(), dict[Instruction, Any]()
    stack = [instruction]
    while stack and len(known) < MOST_EVALUATED:
        each = stack[-1]
        if each.opcode == "get_dimension_size" and not each.operands[0].shape.is_dynamic:  # type: ignore[union-attr]
            extents = each.operands[0].shape.dims  # type: ignore[union-attr]
            known[each] = each.shape.dtype.dtype.type(extents[each.attributes.dimension])  # type: ignore[union-attr]
        missing = [] if each in known else [operand for operand in each.operands if operand not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        if each not in known:
            given = [known[operand] for operand in each.operands]
            pure = each.opcode != "parameter" and not any(value is None for value in given)
            known[each] = evaluator.value(each, given, (0, 0)) if pure else None
    return known.get(instruction)


def constant_integers(op: OperationReading, number: int) -> tuple[int, ...]:
    """The integers of an operand. Raises Fault if they do not follow from constants."""
    found = evaluate_constant(op.operands[number])
    if found is None:
        hint = "pass the unknown sizes: xb.parse_stablehlo(..., shapes=...)"
        op.fail(
            "missing_shape", f"operand {number}, %{op.operands[number].name}, cannot be computed from constants", hint
        )
    return tuple(found.reshape(-1).tolist())


def has_unknown_extents(type_: Any) -> bool:
    """Whether a type is a tensor of numbers with unknown extents."""
    return isinstance(type_, TensorType) and None in type_.dims and isinstance(type_.element, PrimitiveType)


def matches_type(shape: AnyShape, type_: TensorType) -> bool:
    """Whether a shape has the element type and the known extents of a type."""
    return (
        isinstance(shape, Shape)
        and shape.dtype is type_.element
        and len(shape.dims) == len(type_.dims)
        and all(wanted in (None, extent) for extent, wanted in zip(shape.dims, type_.dims, strict=True))
    )


def _with_extents(op: OperationReading, dims: tuple[int, ...]) -> tuple[Shape]:
    """The result type with these extents, which must agree with the written ones."""
    written: Any = op.operation.result_types[0]
    stated = Shape(written.element, dims) if has_unknown_extents(written) else op.array_shape
    if not matches_type(stated, written) if has_unknown_extents(written) else stated.dims != dims:
        op.fail("shape_mismatch", f"the operand specifies the extents {list(dims)}, but the result type is {written}")
    return (stated,)


def _result_type(op: OperationReading, number: int) -> tuple[Shape]:
    """The result type from the operand of extents if it is constant, else from the text."""
    found = evaluate_constant(op.operands[number])
    return (op.array_shape,) if found is None else _with_extents(op, tuple(found.reshape(-1).tolist()))


@rule(*hlo_names("dynamic_reshape"))
def dynamic_reshape(op: OperationReading) -> Results:
    operand, _ = op.expect_operands(2)
    if not has_unknown_extents(op.operation.result_types[0]) and op.array_shape.is_dynamic:
        return bounded_reshape(op)
    return apply_rule(op, "stablehlo.reshape", (operand,), results=_result_type(op, 1))


@rule(*hlo_names("dynamic_broadcast_in_dim"))
def dynamic_broadcast_in_dim(op: OperationReading) -> Results:
    operand, _ = op.expect_operands(2)
    op.ignore("known_expanding_dimensions", "known_nonexpanding_dimensions")
    return apply_rule(op, "stablehlo.broadcast_in_dim", (operand,), results=_result_type(op, 1))


@wrap_rule(*hlo_names("set_dimension_size"))
def set_dimension_size(op: OperationReading, hlo_rule: Rule) -> Results:
    """The operand itself if the size is the full extent and the result type is static."""
    operand, size = op.expect_operands(2)
    shape, written = operand.shape, op.operation.result_types[0]
    known = evaluate_constant(size) if shape == written else None
    if known is not None and known == shape.dims[op.integer("dimension")]:  # type: ignore[union-attr]
        return operand
    return hlo_rule(op)


@rule(*hlo_names("dynamic_iota"))
def dynamic_iota(op: OperationReading) -> Results:
    op.expect_operands(1)
    return apply_rule(op, "stablehlo.iota", (), results=_result_type(op, 0))


@rule(*hlo_names("dynamic_pad"))
def dynamic_pad(op: OperationReading) -> Results:
    operand, filling, *_ = op.expect_operands(5)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    edges = {name: constant_integers(op, number) for number, name in enumerate(names, 2)}
    return apply_rule(op, "stablehlo.pad", (operand, filling), attributes={**op.attributes, **edges})


@rule(*hlo_names("dynamic_gather"))
def dynamic_gather(op: OperationReading) -> Results:
    operand, indices, _ = op.expect_operands(3)
    sizes = {"slice_sizes": constant_integers(op, 2)}
    return apply_rule(op, "stablehlo.gather", (operand, indices), attributes={**op.attributes, **sizes})


@rule(*hlo_names("dynamic_conv"))
def dynamic_conv(op: OperationReading) -> Results:
    lhs, rhs, padding = op.expect_operands(3)
    constant_integers(op, 2)
    edges = {"padding": Dense(padding.shape, evaluate_constant(padding))}
    return apply_rule(op, "stablehlo.convolution", (lhs, rhs), attributes={**op.attributes, **edges})


@rule(*hlo_names("real_dynamic_slice"))
def real_dynamic_slice(op: OperationReading) -> Results:
    """A slice if all operands are constant; a dynamic_slice if only the starts are not."""
    operand, begin, *_ = op.expect_operands(4)
    if evaluate_constant(begin) is not None:
        names = ("start_indices", "limit_indices", "strides")
        ranges = {name: constant_integers(op, number) for number, name in enumerate(names, 1)}
        return apply_rule(op, "stablehlo.slice", (operand,), attributes={**op.attributes, **ranges})
    if set(constant_integers(op, 3)) - {1}:
        op.fail(
            "missing_shape", "a slice with strides other than 1 needs start indices that can be computed from constants"
        )
    sizes = _slice_extents(op)
    starts = [_scalar_at(op, begin, number) for number in range(len(sizes))]
    return op.record_result("dynamic_slice", operand, tuple(starts), dynamic_slice_sizes=sizes)


def _slice_extents(op: OperationReading) -> tuple[int, ...]:
    """The extents of a slice, from the text or from constant differences of end and begin."""
    written: Any = op.operation.result_types[0]
    begins, ends = (_constant_elements(op.operands[number]) for number in (1, 2))
    pairs = zip(begins, ends, strict=True)
    found = [None if begin is None or end is None else end - begin for begin, end in pairs]
    extents = [known if dim is None else dim for dim, known in zip(written.dims, found, strict=False)]
    if len(extents) != len(written.dims) or None in extents:
        op.fail("missing_shape", f"the extents of {written} cannot be computed from constants")
    return tuple(extents)  # type: ignore[arg-type]


def _constant_elements(vector: Instruction) -> list[int | None]:
    """The elements of a vector; None for each that is not constant."""
    known: dict[Instruction, list[int | None]] = {}
    stack = [vector]
    while stack:
        each = stack[-1]
        is_sum = each.opcode == "add" and isinstance(each.shape, Shape) and each.shape.rank == 1
        parts = each.operands if is_sum or each.opcode == "concatenate" else ()
        if missing := [part for part in parts if part not in known]:
            stack += missing
            continue
        stack.pop()
        if is_sum:
            pairs = zip(*(known[part] for part in parts), strict=True)
            known[each] = [None if None in pair else sum(pair) for pair in pairs]
        elif parts:
            known[each] = [element for part in parts for element in known[part]]
        elif each not in known:
            found = evaluate_constant(each)
            count = each.shape.dims[0] if isinstance(each.shape, Shape) and each.shape.rank else 1
            known[each] = [None] * count if found is None else found.reshape(-1).tolist()
    return known[vector]


def _scalar_at(op: OperationReading, vector: Instruction, number: int) -> Instruction:
    one = op.emit("slice", vector, start_indices=(number,), limit_indices=(number + 1,), strides=(1,))
    return op.emit("reshape", one, new_sizes=())


# ----------------------------------------------------------------------------
# Programs with unknown dimensions, read for given sizes
#
# Types follow from the operands, and calls are inlined. A size is named as in JAX ("b"), or by argument and
# dimension ("arg0.1"). Values that depend only on sizes become constants, so that all extents are known.

MOST_FOLDED = 64
"""Larger integer arrays are not folded to constants."""

_SPECIFIED = re.compile(r"\.shape = \(([^()]*)\)")
_ELEMENT_TYPE_ONLY = re.compile(r"\w+\.(?:bitcast_convert|convert|convolution|dot|dot_general)\Z")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


class SizedReader(StablehloReader):
    """Reads a module whose entry has unknown dimensions, for given sizes."""

    def __init__(
        self, tree: ParsedOperation, text: str, file: str | None, counts: Any, sizes: Mapping[str, int]
    ) -> None:
        super().__init__(tree, text, file, counts)
        self.sizes, self.used = sizes, set[str]()
        self.actual: dict[ParsedOperation, tuple[Instruction, ...]] = {}
        self.inlined: list[str] = []
        self.entry_region: Region | None = None
        self.written: dict[str, Any] = {}

    def scope(self, function: str, outer: Scope | None = None) -> Scope:
        return SizedScope(self, function, outer)

    def shape(self, type_: Any, operation: ParsedOperation) -> AnyShape:
        if not has_unknown_extents(type_):
            return super().shape(type_, operation)
        for value, written in zip(self.actual.get(operation, ()), operation.operand_types, strict=False):
            if written == type_:
                return value.shape
        if not _ELEMENT_TYPE_ONLY.match(operation.name):
            self.fail(
                "missing_shape",
                f"{operation.name}: no operand determines the extents of {type_}",
                place=operation.place,
            )
        return Shape(type_.element, tuple(1 if dim is None else dim for dim in type_.dims))

    def argument_shape(self, reading: OperationReading, number: int, argument: Argument) -> AnyShape:
        return reading.operands[number].shape

    def is_inlined(self, name: str) -> bool:
        """Whether a function has unknown dimensions, or takes them as arguments."""
        function = self.functions[name]
        notes = function.attributes.get("arg_attrs", ())
        takes_sizes = any("jax.global_constant" in getattr(note, "fields", ()) for note in notes)
        return takes_sizes or any(has_unknown_extents(type_) for each in function.walk() for type_ in _types(each))

    def _function(self, name: str, is_entry: bool) -> Any:
        if is_entry:
            self.functions[name] = self._with_static_types(self.functions[name])
        elif self.is_inlined(name):
            return None
        return super()._function(name, is_entry)

    # The entry

    def _with_static_types(self, function: ParsedOperation) -> ParsedOperation:
        """The function with static argument types."""
        words = iter(_shapes_in_assertions(function))
        region = function.regions[0]
        self.written = {each.name: each.type for each in region.arguments}
        arguments = tuple([
            evolve(argument, type=self._static_shape(argument, next(words, ""), function))
            if has_unknown_extents(argument.type) else argument
            for argument in region.arguments
        ])  # fmt: skip
        if unknown := sorted(set(self.sizes) - self.used):
            self.fail(
                "undefined_name",
                f"shapes= contains {unknown[0]!r}, which is not an unknown dimension of the program",
                place=function.place,
            )
        self.entry_region = evolve(region, arguments=arguments)
        return evolve(function, regions=(self.entry_region,))

    def _static_shape(self, argument: Argument, specified: str, function: ParsedOperation) -> Shape:
        type_: Any = argument.type
        words = [word.strip() for word in specified.split(",") if word.strip()]
        words = words if len(words) == len(type_.dims) else [""] * len(type_.dims)
        dims = [
            self._size(argument, index, word, function) if dim is None else dim
            for index, (dim, word) in enumerate(zip(type_.dims, words, strict=True))
        ]
        try:
            return Shape(type_.element, tuple(dims))
        except ShapeError as error:
            self.fail(
                error.kind, f"with these sizes, %{argument.name} is invalid: {error.message}", place=function.place
            )

    def _size(self, argument: Argument, index: int, word: str, function: ParsedOperation) -> int:
        place = f"{argument.name}.{index}"
        for key in (place, word):
            if key in self.sizes:
                self.used.add(key)
                return self.sizes[key]
        try:
            found = self._evaluate_expression(word)
        except ShapeError as error:
            shown = word if len(word) <= 80 else f"{word[:77]}..."
            message = f"dimension {index} of %{argument.name} is {shown}: {error.message}"
            self.fail(error.kind, message, place=function.place)
        if found is None:
            message = f"dimension {index} of %{argument.name}, {argument.type}, is unknown"
            named = f"{word!r} or {place!r}" if word else repr(place)
            hint = f"pass its size as {named}, for example shapes={{{word or place!r}: 4}}"
            self.fail("missing_shape", message, hint, place=function.place)
        return found

    def _evaluate_expression(self, word: str) -> int | None:
        """The value of an expression such as 2*b + 1; None if it cannot be computed.

        Raises ShapeError (overflow) for an expression that is too long, or has a value of more than 63 bits.
        """
        if len(word) > LONGEST_EXPRESSION:
            refuse(
                "overflow",
                f"the expression has {len(word):,} characters, more than the limit of {LONGEST_EXPRESSION:,}",
            )
        try:
            return self._evaluate_node(ast.parse(word, mode="eval").body)
        except ShapeError:
            raise
        except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
            return None

    def _evaluate_node(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            self.used.add(node.id)
            return self.sizes[node.id]
        if isinstance(node, ast.BinOp):
            found = int(_OPERATORS[type(node.op)](self._evaluate_node(node.left), self._evaluate_node(node.right)))
            if abs(found) > MAX_EXTENT:
                refuse("overflow", "the value of the expression exceeds 2^63-1")
            return found
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        raise ValueError(node)


def _types(operation: ParsedOperation) -> tuple[Any, ...]:
    arguments = [each.type for region in operation.regions for each in region.arguments]
    return (*operation.operand_types, *operation.result_types, *arguments)


def _shapes_in_assertions(function: ParsedOperation) -> list[str]:
    """The shapes of arguments with unknown dimensions, as the messages of JAX's assertions state them."""
    for each in function.regions[0].operations:
        words = each.attributes.get("error_message", "")
        if isinstance(words, str) and (found := _SPECIFIED.findall(words.partition("Obtained")[0])):
            return found
    return []


class SizedScope(Scope):
    """The scope of a computation in which small integers that depend only on sizes become constants."""

    reader: SizedReader

    def __init__(self, reader: SizedReader, function: str, outer: Scope | None = None) -> None:
        super().__init__(reader, function, outer)
        self.written: dict[str, Any] = {}

    def read(self, region: Region) -> tuple[Instruction, ...]:
        written = {each.name: each.type for each in region.arguments}
        self.written |= self.reader.written if region is self.reader.entry_region else written
        return super().read(region)

    def _define(self, operation: ParsedOperation, results: tuple[Instruction, ...]) -> None:
        super()._define(operation, results)
        self.written |= zip(operation.results, operation.result_types, strict=False)

    def _reuse_form(self, operation: ParsedOperation, known: Any) -> bool:
        return False

    def bind(self, name: str, value: Instruction, place: int) -> None:
        super().bind(name, self._fold(value), place)

    def _fold(self, value: Instruction) -> Instruction:
        shape = value.shape
        if value.opcode in ("constant", "parameter") or not isinstance(shape, Shape) or not shape.dtype.is_integer:
            return value
        found = evaluate_constant(value) if np.prod(shape.dims, dtype=object) <= MOST_FOLDED else None
        if found is None:
            return value
        name = self.names.fresh(f"{value.name}.value")
        literal = {"literal": np.asarray(found)}
        return self.record("constant", (), literal, name, value.where, NOTHING, None)  # type: ignore[arg-type]

    def _operands(self, operation: ParsedOperation) -> tuple[Instruction, ...]:
        found = []
        for name, type_ in zip(operation.operands, operation.operand_types, strict=True):
            value = self.value(name, operation.place)
            self._check_type(operation, value.shape, type_, f"operand %{name}")
            self._check_use(operation, name, type_)
            found.append(value)
        self.reader.actual[operation] = tuple(found)
        return tuple(found)

    def _check_use(self, operation: ParsedOperation, name: str, type_: Any) -> None:
        """Refuse an operand whose type differs from that of the definition of its value."""
        known = self._written_type(name)
        if known is not None and known != type_ and (has_unknown_extents(known) or has_unknown_extents(type_)):
            message = f"{operation.name}: operand %{name} is defined as {known}, but its type here is {type_}"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    def _written_type(self, name: str) -> Any:
        scope: Any = self
        while scope is not None:
            for other in (name, f"{name}#0", name.removesuffix("#0")):
                if other in scope.written:
                    return scope.written[other]
            scope = scope.outer
        return None

    def _check_type(self, operation: ParsedOperation, shape: AnyShape, written: Any, what: str) -> None:
        if not has_unknown_extents(written):
            super()._check_type(operation, shape, written, what)
        elif not matches_type(shape, written):
            message = f"{operation.name}: {what} is {shape}, but its type in the text is {written}"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    def inline(self, op: OperationReading, name: str) -> tuple[Instruction, ...]:
        """Record the operations of a function here, on the operands of a call."""
        reader, function = self.reader, self.reader.functions[name]
        if name in reader.inlined:
            op.fail("nested_too_deep", f"@{name} calls itself; XLA does not support recursion")
        region = function.regions[0]
        if len(region.arguments) != len(op.operands):
            op.fail(
                "arity_mismatch",
                f"expected one operand for each argument of @{name}, got {len(op.operands)} operands for "
                f"{len(region.arguments)} arguments",
            )
        inner = SizedScope(reader, name)
        inner.instructions, inner.names = self.instructions, self.names
        for argument, value in zip(region.arguments, op.operands, strict=True):
            inner.bind(argument.name, value, op.operation.place)
        reader.inlined.append(name)
        found = inner.read_function(function)
        reader.inlined.pop()
        return found


@wrap_rule("func.call")
def call(op: OperationReading, called: Rule) -> Results:
    if isinstance(op.scope, SizedScope):
        name = op.symbol("callee")
        if name in op.scope.reader.functions and op.scope.reader.is_inlined(name):
            return op.scope.inline(op, name)
    return called(op)


@wrap_rule(*hlo_names("custom_call"))
def custom_call(op: OperationReading, custom: Rule) -> Results:
    """An assertion on constant sizes is checked here and dropped."""
    if op.text("call_target_name", "") != "shape_assertion" or not op.operands:
        return custom(op)
    holds = evaluate_constant(op.operands[0])
    if holds is None:
        return custom(op)
    op.ignore(*op.attributes)
    if not holds:
        op.fail(
            "shape_mismatch", f"the sizes violate an assertion of the program: {op.text('error_message', '')[:300]}"
        )
    return None
