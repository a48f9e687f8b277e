"""Pictures as stand-alone svg: with this package's layout, a light and a dark theme, and all facts on hover."""

from .document import svg_text as svg_text
