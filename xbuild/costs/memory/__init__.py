"""Memory of a program without running it: live ranges, what shares memory, the peak and the curve."""

from .analysis import memory_of as memory_of
from .record import Curve as Curve
from .record import LiveArray as LiveArray
from .record import Memory as Memory
