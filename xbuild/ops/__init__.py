"""The strict ops, with the signatures of HLO, in one file per family.

`xbuild` itself provides convenience forms of these ops.
"""

from typing import TYPE_CHECKING

from ..core.identifiers import public_names as _public_names
from ..core.op import OPS
from .asynchronous import *
from .collectives import *
from .contraction import *
from .control_flow import *
from .conversion import *
from .elementwise import *
from .gather import *
from .leaves import *
from .linear_algebra import *
from .normalization import *
from .ordering import *
from .random import *
from .reduction import *
from .scatter import *
from .shaping import *
from .slicing import *
from .transfer import *
from .tuples import *
from .windows import *

if not TYPE_CHECKING:  # which would read a computed list as empty
    # The ops alone: no module of theirs, and nothing that these import.
    __all__ = [schema.declaration.__name__ for schema in OPS.values()]


def __dir__() -> list[str]:
    return _public_names(globals())
