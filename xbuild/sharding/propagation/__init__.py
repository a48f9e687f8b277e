"""Propagation of shardings: from those that a program states to those of all its values, each with its cause."""

from .causes import Cause as Cause
from .causes import CauseStep as CauseStep
from .causes import Conflict as Conflict
from .explaining import Explanation as Explanation
from .explaining import explain as explain
from .explaining import short as short
from .origins import Origins as Origins
from .propagated import Propagated as Propagated
from .propagating import propagate as propagate
