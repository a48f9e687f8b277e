"""All rows of the table."""

from __future__ import annotations

from . import buffers, collectives, hazards, transfers
from .case import Case


def rows() -> list[Case]:
    return [*collectives.rows(), *transfers.rows(), *hazards.rows(), *buffers.rows()]
