"""The rules of differentiation, one file for each family of ops; importing this enters them all."""

from . import contraction as contraction
from . import elementwise as elementwise
from . import gather as gather
from . import linear_algebra as linear_algebra
from . import normalization as normalization
from . import ordering as ordering
from . import random as random
from . import scatter as scatter
from . import windows as windows
