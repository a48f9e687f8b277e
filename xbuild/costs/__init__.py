"""Cost of a program without running it: operations, bytes and memory of each instruction, counted as XLA counts."""

from .analysis import cost as cost
from .collectives import CollectiveCost as CollectiveCost
from .memory import LiveArray as LiveArray
from .memory import Memory as Memory
from .report import Cost as Cost
from .report import CostRow as CostRow
