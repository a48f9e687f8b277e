"""Programs: build them from ops, read them, check them for deadlock, see them; `interpreter` runs them."""

from . import interrupts as interrupts
from shape_inference import *
from shape_inference.convolutions import ConvolutionDimensionNumbers as ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension as WindowDimension

from . import ops as ops
from .attributes import PaddingDimension as PaddingDimension
from .builder import Builder as Builder
from .builder import Value as Value
from .callbacks import PENDING as PENDING
from .callbacks import custom_call_target as custom_call_target
from .context import control as control
from .context import scope as scope
from .diagnostics import BuildError as BuildError
from .diagnostics import ValueUseError as ValueUseError
from .graph import Computation as Computation
from .graph import Instruction as Instruction
from .graph import Module as Module
from .graph import ModuleGroup as ModuleGroup
from .graph import Source as Source
from .lowered import from_jax as from_jax
from .derived import *  # type checkers keep the first of two, and the program the last
from .ops import *  # type: ignore[assignment]
from .derived import *
from .editing import canonical as canonical
from .editing import eliminate_dead_code as eliminate_dead_code
from .editing import Diff as Diff
from .editing import diff as diff
from .editing import Editor as Editor
from .editing import edit as edit
from .editing import extract as extract
from .editing import fingerprint as fingerprint
from .editing import repaired as repaired
from .editing import same_structure as same_structure
from .regions import computation as computation
from .scheduling import Finding as Finding
from .scheduling import Repair as Repair
from .scheduling import ScheduleError as ScheduleError
from .scheduling import Verdict as Verdict
from .scheduling import check as check
from .scheduling import schedule as schedule
from .text.faults import HloParseError as HloParseError
from .text.faults import TextFault as TextFault
from .text.reader import parse_hlo as parse_hlo
from .viz import viz as viz
