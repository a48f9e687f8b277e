"""`parse_stablehlo`: reads a module from StableHLO text, through the tree of its operations.

Sections:

    Shapes of types
    Attributes of a module and its entry: counts of devices, aliases, meshes
    Reader: the functions of a module in the order of their calls, its header, and the places of its operations
    `parse_stablehlo`: from the text of a module, through its tree, to the module
    Texts of several modules
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from attrs import evolve

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, s64
from shape_inference.bounds import MOST_DEVICES

from ...core.graph import NOTHING, Computation, Instruction, MetadataSource, Module, Source, TextSource
from ...core.identifiers import is_identifier, nearest
from ...process.limits import no_collection
from ...properties.placement import MESHES
from ...text.annotations import Raw, frontend_text
from ...text.comments import with_comments
from ...text.counts import Counted, check_counts, infer_counts, problem_of_ids, set_counts
from ...text.header import ALIASES, DONORS, Alias, Header, alias, check_aliases, donor, entries_text
from ...text.scanner import MOST_FAULTS, Fault, HloParseError, Poisoned, Scanner, did_you_mean, parse_error
from ..spelling import TYPES_BY_NAME
from ..syntax.parser import Parser
from ..syntax.trees import (
    UNKNOWN,
    Argument,
    Form,
    FutureType,
    Location,
    OpaqueType,
    ParsedOperation,
    QuantizedType,
    Record,
    Region,
    ScalarType,
    Symbol,
    TensorType,
)
from .either import as_text, module_ranges, split_modules
from .operation import OperationReading, attribute_text, read_annotations, read_frontend_attributes
from .rules import enter_all_rules, make_sized_reader
from .scope import KnownForm, Scope, ScopeNames, annotate_results, make_root, record_parameter

# ----------------------------------------------------------------------------
# Shapes of types, and refusals of types that no value can have

_SHAPES = (Shape, TupleShape, TokenShape)
_SHARDINGS = ("!shard.sharding", "!mesh.sharding")  # exist only while a program is read


def shape_of(reader: StablehloReader, type_: Any, operation: ParsedOperation) -> AnyShape:
    """The shape of a type. Raises Fault if xbuild has no values of the type."""
    if isinstance(type_, _SHAPES):
        return type_
    if isinstance(type_, ScalarType) and (type_.text == "index" or type_.text in TYPES_BY_NAME):
        return Shape(TYPES_BY_NAME.get(type_.text, s64))
    if isinstance(type_, OpaqueType) and type_.text in _SHARDINGS:
        return TupleShape(())
    if isinstance(type_, TensorType) and isinstance(type_.element, QuantizedType) and None not in type_.dims:
        return Shape(type_.element.storage, type_.dims)  # type: ignore[arg-type]
    if isinstance(type_, TensorType) and isinstance(type_.element, QuantizedType):
        reader.fail(
            "element_type_unsupported",
            f"xbuild cannot read quantized types with unknown extents: {type_}",
            place=operation.place,
        )
    if isinstance(type_, TensorType):
        reader.fail(
            "missing_shape",
            f"{type_} has unknown extents; xbuild needs an extent or a bound for every dimension",
            "export the program with fixed sizes",
            place=operation.place,
        )
    what = "a future type" if isinstance(type_, FutureType) else "this type"
    return reader.fail(
        "element_type_unsupported",
        f"xbuild does not support values of {what}: {str(type_)[:80]}",
        place=operation.place,
    )


# ----------------------------------------------------------------------------
# Attributes of a module and its entry: counts of devices, aliases, meshes

_COUNTS = {"mhlo.num_replicas": "num_replicas", "mhlo.num_partitions": "num_partitions"}
GRIDS = ("shard.grid", "mesh.mesh")
_ALIASES = "mhlo.input_output_alias"
_KINDS = {"may_alias": "may-alias", "must_alias": "must-alias"}


def read_header(reader: StablehloReader, header: Header, entry: ParsedOperation, computation: Computation) -> None:
    """Fill the header of a module from its tree."""
    attributes = reader.tree.attributes
    name = attributes.get("sym_name", "")
    header.name = name if not name or is_identifier(name) else nearest(name)
    for key, field in _COUNTS.items():
        if key in attributes:
            setattr(header, field, _read_count(reader, key, attributes[key]))
    header.states_counts = header.num_replicas * header.num_partitions > 1
    if header.num_replicas * header.num_partitions > MOST_DEVICES:
        reader.fail(
            "invalid_attribute",
            f"num_replicas={header.num_replicas} and num_partitions={header.num_partitions} result in more "
            f"devices than the limit of {MOST_DEVICES:,}",
            place=reader.tree.place,
        )
    _count_grid(reader, header)
    _note_aliases(reader, header, entry, computation)
    _note_frontend(reader, header)


def _read_count(reader: StablehloReader, key: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        reader.fail(
            "invalid_attribute",
            f"{key} must be an integer that is 1 or more, got {str(value)[:40]}",
            place=reader.tree.place,
        )
    return value


def _count_grid(reader: StablehloReader, header: Header) -> None:
    """A grid determines the number of partitions if the module does not state it."""
    grids = [each.attributes["shape"] for each in reader.tree.regions[0].operations if each.name in GRIDS]
    counts = [math.prod(sizes) for sizes in grids if isinstance(sizes, tuple) and -1 not in sizes]
    if counts and not header.states_counts and max(counts) <= MOST_DEVICES:
        header.num_partitions, header.states_counts = max(counts), True


def _note_aliases(reader: StablehloReader, header: Header, entry: ParsedOperation, computation: Computation) -> None:
    """Store which results share memory with arguments, and which arguments may be overwritten."""
    notes = [each.fields for each in entry.attributes.get("arg_attrs", ())]
    aliases = [*_module_aliases(reader), *_argument_aliases(reader, entry, computation, notes)]
    donors = [donor(number, ()) for number, fields in enumerate(notes) if fields.get("jax.buffer_donor") is True]
    if aliases:
        check_aliases(Scanner(reader.text), aliases, computation)
        header.annotations[ALIASES] = entries_text(aliases)
    if donors:
        header.annotations[DONORS] = entries_text(donors)


def _argument_aliases(
    reader: StablehloReader, entry: ParsedOperation, computation: Computation, notes: list[Any]
) -> Iterator[Alias]:
    """The aliases stated at arguments."""
    results = len(entry.attributes["function_type"].results)
    is_tuple = isinstance(computation.root.shape, TupleShape) and results != 1
    for number, fields in enumerate(notes):
        output = fields.get("tf.aliasing_output")
        if isinstance(output, int) and 0 <= output < results:
            yield alias((output,) if is_tuple else (), number, (), "may-alias", reader.tree.place)


def _module_aliases(reader: StablehloReader) -> Iterator[Alias]:
    """The aliases stated at the module, as by XLA's conversion and PyTorch/XLA."""
    stated = reader.tree.attributes.get(_ALIASES, ())
    for entry in stated if isinstance(stated, tuple) else (None,):
        fields = entry.fields if isinstance(entry, Record) else {}
        given = fields["alias"].fields if isinstance(fields.get("alias"), Record) else {}
        number, kind = given.get("parameter_number"), given.get("kind")
        place: Any = fields.get("output_index")
        inside = given.get("parameter_index", ())
        if type(number) is not int or number < 0 or kind not in _KINDS or not _is_index(place) or not _is_index(inside):
            message = (
                f"{_ALIASES}: expected entries {{alias = {{kind, parameter_index, parameter_number}}, output_index}}"
            )
            reader.fail("invalid_attribute", message, place=reader.tree.place)
        yield alias(place, number, inside, _KINDS[kind], reader.tree.place)


