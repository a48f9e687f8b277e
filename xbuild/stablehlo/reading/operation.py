"""One operation as its reading rule sees it: operands, attributes, annotations, and what records instructions.

Sections:

    Annotations of HLO text, from attributes without a meaning for the program
    OperationReading: an operation as its rule sees it
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from shape_inference import AnyShape, Shape
from shape_inference.bounds import MOST_LISTED
from shape_inference.elided import ElidedArray

from ...core.attributes import Array
from ...core.graph import Computation, Instruction
from ...core.identifiers import is_identifier
from ...core.op import OPS
from ...text.annotations import Raw
from ...text.scanner import Fault
from ...text.shardings import stated_sharding
from ..spelling import UNPREFIXED
from ..syntax.trees import Dense, Enumeration, ParsedOperation, Record, Symbol

if TYPE_CHECKING:
    from .scope import Scope


# ----------------------------------------------------------------------------
# Annotations of HLO text, from attributes without a meaning for the program


def read_annotations(attributes: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The annotations in the discardable attributes of an operation or argument; faults are at `place`."""
    found: dict[str, Any] = {}
    pairs = _frontend_attributes(attributes, place)
    if pairs:
        found["frontend_attributes"] = pairs
    sharding = attributes.get("mhlo.sharding")
    if isinstance(sharding, str) and sharding.startswith("{"):
        found["sharding"] = Raw(_check_sharding(sharding, place))
    return found


def _check_sharding(sharding: str, place: int) -> str:
    """A sharding in HLO's text. Raises Fault if it is not valid."""
    try:
        stated_sharding(sharding)
    except Fault as fault:
        raise Fault("invalid_attribute", f"mhlo.sharding: {fault.message}", place, fault.hints) from None
    return sharding


def _frontend_attributes(attributes: Mapping[str, Any], place: int) -> dict[str, str]:
    """The frontend attributes, with Shardy's shardings under XLA's names."""
    found = read_frontend_attributes(attributes, place)
    for key in ("sdy.sharding", "sdy.sharding_rule"):
        if key in attributes:
            found[f"xla.{key}"] = attribute_text(attributes[key])
    return found


def read_frontend_attributes(attributes: Mapping[str, Any], place: int) -> dict[str, str]:
    """The frontend attributes of an operation or module. Raises Fault if HLO text cannot hold a key."""
    given = attributes.get("mhlo.frontend_attributes")
    if not isinstance(given, Record):
        return {}
    found = {key: value if isinstance(value, str) else attribute_text(value) for key, value in given.fields.items()}
    if odd := next((key for key in found if not is_identifier(key)), None):
        raise Fault(
            "invalid_attribute", f"mhlo.frontend_attributes: HLO text cannot represent the key {odd[:60]!r}", place
        )
    return found


def unprefixed_attributes(
    attributes: Mapping[str, Any], texts: Mapping[str, str], known: Container[str]
) -> dict[str, str]:
    """Frontend attributes for attributes that are not `known` and have no dialect prefix.

    MLIR allows them on every op and gives them no meaning. Aliases in them are expanded.
    """
    found = {}
    for key, text in texts.items():
        if "." not in key and key not in known and is_identifier(name := f"{UNPREFIXED}{key}"):
            found[name] = attribute_text(attributes[key]) if "#" in text and '"' not in text else text
    return found


def attribute_text(value: Any) -> str:
    """The text of an attribute."""
    if isinstance(value, Record):
        return value.text if not value.kind else f"#{value.kind}<{value.text}>"
    if isinstance(value, Symbol):
        return f"@{value.name}"
    if isinstance(value, Enumeration):
        return f"#{value.kind}<{value.word}>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


# ----------------------------------------------------------------------------
# OperationReading: an operation as its rule sees it

MISSING: Any = object()
"""The default of an attribute that is required."""


