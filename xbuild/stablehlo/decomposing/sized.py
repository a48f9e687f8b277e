"""Programs with open dimensions, read for given sizes: types follow from the operands, and calls are inlined.

Sizes are named as JAX names dimensions ("b"), or by argument and dimension ("arg0.1"). What is computed from sizes
alone is a constant, so that the extents of every op are known where it is read.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import AnyShape, Shape

from ...core.graph import NOTHING, Instruction
from ..reading.operation import Reading
from ..reading.reader import Reader
from ..reading.rules import Results, Rule, around, both
from ..reading.scope import Scope
from ..syntax.trees import Argument, Operation, Region
from .dynamic import fits, is_open, value_of

SMALL = 64
"""The limit of elements of an integer array that is kept as a constant."""

_SPECIFIED = re.compile(r"\.shape = \(([^()]*)\)")
_OF_TYPE_ALONE = re.compile(r"\w+\.(?:bitcast_convert|convert|convolution|dot|dot_general)\Z")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


class SizedReader(Reader):
    """Reads a module whose entry has open dimensions."""

    def __init__(self, tree: Operation, text: str, file: str | None, counts: Any, sizes: Mapping[str, int]) -> None:
        super().__init__(tree, text, file, counts)
        self.sizes, self.used = sizes, set[str]()
        self.actual: dict[Operation, tuple[Instruction, ...]] = {}
        self.inlined: list[str] = []
        self.entry_region: Region | None = None
        self.written: dict[str, Any] = {}

    def scope(self, function: str, outer: Scope | None = None) -> Scope:
        return SizedScope(self, function, outer)

    def shape(self, type_: Any, operation: Operation) -> AnyShape:
        if not is_open(type_):
            return super().shape(type_, operation)
        for value, written in zip(self.actual.get(operation, ()), operation.operand_types, strict=False):
            if written == type_:
                return value.shape
        if not _OF_TYPE_ALONE.match(operation.name):
            self.fail("missing_shape", f"{operation.name}: no operand tells what {type_} is", place=operation.place)
        return Shape(type_.element, tuple(1 if dim is None else dim for dim in type_.dims))

    def argument_shape(self, reading: Reading, number: int, argument: Argument) -> AnyShape:
        return reading.operands[number].shape

    def is_inlined(self, name: str) -> bool:
        """Whether a function has open dimensions, or is given them."""
        function = self.functions[name]
        notes = function.attributes.get("arg_attrs", ())
        is_told = any("jax.global_constant" in getattr(note, "fields", ()) for note in notes)
        return is_told or any(is_open(type_) for each in function.walk() for type_ in _types(each))

    def _function(self, name: str, is_entry: bool) -> Any:
        if is_entry:
            self.functions[name] = self._with_sizes(self.functions[name])
        elif self.is_inlined(name):
            return None
        return super()._function(name, is_entry)

    # The entry

    def _with_sizes(self, function: Operation) -> Operation:
        """The function with a static type for each argument."""
        words = iter(_specified(function))
        region = function.regions[0]
        self.written = {each.name: each.type for each in region.arguments}
        arguments = tuple([
            evolve(each, type=self._static(each, next(words, ""), function)) if is_open(each.type) else each
            for each in region.arguments
        ])  # fmt: skip
        if unknown := sorted(set(self.sizes) - self.used):
            self.fail("undefined_name", f"there is no open dimension {unknown[0]!r}", place=function.place)
        self.entry_region = evolve(region, arguments=arguments)
        return evolve(function, regions=(self.entry_region,))

    def _static(self, argument: Argument, specified: str, function: Operation) -> Shape:
        type_: Any = argument.type
        words = [word.strip() for word in specified.split(",") if word.strip()]
        words = words if len(words) == len(type_.dims) else [""] * len(type_.dims)
        dims = [
            self._size(argument, index, word, function) if dim is None else dim
            for index, (dim, word) in enumerate(zip(type_.dims, words, strict=True))
        ]
        return Shape(type_.element, tuple(dims))

    def _size(self, argument: Argument, index: int, word: str, function: Operation) -> int:
        place = f"{argument.name}.{index}"
        for key in (place, word):
            if key in self.sizes:
                self.used.add(key)
                return self.sizes[key]
        found = self._computed(word)
        if found is None:
            message = f"dimension {index} of %{argument.name}, {argument.type}, is open"
            named = f"{word!r} or {place!r}" if word else repr(place)
            hint = f"state its size under {named}, as in shapes={{{word or place!r}: 4}}"
            self.fail("missing_shape", message, hint, place=function.place)
        return found

    def _computed(self, word: str) -> int | None:
        """The value of an expression of names, such as 2*b + 1."""
        try:
            return self._value(ast.parse(word, mode="eval").body)
        except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
            return None

    def _value(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            self.used.add(node.id)
            return self.sizes[node.id]
        if isinstance(node, ast.BinOp):
            return int(_OPERATORS[type(node.op)](self._value(node.left), self._value(node.right)))
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        raise ValueError(node)


def _types(operation: Operation) -> tuple[Any, ...]:
    arguments = [each.type for region in operation.regions for each in region.arguments]
    return (*operation.operand_types, *operation.result_types, *arguments)


def _specified(function: Operation) -> list[str]:
    """The shapes of arguments with open dimensions, as JAX states them in the words of its assertions."""
    for each in function.regions[0].operations:
        words = each.attributes.get("error_message", "")
        if isinstance(words, str) and (found := _SPECIFIED.findall(words.partition("Obtained")[0])):
            return found
    return []


class SizedScope(Scope):
    """A computation under reading in which small integers that are computed from sizes are constants."""

    reader: SizedReader

    def __init__(self, reader: SizedReader, function: str, outer: Scope | None = None) -> None:
        super().__init__(reader, function, outer)
        self.written: dict[str, Any] = {}

    def read(self, region: Region) -> tuple[Instruction, ...]:
        written = {each.name: each.type for each in region.arguments}
        self.written |= self.reader.written if region is self.reader.entry_region else written
        return super().read(region)

    def _define(self, operation: Operation, results: tuple[Instruction, ...]) -> None:
        super()._define(operation, results)
        self.written |= zip(operation.results, operation.result_types, strict=False)

    def _take(self, operation: Operation, known: Any) -> bool:
        return False

    def bind(self, name: str, value: Instruction, place: int) -> None:
        super().bind(name, self._folded(value), place)

    def _folded(self, value: Instruction) -> Instruction:
        shape = value.shape
        if value.opcode in ("constant", "parameter") or not isinstance(shape, Shape) or not shape.dtype.is_integer:
            return value
        found = value_of(value) if np.prod(shape.dims, dtype=object) <= SMALL else None
        if found is None:
            return value
        name = self.names.fresh(f"{value.name}.value")
        literal = {"literal": np.asarray(found)}
        return self.record("constant", (), literal, name, value.where, NOTHING, None)  # type: ignore[arg-type]

    def _operands(self, operation: Operation) -> tuple[Instruction, ...]:
        found = []
        for name, type_ in zip(operation.operands, operation.operand_types, strict=True):
            value = self.value(name, operation.place)
            self._check_type(operation, value.shape, type_, f"operand %{name}")
            self._check_use(operation, name, type_)
            found.append(value)
        self.reader.actual[operation] = tuple(found)
        return tuple(found)

    def _check_use(self, operation: Operation, name: str, type_: Any) -> None:
        """Refuse an operand of another type than is written where the value comes from."""
        known = self._type_of(name)
        if known is not None and known != type_ and (is_open(known) or is_open(type_)):
            message = f"{operation.name}: operand %{name} comes as {known}, and {type_} is written"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    def _type_of(self, name: str) -> Any:
        scope: Any = self
        while scope is not None:
            for other in (name, f"{name}#0", name.removesuffix("#0")):
                if other in scope.written:
                    return scope.written[other]
            scope = scope.outer
        return None

    def _check_type(self, operation: Operation, shape: AnyShape, written: Any, what: str) -> None:
        if not is_open(written):
            super()._check_type(operation, shape, written, what)
        elif not fits(shape, written):
            message = f"{operation.name}: {what} is {shape}, and {written} is written"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    def inlined(self, op: Reading, name: str) -> tuple[Instruction, ...]:
        """The operations of a function recorded here, on the operands of a call."""
        reader, function = self.reader, self.reader.functions[name]
        if name in reader.inlined:
            op.fail("nested_too_deep", f"@{name} calls itself, which XLA has not")
        region = function.regions[0]
        if len(region.arguments) != len(op.operands):
            op.fail("arity_mismatch", f"{len(op.operands)} operands, and @{name} has {len(region.arguments)} arguments")
        inner = SizedScope(reader, name)
        inner.instructions, inner.names = self.instructions, self.names
        for argument, value in zip(region.arguments, op.operands, strict=True):
            inner.bind(argument.name, value, op.operation.place)
        reader.inlined.append(name)
        found = inner.returned(function)
        reader.inlined.pop()
        return found


@around("func.call")
def call(op: Reading, called: Rule) -> Results:
    if isinstance(op.scope, SizedScope):
        name = op.symbol("callee")
        if name in op.scope.reader.functions and op.scope.reader.is_inlined(name):
            return op.scope.inlined(op, name)
    return called(op)


@around(*both("custom_call"))
def custom_call(op: Reading, custom: Rule) -> Results:
    """An assertion on sizes is decided where the program is read, and is no part of it."""
    if op.text("call_target_name", "") != "shape_assertion" or not op.operands:
        return custom(op)
    holds = value_of(op.operands[0])
    if holds is None:
        return custom(op)
    op.ignore(*op.attributes)
    if not holds:
        op.fail("shape_mismatch", f"the sizes do not hold: {op.text('error_message', '')[:300]}")
    return None
