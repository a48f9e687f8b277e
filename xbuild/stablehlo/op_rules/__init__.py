"""Rules of operations that become one op of HLO or a few, in a file for each family of ops."""

from . import asynchronous as asynchronous
from . import chlo as chlo
from . import collectives as collectives
from . import contraction as contraction
from . import control_flow as control_flow
from . import elementwise as elementwise
from . import grid_indices as grid_indices
from . import grids as grids
from . import reduction as reduction
from . import shaping as shaping
from . import shardy as shardy
from . import transfer as transfer
