"""Rules of operations that HLO has no op for: each becomes a few ops, or a call of a computation of them."""

from .. import op_rules as op_rules  # its rules are those that rules here stand around
from . import approx_top_k as approx_top_k
from . import collectives as collectives
from . import dynamic as dynamic
from . import functions as functions
from . import inverse_functions as inverse_functions
from . import pred_bits as pred_bits
from . import quantized as quantized
from . import sized as sized
