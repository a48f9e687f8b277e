"""`explain`: what is known about an instruction of a program without running it, as facts and as text.

Sections:

    What an instruction depends on
    Values known before the run
    Facts of one instruction
    explain: what is known without a run, as facts and as text
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from shape_inference import Shape, XbuildError
from shape_inference.elided import ElidedArray
from shape_inference.escaping import in_line
from shape_inference.trees import flatten

from ..checking.model.program import devices_text
from ..core.builder import Value
from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..core.hooks import Reported
from ..core.op import OPS, opcodes
from ..core.report_text import Line, headed, join_words
from ..differentiation.origins import origin_of
from ..properties.effects import spelling
from ..properties.mesh import Mesh, mesh_of
from ..properties.order import needed_by, users_of
from ..properties.variances import STATES, Variance, declared, type_of
from ..running import Evaluator, as_in_a_run
from ..traces.summary import said
from ..variance import MeshProgram
from .shapes import reasons

# ----------------------------------------------------------------------------
# What an instruction depends on: parameters of the entry, communication and random draws on the way

_MEETING = opcodes(lambda op: op.needs in ("group", "peer", "host"))
_FOLLOWED = opcodes(lambda op: op.calls in ("once", "branch", "loop", "wrapped"))  # others apply theirs to elements
_FREE = opcodes(lambda op: op.depends_on in ("device", "random_state", "target", "implementation"))


@frozen(eq=False)
class Cone:
    """The instructions from which a value may be computed, in the computations of a module, calls included."""

    module: Module
    members: frozenset[Instruction]

    def parameters(self) -> list[Instruction]:
        """The parameters of the entry among them, by number."""
        return [parameter for parameter in self.module.entry.parameters if parameter in self.members]

    def communication(self) -> list[Instruction]:
        """Instructions among them that need other devices or the host, in program order."""
        return [each for each in self._in_order() if each.opcode in _MEETING]

    def sources_outside(self) -> list[Instruction]:
        """Instructions among them whose value depends on the device, on a random state or on a function outside."""
        return [each for each in self._in_order() if each.opcode in _FREE]

    def _in_order(self) -> Iterator[Instruction]:
        for computation in self.module.computations:
            yield from (instruction for instruction in computation.instructions if instruction in self.members)


@frozen(eq=False)
class CallSites:
    """For each computation of a module the instructions that call it, and for each instruction its computation."""

    of: Mapping[Computation, Sequence[Instruction]] = field(factory=dict)
    home: Mapping[Instruction, Computation] = field(factory=dict)

    @staticmethod
    def in_module(module: Module) -> CallSites:
        of: dict[Computation, list[Instruction]] = {}
        home: dict[Instruction, Computation] = {}
        for computation in module.computations:
            for instruction in computation.instructions:
                home[instruction] = computation
                for region in instruction.called:
                    of.setdefault(region, []).append(instruction)
        return CallSites(of, home)

    def passed_values(self, parameter: Instruction) -> Iterator[Instruction]:
        """What callers may pass for a parameter of a called computation."""
        computation = self.home[parameter]
        for caller in self.of.get(computation, ()):
            yield from self._passed_by(caller, computation, parameter.attributes.number)

    def _passed_by(self, caller: Instruction, region: Computation, number: int) -> Iterator[Instruction]:
        if caller.opcode in ("call", "fusion", "async_start") and number < len(caller.operands):
            yield caller.operands[number]
        elif caller.opcode == "conditional":
            places = [place for place, each in enumerate(caller.called) if each is region]
            yield from (caller.operands[1 + place] for place in places)
        else:
            yield from caller.operands
            if caller.opcode in ("while", "scan"):
                yield from (called.root for called in caller.called)


def cone_of(module: Module, instruction: Instruction, callers: CallSites) -> Cone:
    """The cone of an instruction of a module."""

    def before(instruction: Instruction) -> Iterator[Instruction]:
        yield from instruction.operands
        yield from (region.root for region in instruction.called if instruction.opcode in _FOLLOWED)
        if instruction.opcode == "parameter":
            yield from callers.passed_values(instruction)

    return Cone(module, frozenset(needed_by([instruction], before)))


# ----------------------------------------------------------------------------
# Values known before the run, since they follow only from constants and device ids

_MOST_STEPS = 10_000
"""The greatest number of instructions that are evaluated for one value."""

_IDS = opcodes(lambda op: op.depends_on == "device" and op.needs == "nobody")


def compute_early_values(instruction: Instruction, ids: Sequence[tuple[int, int]]) -> list[Any] | None:
    """The value of an instruction on the devices with these ids (replica, partition), or None if it is unknown.

    It is known if its operands lead back to constants, iota and ids inside its own computation.
    """
    order = _order(instruction)
    if order is None:
        return None
    evaluator = Evaluator()
    if not any(each.opcode in _IDS for each in order):
        ids = ids[:1]
    with as_in_a_run():
        found = [_evaluated(evaluator, order, each) for each in ids]
    return None if any(each is None for each in found) else found


def _order(instruction: Instruction) -> list[Instruction] | None:
    """The instruction after all that it depends on; None if that is more than constants, or too many instructions."""
    order: dict[Instruction, None] = {}
    stack = [(instruction, False)]
    while stack:
        each, is_done = stack.pop()
        if is_done:
            order[each] = None
        elif each not in order:
            if not _is_followed(each) or len(order) > _MOST_STEPS:
                return None
            stack.append((each, True))
            stack += [(operand, False) for operand in each.operands if operand not in order]
    return list(order)


def _is_followed(instruction: Instruction) -> bool:
    if instruction.opcode == "constant":
        return not isinstance(instruction.attributes.literal, ElidedArray)
    return instruction.opcode != "parameter"


def _evaluated(evaluator: Evaluator, order: Sequence[Instruction], ids: tuple[int, int]) -> Any:
    values: dict[Instruction, Any] = {}
    for each in order:
        values[each] = _value(evaluator, each, [values[operand] for operand in each.operands], ids)
        if values[each] is None:
            return None
    return values[order[-1]]


def _value(evaluator: Evaluator, instruction: Instruction, operands: list[Any], ids: tuple[int, int]) -> Any:
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        return np.asarray(literal) if isinstance(instruction.shape, Shape) else literal
    if instruction.opcode not in _IDS and not evaluator.is_pure(instruction):
        return None
    return evaluator.value(instruction, operands, ids)


def group_values(values: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The distinct values, each with the devices that hold it."""
    devices: dict[bytes, list[int]] = {}
    first: dict[bytes, Any] = {}
    for device, value in enumerate(values):
        key = repr(value).encode() if isinstance(value, tuple) else np.asarray(value).tobytes()
        devices.setdefault(key, []).append(device)
        first.setdefault(key, value)
    for key, value in first.items():
        yield tuple(devices[key]), value


