"""Propagation of shardings: from those that a program states to those of all its values, each with its cause."""

from .causes import Cause as Cause
from .causes import CauseStep as CauseStep
from .causes import Conflict as Conflict
from .propagated import Propagated as Propagated
from .propagating import propagate as propagate
