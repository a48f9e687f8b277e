"""Collectives over named mesh axes, for functions given to `xbuild.shard_map`."""

from .core.identifiers import public_names as _public_names
from .variance.collectives import all_gather as all_gather
from .variance.collectives import all_gather_invariant as all_gather_invariant
from .variance.collectives import all_gather_reduced as all_gather_reduced
from .variance.collectives import all_to_all as all_to_all
from .variance.collectives import axis_index as axis_index
from .variance.collectives import axis_size as axis_size
from .variance.collectives import pbroadcast as pbroadcast
from .variance.collectives import pcast as pcast
from .variance.collectives import pmax as pmax
from .variance.collectives import pmean as pmean
from .variance.collectives import pmin as pmin
from .variance.collectives import ppermute as ppermute
from .variance.collectives import pscatter as pscatter
from .variance.collectives import psum as psum
from .variance.collectives import psum_scatter as psum_scatter
from .variance.collectives import pvary as pvary
from .variance.program import type_of as type_of


def __dir__() -> list[str]:
    return _public_names(globals())
