"""Text of a program's communication alone: communicating instructions are printed, others are counted."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.graph import Computation, Instruction, Module
from ...properties.effects import communicates_itself, is_under_way
from ..codecs.sugar import unprinted
from ..spelling.writer import Writer
from .printer import instruction_text


def skeleton_text(program: Computation | Module) -> str:
    """The communicating instructions of each computation in order, with a count such as `... 12 ops` for the others."""
    entry = program.entry if isinstance(program, Module) else program
    communicating: dict[Computation, bool] = {}
    for computation in entry.reachable():
        communicating[computation] = any(_speaks(i, communicating) for i in computation.instructions)
    hidden = unprinted(tuple(communicating))
    blocks = [_block(c, entry, communicating) for c, speaks in communicating.items() if speaks and c not in hidden]
    return "\n\n".join(blocks) or f"{entry.name} does not communicate"


def _speaks(instruction: Instruction, communicating: dict[Computation, bool]) -> bool:
    if communicates_itself(instruction) or is_under_way(instruction):
        return True
    return any(communicating[called] for called in instruction.called)


def _block(computation: Computation, entry: Computation, communicating: dict[Computation, bool]) -> str:
    mark = "ENTRY " if computation is entry else ""
    return "\n".join((f"{mark}{computation.name} {{", *_lines(computation, communicating), "}"))


def _lines(computation: Computation, communicating: dict[Computation, bool]) -> Iterator[str]:
    silent, writer = 0, Writer()
    for instruction in computation.instructions:
        if not _speaks(instruction, communicating):
            silent += 1
            continue
        yield from _counted(silent)
        silent = 0
        yield f"  {instruction_text(instruction, writer)}"
    yield from _counted(silent)


def _counted(silent: int) -> Iterator[str]:
    if silent:
        yield f"  ... {silent} op{'s' * (silent > 1)}"
