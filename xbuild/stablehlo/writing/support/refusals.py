"""Refusals of what StableHLO has no form for; the message names the instruction and its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from shape_inference import PrimitiveType, XbuildError

from ....core.graph import Instruction

KIND = "not_in_stablehlo"


class StablehloError(XbuildError):
    """The error for a program, or a part of one, that StableHLO text cannot express."""


class NoElementType(StablehloError):
    """The same for an element type; whoever writes an instruction adds its name."""


def refuse_type(dtype: PrimitiveType) -> NoReturn:
    raise NoElementType(KIND, f"MLIR has no element type for {dtype} (its i1 is pred)")


def refuse(instruction: Instruction, reason: str, *hints: str) -> NoReturn:
    raise StablehloError(KIND, told(instruction, reason), hints)


@contextmanager
def naming(instruction: Instruction) -> Iterator[None]:
    """A refusal inside names the instruction."""
    try:
        yield
    except NoElementType as error:
        raise StablehloError(KIND, told(instruction, error.message)) from None


def told(instruction: Instruction, reason: str) -> str:
    """A message about an instruction: its opcode, name and line, then the reason."""
    at = f" at {instruction.source}" if instruction.source else ""
    opcode = instruction.opcode.replace("_", "-")
    return f"{opcode} %{instruction.name}{at} cannot be written as StableHLO: {reason} [{KIND}]"
