"""The state of the StableHLO printer, and what its rules share.

Sections:

    Refusals: what StableHLO cannot express
    Attributes of MLIR
    Types of values
    Annotations
    The two tables of rules, by opcode
    Functions of a module, and locations of instructions
    Writer: the state of one function
    One line of text: an op in the form of its row, or in MLIR's generic form
    Computations written in place
    Ops that StableHLO lacks
    Operands of ops that compute in a wider type
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

from attrs import Factory, define

from shape_inference import (
    AnyShape,
    PrimitiveType,
    Shape,
    TokenShape,
    TupleShape,
    XbuildError,
    leaves,
    pred,
)
from shape_inference.bounds import EXPANSION
from shape_inference.escaping import mlir_string
from shape_inference.rules import RuleTable
from shape_inference.trees import flatten, unflatten

from ...core.builder import Builder, Value
from ...core.graph import NOTHING, Computation, Instruction, Source
from ...core.op import OPS
from ...ops.leaves import parameter
from ...properties.effects import HALVES, TRANSFERS
from ...properties.effects import START_OF as ENDS
from ...properties.order import CONTROL_DEP
from ...text.spelling import nested_braces
from ..spelling import EXPANDED, HLO_OPCODE, OP_NAMES, TYPE_NAMES, UNPREFIXED, dictionary, generic, listed
from ..syntax.forms import function_text, printer_of, row_of

# ----------------------------------------------------------------------------
# Refusals: what StableHLO cannot express. The message names the instruction and its line.

KIND = "not_in_stablehlo"


class StablehloError(XbuildError):
    """Raised if StableHLO text cannot express a program or a part of it."""


class NoElementType(StablehloError):
    """The refusal of an element type, before the printer adds the name of the instruction."""


def refuse_type(dtype: PrimitiveType) -> NoReturn:
    raise NoElementType(KIND, f"MLIR has no element type for {dtype} (i1 represents pred)")


def refuse(instruction: Instruction, reason: str, *hints: str) -> NoReturn:
    raise StablehloError(KIND, refusal_text(instruction, reason), hints)


@contextmanager
def name_in_refusal(instruction: Instruction) -> Iterator[None]:
    """Add the name of an instruction to a refusal of an element type inside."""
    try:
        yield
    except NoElementType as error:
        raise StablehloError(KIND, refusal_text(instruction, error.message)) from None


def refusal_text(instruction: Instruction, reason: str) -> str:
    """The message of a refusal: opcode, name and line of the instruction, then the reason."""
    at = f" at {instruction.source}" if instruction.source else ""
    opcode = instruction.opcode.replace("_", "-")
    return f"{opcode} %{instruction.name}{at} cannot be written as StableHLO: {reason} [{KIND}]"


# ----------------------------------------------------------------------------
# Attributes of MLIR: strings, lists of numbers, matrices of ids, dictionaries.


def integers_text(values: Iterable[int]) -> str:
    """A list of 64-bit integers.

    >>> integers_text([1, 2]), integers_text([])
    ('array<i64: 1, 2>', 'array<i64>')
    """
    text = ", ".join(map(str, values))
    return f"array<i64: {text}>" if text else "array<i64>"


def matrix_text(rows: Sequence[Sequence[int]], columns: int) -> str:
    """A matrix of 64-bit integers.

    >>> matrix_text([(0, 1), (2, 3)], 2), matrix_text([], 0)
    ('dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>', 'dense<> : tensor<0x0xi64>')
    """
    text = listed(map(listed, rows)) if rows and columns else ""
    return f"dense<{text}> : tensor<{len(rows)}x{columns}xi64>"


def groups_text(lists: Sequence[Sequence[int]]) -> str:
    """Replica groups as the rows of a matrix; shorter groups are padded with -1."""
    longest = max(map(len, lists), default=0)
    return matrix_text([(*ids, *(-1,) * (longest - len(ids))) for ids in lists], longest)


# ----------------------------------------------------------------------------
# Types of values in MLIR text.

TOKEN = "!stablehlo.token"


def element_type(dtype: PrimitiveType) -> str:
    return TYPE_NAMES.get(dtype) or refuse_type(dtype)


def type_text(shape: AnyShape) -> str:
    """The type of a value; a bounded dimension is `?`, and the encoding states its bound.

    >>> import xbuild as xb
    >>> type_text(xb.f32[2, 3]), type_text(xb.parse_shape("s8[4,<=3]")), type_text(xb.TupleShape((xb.pred[()],)))
    ('tensor<2x3xf32>', 'tensor<4x?xi8, #stablehlo.bounds<?, 3>>', 'tuple<tensor<i1>>')
    """
    if isinstance(shape, TokenShape):
        return TOKEN
    if isinstance(shape, TupleShape):
        return f"tuple<{', '.join(map(type_text, shape.elements))}>"
    if not shape.is_dynamic:
        return f"tensor<{''.join([f'{n}x' for n in shape.dims])}{element_type(shape.dtype)}>"
    return _bounded_type_text(shape)


def _bounded_type_text(shape: Shape) -> str:
    sizes = zip(shape.dims, shape.dynamic, strict=True)
    extents = "".join(["?x" if is_bound else f"{n}x" for n, is_bound in sizes])
    bounds = ", ".join([str(n) if is_bound else "?" for n, is_bound in zip(shape.dims, shape.dynamic, strict=True)])
    return f"tensor<{extents}{element_type(shape.dtype)}, #stablehlo.bounds<{bounds}>>"


def leaf_types(shape: AnyShape) -> list[str]:
    """The types of the arrays and tokens of a value, with tuples flattened."""
    return [type_text(leaf) for leaf in leaves(shape)]


# ----------------------------------------------------------------------------
# Annotations, which any op may have: shardings and frontend attributes.

SHARDING, FRONTEND = "mhlo.sharding", "mhlo.frontend_attributes"
PAIRS = "_xla_send_recv_source_target_pairs"


def notes_text(writer: FunctionWriter, instruction: Instruction) -> str:
    """The dictionary of an instruction's annotations after a blank, or nothing."""
    if not instruction.annotations and instruction.opcode not in EXPANDED:
        return ""
    entries = [*notes_of(instruction)]
    return f" {dictionary(entries)}" if entries else ""


