"""Code generation: a computation becomes lines of Python, with a local variable for each array of an instruction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, leaves
from xbuild.checking.dataflow.analysis import spread
from xbuild.core.diagnostics import BuildError
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS
from xbuild.properties.effects import is_under_way

from ..kernels.flushing import flushed, flushing
from ..rules.limits import trips
from ..rules.lines import Lines, Path, Place
from ..rules.region import Region
from ..rules.tables import compute, planned
from .blocks import emit_shared, is_costly
from .checks import check_of
from .contraction import contracted, contracted_text
from .dynamic_sizes import fitted
from .expressions import Expr, flat, spell, target
from .facts import communicates, depends_on_device, live, weight, yields_request
from .marking import MARK, SET_UP
from .sharing import CallPath, site_of
from .spelling import kernel, spelled

Order: TypeAlias = tuple[Computation, tuple[Instruction, ...]]

INLINED = 64
DEEPEST = 8
MOST_WRITTEN = 200_000
TOO_MANY = "with {}, called once more, the plan of the program would have more than {:,} instructions"
WAY_OUT = ("what communicates, or is watched, is written out at each of its calls; let a loop call it",)


@frozen
class Options:
    """How a plan is compiled.

    `observed`: the plan reports each instruction with its value.
    `marked`: the plan reports the instructions that it has executed, without values.
    `lifted`: a computation on scalars is compiled for whole arrays.
    `sequential`: every fold takes one element after the other, in order.
    `orders`: each listed computation runs in its listed order, other computations in recorded order.
    `shared`: one device computes the values at these call paths for all devices.
    `strict`: each value is checked for clamped indices, dropped updates, numbers out of range and undefined elements.
    `flushed`: denormal numbers are flushed by array operations, not by the processor's mode.
    """

    observed: bool = False
    marked: bool = False
    lifted: bool = False
    sequential: bool = False
    orders: tuple[Order, ...] = ()
    shared: frozenset[CallPath] = frozenset()
    strict: bool = False
    flushed: bool = False

    @property
    def watched(self) -> bool:
        """Whether each instruction is reported, with or without its value."""
        return self.observed or self.marked


@define
class Emitter:
    """The state of one compilation; `names` become the globals of the plan."""

    options: Options
    names: dict[str, Any] = field(factory=lambda: {"trips": trips})
    lines: Lines = field(factory=Lines)
    functions: list[Lines] = field(factory=list)
    depth: int = 0
    is_unmarked: bool = False
    most: int = MOST_WRITTEN
    written: int = 0
    _count: itertools.count[int] = field(factory=itertools.count)
    _bound: dict[int, str] = field(factory=dict)
    _called: dict[Any, str] = field(factory=dict)

    def bind(self, prefix: str, value: Any) -> str:
        """The global name of an object in the plan, made of a prefix and a number, never of text of the program."""
        if id(value) not in self._bound:
            self._bound[id(value)] = name = f"{prefix}{len(self.names)}"
            self.names[name] = value
        return self._bound[id(value)]

    def counter(self) -> str:
        return f"t{next(self._count)}"

    def block(self) -> int:
        return next(self._count)

    def variables(self, shape: AnyShape) -> Expr:
        """Fresh variables for the leaves of a shape; a token is the constant None and gets no variable."""
        if isinstance(shape, TupleShape):
            return tuple(map(self.variables, shape.elements))
        if isinstance(shape, TokenShape):
            return "None"
        name = f"v{next(self._count)}"
        if shape.dims and shape.bytes:
            self.lines.arrays.add(name)
        return name

    def assign(self, targets: Expr, values: Expr, path: Path) -> None:
        """Emit one simultaneous assignment of all leaves."""
        pairs = [(t, v) for t, v in zip(flat(targets), flat(values), strict=True) if v not in (t, "None")]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.lines.add(f"{', '.join(left)} = {', '.join(right)}", path)

    def evaluated(self, shape: AnyShape, expression: str, path: Path) -> Expr:
        """Fresh variables, one for each leaf of the shape, and the line that assigns them from an expression."""
        names = self.variables(shape)
        self.lines.add(f"{target(names)} = {expression}", path)
        return names

    def computation(self, computation: Computation, arguments: Sequence[Expr], path: Path) -> Expr:
        """Emit the lines of a computation on these arguments; the result is the expression of the root.

        Raises BuildError where the plan has too many instructions, as where nested calls double what communicates.
        """
        self.written += len(computation.instructions)
        if self.written > self.most:
            raise BuildError("too_many_calls", TOO_MANY.format(computation.name, self.most), WAY_OUT)
        local: dict[Instruction, Expr] = dict(zip(computation.parameters, arguments, strict=True))
        wanted = frozenset(computation.instructions) if self.options.watched else live(computation)
        for parameter, argument in local.items():
            self.observe(parameter, argument, (*path, Place(parameter)))
        ordered = dict(self.options.orders).get(computation, computation.instructions)
        todo = [i for i in ordered if i not in local and i in wanted]
        for is_shared, run in itertools.groupby(todo, lambda i: self.is_shared(i, path)):
            block = list(run)
            if is_shared and any(map(is_costly, block)):
                emit_shared(self, computation, block, local, path)
            else:
                self.run(computation, block, local, path)
        return local[computation.root]

    def run(
        self, computation: Computation, block: Sequence[Instruction], local: dict[Instruction, Expr], path: Path
    ) -> None:
        """Emit the lines of these instructions of a computation, in this order."""
        sums = contracted(computation)
        for instruction in block:
            operands = [local[operand] for operand in instruction.operands]
            factors = [local[factor] for factor in sums[instruction].operands] if instruction in sums else []
            local[instruction] = self.instruction(instruction, operands, path, factors)

    def is_shared(self, instruction: Instruction, path: Path) -> bool:
        """Whether the instruction has one value on all devices and one device can compute the value for all devices."""
        if not self.options.shared or yields_request(instruction):
            return False
        if self.options.marked and instruction.called and instruction.opcode in planned:
            return False  # each device marks the instructions of the callee
        return site_of(instruction, [place.instruction for place in path]) in self.options.shared

    def instruction(
        self, instruction: Instruction, operands: list[Expr], path: Path, factors: Sequence[Expr] = ()
    ) -> Expr:
        """Emit the lines of an instruction; `factors` are the operands of a product that it does not round."""
        here = (*path, Place(instruction))
        if factors:
            result = _contracted_rule(self, instruction, [*operands, *factors], here)
        else:
            result = planned.get(instruction.opcode, _rule)(self, instruction, operands, here)
        self.check(instruction, operands, result, here)
        self.observe(instruction, result, here)
        return result

    def check(self, instruction: Instruction, operands: list[Expr], result: Expr, path: Path) -> None:
        check = check_of(instruction) if self.options.strict else None
        if check is not None:
            arguments = OPS[instruction.opcode].unflatten(tuple(operands), instruction.segments)
            taken = "".join(f"{spell(argument)}, " for argument in arguments)
            call = f"{self.bind('s', check)}(device, ({taken}), {spell(result)})"
            self.lines.add(f"{check.guard(self, spell(result))}{call}", path)

    def observe(self, instruction: Instruction, value: Expr, path: Path) -> None:
        self.mark(path)
        if self.options.observed:
            seen = spread("None", instruction.shape) if is_under_way(instruction) else value
            self.lines.add(f"device.see({self.bind('i', path)}, {spell(seen)})", path)

    def mark(self, path: Path) -> None:
        """Mark the instruction at this path as done, in a plan that is watched without values."""
        if self.options.marked and not self.is_unmarked:
            self.lines.add(MARK, path)

    @contextmanager
    def unmarked(self) -> Iterator[None]:
        """Lines emitted inside the block mark nothing, since one device runs them; all devices mark them afterwards."""
        self.is_unmarked = True
        yield
        self.is_unmarked = False

    def attribute(self, value: Any) -> str:
        if value is None or value is True or value is False or type(value) is int:
            return repr(value)
        if isinstance(value, Computation):
            region = Region.of(value, self.options.sequential, self.options.strict, self.options.flushed)
            name = self.bind("g", region)
            return f"{name}.on(device)" if depends_on_device(value) or region.strict else name
        return self.bind("k", value)

    def called(self, computation: Computation, operands: Sequence[Expr], path: Path) -> Expr:
        """Inline a called computation if it is small, communicates or is watched; else emit a call of a function."""
        talks = communicates(computation)
        small = talks or self.options.watched or weight(computation) <= INLINED
        if small and self.depth < DEEPEST:
            return self.computation(computation, operands, path)
        arguments = "".join(f", {spell(operand)}" for operand in operands)
        call = f"{'yield from ' * talks}{self.function(computation, path)}(device{arguments})"
        return self.evaluated(computation.root.shape, call, path)

    def function(self, computation: Computation, path: Path) -> str:
        """The plan's function for a computation: one for all calls, or one for each call path where paths matter."""
        by_path = self.options.watched or self.options.shared or communicates(computation)
        key: Any = (computation, path) if by_path else computation
        if key not in self._called:
            self._called[key] = f"f{len(self._called)}_"
            self.define(self._called[key], computation, path)
        return self._called[key]

    def define(self, name: str, computation: Computation, path: Path) -> None:
        """Write a function of a computation."""
        outer, depth = self.lines, self.depth
        self.lines, self.depth = Lines(), 0
        parameters = [self.variables(p.shape) for p in computation.parameters]
        self.lines.add(f"def {name}({', '.join(['device', *(f'p{n}' for n in range(len(parameters)))])}):", path)
        self.lines.indent = 1
        if self.options.marked:
            self.lines.add(SET_UP, path)
        for n, names in enumerate(parameters):
            if names not in ("None", ()):
                self.lines.add(f"{target(names)} = p{n}", path)
        self.lines.add(f"return {spell(self.computation(computation, parameters, path))}", path)
        self.functions.append(self.lines)
        self.lines, self.depth = outer, depth


