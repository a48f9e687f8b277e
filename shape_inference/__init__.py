"""What a value looks like before it exists: shapes, and for each op the rule that infers one."""

from . import ops as ops
from . import regions as regions
from .kinds import KINDS as KINDS
from .notation import parse_program_shape as parse_program_shape
from .notation import parse_shape as parse_shape
from .rules import MissingRule as MissingRule
from .rules import RuleTable as RuleTable
from .rules import ShapeError as ShapeError
from .rules import XbuildError as XbuildError
from .rules import infer as infer
from .rules import refuse as refuse
from .rules import region_parameters as region_parameters
from .rules import require as require
from .types import *
