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
    from .late_names import *
else:
    from .late_names import PLACES as _LATE

    def __getattr__(name):
        """A public name that is imported at its first use: from `interpreter`, by way of `running`, or from here."""
        module, attribute = _LATE.get(name, ("", ""))
        if name == "__version__":
            globals()[name] = _import_module("importlib.metadata").version("xbuild-hlo")
        elif name in running.PUBLIC:
            globals()[name] = getattr(running, name)
        elif module == __name__:
            globals()[name] = _import_module(f"{module}.{attribute}")
        elif module:
            globals()[name] = getattr(_import_module(module), attribute)
        else:
            hint = (
                "" if name[:1] == "_" else _import_module("xbuild.reference.names_elsewhere").hint_for(name, __dir__())
            )
            raise AttributeError(f"module 'xbuild' has no attribute {name!r}{hint}")
        return globals()[name]

    def __dir__():
        """The public names: functions, classes, element types and constants, and five modules that are namespaces."""
        kept = {name for name, thing in globals().items() if not _inspect.ismodule(thing)}
        return sorted({*kept, *_LATE, "ops"})

    __all__ = [name for name in __dir__() if not name.startswith("_") and name != "TYPE_CHECKING"]

_package_conflict.warn_of_conflict()
_tracebacks.install()
