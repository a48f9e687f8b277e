"""The ops, strict as HLO has them, one file for each family; `xbuild` itself has their comfortable forms."""

from .collectives import *
from .control_flow import *
from .elementwise import *
from .leaves import *
from .transfer import *
from .tuples import *
