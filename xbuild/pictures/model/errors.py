"""The error that is raised where a view or data name something that the program does not contain."""

from shape_inference.escaping import Harmless

MOST = 300  # boxes of a picture, above which it is folded


class ViewError(Harmless, ValueError):
    """Raised where a view, or data over boxes, do not fit the program."""
