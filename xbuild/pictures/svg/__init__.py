"""Pictures as svg that stands alone: own layout, a light and a dark theme, every word on hover."""

from .document import svg_text as svg_text
