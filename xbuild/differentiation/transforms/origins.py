"""Why an instruction of a derivative is there: of which instruction it is the derivative, and what that computes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.diagnostics import BuildError
from ...core.graph import Computation, Instruction, Module
from ...variance import Program

_TITLE = re.compile(r"(vjp|jvp)\(([^()]*)\)$")
_NAME = re.compile(r"(.+)\.(vjp|jvp)(\.\d+)*$")
_WORDS = {"vjp": "takes cotangents back through", "jvp": "takes tangents along through"}


def origin_of(instruction: Instruction) -> tuple[str, str] | None:
    """The mode (vjp or jvp) and the name of the instruction that one is the derivative of; None where it is none.

    The metadata of an instruction say so, and where a text has none, its name.
    """
    title = _TITLE.search(str(instruction.annotations.get("metadata", {}).get("op_name", "")))
    if title is not None:
        return title[1], title[2]
    name = _NAME.match(instruction.name)
    return (name[2], name[1]) if name is not None else None


def why(program: Module | Computation | Program, name: str) -> str:
    """Why an instruction is in a program: of which it is the derivative, from which line that comes, and what uses it.

    Of a program on a mesh its casts are asked for, too.
    Raises BuildError (undefined_name) where there is no such instruction.

    >>> import xbuild as xb
    >>> gradient = xb.grad(lambda x: xb.tanh(x))(xb.f32[()])
    >>> print(xb.why(gradient, "tanh.2.vjp").partition("  at ")[0].rstrip())
    tanh.2.vjp = f32[] multiply(tanh.2, tanh.2)
      in lambda_grad
      takes cotangents back through tanh.2 = f32[] tanh(parameter.1)

    Source: HloInstruction's metadata (xla_data.proto, OpMetadata).
    """
    whole = program.typed if isinstance(program, Program) else program
    return "\n\n".join(["\n".join(_told(whole, home, each)) for home, each in _found(whole, name)])


def _computations(program: Module | Computation) -> tuple[Computation, ...]:
    return program.computations if isinstance(program, Module) else program.reachable()


def _found(program: Module | Computation, name: str) -> list[tuple[Computation, Instruction]]:
    """The instructions of this name, each with the computation that it is in."""
    wanted = name.removeprefix("%")
    found = [(home, i) for home in _computations(program) for i in home.instructions if i.name == wanted]
    if not found:
        raise BuildError("undefined_name", f"why: the program has no instruction %{wanted} [undefined_name]")
    return found


def _told(program: Module | Computation, home: Computation, instruction: Instruction) -> Iterator[str]:
    yield f"{instruction!r}"
    yield f"  in {home.name}"
    origin = origin_of(instruction)
    if origin is not None:
        mode, name = origin
        forward = next((i for each in _computations(program) for i in each.instructions if i.name == name), None)
        yield f"  {_WORDS[mode]} {repr(forward) if forward is not None else f'{name}, which is left out'}"
    if instruction.source is not None:
        yield f"  at {instruction.source}"
    users = [each.name for each in home.instructions if instruction in each.operands]
    yield f"  used by {', '.join(users)}" if users else f"  the result of {home.name}"