def _rule(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit a call of the op's value rule, or a Python operator where the operator gives the same value."""
    operands = fitted(emitter, instruction, operands, path)
    own = flushing(instruction, compute[instruction.opcode]) if emitter.options.flushed else None
    expression = None if own else spelled(instruction, [spell(operand) for operand in operands])
    if expression is not None:
        return emitter.evaluated(instruction.shape, expression, path)
    rule = own or kernel(instruction) or compute[instruction.opcode]
    call = call_text(emitter, rule, instruction, operands)
    if emitter.options.lifted:
        return emitter.evaluated(instruction.shape, call, path)
    return with_scalars(emitter, instruction.shape, call, path)


def _contracted_rule(emitter: Emitter, instruction: Instruction, taken: list[Expr], path: Path) -> Expr:
    """Emit a sum whose product is not rounded; `taken` has the operands of the sum, then the factors."""
    texts = _flush_texts(emitter, [spell(expr) for expr in taken])
    text = spelled(instruction, texts[:2])
    assert text is not None
    (found,) = _flush_texts(emitter, [contracted_text(emitter.bind, instruction, text, texts)])
    return emitter.evaluated(instruction.shape, found, path)


def _flush_texts(emitter: Emitter, texts: list[str]) -> list[str]:
    """The expressions, with denormal numbers flushed where array operations do that."""
    if not emitter.options.flushed:
        return texts
    name = emitter.bind("r", flushed)
    return [f"{name}({text})" for text in texts]


def with_scalars(emitter: Emitter, shape: AnyShape, call: str, path: Path) -> Expr:
    """Emit a call of a rule and the conversion of rank-0 leaves of its result to NumPy scalars."""
    if isinstance(shape, Shape):
        return emitter.evaluated(shape, f"{call}[()]" if not shape.dims else call, path)
    result = emitter.evaluated(shape, call, path)
    for name, leaf in zip(flat(result), leaves(shape), strict=True):
        if isinstance(leaf, Shape) and not leaf.dims:
            emitter.lines.add(f"{name} = {name}[()]", path)
    return result


def call_text(
    emitter: Emitter, rule: Callable[..., Any], instruction: Instruction, operands: list[Expr], *before: str
) -> str:
    """The text of a call of a rule: the operands as the rule's signature groups them, then the attributes."""
    arguments = OPS[instruction.opcode].unflatten(tuple(operands), instruction.segments)
    attributes = [f"{key}={emitter.attribute(value)}" for key, value in instruction.attribute_values().items()]
    return f"{emitter.bind('r', rule)}({', '.join([*before, *map(spell, arguments), *attributes])})"
