"""Simplifications of collectives, each only where it is right; constraints of uses made explicit."""

from .simplify import simplify as simplify
from .uses import with_uses as with_uses