class OperationReading:
    """The argument of a rule: an operation, its operands, and the scope in which its instructions are recorded."""

    def __init__(self, scope: Scope, operation: ParsedOperation, operands: tuple[Instruction, ...]) -> None:
        self.scope, self.operation, self.operands = scope, operation, operands
        self.attributes: Mapping[str, Any] = operation.attributes
        self.keys_read: set[str] = set()
        self.made: Instruction | None = None

    def fail(self, kind: str, message: str, *hints: str) -> NoReturn:
        raise Fault(kind, f"{self.operation.name}: {message}", self.operation.place, hints)

    # Types

    @property
    def shapes(self) -> tuple[AnyShape, ...]:
        """The shapes of the results in the text."""
        return tuple([self.scope.reader.shape(each, self.operation) for each in self.operation.result_types])

    @property
    def shape(self) -> AnyShape:
        """The shape of the only result in the text."""
        if len(self.operation.result_types) != 1:
            self.fail("arity_mismatch", f"expected 1 result, got {len(self.operation.result_types)}")
        return self.shapes[0]

    @property
    def array_shape(self) -> Shape:
        shape = self.shape
        if not isinstance(shape, Shape):
            self.fail("shape_mismatch", f"expected a tensor as the result, got {shape}")
        return shape

    def expect_operands(self, count: int) -> tuple[Instruction, ...]:
        """The operands; Fault if there are not `count`."""
        if len(self.operands) != count:
            self.fail("arity_mismatch", f"expected {count} operand{'s' * (count != 1)}, got {len(self.operands)}")
        return self.operands

    # Attributes

    def get(self, key: str, default: Any = MISSING) -> Any:
        """The attribute as it was parsed; required if there is no default."""
        self.keys_read.add(key)
        found = self.attributes.get(key, default)
        if found is MISSING:
            others = [repr(each[:60]) for each in self.attributes if "." not in each and each not in self.keys_read]
            rest = f"; attribute {others[0]} is unknown" if others else ""
            self.fail("missing_attribute", f"attribute {key!r} is missing{rest}")
        return found

    def has(self, key: str) -> bool:
        self.keys_read.add(key)
        return key in self.attributes

    def integer(self, key: str, default: Any = MISSING) -> Any:
        found = self.get(key, default)
        if isinstance(found, Dense) and found.array.size == 1:
            found = found.array.item()
        if found is not default and (not isinstance(found, int) or isinstance(found, bool)):
            self._wrong(key, "an integer")
        return found

    def integers(self, key: str, default: Any = MISSING) -> Any:
        """A list of integers, written as an array, a list or a dense tensor."""
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
            self._wrong(key, "a list of booleans")
        return found

    def rows(self, key: str, default: Any = MISSING) -> Any:
        """A rank-2 tensor of integers, as a tuple of rows."""
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
        """The words of a list of enumerations; none if it is missing."""
        found = self.get(key, ())
        if not isinstance(found, tuple) or not all(isinstance(each, Enumeration) for each in found):
            self._wrong(key, "a list of words such as #stablehlo<precision DEFAULT>")
        return tuple([each.word for each in found])

    def symbol(self, key: str) -> str:
        found = self.get(key)
        if not isinstance(found, Symbol):
            self._wrong(key, "the name of a function, such as @main")
        return found.name

    def fields(self, key: str, default: Any = MISSING) -> Mapping[str, Any]:
        """The named fields of an attribute such as #stablehlo.gather<...>."""
        found = self.get(key, default)
        if isinstance(found, Record):
            return found.fields
        if found is default:
            return {} if found is None else found
        return self._wrong(key, "an attribute with named fields")

    def literal(self, key: str) -> Array | ElidedArray:
        found = self.get(key)
        if not isinstance(found, Dense):
            self._wrong(key, "a dense tensor")
        return found.array  # type: ignore[no-any-return]

    def ignore(self, *keys: str) -> None:
        """Mark attributes as read that have no meaning for the program."""
        self.keys_read.update(keys)

    def _elements(self, key: str, found: Dense) -> Array:
        if not isinstance(found.array, np.ndarray) or found.array.dtype.kind not in "iub":
            self._wrong(key, "a list of integers")
        if found.is_splat and found.array.size > MOST_LISTED:
            self.fail(
                "overflow",
                f"attribute {key!r}: a splat of {found.array.size:,} numbers exceeds the limit of {MOST_LISTED:,}",
            )
        return found.array

    def _wrong(self, key: str, expected: str) -> NoReturn:
        self.fail("invalid_attribute", f"attribute {key!r}: expected {expected}")

    # Recording

    def emit(self, opcode: str, *arguments: Any, wanted: str = "", **attributes: Any) -> Instruction:
        """Record an intermediate instruction; its name is the wanted one, with a number if taken."""
        where, notes = self.scope.reader.origin(self.operation, self.scope)
        name = self.scope.names.fresh(wanted or OPS[opcode].spelling)
        return self.scope.record(opcode, arguments, attributes, name, where, notes, self.operation)

    def record_result(self, opcode: str, *arguments: Any, **attributes: Any) -> Instruction:
        """Record the instruction of the operation, with its name, location and annotations."""
        where, notes = self.scope.reader.origin(self.operation, self.scope)
        notes = {**notes, **self.scope.reader.notes(self)}
        name = self.scope.names.for_operation(self.operation, OPS[opcode].spelling)
        self.made = self.scope.record(opcode, arguments, attributes, name, where, notes, self.operation)
        return self.made

    def annotate(self, made: Instruction, **notes: Any) -> None:
        """Add annotations to an instruction that was just recorded."""
        object.__setattr__(made, "annotations", {**made.annotations, **notes})

    def elements(self, of: Instruction, count: int | None = None) -> tuple[Instruction, ...]:
        """Record the elements of a tuple as results of the operation."""
        names = self.operation.results or [""] * len(self.operation.result_types)
        found = []
        for index in range(len(self.operation.result_types) if count is None else count):
            wanted = self.scope.names.for_element(names[index] if index < len(names) else "", of.name, index)
            found.append(self.emit("get_tuple_element", of, index=index, wanted=wanted))
        return tuple(found)

    def one_or_elements(self, instruction: Instruction) -> Instruction | tuple[Instruction, ...]:
        """The results of an op that returns a tuple if there are several."""
        return instruction if len(self.operation.result_types) == 1 else self.elements(instruction)

    def region(self, number: int, role: str, parameters: int | None = None) -> Computation:
        """A region as a computation; outer constants are copied into it, and other outer values are refused."""
        from .scope import read_closed_region

        return read_closed_region(self.scope, self, number, role, parameters)

    def expect_regions(self, count: int) -> None:
        if len(self.operation.regions) != count:
            self.fail(
                "arity_mismatch", f"expected {count} region{'s' * (count != 1)}, got {len(self.operation.regions)}"
            )
