"""Evaluates programs in prime fields, to decide whether two compute the same function, whatever the rounding."""

from .equivalence import equivalent as equivalent
from .verdict import Equivalence as Equivalence
from .verdict import ProgramDifference as ProgramDifference

__all__ = ["Equivalence", "ProgramDifference", "equivalent"]
