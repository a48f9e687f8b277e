"""The error that is raised where a name in a view or in data is none of the program's."""

from shape_inference.escaping import Harmless

MOST = 300  # boxes of a picture that is not folded


class ViewError(Harmless, ValueError):
    """A view asks for what is not in the program."""
