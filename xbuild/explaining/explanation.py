"""`explain`: what is known of an instruction of a program without running it, as facts and as text."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from attrs import field, frozen

from shape_inference.escaping import in_line

from ..core.builder import Value
from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..core.op import OPS
from ..differentiation.transforms.origins import origin_of
from ..properties.effects import spelling
from ..variance import Program
from .facts import Facts

_SHOWN = 12
"""The greatest number of names in a line."""

_WIDTH = 110


@frozen(repr=False)
class Explanation:
    """What is known of an instruction before the run; where several of the program have its name, of each of them.

    `str` of it is the text, `to_dict` has the facts.
    """

    parts: tuple[Facts, ...] = field()

    def to_dict(self) -> list[dict[str, Any]]:
        """The facts as plain data, a dictionary for each instruction of the name."""
        return [part.to_dict() for part in self.parts]

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_lines(part)) for part in self.parts)

    __repr__ = __str__


def explain(program: Module | ModuleGroup | Computation | Program, name: str | Instruction | Value) -> Explanation:
    """What an instruction of a program is: what its op does, why it has its shape, its line, its users, what it needs.

    The shape is told in numbers, dimension by dimension. Of a program of several devices it says which of them hold
    equal values, on a mesh its type along each axis; and the value, where constants and ids alone determine it.
    A name that several computations have may be given as `body/add.3`; `%` before it is left out.
    Raises BuildError (undefined_name) where there is no such instruction.

    >>> import xbuild as xb
    >>> layer = xb.computation(xb.f32[8, 6], xb.f32[6, 3])(lambda x, w: xb.tanh(xb.dot(x, w)))
    >>> for line in xb.explain(layer, "dot.3").parts[0].shape:
    ...     print(line)
    dimension 0: 8, free: dimension 0 of parameter.1
    dimension 1: 3, free: dimension 1 of parameter.2
    contracted, summed over 6: dimension 1 of parameter.1 with 0 of parameter.2

    Source: XLA, Operation Semantics (shapes); HloReplicationAnalysis (which devices hold equal values).
    """
    whole = program.typed if isinstance(program, Program) else module_in(program)
    modules = _modules(whole)
    found = [Facts(module, each) for module in modules for each in _named(module, name)]
    if not found:
        raise BuildError("undefined_name", f"explain: the program has no instruction {_said(name)} [undefined_name]")
    return Explanation(tuple(found))


def _said(name: str | Instruction | Value) -> str:
    return f"%{name.removeprefix('%')}" if isinstance(name, str) else f"%{name.name}"


def _modules(program: Any) -> list[Module]:
    if isinstance(program, ModuleGroup):
        return list(dict.fromkeys(program.modules.values()))
    return [Module(program.name, program) if isinstance(program, Computation) else program]


def _named(module: Module, name: str | Instruction | Value) -> Iterator[Instruction]:
    wanted = name.instruction if isinstance(name, Value) else name
    for computation in module.computations:
        for each in computation.instructions:
            if isinstance(wanted, str):
                if wanted.removeprefix("%") in (each.name, f"{computation.name}/{each.name}"):
                    yield each
            elif each is wanted:
                yield each


def _lines(part: Facts) -> Iterator[str]:
    yield f"{part.instruction!r}"
    for label, texts in _sections(part):
        for number, text in enumerate(texts):
            first, *rest = textwrap.wrap(
                in_line(text), _WIDTH - 14, break_long_words=False, break_on_hyphens=False
            ) or [""]
            yield f"  {label if not number else '':<11} {first}"
            yield from (f"  {'':<11}   {more}" for more in rest)


def _sections(part: Facts) -> Iterator[tuple[str, list[str]]]:
    yield "in", [_place(part)]
    yield "does", [_first_sentence(part.instruction.opcode)]
    yield "shape", list(part.shape)
    yield "made by", list(_origin(part))
    yield "used by", [_listed(part.users) or f"nothing else: it is the result of {part.home.name}"]
    yield "depends on", list(_depends(part))
    if part.variance:
        yield "on the mesh", [part.variance]
    if part.equal:
        yield "devices", [f"the value {'is ' * part.equal.startswith('equal')}{part.equal}"]
    if part.values:
        yield "value", list(part.values)


def _place(part: Facts) -> str:
    if part.home is part.module.entry:
        return f"{part.home.name}, the entry"
    called = [f"{each.name} ({spelling(each.opcode)})" for each in part.called_by]
    return f"{part.home.name}, which {_listed(called)} calls" if called else part.home.name


def _first_sentence(opcode: str) -> str:
    text = inspect.cleandoc(OPS[opcode].declaration.__doc__ or "").partition("\n\n")[0]
    return f"{spelling(opcode)}: {' '.join(text.split())}"


def _origin(part: Facts) -> Iterator[str]:
    source, origin = part.instruction.source, origin_of(part.instruction)
    yield str(source) if source is not None else "a line that the program does not state"
    if title := part.instruction.annotations.get("metadata", {}).get("op_name"):
        yield f"op_name {title}"
    if origin is not None:
        yield f"{'derivative' if origin[0] == 'vjp' else 'tangent'} of {origin[1]} (`xbuild why` says more)"


def _depends(part: Facts) -> Iterator[str]:
    cone = part.cone
    parameters = [f"{each.name} ({each.attributes.number})" for each in cone.parameters()]
    yield f"parameters {_listed(parameters)}" if parameters else "no parameter of the entry"
    meetings = [each.name for each in cone.meetings() if each is not part.instruction]
    if meetings:
        yield f"communication on the way: {_listed(meetings)}"
    if free := [each.name for each in cone.free() if each is not part.instruction]:
        yield f"ids, random states or outside functions: {_listed(free)}"


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
