"""The partitioner: a global program and its shardings become one program that every device runs on its parts."""

from . import ops as ops
from .advice import Advice as Advice
from .advice import advise as advise
from .explaining import explain as explain
from .partitioned import Partitioned as Partitioned
from .partitioned import joined as joined
from .parts.holding import Tiling as Tiling
from .pricing import CommunicationCost as CommunicationCost
from .program import partition as partition
from .reasons import Communication as Communication
from .tilings import tiling as tiling
