"""Values of programs in prime fields: the same function, whatever the rounding."""

from .equivalence import equivalent as equivalent
from .verdict import Difference as Difference
from .verdict import Equivalence as Equivalence

__all__ = ["Difference", "Equivalence", "equivalent"]
