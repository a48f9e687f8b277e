"""Resharding: the cheapest steps from one sharding of an array to another, and their recording as HLO ops."""

from .plan import Costs as Costs
from .plan import Plan as Plan
from .plan import plan as plan
from .record import reshard as reshard
