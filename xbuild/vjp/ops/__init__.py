"""The rules of differentiation, one file for each family of ops; importing this enters them all."""

from . import control_flow as control_flow
from . import conversion as conversion
from . import elementwise as elementwise
from . import leaves as leaves
from . import reduction as reduction
from . import shaping as shaping
from . import slicing as slicing
from . import tuples as tuples
