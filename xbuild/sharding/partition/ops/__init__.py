"""What the partitioner does with ops, in files by family."""

from . import choosing_windows as choosing_windows
from . import contraction as contraction
from . import control_flow as control_flow
from . import indexing as indexing
from . import kernels as kernels
from . import leaves as leaves
from . import moving as moving
from . import ordering as ordering
from . import random as random
from . import reduction as reduction
from . import scans as scans
from . import shaping as shaping
from . import tuples as tuples
from . import windows as windows
