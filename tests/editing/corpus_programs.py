"""Programs of the corpus for the laws of editing."""

from __future__ import annotations

import functools

import numpy as np

import xbuild as xb
from tests.support.stored_programs import HLO, READ

MODULES = [entry["file"] for entry in READ]
RUN = [entry for entry in READ if entry["kind"] != "parse-only"]


@functools.cache
def read(file: str) -> xb.Module:
    return xb.parse_hlo((HLO / file).read_text(encoding="utf-8"))


def any_instruction(module: xb.Module, rng: np.random.Generator) -> tuple[xb.Computation, xb.Instruction]:
    computation = module.computations[rng.integers(len(module.computations))]
    return computation, computation.instructions[rng.integers(len(computation.instructions))]
