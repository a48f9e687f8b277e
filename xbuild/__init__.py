"""XLA programs: build them from ops, read them, check them for deadlock, run them, see them."""

import inspect as _inspect
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

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
from .core.diagnostics import MeaningWarning as MeaningWarning
from .core.diagnostics import MissingAttributeError as MissingAttributeError
from .core.diagnostics import ValueUseError as ValueUseError
from .core.graph import Computation as Computation
from .core.graph import Instruction as Instruction
from .core.graph import Module as Module
from .core.graph import ModuleGroup as ModuleGroup
from .core.graph import Source as Source
from .properties.mesh import Mesh as Mesh
from .decompositions import *
from .special_functions import *
from .array_functions import *
from .derived import *  # type checkers keep the first of two, and the program the last
from .ops import *  # type: ignore[assignment]
from .derived import *
from .core.regions import computation as computation
from . import late_binding as late_binding
from . import running as running
from .process import package_conflict as _package_conflict
from .process import tracebacks as _tracebacks
from .process.tracebacks import full_tracebacks as full_tracebacks

if TYPE_CHECKING:
    __version__: str
    from . import mesh as mesh
    from . import shard as shard
    from . import tpu as tpu
    from .files.jax_functions import from_jax as from_jax
    from .editing import eliminate_dead_code as eliminate_dead_code
    from .editing import Diff as Diff
    from .editing.canonical import canonical as canonical
    from .editing import diff as diff
    from .editing import Editor as Editor
    from .editing import edit as edit
    from .editing import extract as extract
    from .editing import fingerprint as fingerprint
    from .editing import repaired as repaired
    from .editing import same_structure as same_structure
    from .checking import Finding as Finding
    from .checking import Repair as Repair
    from .checking import Replication as Replication
    from .checking import ScheduleError as ScheduleError
    from .checking import Verdict as Verdict
    from .checking import check as check
    from .checking import replication as replication
    from .checking import schedule as schedule
    from .costs import CollectiveCost as CollectiveCost
    from .costs import Cost as Cost
    from .costs import CostRow as CostRow
    from .costs import LiveArray as LiveArray
    from .costs import Memory as Memory
    from .costs import cost as cost
    from .text.spelling.faults import HloParseError as HloParseError
    from .text.spelling.faults import TextFault as TextFault
    from .text.reading.reader import parse_hlo as parse_hlo
    from .text.reading.several import parse_hlo_modules as parse_hlo_modules
    from .stablehlo.reading.either import parse as parse
    from .stablehlo.reading.parse import parse_stablehlo as parse_stablehlo
    from .stablehlo.reading.several import parse_stablehlo_modules as parse_stablehlo_modules
    from .stablehlo.writing.support.refusals import StablehloError as StablehloError
    from .timelines import Link as Link
    from .timelines import Machine as Machine
    from .timelines import Timeline as Timeline
    from .timelines import machine as machine
    from .timelines import timeline as timeline
    from .pictures import viz as viz
    from .variance import P as P
    from .variance import shard_map as shard_map
    from .differentiation.custom_rules import custom_vjp as custom_vjp
    from .differentiation.transforms.origins import why as why
    from .differentiation.transforms.programs import grad as grad
    from .differentiation.transforms.programs import value_and_grad as value_and_grad
    from .differentiation.transforms.programs import vjp as vjp
    from .differentiation.transforms.tangents import jvp as jvp
    from .explaining import Explanation as Explanation
    from .explaining import explain as explain
    from .pages import write_page as write_page
    from .running import ArgumentError as ArgumentError
    from .running import Equivalence as Equivalence
    from .running import Limits as Limits
    from .running import Recorder as Recorder
    from .running import Refused as Refused
    from .running import Report as Report
    from .running import Stopped as Stopped
    from .running import StrictFailure as StrictFailure
    from .running import StrictFinding as StrictFinding
    from .running import StrictReport as StrictReport
    from .running import engines as engines
    from .running import equivalent as equivalent
    from .running import evaluate as evaluate
    from .running import execute as execute
    from .running import plan_source as plan_source
    from .running import trace as trace
    from .traces import Trace as Trace
else:
    from .late_names import NAMESPACES as _NAMESPACES
    from .late_names import PLACES as _LATE

    _SPACES = ("engines", "ops", *_NAMESPACES)

    def __getattr__(name):
        """A public name that is imported at its first use: from `interpreter`, by way of `running`, or from here."""
        place = _LATE.get(name)
        if name == "__version__":
            globals()[name] = _import_module("importlib.metadata").version("xbuild-hlo")
        elif name in _NAMESPACES:
            globals()[name] = _import_module(f"xbuild.{name}")
        elif place is not None:
            globals()[name] = getattr(_import_module(place), name)
        else:
            hint = "" if name[:1] == "_" else _import_module("xbuild.reference.names_elsewhere").told(name, __dir__())
            raise AttributeError(f"module 'xbuild' has no attribute {name!r}{hint}")
        return globals()[name]

    def __dir__():
        """The public names: functions, classes, element types and constants, and five modules that are namespaces."""
        kept = {name for name, thing in globals().items() if not _inspect.ismodule(thing)}
        return sorted({*kept, *_LATE, *_SPACES})

    __all__ = [name for name in __dir__() if not name.startswith("_") and name != "TYPE_CHECKING"]

_package_conflict.warn_of_conflict()
_tracebacks.install()
