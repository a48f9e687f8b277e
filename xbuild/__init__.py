"""Programs: build them from ops, read them, check them for deadlock, see them; `interpreter` runs them."""

from shape_inference import *

from . import ops as ops
from .attributes import PaddingDimension as PaddingDimension
from .builder import Builder as Builder
from .builder import Value as Value
from .context import control as control
from .context import scope as scope
from .diagnostics import BuildError as BuildError
from .graph import Computation as Computation
from .graph import Instruction as Instruction
from .graph import Module as Module
from .graph import ModuleGroup as ModuleGroup
from .graph import Source as Source
from .ops import *
from .derived import *
from .regions import computation as computation
