"""Why an instruction has its shape, in numbers: a reason for each op."""

from . import devices as devices
from . import elements as elements
from . import rearranged as rearranged
from . import sums as sums
from . import whole as whole
from .table import reasons as reasons
