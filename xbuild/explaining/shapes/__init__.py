"""Why an instruction has its shape, in numbers: a reason for each op."""

from ...core.op import opcodes
from . import devices as devices
from . import rearranged as rearranged
from . import sums as sums
from . import whole as whole
from .elements import elementwise
from .table import reasons as reasons

for opcode in sorted(opcodes(lambda op: op.elements == "same_place") - reasons.keys()):
    reasons.enter(opcode, elementwise)
