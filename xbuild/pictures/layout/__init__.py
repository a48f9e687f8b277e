"""Where everything in a picture stands: boxes, frames and lines as numbers, for whatever draws them."""

from .nesting import lay_out as lay_out
from .places import Layout as Layout
from .places import Rectangle as Rectangle
from .places import Route as Route
