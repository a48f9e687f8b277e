"""Decompositions and solvers, Fourier transforms, batch normalization."""

from __future__ import annotations

import numpy as np

from ....core.graph import Instruction
from ..support.dense import dense_text
from ..support.tables import lines
from ..support.words import flag, listed
from ..support.writer import Writer

Line = tuple[str, str]


@lines
def cholesky(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.cholesky {writer.name(instruction.operands[0])}"
    return f"{head}, lower = {flag(instruction.attributes.lower)}", writer.type(instruction.shape)


@lines
def triangular_solve(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    words = ", ".join(
        (
            f"left_side = {flag(a.left_side)}",
            f"lower = {flag(a.lower)}",
            f"transpose_a = #stablehlo<transpose {a.transpose_a}>",
            f"unit_diagonal = {flag(a.unit_diagonal)}",
        )
    )
    head = f'"stablehlo.triangular_solve"({", ".join(writer.flat(instruction.operands))})'
    return f"{head} <{{{words}}}>", writer.signature(instruction)


@lines
def fft(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    head = f"stablehlo.fft {writer.name(instruction.operands[0])}"
    return f"{head}, type = {a.fft_type}, length = {listed(a.fft_length)}", writer.signature(instruction)


def _normalization(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    epsilon = dense_text(np.asarray(a.epsilon, np.float32))[len("dense<") : -1]
    head = f'"stablehlo.{instruction.opcode}"({", ".join(writer.flat(instruction.operands))})'
    words = f"<{{epsilon = {epsilon} : f32, feature_index = {a.feature_index} : i64}}>"
    return f"{head} {words}", writer.signature(instruction)


for _opcode in ("batch_norm_grad", "batch_norm_inference", "batch_norm_training"):
    lines.enter(_opcode, _normalization)
