"""The value rules, one file for each family of ops; importing them fills the table."""

from . import collectives as collectives
from . import leaves as leaves
from . import reduction as reduction
