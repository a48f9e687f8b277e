"""The algorithm of a dot, which HLO names and StableHLO spells out."""

from __future__ import annotations

import re

from ....core.graph import Instruction

_SPLIT = re.compile(r"dot_([a-z0-9]+)_([a-z0-9]+)_([a-z0-9]+?)(?:_x(\d))?(_fast_accum)?")


def algorithm_text(instruction: Instruction) -> str:
    """The algorithm, with a comma before it; nothing where none is named, or one that StableHLO cannot spell.

    Source: xla_data.proto, PrecisionConfig.Algorithm; StableHLO, dot_general (algorithm).
    """
    named = _SPLIT.fullmatch(str(instruction.annotations.get("algorithm", "")))
    if named is None:
        return ""
    lhs, rhs, accumulation, operations, fast = named.groups()
    words = {
        "lhs_precision_type": lhs,
        "rhs_precision_type": rhs,
        "accumulation_type": accumulation,
        "lhs_component_count": 1,
        "rhs_component_count": 1,
        "num_primitive_operations": operations or 1,
        "allow_imprecise_accumulation": "true" if fast else "false",
    }
    return f", algorithm = <{', '.join(f'{key} = {word}' for key, word in words.items())}>"
