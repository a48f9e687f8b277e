"""Run programs on real XLA and on StableHLO's reference interpreter, and compare the results with those of xbuild."""

from xbuild.core.identifiers import public_names as _public_names

from .bisection import FirstDifference as FirstDifference
from .bisection import bisect as bisect
from .comparison import OutputComparison as OutputComparison
from .comparison import compare as compare
from .programs import EngineError as EngineError
from .stablehlo import execute_on_stablehlo as execute_on_stablehlo
from .xla import execute_here as execute_here
from .xla import execute_on_xla as execute_on_xla


def __dir__() -> list[str]:
    return _public_names(globals())