def _is_index(found: Any) -> bool:
    return isinstance(found, tuple) and all(type(each) is int and each >= 0 for each in found)


def _note_frontend(reader: StablehloReader, header: Header) -> None:
    """Store the frontend attributes of the module, with Shardy's meshes under XLA's name."""
    found = read_frontend_attributes(reader.tree.attributes, reader.tree.place)
    meshes = [each for each in reader.tree.regions[0].operations if each.name == "sdy.mesh"]
    if meshes:
        words = [f"{each.attributes['sym_name']} = {attribute_text(each.attributes['mesh'])}" for each in meshes]
        found[MESHES] = f"{{{', '.join(words)}}}"
    if found:
        header.annotations["frontend_attributes"] = Raw(frontend_text(found))


# ----------------------------------------------------------------------------
# Reader: the functions of a module in the order of their calls, its header, and the places of its operations


class StablehloReader:
    """Reads the module of a tree. A function with faults is None, and its callers are skipped without a fault."""

    def __init__(self, tree: ParsedOperation, text: str, file: str | None, counts: Counted = (None, None)) -> None:
        self.tree, self.text, self.file, self.counts = tree, text, file, counts
        self.functions: dict[str, ParsedOperation] = {}
        self.read: dict[str, Computation | None] = {}
        self.order: list[Computation] = []
        self.known: dict[Form, KnownForm] = {}
        self.collectives: list[tuple[Instruction, ParsedOperation]] = []
        self.closed: dict[Region, Computation] = {}
        self.computation_names = ScopeNames()
        self.faults, self.count, self.is_terse = list[Fault](), 0, False
        self._ends: list[int] | None = None
        self._origins: dict[int, tuple[Source | None, Mapping[str, Any]]] = {}

    def module(self, entry: str | None = None) -> Module:
        """Read the module with this entry function: by default `main`, else the first public function."""
        try:
            found = self._read(entry)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.keep(fault)
        except RecursionError:
            self.keep(Fault("syntax", "this is nested too deeply", 0))
        if self.faults:
            raise self.error()
        return found

    def _read(self, entry: str | None) -> Module:
        self._find_functions()
        name = entry or self._entry()
        if name not in self.functions:
            self.fail("undefined_name", f"undefined function @{name}", *self.near(name, self.functions), place=0)
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
        """Refuse groups and pairs that contradict the stated or inferred counts of devices."""
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
                    self.fail("duplicate_name", f"@{name} is already defined", place=operation.place)
                self.functions[name] = operation
            elif operation.name not in _SYMBOLS:
                self.fail("syntax", f"{operation.name} is outside a function", place=operation.place)

    def _entry(self) -> str:
        if not self.functions:
            self.fail("syntax", "the text contains no function", place=len(self.text))
        public = [name for name, each in self.functions.items() if each.attributes.get("sym_visibility") != "private"]
        return "main" if "main" in self.functions else (public or list(self.functions))[0]

    def _callees_first(self, entry: str) -> list[str]:
        """The entry and all functions that it needs, callees before callers."""
        done: dict[str, None] = {}
        stack, begun = [(entry, False)], set[str]()
        while stack:
            name, is_done = stack.pop()
            if is_done:
                done[name] = None
            elif name not in begun:
                begun.add(name)
                stack.append((name, True))
                stack.extend((each, False) for each in reversed(self._callees(name)) if each not in begun)
        return list(done)

    def _callees(self, name: str) -> list[str]:
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
                made = record_parameter(scope, argument, number, operation)
                if number < len(notes) and notes[number].fields:
                    object.__setattr__(
                        made,
                        "annotations",
                        {**made.annotations, **read_annotations(notes[number].fields, operation.place)},
                    )
            root = make_root(scope, scope.read_function(operation), operation)
            root = annotate_results(scope, root, operation)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.keep(fault)
            return None
        if self.count > count:
            return None
        wanted = name if is_identifier(name) else nearest(name)
        return scope.computation(self.computation_names.fresh(wanted), root)

    def function(self, op: OperationReading, name: str) -> Computation:
        """The computation of a called function."""
        if name not in self.functions:
            op.fail("undefined_name", f"undefined function @{name}", *self.near(name, self.functions))
        if name not in self.read:
            op.fail("nested_too_deep", f"@{name} calls itself; XLA does not support recursion")
        found = self.read[name]
        if found is None:
            raise Poisoned
        return found

    def scope(self, function: str, outer: Scope | None = None) -> Scope:
        return Scope(self, function, outer)

    def add(self, computation: Computation) -> None:
        """Add a computation to the module, after its callees."""
        self.order.append(computation)

    def computation_name(self, scope: Scope, reading: OperationReading, role: str) -> str:
        """The name of a region's computation: the name of the operation and the role of the region."""
        results = reading.operation.results
        named = results[0].partition("#")[0] if results else reading.operation.name.partition(".")[2]
        if named.isdigit():
            named = f"{reading.operation.name.partition('.')[2]}.{named}"
        wanted = f"{named}.{role}"
        return self.computation_names.fresh(wanted if is_identifier(wanted) else nearest(wanted))

    # Types, places, notes

    def shape(self, type_: Any, operation: ParsedOperation) -> AnyShape:
        """The shape of a type. Raises Fault if no value can have it."""
        return shape_of(self, type_, operation)

    def argument_shape(self, reading: OperationReading, number: int, argument: Argument) -> AnyShape:
        """The shape of the region argument that receives the operand of this number."""
        return self.shape(argument.type, reading.operation)

    def origin(self, operation: ParsedOperation, scope: Scope) -> tuple[Source | None, Mapping[str, Any]]:
        """The source of an operation, and its metadata."""
        return self.place_of(operation.location, operation.place, scope)

    def place_of(self, location: Location, place: int, scope: Scope) -> tuple[Source | None, Mapping[str, Any]]:
        if location is UNKNOWN:
            return TextSource.of(self.file or "<mlir>", self.line(place), scope.function), NOTHING
        found = self._origins.get(id(location))
        if found is None:
            found = self._origins[id(location)] = self._origin(location, place, scope)
        return found

    def _origin(self, location: Location, place: int, scope: Scope) -> tuple[Source | None, Mapping[str, Any]]:
        metadata: dict[str, Any] = {"op_name": location.name} if location.name else {}
        if not location.file:
            source = TextSource.of(self.file or "<mlir>", self.line(place), scope.function)
            return source, {"metadata": metadata} if metadata else NOTHING
        metadata |= {"source_file": location.file, "source_line": location.line}
        function = location.function or location.name or scope.function
        return MetadataSource(location.file, location.line, function), {"metadata": metadata}

    def notes(self, reading: OperationReading) -> dict[str, Any]:
        return read_annotations(reading.attributes, reading.operation.place)

    def line(self, place: int) -> int:
        """The line number of a place; functions are read in call order, not in text order."""
        if self._ends is None:
            self._ends = [found.start() for found in _END.finditer(self.text)]
        return bisect.bisect_left(self._ends, place) + 1

    # Faults

    def fail(self, kind: str, message: str, *hints: str, place: int) -> NoReturn:
        raise Fault(kind, message, place, hints)

    def near(self, word: str, words: Iterable[str]) -> tuple[str, ...]:
        return () if self.is_terse else did_you_mean(word, words)

    def keep(self, fault: Fault) -> None:
        """Store a fault; beyond a limit, faults are only counted."""
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


