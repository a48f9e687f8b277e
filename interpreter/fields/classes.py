"""Classes of instructions of which a verdict says what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xbuild.core.graph import Instruction, Module
from xbuild.core.op import opcodes
from xbuild.properties.sites import reached

from .degrees import is_random
from .rules.evaluation import is_float, touches_floats

_ORDER = frozenset({"maximum", "minimum", "clamp", "compare", "sort", "topk", "sign", "abs", "floor", "ceil",
                    "round_nearest_even", "round_nearest_afz", "select_and_scatter"})  # fmt: skip
_BITS = frozenset({"bitcast_convert", "bitcast"})
_PLACED = opcodes(lambda op: op.elements in ("same_place", "mixed") and op.needs == "nobody")


def classes_of(modules: Iterable[Module], lawful: frozenset[str] = frozenset()) -> Counter[str]:
    """How many instructions of each class the programs have."""
    found: Counter[str] = Counter()
    for module in modules:
        for computation in reached(module.entry):
            for each in computation.instructions:
                name = class_of(each)
                found["exponents" if name == "functions" and each.opcode in lawful else name] += 1
    del found[""]
    return found


def class_of(instruction: Instruction) -> str:
    """The class of an instruction; empty where its value is decided."""
    opcode = instruction.opcode
    if opcode in ("rng", "rng_bit_generator"):
        return "random numbers"
    if not touches_floats(instruction):
        return "integers" if opcode in _PLACED else ""
    if opcode in _ORDER:
        return "order"
    if is_random(instruction) or opcode in ("sqrt", "batch_norm_training", "batch_norm_inference", "batch_norm_grad"):
        return "functions"
    if opcode in _BITS and not _keeps_type(instruction):
        return "bits"
    if opcode == "convert" and not is_float(instruction.shape):
        return "bits"
    return "quotients" if opcode == "divide" else ""


def _keeps_type(instruction: Instruction) -> bool:
    return instruction.shape.dtype is instruction.operands[0].shape.dtype  # type: ignore[union-attr]
