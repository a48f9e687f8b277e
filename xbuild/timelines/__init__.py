"""Timelines: when each device would run each instruction, by rooflines and the alpha-beta model of links."""

from .building import timeline as timeline
from .machines import MACHINES as MACHINES
from .machines import Link as Link
from .machines import Machine as Machine
from .machines import machine as machine
from .record import ClassTimes as ClassTimes
from .record import Timeline as Timeline
