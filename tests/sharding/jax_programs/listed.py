"""The list of all programs. It is imported in processes that have JAX to themselves."""

from __future__ import annotations

from . import (
    attention,
    convolutions,
    embeddings,
    experts,
    layers,
    numeric,
    pipelines,
    recurrent,
    selecting,
    training,
    transformers,
)
from .record import Program

FAMILIES = (
    layers,
    attention,
    transformers,
    training,
    experts,
    embeddings,
    convolutions,
    pipelines,
    recurrent,
    numeric,
    selecting,
)
PROGRAMS: list[Program] = [each for family in FAMILIES for each in family.PROGRAMS]


def named(*words: str) -> list[Program]:
    """The programs whose names contain one of the words; all without words."""
    return [each for each in PROGRAMS if not words or any(word in each.name for word in words)]
