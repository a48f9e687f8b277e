"""Reader of a module: its functions in the order of their calls, its header, and the places of its operations."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from shape_inference import AnyShape

from ...core.graph import NOTHING, Computation, Instruction, MetadataSource, Module, Source, TextSource
from ...core.identifiers import is_identifier, nearest
from ...text.codecs.counted import problem_of_ids
from ...text.codecs.header import Header
from ...text.reading.counts import Counted, infer_counts, set_counts
from ...text.spelling.faults import MOST_FAULTS, Fault, HloParseError, Poisoned, parse_error
from ...text.spelling.scanner import did_you_mean
from ..syntax.attributes import Symbol
from ..syntax.locations import UNKNOWN, Location
from ..syntax.trees import Argument, Form, Operation, Region
from .header import GRIDS, read_header
from .names import Names
from .notes import notes_of
from .operation import Reading
from .regions import ended, parameter, with_results
from .scope import Known, Scope
from .value_types import shape_of


class Reader:
    """Reads the module of a tree; a function that had faults is None, and what calls it is not blamed."""

    def __init__(self, tree: Operation, text: str, file: str | None, counts: Counted = (None, None)) -> None:
        self.tree, self.text, self.file, self.counts = tree, text, file, counts
        self.functions: dict[str, Operation] = {}
        self.read: dict[str, Computation | None] = {}
        self.order: list[Computation] = []
        self.known: dict[Form, Known] = {}
        self.collectives: list[tuple[Instruction, Operation]] = []
        self.closed: dict[Region, Computation] = {}
        self.computation_names = Names()
        self.faults, self.count, self.is_terse = list[Fault](), 0, False
        self._ends: list[int] | None = None
        self._origins: dict[int, tuple[Source, Mapping[str, Any]]] = {}

    def module(self, entry: str | None = None) -> Module:
        """The module whose entry is the function of this name: by default `main`, else the first that is public."""
        try:
            found = self._read(entry)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.keep(fault)
        except RecursionError:
            self.keep(Fault("syntax", "this is nested too deep", 0))
        if self.faults:
            raise self.error()
        return found

    def _read(self, entry: str | None) -> Module:
        self._find_functions()
        name = entry or self._entry()
        if name not in self.functions:
            self.fail("undefined_name", f"there is no function @{name}", *self.near(name, self.functions), place=0)
        for each in self._callees_first(name):
            self.read[each] = self._function(each, each == name)
        computation = self.read[name]
        if computation is None or self.faults:
            raise Poisoned
        header = Header()
        read_header(self, header, self.functions[name], computation)
        set_counts(header, *self.counts)
        infer_counts(header, self.order)
        self._check_ids(header)
        return Module(
            header.name or f"module_{computation.name}",
            computation,
            tuple(self.order),
            num_replicas=header.num_replicas,
            num_partitions=header.num_partitions,
            annotations=header.annotations,
        )

    def _check_ids(self, header: Header) -> None:
        """Refuse groups and pairs that the counts of devices, stated or inferred, do not allow."""
        for instruction, operation in self.collectives:
            if problem := problem_of_ids(instruction, header):
                self.keep(Fault("invalid_group", f"{operation.name}: {problem}", operation.place))
        if self.faults:
            raise Poisoned

    def _find_functions(self) -> None:
        for operation in self.tree.regions[0].operations:
            if operation.name == "func.func":
                name = operation.attributes.get("sym_name", "")
                if name in self.functions:
                    self.fail("duplicate_name", f"there is a function @{name} already", place=operation.place)
                self.functions[name] = operation
            elif operation.name not in _SYMBOLS:
                self.fail("syntax", f"{operation.name} stands outside of a function", place=operation.place)

    def _entry(self) -> str:
        if not self.functions:
            self.fail("syntax", "the text has no function", place=len(self.text))
        public = [name for name, each in self.functions.items() if each.attributes.get("sym_visibility") != "private"]
        return "main" if "main" in self.functions else (public or list(self.functions))[0]

    def _callees_first(self, entry: str) -> list[str]:
        """The entry and all functions that it needs, each after those that it calls itself."""
        done: dict[str, None] = {}
        stack, begun = [(entry, False)], set[str]()
        while stack:
            name, is_done = stack.pop()
            if is_done:
                done[name] = None
            elif name not in begun:
                begun.add(name)
                stack.append((name, True))
                stack.extend((each, False) for each in reversed(self._called(name)) if each not in begun)
        return list(done)

    def _called(self, name: str) -> list[str]:
        found: dict[str, None] = {}
        for operation in self.functions[name].walk():
            for value in operation.attributes.values() if operation.name in _CALLING else ():
                for each in value if isinstance(value, tuple) else (value,):
                    if isinstance(each, Symbol) and each.name in self.functions:
                        found[each.name] = None
        return list(found)

    def _function(self, name: str, is_entry: bool) -> Computation | None:
        operation = self.functions[name]
        if not operation.regions:
            self.fail("undefined_name", f"@{name} has no body", place=operation.place)
        scope = self.scope(name)
        count = self.count
        notes = operation.attributes.get("arg_attrs", ())
        try:
            for number, argument in enumerate(operation.regions[0].arguments):
                made = parameter(scope, argument, number, operation)
                if number < len(notes) and notes[number].fields:
                    object.__setattr__(
                        made, "annotations", {**made.annotations, **notes_of(notes[number].fields, operation.place)}
                    )
            root = ended(scope, scope.returned(operation), operation)
            root = with_results(scope, root, operation)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.keep(fault)
            return None
        if self.count > count:
            return None
        wanted = name if is_identifier(name) else nearest(name)
        return scope.computation(self.computation_names.fresh(wanted), root)

    def function(self, op: Reading, name: str) -> Computation:
        """The computation of a function that an operation calls."""
        if name not in self.functions:
            op.fail("undefined_name", f"there is no function @{name}", *self.near(name, self.functions))
        if name not in self.read:
            op.fail("nested_too_deep", f"@{name} calls itself, which XLA has not")
        found = self.read[name]
        if found is None:
            raise Poisoned
        return found

    def scope(self, function: str, outer: Scope | None = None) -> Scope:
        return Scope(self, function, outer)

    def add(self, computation: Computation) -> None:
        """Keep a computation of the module, after those that it calls."""
        self.order.append(computation)

    def computation_name(self, scope: Scope, reading: Reading, role: str) -> str:
        """The name of a region's computation: that of the operation, and what the region is to it."""
        results = reading.operation.results
        named = results[0].partition("#")[0] if results else reading.operation.name.partition(".")[2]
        if named.isdigit():
            named = f"{reading.operation.name.partition('.')[2]}.{named}"
        wanted = f"{named}.{role}"
        return self.computation_names.fresh(wanted if is_identifier(wanted) else nearest(wanted))

    # Types, places, notes

    def shape(self, type_: Any, operation: Operation) -> AnyShape:
        """The shape of a type; a type that no value of a module has is refused."""
        return shape_of(self, type_, operation)

    def argument_shape(self, reading: Reading, number: int, argument: Argument) -> AnyShape:
        """The shape of an argument of a region that is given the operand of this number."""
        return self.shape(argument.type, reading.operation)

    def origin(self, operation: Operation, scope: Scope) -> tuple[Source, Mapping[str, Any]]:
        """Where an operation comes from, and the metadata that say so."""
        return self.place_of(operation.location, operation.place, scope)

    def place_of(self, location: Location, place: int, scope: Scope) -> tuple[Source, Mapping[str, Any]]:
        if location is UNKNOWN:
            return TextSource(self.file or "<mlir>", self.line(place), scope.function), NOTHING
        found = self._origins.get(id(location))
        if found is None:
            found = self._origins[id(location)] = self._origin(location, place, scope)
        return found

    def _origin(self, location: Location, place: int, scope: Scope) -> tuple[Source, Mapping[str, Any]]:
        metadata: dict[str, Any] = {"op_name": location.name} if location.name else {}
        if not location.file:
            source = TextSource(self.file or "<mlir>", self.line(place), scope.function)
            return source, {"metadata": metadata} if metadata else NOTHING
        metadata |= {"source_file": location.file, "source_line": location.line}
        function = location.function or location.name or scope.function
        return MetadataSource(location.file, location.line, function), {"metadata": metadata}

    def notes(self, reading: Reading) -> dict[str, Any]:
        return notes_of(reading.attributes, reading.operation.place)

    def line(self, place: int) -> int:
        """The line of a place; functions are read in the order of their calls, not in that of the text."""
        if self._ends is None:
            self._ends = [found.start() for found in _END.finditer(self.text)]
        return bisect.bisect_left(self._ends, place) + 1

    # Faults

    def fail(self, kind: str, message: str, *hints: str, place: int) -> NoReturn:
        raise Fault(kind, message, place, hints)

    def near(self, word: str, words: Iterable[str]) -> tuple[str, ...]:
        return () if self.is_terse else did_you_mean(word, words)

    def keep(self, fault: Fault) -> None:
        """Record a fault; of very many faults the later ones are only counted."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        self.is_terse = len(self.faults) == MOST_FAULTS

    def error(self) -> HloParseError:
        return parse_error(self.text, self.file or "<mlir>", self.faults, self.count)


_END = re.compile("\n")
_SYMBOLS = ("sdy.mesh", "stablehlo.mesh", *GRIDS)
_CALLING = (
    "func.call",
    "mhlo.call",
    "stablehlo.composite",
    "mhlo.composite",
    "stablehlo.custom_call",
    "mhlo.custom_call",
)
