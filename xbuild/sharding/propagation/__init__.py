"""Propagation of shardings: from those that a program states to those of all its values, each with its cause."""

from .explaining import Origins as Origins
from .explaining import ShardingExplanation as ShardingExplanation
from .explaining import explain as explain
from .explaining import short as short
from .propagated import Cause as Cause
from .propagated import CauseStep as CauseStep
from .propagated import Conflict as Conflict
from .propagated import Propagated as Propagated
from .propagating import propagate as propagate
