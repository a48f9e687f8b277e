"""Types on a mesh: along which axes a value may differ between devices, collectives by axis name, regions of a mesh."""

from .program import Program as Program
from .sharded import ShardedFunction as ShardedFunction
from .sharded import shard_map as shard_map
from .specs import P as P
