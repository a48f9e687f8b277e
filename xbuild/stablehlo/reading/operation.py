"""One operation under reading, as its rule sees it: operands, attributes by type, and what records instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from shape_inference import AnyShape, Shape
from shape_inference.elided import ElidedArray

from ...core.attributes import Array
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...text.spelling.faults import Fault
from ..syntax.attributes import Dense, Enumeration, Record, Symbol
from ..syntax.trees import Operation

if TYPE_CHECKING:
    from .scope import Scope

MISSING: Any = object()
MOST_LISTED = 1 << 20
"""The limit of numbers of a list that is written as one number."""


class Reading:
    """What a rule is given: an operation, its operands, and the computation that its instructions are recorded in."""

    def __init__(self, scope: Scope, operation: Operation, operands: tuple[Instruction, ...]) -> None:
        self.scope, self.operation, self.operands = scope, operation, operands
        self.attributes: Mapping[str, Any] = operation.attributes
        self.asked: set[str] = set()

    def fail(self, kind: str, message: str, *hints: str) -> NoReturn:
        raise Fault(kind, f"{self.operation.name}: {message}", self.operation.place, hints)

    # Types

    @property
    def shapes(self) -> tuple[AnyShape, ...]:
        """The shapes of the results, as they are written."""
        return tuple([self.scope.reader.shape(each, self.operation) for each in self.operation.result_types])

    @property
    def shape(self) -> AnyShape:
        """The shape of the only result."""
        if len(self.operation.result_types) != 1:
            self.fail("arity_mismatch", f"{len(self.operation.result_types)} results are written, and there is one")
        return self.shapes[0]

    @property
    def array_shape(self) -> Shape:
        shape = self.shape
        if not isinstance(shape, Shape):
            self.fail("shape_mismatch", f"the result is a tensor, and {shape} is written")
        return shape

    def wants(self, count: int) -> tuple[Instruction, ...]:
        """The operands, of which there must be so many."""
        if len(self.operands) != count:
            self.fail("arity_mismatch", f"{len(self.operands)} operands, and {count} are wanted")
        return self.operands

    # Attributes

    def get(self, key: str, default: Any = MISSING) -> Any:
        """The attribute as it was parsed; without a default it has to be there."""
        self.asked.add(key)
        found = self.attributes.get(key, default)
        if found is MISSING:
            self.fail("missing_attribute", f"attribute {key!r} is missing")
        return found

    def has(self, key: str) -> bool:
        self.asked.add(key)
        return key in self.attributes

    def integer(self, key: str, default: Any = MISSING) -> Any:
        found = self.get(key, default)
        if isinstance(found, Dense) and found.array.size == 1:
            found = found.array.item()
        if found is not default and (not isinstance(found, int) or isinstance(found, bool)):
            self._wrong(key, "an integer")
        return found

    def integers(self, key: str, default: Any = MISSING) -> Any:
        """A list of integers, whether it is an array, a list or a dense tensor of rank 1."""
        found = self.get(key, default)
        if found is default:
            return found
        if isinstance(found, Dense):
            found = tuple(self._elements(key, found).reshape(-1).tolist())
        if not isinstance(found, tuple) or not all(type(each) is int for each in found):
            self._wrong(key, "a list of integers")
        return found

    def flags(self, key: str, default: Any = MISSING) -> Any:
        found = self.get(key, default)
        if isinstance(found, Dense):
            found = tuple(self._elements(key, found).reshape(-1).tolist())
        if found is not default and not (isinstance(found, tuple) and all(type(each) is bool for each in found)):
            self._wrong(key, "a list of true and false")
        return found

    def table(self, key: str, default: Any = MISSING) -> Any:
        """A tensor of integers of rank 2, as a tuple of rows."""
        found = self.get(key, default)
        if found is default:
            return found
        rows = self._elements(key, found) if isinstance(found, Dense) else None
        if rows is None or rows.ndim != 2:
            self._wrong(key, "a dense tensor of rank 2")
        return tuple(tuple(row) for row in rows.tolist()) if rows.size else ()

    def flag(self, key: str, default: Any = MISSING) -> Any:
        found = self.get(key, default)
        if not isinstance(found, bool) and found is not default:
            self._wrong(key, "true or false")
        return found

    def number(self, key: str) -> float:
        found = self.get(key)
        if not isinstance(found, int | float) or isinstance(found, bool):
            self._wrong(key, "a number")
        return float(found)

    def text(self, key: str, default: Any = MISSING) -> Any:
        found = self.get(key, default)
        if not isinstance(found, str) and found is not default:
            self._wrong(key, "a string")
        return found

    def word(self, key: str, default: Any = MISSING) -> Any:
        """The word of an enumeration, such as LT."""
        found = self.get(key, default)
        if isinstance(found, Enumeration):
            return found.word
        if found is default or isinstance(found, str):
            return found
        return self._wrong(key, "a word such as #stablehlo<precision DEFAULT>")

    def words(self, key: str) -> tuple[str, ...]:
        """The words of a list of enumerations; no words where it is missing."""
        found = self.get(key, ())
        if not isinstance(found, tuple) or not all(isinstance(each, Enumeration) for each in found):
            self._wrong(key, "a list of words such as #stablehlo<precision DEFAULT>")
        return tuple([each.word for each in found])

    def symbol(self, key: str) -> str:
        found = self.get(key)
        if not isinstance(found, Symbol):
            self._wrong(key, "the name of a function, such as @main,")
        return found.name

    def fields(self, key: str, default: Any = MISSING) -> Mapping[str, Any]:
        """The named parts of an attribute such as #stablehlo.gather<...>."""
        found = self.get(key, default)
        if isinstance(found, Record):
            return found.fields
        if found is default:
            return {} if found is None else found
        return self._wrong(key, "an attribute with named parts")

    def literal(self, key: str) -> Array | ElidedArray:
        found = self.get(key)
        if not isinstance(found, Dense):
            self._wrong(key, "a dense tensor")
        return found.array  # type: ignore[no-any-return]

    def ignore(self, *keys: str) -> None:
        """Take note of attributes that mean nothing to the program."""
        self.asked.update(keys)

    def _elements(self, key: str, found: Dense) -> Array:
        if not isinstance(found.array, np.ndarray) or found.array.dtype.kind not in "iub":
            self._wrong(key, "a list of integers")
        if found.is_splat and found.array.size > MOST_LISTED:
            self.fail("overflow", f"attribute {key!r}: one number is written for a list of {found.array.size:,}")
        return found.array

    def _wrong(self, key: str, wanted: str) -> NoReturn:
        self.fail("invalid_attribute", f"attribute {key!r}: {wanted} is wanted")

    # Recording

    def emit(self, opcode: str, *arguments: Any, wanted: str = "", **attributes: Any) -> Instruction:
        """Record an instruction that is not yet a result; it gets a name near the wanted one."""
        where, notes = self.scope.reader.origin(self.operation, self.scope)
        name = self.scope.names.fresh(wanted or OPS[opcode].spelling)
        return self.scope.record(opcode, arguments, attributes, name, where, notes, self.operation)

    def result(self, opcode: str, *arguments: Any, **attributes: Any) -> Instruction:
        """Record the instruction that the operation is; it has its name, its location and its notes."""
        where, notes = self.scope.reader.origin(self.operation, self.scope)
        notes = {**notes, **self.scope.reader.notes(self)}
        name = self.scope.names.of(self.operation, OPS[opcode].spelling)
        return self.scope.record(opcode, arguments, attributes, name, where, notes, self.operation)

    def note(self, made: Instruction, **notes: Any) -> None:
        """Add annotations to an instruction that was recorded just now."""
        object.__setattr__(made, "annotations", {**made.annotations, **notes})

    def elements(self, of: Instruction, count: int | None = None) -> tuple[Instruction, ...]:
        """The elements of a tuple, as the results of the operation."""
        names = self.operation.results or [""] * len(self.operation.result_types)
        found = []
        for index in range(len(self.operation.result_types) if count is None else count):
            wanted = self.scope.names.element(names[index] if index < len(names) else "", of.name, index)
            found.append(self.emit("get_tuple_element", of, index=index, wanted=wanted))
        return tuple(found)

    def one_or_elements(self, instruction: Instruction) -> Instruction | tuple[Instruction, ...]:
        """The results of an op that gives a tuple where there are several."""
        return instruction if len(self.operation.result_types) == 1 else self.elements(instruction)

    def region(self, number: int, role: str, parameters: int | None = None) -> Computation:
        """A region without captured values as a computation; values that are constants are recorded again in it."""
        return self.scope.closed_region(self, number, role, parameters)

    def wants_regions(self, count: int) -> None:
        if len(self.operation.regions) != count:
            self.fail("arity_mismatch", f"{len(self.operation.regions)} regions, and {count} are wanted")
