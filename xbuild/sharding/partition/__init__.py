"""The partitioner: a global program and its shardings become one program that every device runs on its parts."""

from .frame import Communication as Communication
from .partitioned import Partitioned as Partitioned
from .program import partition as partition
