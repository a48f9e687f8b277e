"""The types of values on a mesh, op by op: a table of rules, the walk that asks it, notes that mark collectives."""

from . import table as table
from .walk import Casts as Casts
from .walk import Typed as Typed
from .walk import Walk as Walk
