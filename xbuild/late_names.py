"""Public names of `xbuild` that are imported at their first use, so that building programs loads no reader or check.

This is the only list of them. Type checkers evaluate the import statements. At run time they are only read: `PLACES`
maps each name to its module and its name there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter import ArgumentError as ArgumentError
    from interpreter import Finding as StrictFinding  # noqa: F401
    from interpreter import Limits as Limits
    from interpreter import Recorder as Recorder
    from interpreter import Report as Report
    from interpreter import Stopped as Stopped
    from interpreter import StrictFailure as StrictFailure
    from interpreter import StrictReport as StrictReport
    from interpreter import auto as auto
    from interpreter import engines as engines
    from interpreter import evaluate as evaluate
    from interpreter import execute as execute
    from interpreter import plan_source as plan_source
    from interpreter import trace as trace
    from interpreter.fields import Equivalence as Equivalence
    from interpreter.fields import equivalent as equivalent
    from interpreter.proving import PassProof as PassProof
    from interpreter.proving import Proof as Proof
    from interpreter.proving import prove as prove
    from interpreter.proving import prove_passes as prove_passes

    from . import guard as guard
    from . import mesh as mesh
    from . import shard as shard
    from . import testing as testing
    from . import tpu as tpu
    from .all_sizes import Scheme as Scheme
    from .all_sizes import Size as Size
    from .all_sizes import SizesVerdict as SizesVerdict
    from .all_sizes import check_all as check_all
    from .checking import Finding as Finding
    from .checking import Refused as Refused
    from .checking import Repair as Repair
    from .checking import Replication as Replication
    from .checking import ScheduleError as ScheduleError
    from .checking import Verdict as Verdict
    from .checking import check as check
    from .checking import replication as replication
    from .checking import schedule as schedule
    from .core.issues import Issue as Issue
    from .costs import CollectiveCost as CollectiveCost
    from .costs import Cost as Cost
    from .costs import CostRow as CostRow
    from .costs import LiveArray as LiveArray
    from .costs import Memory as Memory
    from .costs import cost as cost
    from .differentiation.custom_rules import custom_vjp as custom_vjp
    from .differentiation.origins import why as why
    from .differentiation.programs import grad as grad
    from .differentiation.programs import jvp as jvp
    from .differentiation.programs import value_and_grad as value_and_grad
    from .differentiation.programs import vjp as vjp
    from .editing import Diff as Diff
    from .editing import Editor as Editor
    from .editing import diff as diff
    from .editing import edit as edit
    from .editing import eliminate_dead_code as eliminate_dead_code
    from .editing import extract as extract
    from .editing import fingerprint as fingerprint
    from .editing import repaired as repaired
    from .editing import same_structure as same_structure
    from .editing.canonical import canonical as canonical
    from .explaining import Explanation as Explanation
    from .explaining import explain as explain
    from .files.jax_functions import from_jax as from_jax
    from .linting import LintReport as LintReport
    from .linting import lint as lint
    from .pages import write_page as write_page
    from .pictures import viz as viz
    from .reducing import Minimum as Minimum
    from .reducing import minimize as minimize
    from .runtimes.launches import in_flight as in_flight
    from .runtimes.record import RUNTIMES as RUNTIMES
    from .runtimes.record import Runtime as Runtime
    from .stablehlo.reading.either import parse as parse
    from .stablehlo.reading.reader import parse_stablehlo as parse_stablehlo
    from .stablehlo.reading.reader import parse_stablehlo_modules as parse_stablehlo_modules
    from .stablehlo.writing.writer import StablehloError as StablehloError
    from .testing import checked as checked
    from .text.reader import parse_hlo as parse_hlo
    from .text.reader import parse_hlo_modules as parse_hlo_modules
    from .text.scanner import HloParseError as HloParseError
    from .text.scanner import TextFault as TextFault
    from .timelines import Link as Link
    from .timelines import Machine as Machine
    from .timelines import Timeline as Timeline
    from .timelines import machine as machine
    from .timelines import timeline as timeline
    from .traces import Trace as Trace
    from .variance import P as P
    from .variance import shard_map as shard_map
else:

    class _Place:
        """A placeholder for a module, or for a member of one, while import statements are read; it is true."""

        def __init__(self, module, name=""):
            self.module, self.name = module, name

        def __getattr__(self, name):
            return _Place(self.module, name)

    def _read(name, names=None, values=None, wanted=(), level=0):
        """Replaces `__import__` while import statements are read."""
        return _Place(".".join(filter(None, ["xbuild" * level, name])))

    # Run the code of this module again with a placeholder for TYPE_CHECKING, so that the statements above are read.
    _found = {"__builtins__": {"__import__": _read}}
    exec(sys._getframe().f_code, _found)
    PLACES = {
        name: (place.module, place.name)
        for name, place in _found.items()
        if isinstance(place, _Place) and place.module.partition(".")[0] in ("xbuild", "interpreter")
    }
