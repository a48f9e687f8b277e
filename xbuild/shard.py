"""Shardings of arrays over the devices of a mesh, and the ops of MLIR's shard dialect."""

from .core.identifiers import public_names as _public_names
from .sharding.grid_ops import all_gather as all_gather
from .sharding.grid_ops import all_reduce as all_reduce
from .sharding.grid_ops import all_slice as all_slice
from .sharding.grid_ops import all_to_all as all_to_all
from .sharding.grid_ops import broadcast as broadcast
from .sharding.grid_ops import gather as gather
from .sharding.grid_ops import get_sharding as get_sharding
from .sharding.grid_ops import grid_shape as grid_shape
from .sharding.grid_ops import neighbors_linear_indices as neighbors_linear_indices
from .sharding.grid_ops import process_linear_index as process_linear_index
from .sharding.grid_ops import process_multi_index as process_multi_index
from .sharding.grid_ops import recv as recv
from .sharding.grid_ops import reduce as reduce
from .sharding.grid_ops import reduce_scatter as reduce_scatter
from .sharding.grid_ops import run as run
from .sharding.grid_ops import scatter as scatter
from .sharding.grid_ops import send as send
from .sharding.grid_ops import shard as shard
from .sharding.grid_ops import shard_shape as shard_shape
from .sharding.grid_ops import shift as shift
from .sharding.grid_ops import update_halo as update_halo
from .sharding.grids import grid as grid
from .sharding.grids import sharding as sharding
from .sharding.hlo_text import hlo_text as hlo_text
from .sharding.hlo_text import shardings as shardings
from .sharding.local_shapes import local_shape as local_shape
from .sharding.partition import Partitioned as Partitioned
from .sharding.partition import Tiling as Tiling
from .sharding.partition import advise as advise
from .sharding.partition import explain as explain
from .sharding.partition import partition as partition
from .sharding.partition import tiling as tiling
from .sharding.partition.simplifying import simplify as simplify
from .sharding.partition.simplifying import with_uses as with_uses
from .sharding.propagation import Propagated as Propagated
from .sharding.propagation import propagate as propagate
from .sharding.resharding import Costs as Costs
from .sharding.resharding import ReshardingPlan as ReshardingPlan
from .sharding.resharding import plan as plan
from .sharding.resharding_ops import reshard as reshard
from .sharding.sharding import Axis as Axis
from .sharding.sharding import DimSharding as DimSharding
from .sharding.sharding import Placement as Placement
from .sharding.sharding import Sharding as Sharding
from .sharding.shardy_text import by_spec as by_spec
from .sharding.shardy_text import dialect_sharding as dialect_sharding
from .sharding.shardy_text import dialect_text as dialect_text
from .sharding.shardy_text import shardy_mesh as shardy_mesh
from .sharding.shardy_text import shardy_mesh_text as shardy_mesh_text
from .sharding.shardy_text import shardy_shardings as shardy_shardings
from .sharding.shardy_text import shardy_text as shardy_text
from .sharding.shardy_text import spec_of as spec_of
from .sharding.stated_shardings import annotated as annotated
from .sharding.stated_shardings import mesh_of_shardings as mesh_of_shardings
from .sharding.stated_shardings import on_one_mesh as on_one_mesh
from .sharding.stated_shardings import sharding_of as sharding_of


def __dir__() -> list[str]:
    return _public_names(globals())