def notes_of(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """Name and text of each annotation that StableHLO can hold."""
    kept = instruction.annotations
    if given := kept.get("frontend_attributes"):
        others = {} if instruction.opcode == "parameter" else _mlir_attributes(given)
        rest = {key: value for key, value in given.items() if key.removeprefix(UNPREFIXED) not in others}
        if rest:
            yield FRONTEND, frontend_text(rest)
        yield from others.items()
    if "sharding" in kept:
        yield SHARDING, mlir_string(kept["sharding"])
    if instruction.opcode in EXPANDED:
        yield HLO_OPCODE, mlir_string(instruction.opcode)


def _mlir_attributes(given: Mapping[str, str]) -> dict[str, str]:
    """Attributes without a dialect prefix, by name, which the StableHLO reader stored as frontend attributes."""
    names = {key.removeprefix(UNPREFIXED): text for key, text in given.items() if key.startswith(UNPREFIXED)}
    return {name: text for name, text in names.items() if name and "." not in name and name not in given}


def frontend_text(given: Mapping[str, str]) -> str:
    return dictionary((key, mlir_string(value)) for key, value in given.items())


def transfer_notes(instruction: Instruction, done: Instruction | None = None) -> str:
    """The annotations of a send or recv, with its pairs as XLA stores them; the sharding is that of the done."""
    pairs = instruction.attributes.source_target_pairs
    given = dict(instruction.annotations.get("frontend_attributes", {}))
    if pairs:
        given = {PAIRS: nested_braces(pairs), **given}
    entries = [(FRONTEND, frontend_text(given))] if given else []
    entries += [(key, text) for key, text in (notes_of(done) if done else ()) if key != FRONTEND]
    return f" {dictionary(entries)}" if entries else ""


# ----------------------------------------------------------------------------
# The two tables of rules, by opcode

lines = RuleTable("StableHLO")
"""Rules for opcodes that become one MLIR op; a rule returns the text before the annotations, and the types."""

values = RuleTable("StableHLO value")
"""Rules for all other opcodes; a rule writes the lines itself and returns the tree of names of its result."""

REFUSED: set[str] = set()
"""Opcodes that StableHLO cannot express."""


# ----------------------------------------------------------------------------
# Functions of a module, and locations of instructions

MAIN = "main"


@define(eq=False)
class Functions:
    """The symbol of each computation that becomes a function; those in `waiting` are not written yet."""

    symbols: dict[Computation, str] = Factory(dict)
    waiting: list[Computation] = Factory(list)
    written: int = 0
    most: int = Factory(lambda: MOST_LINES)
    counted: set[Computation] = Factory(set)
    _taken: set[str] = Factory(lambda: {MAIN})
    _sources: dict[tuple[int, int], Source | None] = Factory(dict)

    def symbol(self, computation: Computation) -> str:
        known = self.symbols.get(computation)
        if known is None:
            known = self.symbols[computation] = self._fresh(computation.name)
            self.waiting.append(computation)
        return known

    def _fresh(self, name: str) -> str:
        wanted, count = name, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def location(self, instruction: Instruction) -> str:
        """The location of an instruction: its name, with the user's line if known."""
        source = self._source(instruction)
        name = mlir_string(instruction.name)
        return f" loc({name}({mlir_string(source.file)}:{source.line}:0))" if source else f" loc({name})"

    def _source(self, instruction: Instruction) -> Source | None:
        """The source of an instruction, looked up once per line of the user's program."""
        where = instruction.where
        if not isinstance(where, tuple):
            return where
        place = id(where[0]), where[1]
        if place not in self._sources:
            self._sources[place] = instruction.source
        return self._sources[place]


# ----------------------------------------------------------------------------
# Writer: the state of the printer
#
# The lines written so far, the names of values, the texts of types.

Tree: TypeAlias = "str | tuple[Tree, ...]"
"""The name of an array or token; the tuple of the trees of its elements for a tuple."""


@define(eq=False)
class FunctionWriter:
    """The state of one function: its lines, `names` with the tree of each instruction, `taken` with the names in use.

    `futures` has the type of each value that is a future; the shape of the instruction does not state it.
    """

    functions: Functions
    has_locations: bool = False
    lines: list[str] = Factory(list)
    names: dict[Instruction, Tree] = Factory(dict)
    taken: dict[str, int] = Factory(dict)
    indent: str = "    "
    awaited: frozenset[Instruction] = frozenset()
    futures: dict[str, str] = Factory(dict)
    _types: dict[int, str] = Factory(dict)
    _shapes: list[AnyShape] = Factory(list)

    def type(self, shape: AnyShape) -> str:
        """The text of a type, cached by identity, since most shapes are shared. Cached shapes are kept alive."""
        try:
            return self._types[id(shape)]
        except KeyError:
            self._shapes.append(shape)
            return self._types.setdefault(id(shape), type_text(shape))

    def fresh(self, name: str) -> str:
        """An unused name: the given one, with a number if it is taken."""
        if name not in self.taken:
            self.taken[name] = 0
            return f"%{name}"
        wanted = name
        while name in self.taken:
            self.taken[wanted] += 1
            name = f"{wanted}_{self.taken[wanted]}"
        self.taken[name] = 0
        return f"%{name}"

    def name(self, instruction: Instruction) -> str:
        """The name of an array or token; for a tuple, that of its first leaf."""
        tree = self.names[instruction]
        return tree if isinstance(tree, str) else flatten(tree)[0]

    def leaf_names(self, instructions: Iterable[Instruction]) -> list[str]:
        """The names of the arrays and tokens of all these values."""
        return [name for each in instructions for name in flatten(self.names[each])]

    def types(self, instructions: Iterable[Instruction]) -> list[str]:
        found: list[str] = []
        for each in instructions:
            shape = each.shape
            found += leaf_types(shape) if isinstance(shape, TupleShape) else (self.type(shape),)
        return found

    def names_with_types(self, instruction: Instruction) -> Iterator[tuple[str, str]]:
        """Name and type of each array or token of an instruction."""
        names = flatten(self.names[instruction])
        if any(name in self.futures for name in names):
            yield from ((name, self.futures[name]) for name in names)
        else:
            yield from zip(names, self.types((instruction,)), strict=True)

    def signature(self, instruction: Instruction) -> str:
        """The function type from operands to results."""
        return function_text(self.types(instruction.operands), self.types((instruction,)))

    def define(self, instruction: Instruction, head: str, types: str) -> None:
        """Write the line of an instruction and store the names of its results."""
        notes = notes_text(self, instruction) if instruction.annotations or instruction.opcode in EXPANDED else ""
        text = f"{head}{notes} : {types}"
        if isinstance(instruction.shape, TupleShape):
            self.names[instruction] = self.write_results(instruction, text)
        else:
            self.names[instruction] = self.emit(instruction.name, text, instruction)

    def write_results(self, instruction: Instruction, text: str) -> Tree:
        """Write an op whose results are the leaves of the instruction, and return the tree of their names."""
        shape = instruction.shape
        if not isinstance(shape, TupleShape):
            return self.emit(instruction.name, text, instruction)
        names = self.emit_pack(instruction.name, shape.count, text, instruction)
        tree: Tree = unflatten(shape, names)
        return tree

    def emit_pack(self, name: str, count: int, text: str, instruction: Instruction | None = None) -> list[str]:
        """Write an op with `count` results and return their names."""
        if count == 0:
            self.line(text, instruction)
            return []
        if count == 1:
            return [self.emit(name, text, instruction)]
        pack = self.fresh(name)
        self.line(f"{pack}:{count} = {text}", instruction)
        return [f"{pack}#{number}" for number in range(count)]

    def emit(self, name: str, text: str, instruction: Instruction | None = None) -> str:
        """Write an op with one result and return its name."""
        found = self.fresh(name)
        self.line(f"{found} = {text}", instruction)
        return found

    def line(self, text: str, instruction: Instruction | None = None) -> None:
        if self.has_locations and instruction is not None:
            text += self.functions.location(instruction)
        self.lines.append(f"{self.indent}{text}")

    def function_symbol(self, computation: Computation) -> str:
        """The symbol of a computation's function, which is written later."""
        return self.functions.symbol(computation)


# ----------------------------------------------------------------------------
# One line of text: an op in the form of its row, or in MLIR's generic form

Line: TypeAlias = tuple[str, str]
"""The text of an op before its annotations, and that of its types."""


def form_line(
    writer: FunctionWriter, instruction: Instruction, attributes: Mapping[str, Any] | None = None, name: str = ""
) -> Line:
    """An op on the operands of an instruction, printed by its row in `syntax.forms`.

    `attributes` have the names of the row; default: those of the instruction.
    """
    name = name or OP_NAMES[instruction.opcode]
    if row_of(name) is None:
        refuse(instruction, f"{name} has no form here; add a row to xbuild/stablehlo/syntax/forms.py")
    row = printer_of(name)
    known, type_of = writer.names, writer.type
    names: list[Any] = []
    types: list[str] = []
    for operand in instruction.operands:
        shape = operand.shape
        if isinstance(shape, TupleShape):
            names += flatten(known[operand])
            types += leaf_types(shape)
        else:  # an array or a token has one name
            names.append(known[operand])
            types.append(type_of(shape))
    shape = instruction.shape
    results = leaf_types(shape) if isinstance(shape, TupleShape) else (type_of(shape),)
    if attributes is None:
        attributes = NOTHING if instruction.attributes is None else instruction.attribute_values()
    return row.head(names, attributes), row.types(types, results)


def plain_line(writer: FunctionWriter, instruction: Instruction) -> Line:
    return form_line(writer, instruction)


def generic_line(
    writer: FunctionWriter, instruction: Instruction, properties: Mapping[str, str | None] | None = None, *regions: str
) -> Line:
    """An op on the operands of an instruction, in MLIR's generic form."""
    head = generic(OP_NAMES[instruction.opcode], writer.leaf_names(instruction.operands), properties, *regions)
    return head, writer.signature(instruction)


# ----------------------------------------------------------------------------
# Computations written in place: as lines, as regions, or as the name of a reducer's one op

MOST_LINES = 200_000
"""A region is written at each use; the limit of ops is this plus EXPANSION times those of the program."""


def write_instructions(writer: FunctionWriter, computation: Computation) -> None:
    """Write every instruction except parameters, whose names are known."""
    names, before = writer.names, writer.awaited
    writer.awaited = _find_awaited(computation)
    count_lines(writer, computation)
    for instruction in computation.instructions:
        opcode = instruction.opcode
        if opcode == "parameter":
            continue
        try:
            if opcode in lines:
                writer.define(instruction, *lines[opcode](writer, instruction))
            else:
                names[instruction] = values[opcode](writer, instruction)
        except NoElementType as error:
            refuse(instruction, error.message)
        if instruction.control and not _is_operand(writer, instruction):
            _write_control(writer, instruction)
    writer.awaited = before


_ORDERS = "{api_version = 4 : i32, backend_config = {}, has_side_effect = true}"


def _is_operand(writer: FunctionWriter, instruction: Instruction) -> bool:
    """Whether an instruction has no value of its own in the text, like a parameter, a tuple or a copy."""
    given = {name for operand in instruction.operands for name, _ in writer.names_with_types(operand)}
    return instruction.opcode == "parameter" or given.issuperset(
        name for name, _ in writer.names_with_types(instruction)
    )


def _write_control(writer: FunctionWriter, instruction: Instruction) -> None:
    """Write a call of `control_dep` for each control predecessor, as JAX does."""
    for before in dict.fromkeys(_predecessors(writer, instruction)):
        for name, type_ in list(writer.names_with_types(before))[:1]:  # all values of an op are there when the first is
            for own, own_type in writer.names_with_types(instruction):
                types = f"({type_}, {own_type}) -> ()"
                writer.line(f"stablehlo.custom_call @{CONTROL_DEP}({name}, {own}) {_ORDERS} : {types}")


def _predecessors(writer: FunctionWriter, instruction: Instruction) -> Iterator[Instruction]:
    """The control predecessors that have values of their own; any other is replaced by its operands."""
    seen: set[Instruction] = set()
    waiting = [*instruction.control]
    while waiting:
        before = waiting.pop(0)
        if before in seen:
            continue
        seen.add(before)
        if _is_operand(writer, before):
            waiting += (*before.control, *before.operands)
        else:
            yield before


def count_lines(writer: FunctionWriter, computation: Computation) -> None:
    """Refuse a program that would grow too much when its computations are written at each use."""
    functions = writer.functions
    functions.written += len(computation.instructions)
    if computation not in functions.counted:
        functions.counted.add(computation)
        functions.most += EXPANSION * len(computation.instructions)
    if functions.written > functions.most:
        refuse(
            computation.root,
            f"if each region were written at every use, the program would have more than {functions.most:,} ops",
            "use call for shared computations; a called computation is written once",
        )


def _find_awaited(computation: Computation) -> frozenset[Instruction]:
    """The starts that only dones of the same computation use; only transfers may be otherwise."""
    begun = {i for i in computation.instructions if i.opcode in HALVES and i.opcode not in ENDS}
    if not begun:
        return frozenset()
    others = {o for i in computation.instructions if i.opcode not in HALVES for o in i.operands}
    completed = {o for i in computation.instructions if i.opcode in HALVES for o in i.operands}
    found = begun & (completed - others) - {computation.root}
    for each in computation.instructions:
        if each in begun and each not in found and each.opcode not in TRANSFERS:
            refuse(
                each,
                "a future cannot leave its computation, so only a done op in the same computation may use this start "
                "op",
            )
    return frozenset(found)


def write_inline(writer: FunctionWriter, computation: Computation, arguments: Sequence[Tree]) -> Tree:
    """Write a computation in place and return the names of its result."""
    for operand, tree in zip(computation.parameters, arguments, strict=True):
        writer.names[operand] = tree
    write_instructions(writer, computation)
    return writer.names[computation.root]


def name_parameters(writer: FunctionWriter, computation: Computation) -> Iterator[tuple[Tree, list[str]]]:
    """Name the leaves of each parameter: the tree of names, and the texts `%name: type`."""
    for argument in computation.parameters:
        parts = list(leaves(argument.shape))
        alone = parts == [argument.shape]
        names = [writer.fresh(argument.name if alone else f"{argument.name}.{n}") for n in range(len(parts))]
        with name_in_refusal(argument):
            typed = [f"{name}: {writer.type(part)}" for name, part in zip(names, parts, strict=True)]
        yield unflatten(argument.shape, names), typed


@contextmanager
def indented_lines(writer: FunctionWriter) -> Iterator[list[str]]:
    """Collect the lines that are written inside, indented by two more columns."""
    before, indent = writer.lines, writer.indent
    writer.lines, writer.indent = [], f"{indent}  "
    try:
        yield writer.lines
    finally:
        writer.lines, writer.indent = before, indent


def block_text(writer: FunctionWriter, computation: Computation, arguments: Sequence[Tree], header: str = "") -> str:
    """A computation in braces that returns its result; `header` names the arguments of the block."""
    with indented_lines(writer) as written:
        tree = write_inline(writer, computation, arguments)
        writer.line(return_text(writer, tree, computation.root))
    text = "\n".join([f"{writer.indent}{header}"] * bool(header) + written)
    return f"{{\n{text}\n{writer.indent}}}"


def return_text(writer: FunctionWriter, tree: Tree, root: Instruction, op: str = "stablehlo.return") -> str:
    names = flatten(tree)
    return f"{op} {', '.join(names)} : {', '.join(writer.types((root,)))}" if names else op


def region_text(writer: FunctionWriter, computation: Computation) -> str:
    """A computation as a region whose arguments are its parameters."""
    parameters = list(name_parameters(writer, computation))
    arguments = ", ".join(each for _, typed in parameters for each in typed)
    return block_text(writer, computation, [tree for tree, _ in parameters], f"^bb0({arguments}):" if arguments else "")


def reducer_op(computation: Computation, types: set[PrimitiveType]) -> str | None:
    """The op that a reducer applies to its two scalars of one type, in order; None if it is not one op."""
    root, parameters = computation.root, computation.parameters
    if len(computation.instructions) != 3 or root.operands != parameters or len(types) != 1:
        return None
    if OPS[root.opcode].properties.order != "any" or not isinstance(root.shape, Shape) or {root.shape.dtype} != types:
        return None
    same = all(p.shape == root.shape for p in parameters)
    return op_name(root) if same and not root.annotations else None


def op_name(instruction: Instruction) -> str:
    """The MLIR name of an op. An add of pred is written as `or`: StableHLO's verifier and folder disagree on add."""
    if instruction.opcode == "add" and getattr(instruction.shape, "dtype", None) is pred:
        return OP_NAMES["or"]
    return OP_NAMES[instruction.opcode]


# ----------------------------------------------------------------------------
# Ops that StableHLO lacks: a builder records a decomposition, which is written in place


def write_decomposition(writer: FunctionWriter, instruction: Instruction, record: Callable[..., Value]) -> Tree:
    """Write what `record` records for the operands and attributes of an instruction."""
    builder = Builder(instruction.opcode)
    given = tuple(parameter(builder, number=n, shape=each.shape) for n, each in enumerate(instruction.operands))
    arguments = OPS[instruction.opcode].unflatten(given, instruction.segments)
    computation = builder.build(record(*arguments, **instruction.attribute_values()))
    return write_inline(writer, computation, [writer.names[each] for each in instruction.operands])


# ----------------------------------------------------------------------------
# Operands of ops that compute in a wider type: XLA's conversion from MLIR does not widen them


def widen_operands(
    writer: FunctionWriter, instruction: Instruction, *, with_updates: bool = False
) -> tuple[list[str], list[str]]:
    """Names and types of operands, each converted to the element type of its result; updates follow the indices."""
    names, types = writer.leaf_names(instruction.operands), writer.types(instruction.operands)
    results = list(leaves(instruction.shape))
    for number, result in enumerate(results):
        for place in (number, number + len(results) + 1) if with_updates else (number,):
            shape = instruction.operands[place].shape
            assert isinstance(shape, Shape)
            assert isinstance(result, Shape)
            if shape.dtype is not result.dtype:
                given, types[place] = types[place], type_text(shape.with_dtype(result.dtype))
                text = printer_of("stablehlo.convert").text([names[place]], [given], [types[place]])
                names[place] = writer.emit(f"{instruction.name}.wide", text)
    return names, types
