"""Programs: build them from ops, read them, check them for deadlock, see them; `interpreter` runs them."""

from . import interrupts as interrupts
from shape_inference import *
from shape_inference.convolutions import ConvolutionDimensionNumbers as ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension as WindowDimension

from . import ops as ops
from .core.attributes import PaddingDimension as PaddingDimension
from .core.builder import Builder as Builder
from .core.builder import Value as Value
from .core.callbacks import PENDING as PENDING
from .core.callbacks import custom_call_target as custom_call_target
from .core.context import control as control
from .core.context import scope as scope
from .core.diagnostics import BuildError as BuildError
from .core.diagnostics import ValueUseError as ValueUseError
from .core.graph import Computation as Computation
from .core.graph import Instruction as Instruction
from .core.graph import Module as Module
from .core.graph import ModuleGroup as ModuleGroup
from .core.graph import Source as Source
from .properties.mesh import Mesh as Mesh
from .files.jax_functions import from_jax as from_jax
from .decompositions import *
from .special_functions import *
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
from .core.regions import computation as computation
from .checking import Finding as Finding
from .checking import Repair as Repair
from .checking import Replication as Replication
from .checking import ScheduleError as ScheduleError
from .checking import Verdict as Verdict
from .checking import check as check
from .checking import replication as replication
from .checking import schedule as schedule
from .text.spelling.faults import HloParseError as HloParseError
from .text.spelling.faults import TextFault as TextFault
from .text.reading.reader import parse_hlo as parse_hlo
from .pictures import viz as viz
from . import mesh as mesh
from .variance import P as P
from .variance import shard_map as shard_map
from .vjp.custom_rules import custom_vjp as custom_vjp
from .vjp.transforms.origins import why as why
from .vjp.transforms.programs import grad as grad
from .vjp.transforms.programs import value_and_grad as value_and_grad
from .vjp.transforms.programs import vjp as vjp
from .vjp.transforms.tangents import jvp as jvp
from . import late_binding as late_binding
