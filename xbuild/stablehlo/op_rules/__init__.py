"""Reading rules of StableHLO: what each operation of MLIR becomes, as HLO ops or as a call of a computation."""

from . import arrays as arrays
from . import control_flow as control_flow
from . import devices as devices
from . import shard_dialects as shard_dialects

# These wrap rules of the modules above; quantized wraps all of them.
from . import functions as functions  # isort: skip
from . import dynamic as dynamic  # isort: skip
from . import quantized as quantized  # isort: skip