# ----------------------------------------------------------------------------
# `parse_stablehlo`: from the text of a module, through its tree, to the module

_OPEN = re.compile(r"tensor<(?:\d++x)*+\?x[^,<>]*+(?:<[^,<>]*+>)?+>", re.ASCII)
"""A type with an unknown extent; a bounded type has a comma after the element type."""


def parse_tree(text: str, file: str | None = None) -> ParsedOperation:
    """Parse MLIR text to the tree of its module. Raises HloParseError with up to twenty faults."""
    parser = Parser(text)
    try:
        ranges = module_ranges(text)
        if len(ranges) > 1:
            hint = "the second module begins here; xb.parse_stablehlo_modules reads all of them"
            parser.fail("syntax", f"expected one module, got {len(ranges)}", hint, place=ranges[1][0])
        tree = parser.module()
    except Fault as fault:
        parser.keep(fault)
    except RecursionError:
        parser.keep(Fault("syntax", "this is nested too deeply", parser.place))
    if parser.faults:
        raise parse_error(text, file or "<mlir>", parser.faults, parser.count)
    return tree


def module_of(
    tree: ParsedOperation,
    text: str,
    file: str | None = None,
    *,
    entry: str | None = None,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """Read the module from the tree of `text`; `entry` is its entry function, by default `main`."""
    enter_all_rules()
    if shapes or _OPEN.search(text):
        module: Module = make_sized_reader(tree, text, file, (replicas, partitions), shapes or {}).module(entry)
    else:
        module = StablehloReader(tree, text, file, (replicas, partitions)).module(entry)
    annotations = with_comments(module.annotations, text, file or "<mlir>")
    return module if annotations is module.annotations else evolve(module, annotations=annotations)


def parse_stablehlo(
    text: str | bytes,
    file: str | None = None,
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """Read a module from StableHLO. Every shape is inferred and compared with the shape in the text.

    The text is the output of `jax.jit(f).lower(x).as_text()`, `jax.export`, TensorFlow or PyTorch/XLA: MLIR with the
    ops of stablehlo, func and chlo. Bytes may be MLIR bytecode or the output of `jax.export`; jaxlib converts them to
    text. Regions become computations; the outer values that a region uses become elements of a state. Instructions have
    the names of MLIR values (`%total` becomes `total`, `%3` of an add becomes `add.3`). Reports name the user's lines
    if the text has locations, and lines in the text otherwise. Shardings become annotations. `file` is the name of the
    text in error messages. `replicas` and `partitions` override the counts that the module states. `shapes` gives the
    sizes of unknown dimensions, by the names that JAX uses ("b") or by argument and dimension ("arg0.1").

    Raises HloParseError with up to twenty faults, each with its line, its column and what was expected.

    >>> import xbuild as xb
    >>> module = xb.parse_stablehlo('''
    ... func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    ...   %total = stablehlo.add %x, %x : tensor<2xf32>
    ...   return %total : tensor<2xf32>
    ... }''')
    >>> print(module.entry)
    ENTRY main {
      x = f32[2] parameter(0)
      ROOT total = f32[2] add(x, x)
    }

    Source: StableHLO specification; XLA, conversion of StableHLO to HLO.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(f"expected StableHLO as str or bytes, got {type(text).__name__}")
    check_counts(replicas, partitions)
    text = as_text(text, file)
    with no_collection():
        return module_of(parse_tree(text, file), text, file, replicas=replicas, partitions=partitions, shapes=shapes)


# ----------------------------------------------------------------------------
# Texts of several modules, separated by lines `// -----`


def parse_stablehlo_modules(
    text: str | bytes, file: str | None = None, *, replicas: int | None = None, partitions: int | None = None
) -> tuple[Module, ...]:
    """Read several independent modules from one text, separated by `// -----` lines.

    Raises HloParseError, as xb.parse_stablehlo does, for the first module with faults. Line numbers are those of the
    text.

    >>> import xbuild as xb
    >>> one = "module @one { func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> } }"
    >>> [module.name for module in xb.parse_stablehlo_modules(one + "\\n// -----\\n" + one.replace("one", "two"))]
    ['one', 'two']

    Source: MLIR, mlir-opt --split-input-file.
    """
    text = as_text(text, file)
    parts = split_modules(text) or [text]
    return tuple(parse_stablehlo(part, file, replicas=replicas, partitions=partitions) for part in parts)
