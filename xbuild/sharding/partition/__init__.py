"""The partitioner: a global program and its shardings become one program that every device runs on its parts."""

from . import ops as ops
from .explaining import explain as explain
from .partitioned import Partitioned as Partitioned
from .partitioned import joined as joined
from .parts.frame import Communication as Communication
from .parts.holding import Tiling as Tiling
from .program import partition as partition
from .tilings import tiling as tiling