# ----------------------------------------------------------------------------
# Facts of one instruction, each computed on demand

_MOST_DEVICES = 64
"""The greatest number of devices for which a value is computed before the run."""

_MEANINGS = {
    "varying": "devices along {} may hold different values",
    "unreduced": "devices along {} hold partial sums, and the value is their sum",
    "reduced": "devices along {} hold one value, whose cotangent is a partial sum on each device",
}


@frozen(eq=False, slots=False)
class InstructionFacts:
    """What is known of an instruction before the run."""

    module: Module
    instruction: Instruction

    @cached_property
    def callers(self) -> CallSites:
        return CallSites.in_module(self.module)

    @property
    def home(self) -> Computation:
        """The computation that the instruction is in."""
        return self.callers.home[self.instruction]

    @property
    def called_by(self) -> list[Instruction]:
        return list(self.callers.of.get(self.home, ()))

    @property
    def users(self) -> list[str]:
        return [each.name for each in users_of(self.home)[self.instruction]]

    @cached_property
    def cone(self) -> Cone:
        return cone_of(self.module, self.instruction, self.callers)

    @property
    def shape(self) -> tuple[str, ...]:
        """Why the shape is what it is, in lines; a scalar has one line."""
        return tuple(reasons[self.instruction.opcode](self.instruction)) or (f"{self.instruction.shape}, a scalar",)

    @property
    def variance(self) -> str:
        """The type on the mesh and its meaning; empty if the program declares none."""
        text = declared(self.instruction)
        if text is None:
            return ""
        try:
            given, mesh = type_of(self.instruction), mesh_of(self.module)
        except XbuildError:
            return text
        leaves = flatten(given)
        return f"{text or '{}'}: {_variance_meaning(leaves[0], mesh)}" if len(leaves) == 1 else text

    @property
    def equal(self) -> str:
        """Which devices hold equal values, as text; empty for one device, and if nothing is known."""
        if self.module.num_devices == 1:
            return ""
        from ..checking import replication
        from ..checking.replicated_values import value_text

        try:
            return value_text(replication(self.module), self.instruction)
        except (KeyError, XbuildError):
            return ""

    @property
    def values(self) -> tuple[str, ...]:
        """The value, if it is known before the run, in lines; else none."""
        count = self.module.num_devices
        ids = [divmod(device, self.module.num_partitions) for device in range(min(count, _MOST_DEVICES))]
        found = compute_early_values(self.instruction, ids)
        return () if found is None else tuple(_value_lines(found, count))

    def to_dict(self) -> dict[str, Any]:
        source = self.instruction.source
        return {
            "instruction": self.instruction.name, "opcode": self.instruction.opcode, "computation": self.home.name,
            "shape": str(self.instruction.shape), "why": list(self.shape),
            "source": None if source is None else str(source),
            "called_by": [each.name for each in self.called_by], "users": self.users,
            "parameters": [parameter.name for parameter in self.cone.parameters()],
            "communication": [each.name for each in self.cone.communication()],
            "variance": declared(self.instruction), "devices": self.equal or None, "value": list(self.values) or None,
        }  # fmt: skip


