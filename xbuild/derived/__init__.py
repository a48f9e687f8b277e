"""The convenience forms of the ops, and XlaBuilder functions that are not ops, in files named as in `xbuild.ops`."""

from typing import TYPE_CHECKING

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
    # The forms alone, without the submodules.
    __all__ = [name for name, form in dict(globals()).items() if name[0] != "_" and callable(form)]
