"""The partitioner: turns a global program with shardings into the program that each device runs on its shards."""

from . import contraction as contraction
from . import control_flow as control_flow
from . import custom_calls as custom_calls
from . import indexing as indexing
from . import leaves as leaves
from . import moving as moving
from . import reduction as reduction
from . import windows as windows
from .explaining import Advice as Advice
from .explaining import advise as advise
from .explaining import explain as explain
from .partitioned import CommunicationCost as CommunicationCost
from .partitioned import Partitioned as Partitioned
from .partitioned import Tiling as Tiling
from .partitioned import join_parts as join_parts
from .partitioned import tiling as tiling
from .program import partition as partition
from .reasons import Communication as Communication
