"""Types on a mesh: the axes along which a value may differ, collectives by axis name, regions of a mesh."""

from .program import MeshProgram as MeshProgram
from .program import ShardedFunction as ShardedFunction
from .program import shard_map as shard_map
from .specs import P as P
