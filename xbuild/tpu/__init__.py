"""Replicated programs with the names and arguments of TensorFlow's tf.compat.v1.tpu, for xbuild's arrays."""

from ..core.identifiers import public_names as _public_names
from . import raw_ops as raw_ops
from .arguments import TpuError as TpuError
from .arguments import TpuNestingError as TpuNestingError
from .arguments import TpuTypeError as TpuTypeError
from .arguments import placeholder_with_default as placeholder_with_default
from .collectives import all_to_all as all_to_all
from .collectives import collective_permute as collective_permute
from .collectives import cross_replica_concat as cross_replica_concat
from .collectives import cross_replica_mean as cross_replica_mean
from .collectives import cross_replica_sum as cross_replica_sum
from .context import Operation as Operation
from .context import builder as builder
from .context import core as core
from .context import device as device
from .context import group as group
from .context import no_op as no_op
from .infeed import InfeedQueue as InfeedQueue
from .infeed import OutfeedQueue as OutfeedQueue
from .infeed import outfeed_enqueue as outfeed_enqueue
from .inputs import PaddedDimension as PaddedDimension
from .inputs import PaddingSpec as PaddingSpec
from .inputs import pad_replica_inputs as pad_replica_inputs
from .optimizers import AdamOptimizer as AdamOptimizer
from .optimizers import AdamWOptimizer as AdamWOptimizer
from .optimizers import CrossShardOptimizer as CrossShardOptimizer
from .optimizers import GradientDescentOptimizer as GradientDescentOptimizer
from .optimizers import MomentumOptimizer as MomentumOptimizer
from .optimizers import Optimizer as Optimizer
from .optimizers import Reduction as Reduction
from .outside import outside_compilation as outside_compilation
from .replication import TpuProgram as TpuProgram
from .replication import XLAOptions as XLAOptions
from .replication import replicate as replicate
from .replication import rewrite as rewrite
from .sharding import batch_parallel as batch_parallel
from .sharding import shard as shard
from .system import DeviceAssignment as DeviceAssignment
from .system import System as System
from .system import Topology as Topology
from .system import device_assignment as device_assignment
from .system import initialize_system as initialize_system
from .system import shutdown_system as shutdown_system
from .system import system as system
from .variables import Variable as Variable
from .variables import assign as assign
from .variables import assign_add as assign_add
from .variables import assign_sub as assign_sub
from .variables import bfloat16_scope as bfloat16_scope
from .variables import get_variable as get_variable
from .variables import global_variables as global_variables
from .variables import glorot_uniform_initializer as glorot_uniform_initializer
from .variables import ones_initializer as ones_initializer
from .variables import random_normal_initializer as random_normal_initializer
from .variables import reset_variables as reset_variables
from .variables import trainable_variables as trainable_variables
from .variables import variable_scope as variable_scope
from .variables import zeros_initializer as zeros_initializer


def __dir__() -> list[str]:
    return _public_names(globals(), "raw_ops")
