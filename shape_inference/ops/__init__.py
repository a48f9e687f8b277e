"""The shape rules, one file for each family of ops; importing them fills the table."""

from . import collectives as collectives
from . import control_flow as control_flow
from . import elementwise as elementwise
from . import leaves as leaves
from . import transfer as transfer
from . import tuples as tuples
