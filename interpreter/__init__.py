"""Programs at work: a plan for each computation, a coroutine for each device, a grid of them."""

from . import ops as ops
from .limits import Limits as Limits
from .observers import Recorder as Recorder
from .plan import plan_source as plan_source
from .report import Report as Report
from .report import Stopped as Stopped
from .run import Refused as Refused
from .run import evaluate as evaluate
from .run import execute as execute
from .strict import Finding as Finding
from .strict import StrictFailure as StrictFailure
from .strict import StrictReport as StrictReport
from .tracing import trace as trace
from .values import ArgumentError as ArgumentError
