"""Why an instruction is in a derivative: which instruction it differentiates, and what uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction, Module
from ..properties.order import users_of
from ..variance import MeshProgram

_TITLE = re.compile(r"(vjp|jvp)\(([^()]*)\)$")
_NAME = re.compile(r"(.+)\.(vjp|jvp)(\.\d+)*$")
_ROLES = {"vjp": "propagates cotangents back through", "jvp": "propagates tangents through"}


def origin_of(instruction: Instruction) -> tuple[str, str] | None:
    """The mode (vjp or jvp) and the name of the instruction that this one differentiates; None if it is no derivative.

    Both are read from the metadata of the instruction, or from its name if it has no metadata.
    """
    title = _TITLE.search(str(instruction.annotations.get("metadata", {}).get("op_name", "")))
    if title is not None:
        return title[1], title[2]
    name = _NAME.match(instruction.name)
    return (name[2], name[1]) if name is not None else None


def why(program: Module | Computation | MeshProgram, name: str) -> str:
    """Explain why an instruction is in a program: what it differentiates, its source line, and its uses.

    In a program on a mesh, the text also explains casts. Raises BuildError (undefined_name) if the instruction does not
    exist.

    >>> import xbuild as xb
    >>> gradient = xb.grad(lambda x: xb.tanh(x))(xb.f32[()])
    >>> print(xb.why(gradient, "tanh.2.vjp").partition("  at ")[0].rstrip())
    tanh.2.vjp = f32[] multiply(tanh.2, tanh.2)
      in lambda_grad
      propagates cotangents back through tanh.2 = f32[] tanh(parameter.1)

    Source: HloInstruction's metadata (xla_data.proto, OpMetadata).
    """
    whole = program.typed if isinstance(program, MeshProgram) else program
    return "\n\n".join(["\n".join(_describe(whole, home, instruction)) for home, instruction in _find(whole, name)])


def _computations(program: Module | Computation) -> tuple[Computation, ...]:
    return program.computations if isinstance(program, Module) else program.reachable()


def _find(program: Module | Computation, name: str) -> list[tuple[Computation, Instruction]]:
    """The instructions with this name, each with its computation."""
    wanted = name.removeprefix("%")
    places = [(home, i) for home in _computations(program) for i in home.instructions if i.name == wanted]
    if not places:
        raise BuildError("undefined_name", f"why: the program has no instruction %{wanted} [undefined_name]")
    return places


def _describe(program: Module | Computation, home: Computation, instruction: Instruction) -> Iterator[str]:
    yield f"{instruction!r}"
    yield f"  in {home.name}"
    origin = origin_of(instruction)
    if origin is not None:
        mode, name = origin
        forward = next(
            (i for computation in _computations(program) for i in computation.instructions if i.name == name), None
        )
        yield f"  {_ROLES[mode]} {repr(forward) if forward is not None else f'{name}, which was removed'}"
    if instruction.source is not None:
        yield f"  at {instruction.source}"
    users = [computation.name for computation in users_of(home)[instruction]]
    yield f"  used by {', '.join(users)}" if users else f"  the result of {home.name}"
