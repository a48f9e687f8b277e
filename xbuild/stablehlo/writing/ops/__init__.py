"""The rules of the StableHLO printer, a file for each family of ops."""

from . import asynchronous as asynchronous
from . import collectives as collectives
from . import contraction as contraction
from . import control_flow as control_flow
from . import conversion as conversion
from . import elementwise as elementwise
from . import indexing as indexing
from . import leaves as leaves
from . import linear_algebra as linear_algebra
from . import random as random
from . import reduction as reduction
from . import shaping as shaping
from . import transfer as transfer
from . import tuples as tuples
from . import windows as windows
