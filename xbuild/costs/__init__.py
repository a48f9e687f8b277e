"""Cost of a program without running it: operations and bytes of each instruction, in the counting of XLA."""

from .collectives import CollectiveCost as CollectiveCost
from .memory import LiveArray as LiveArray
from .memory import Memory as Memory
from .reading import cost as cost
from .report import Cost as Cost
from .report import CostRow as CostRow
