"""The derivative rules, one file for each family of ops; importing this folder registers them all."""

from . import asynchronous as asynchronous
from . import collectives as collectives
from . import contraction as contraction
from . import control_flow as control_flow
from . import conversion as conversion
from . import elementwise as elementwise
from . import gather as gather
from . import leaves as leaves
from . import linear_algebra as linear_algebra
from . import normalization as normalization
from . import ordering as ordering
from . import random as random
from . import reduction as reduction
from . import scatter as scatter
from . import shaping as shaping
from . import slicing as slicing
from . import transfer as transfer
from . import tuples as tuples
from . import windows as windows
