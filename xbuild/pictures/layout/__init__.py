"""Layout: positions of boxes and frames and routes of lines as numbers, for every format."""

from .nesting import lay_out as lay_out
from .places import Layout as Layout
from .places import Rectangle as Rectangle
from .places import Route as Route
