"""Propagation of shardings: derives the sharding of every value from the stated shardings, each with its cause."""

from .explaining import Origins as Origins
from .explaining import ShardingExplanation as ShardingExplanation
from .explaining import explain as explain
from .explaining import short as short
from .propagated import Cause as Cause
from .propagated import CauseStep as CauseStep
from .propagated import Conflict as Conflict
from .propagated import Propagated as Propagated
from .propagating import propagate as propagate
