"""Runs of programs on real XLA and on the reference interpreter of StableHLO, and comparison with the results here."""

from .comparison import Compared as Compared
from .comparison import compare as compare
from .refusal import EngineError as EngineError
from .stablehlo import execute_on_stablehlo as execute_on_stablehlo
from .xla import execute_here as execute_here
from .xla import execute_on_xla as execute_on_xla