def _variance_meaning(leaf: Variance, mesh: Mesh | None) -> str:
    ordered = mesh.ordered if mesh is not None else sorted
    sets = [(state, list(ordered(getattr(leaf, state)))) for state in STATES if getattr(leaf, state)]
    return "; ".join(_MEANINGS[state].format(join_words(axes)) for state, axes in sets) or "one value on all devices"


def _value_lines(found: list[Any], count: int) -> Iterator[str]:
    if len(found) == 1:
        yield f"known before the run{' on each device' * (count > 1)}: {said(found[0])}"
        return
    yield "known before the run:"
    for devices, value in group_values(found):
        yield f"{devices_text(devices)}: {said(value)}"
    if count > len(found):
        yield f"devices {len(found)} to {count - 1} were not evaluated"


# ----------------------------------------------------------------------------
# explain: what is known without a run, as facts and as text

_SHOWN = 12
"""The greatest number of names in a line."""

_WIDTH = 110


@frozen(repr=False)
class Explanation(Reported):
    """The facts that are known before a run about one instruction, or about all instructions with the same name.

    `str` returns the text, and `to_dict` returns the facts.
    """

    parts: tuple[InstructionFacts, ...] = field()

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the facts as plain data, with one dictionary for each instruction that has the name."""
        return [part.to_dict() for part in self.parts]

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_report_lines(part)) for part in self.parts)

    __repr__ = __str__

    def _styled_lines(self) -> Iterable[Line]:
        return headed(str(self).split("\n"))


def explain(program: Module | ModuleGroup | Computation | MeshProgram, name: str | Instruction | Value) -> Explanation:
    """Explain an instruction: what its op does, why it has its shape, and what its line, users and dependencies are.

    The shape is explained in numbers, dimension by dimension. For a program for several devices, the text also says
    which devices hold equal values and, on a mesh, gives the type along each axis. If constants and ids determine the
    value, the text shows the value. A name that several computations have may be given as `body/add.3`; a leading `%`
    is ignored. Raises BuildError (undefined_name) if the instruction does not exist.

    >>> import xbuild as xb
    >>> layer = xb.computation(xb.f32[8, 6], xb.f32[6, 3])(lambda x, w: xb.tanh(xb.dot(x, w)))
    >>> for line in xb.explain(layer, "dot.3").parts[0].shape:
    ...     print(line)
    dimension 0: 8, free: dimension 0 of parameter.1
    dimension 1: 3, free: dimension 1 of parameter.2
    contracted, summed over 6: dimension 1 of parameter.1 with 0 of parameter.2

    Source: XLA, Operation Semantics (shapes); HloReplicationAnalysis (which devices hold equal values).
    """
    program_or_module = program.typed if isinstance(program, MeshProgram) else module_in(program)
    modules = _modules(program_or_module)
    found = [InstructionFacts(module, each) for module in modules for each in _find_instructions(module, name)]
    if not found:
        raise BuildError(
            "undefined_name", f"explain: the program has no instruction {_quoted_name(name)} [undefined_name]"
        )
    return Explanation(tuple(found))


def _quoted_name(name: str | Instruction | Value) -> str:
    return f"%{name.removeprefix('%')}" if isinstance(name, str) else f"%{name.name}"


def _modules(program: Any) -> list[Module]:
    if isinstance(program, ModuleGroup):
        return list(dict.fromkeys(program.modules.values()))
    return [Module(program.name, program) if isinstance(program, Computation) else program]


def _find_instructions(module: Module, name: str | Instruction | Value) -> Iterator[Instruction]:
    target = name.instruction if isinstance(name, Value) else name
    for computation in module.computations:
        for instruction in computation.instructions:
            if isinstance(target, str):
                if target.removeprefix("%") in (instruction.name, f"{computation.name}/{instruction.name}"):
                    yield instruction
            elif instruction is target:
                yield instruction


def _report_lines(part: InstructionFacts) -> Iterator[str]:
    yield f"{part.instruction!r}"
    for label, texts in _sections(part):
        for number, text in enumerate(texts):
            first, *rest = textwrap.wrap(
                in_line(text), _WIDTH - 14, break_long_words=False, break_on_hyphens=False
            ) or [""]
            yield f"  {label if not number else '':<11} {first}"
            yield from (f"  {'':<11}   {more}" for more in rest)


def _sections(part: InstructionFacts) -> Iterator[tuple[str, list[str]]]:
    yield "in", [_place_text(part)]
    yield "does", [_first_sentence(part.instruction.opcode)]
    yield "shape", list(part.shape)
    yield "made by", list(_origin_lines(part))
    yield "used by", [_list_names(part.users) or f"no instruction: it is the result of {part.home.name}"]
    yield "depends on", list(_dependency_lines(part))
    if part.variance:
        yield "on the mesh", [part.variance]
    if part.equal:
        yield "devices", [f"the value {'is ' * part.equal.startswith('equal')}{part.equal}"]
    if part.values:
        yield "value", list(part.values)


def _place_text(part: InstructionFacts) -> str:
    if part.home is part.module.entry:
        return f"{part.home.name}, the entry computation"
    called = [f"{each.name} ({spelling(each.opcode)})" for each in part.called_by]
    return f"{part.home.name}, which {_list_names(called)} calls" if called else part.home.name


def _first_sentence(opcode: str) -> str:
    text = inspect.cleandoc(OPS[opcode].declaration.__doc__ or "").partition("\n\n")[0]
    return f"{spelling(opcode)}: {' '.join(text.split())}"


def _origin_lines(part: InstructionFacts) -> Iterator[str]:
    source, origin = part.instruction.source, origin_of(part.instruction)
    yield str(source) if source is not None else "the program states no source line"
    if title := part.instruction.annotations.get("metadata", {}).get("op_name"):
        yield f"op_name {title}"
    if origin is not None:
        yield f"{'derivative' if origin[0] == 'vjp' else 'tangent'} of {origin[1]} (`xbuild why` says more)"


def _dependency_lines(part: InstructionFacts) -> Iterator[str]:
    cone = part.cone
    parameters = [f"{parameter.name} ({parameter.attributes.number})" for parameter in cone.parameters()]
    yield f"parameters {_list_names(parameters)}" if parameters else "no parameter of the entry computation"
    meetings = [each.name for each in cone.communication() if each is not part.instruction]
    if meetings:
        yield f"communication on the way: {_list_names(meetings)}"
    if free := [each.name for each in cone.sources_outside() if each is not part.instruction]:
        yield f"ids, random states or outside functions: {_list_names(free)}"


def _list_names(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
