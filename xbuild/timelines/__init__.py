"""Time lines: what each device would do when on a machine, by rooflines and the alpha-beta model of links."""

from .building import timeline as timeline
from .machines import Link as Link
from .machines import Machine as Machine
from .presets import MACHINES as MACHINES
from .presets import machine as machine
from .record import ClassTimes as ClassTimes
from .record import Timeline as Timeline
