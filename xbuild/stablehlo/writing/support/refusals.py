"""Refusals of what StableHLO has no form for; the message names the instruction and its line."""

from __future__ import annotations

from typing import NoReturn

from shape_inference import PrimitiveType, XbuildError

from ....core.graph import Instruction

KIND = "not_in_stablehlo"


class StablehloError(XbuildError):
    """The error for a program, or a part of one, that StableHLO text cannot express."""


def refuse_type(dtype: PrimitiveType) -> NoReturn:
    """Refuse an element type; whoever writes an instruction adds its name."""
    raise StablehloError(KIND, f"MLIR has no element type for {dtype} (its i1 is pred) [{KIND}]")


def refuse(instruction: Instruction, reason: str, *hints: str) -> NoReturn:
    raise StablehloError(KIND, told(instruction, reason), hints)


def told(instruction: Instruction, reason: str) -> str:
    """A message about an instruction: its opcode, name and line, then the reason."""
    at = f" at {instruction.source}" if instruction.source else ""
    opcode = instruction.opcode.replace("_", "-")
    return f"{opcode} %{instruction.name}{at} cannot be written as StableHLO: {reason} [{KIND}]"
